"""The app in a process of its own, as people start it."""

from __future__ import annotations

import os
import socket
import subprocess
import sys
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import NamedTuple

import httpx2 as httpx

ROOT = Path(__file__).resolve().parent.parent


class Served(NamedTuple):
    url: str
    process: subprocess.Popen[bytes]


@contextmanager
def app_process(
    *options: str,
    folder: Path = ROOT,
    command: Sequence[str | Path] = ("app.py",),
    python: str | Path = sys.executable,
    port: int = 0,
    **environment: str,
) -> Iterator[Served]:
    """`python app.py`, or another command, on a free port or a given one, until it answers; ended with the `with`."""
    with socket.socket() as free:
        free.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        free.bind(("127.0.0.1", port))
        port = free.getsockname()[1]
    process = subprocess.Popen(
        [str(python), *map(str, command), "--port", str(port), *options], cwd=folder, env={**os.environ, **environment}
    )
    url = f"http://127.0.0.1:{port}"
    try:
        for _ in range(480):
            try:
                httpx.get(url)
                break
            except httpx.TransportError:
                assert process.poll() is None, "it ended before it answered"
                time.sleep(0.25)
        yield Served(url, process)
    finally:
        process.terminate()
        process.wait()
