"""Memory: how much there is, and keeping what was freed, or what stays, for speed.

glibc hands large blocks back to the system as soon as they are free, and each forward pass must have them mapped and
zeroed again, page by page. A process whose work is to run the model does better to keep them: see `benchmarks/model`.
"""

from __future__ import annotations

import ctypes
import gc
import sys
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

M_TRIM_THRESHOLD, M_MMAP_THRESHOLD, M_ARENA_MAX = -1, -3, -8  # from malloc.h
MEGABYTE = 1 << 20


def keep_freed_memory() -> bool:
    """Let this process keep up to half a gigabyte of what it freed; blocks over 64 MB still go back at once.

    True where it took effect: on Linux with glibc. For programs to call as they start, not for libraries.
    """
    if not sys.platform.startswith("linux"):
        return False
    try:
        mallopt = ctypes.CDLL(None).mallopt
    except (OSError, AttributeError):
        return False
    settings = {M_MMAP_THRESHOLD: 64 * MEGABYTE, M_TRIM_THRESHOLD: 512 * MEGABYTE, M_ARENA_MAX: 1}
    return all(mallopt(name, value) == 1 for name, value in settings.items())


@contextmanager
def all_stays() -> Iterator[None]:
    """What is made inside stays: no garbage is looked for in it, now or later. For programs to use as they start.

    In what comes afterwards it is looked for less often than by default, as that holds up all threads: together with
    what stays, it took 15 % of the time under load.
    """
    gc.disable()
    try:
        yield
        gc.freeze()  # with some 10,000 things of 300,000 that are garbage: to look for them takes a quarter of a second
        gc.set_threshold(10_000, 10, 10)
    finally:
        gc.enable()


def available() -> int | None:
    """Bytes that can be had without swapping; None where the system does not say."""
    with suppress(OSError, ValueError, StopIteration):  # beyond Linux
        lines = Path("/proc/meminfo").read_text(encoding="ascii").splitlines()
        return 1024 * int(next(line for line in lines if line.startswith("MemAvailable:")).split()[1])
    return None


def give_back() -> None:
    """Return to the system what was kept, before memory is needed elsewhere."""
    with suppress(OSError, AttributeError):  # without glibc
        ctypes.CDLL(None).malloc_trim(0)
