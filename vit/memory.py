"""Keeping memory that was freed, for speed.

glibc hands large blocks back to the system as soon as they are free, and each forward pass must have them mapped and
zeroed again, page by page. A process whose work is to run the model does better to keep them: see `benchmarks/model`.
"""

from __future__ import annotations

import ctypes
import sys
from contextlib import suppress

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


def give_back() -> None:
    """Return to the system what was kept, before memory is needed elsewhere."""
    with suppress(OSError, AttributeError):  # without glibc
        ctypes.CDLL(None).malloc_trim(0)
