"""Opening the file of a photo that a stranger chose: it takes little memory and time, whatever it is.

Pillow's decoders of other formats than JPEG, PNG and WebP can be made to take any amount of memory. They run in a
sandbox: a process of their own, bounded in memory and time.
"""

from __future__ import annotations

import os
import subprocess
import sys
import tempfile
from contextlib import suppress
from pathlib import Path
from threading import Lock

from PIL import Image

from ..memory import give_back
from . import files
from .files import SANDBOX_SECONDS, PhotoError, has_safe_reader, open_photo

MAX_UPLOAD_BYTES = 20 << 20
# What the sandbox has of the environment: to find Pillow, and no more. A profiler would count against its memory.
SANDBOX_ENVIRONMENT = ("LD_LIBRARY_PATH", "PATH", "PYTHONHOME", "PYTHONPATH", "SYSTEMROOT")

# One at a time, here and in the sandbox: however many strangers come at once, memory is bounded.
_READING = {True: Lock(), False: Lock()}


def open_upload(path: str | Path) -> Image.Image:
    """As `open_photo`, within bounds; a sentence says nothing of the server."""
    path = Path(path)
    if not path.is_file():
        raise PhotoError(f"{path.name!r} is no longer there: choose it again.")
    if path.stat().st_size > MAX_UPLOAD_BYTES:
        raise PhotoError(f"{path.name!r} is larger than {MAX_UPLOAD_BYTES >> 20} MB: make it smaller.")
    safe = has_safe_reader(path)
    with suppress(MemoryError, subprocess.TimeoutExpired), _READING[safe]:
        return open_photo(path) if safe else _open_in_sandbox(path)
    raise PhotoError(f"{path.name!r} takes too much memory or time to open: save it as JPEG, PNG or WebP.")


def _open_in_sandbox(path: Path) -> Image.Image:
    give_back()  # so that both processes together take little
    with tempfile.TemporaryDirectory() as folder:
        opened = Path(folder, "photo.ppm")
        done = subprocess.run(
            [sys.executable, "-X", "utf8", files.__file__, path, opened],
            stdin=subprocess.DEVNULL,
            capture_output=True,
            encoding="utf-8",
            env={name: os.environ[name] for name in SANDBOX_ENVIRONMENT if name in os.environ},
            timeout=6 * SANDBOX_SECONDS,  # by the clock: the limit that it sets itself is of the processor's time
        )
        if done.returncode == 0:
            photo = open_photo(opened)
            photo.info[files.REMARKS] = done.stdout.splitlines()
            return photo
    if done.stdout:
        raise PhotoError(done.stdout.strip())
    raise MemoryError
