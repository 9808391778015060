"""Two processes behind nginx, as docs/hosting.md has them, beside one, in one run and with real clients.

    python -m benchmarks.hosting

The visitors and photos of `benchmarks.load`. The two processes share the cores that the one has to itself.
"""

from __future__ import annotations

import argparse
import os
import shutil
import subprocess
import sys
import tempfile
import time
import urllib.request
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

from .load import ROOT, SETTLING, answers, crowd, distinct_photos, free_port, server
from .report import Table

NGINX = shutil.which("nginx", path="/usr/sbin:/usr/bin:/usr/local/sbin")
WRITTEN = "127.0.0.1:7861", "127.0.0.1:7862", "127.0.0.1:8080"  # two processes and nginx, in docs/hosting.md


@contextmanager
def behind_nginx(urls: Sequence[str], folder: Path) -> Iterator[str]:
    """The configuration of docs/hosting.md, with the real nginx, for these two processes."""
    assert NGINX is not None
    here = [*(url.removeprefix("http://") for url in urls), f"127.0.0.1:{free_port()}"]
    text = (ROOT / "docs" / "hosting.md").read_text(encoding="utf-8").partition("```nginx\n")[2].partition("```")[0]
    for written, address in zip(WRITTEN, here, strict=True):
        assert text.count(written) == 1
        text = text.replace(written, address)
    (folder / "nginx.conf").write_text(text)
    process = subprocess.Popen([NGINX, "-p", folder, "-e", "stderr", "-c", "nginx.conf"])
    try:
        for _ in range(40):
            try:
                urllib.request.urlopen(f"http://{here[-1]}").close()
                break
            except OSError:
                time.sleep(0.25)
        yield f"http://{here[-1]}"
    finally:
        process.terminate()
        process.wait()


def measure(visitors: int = 50, each: int = 10) -> Table:
    table = Table(
        f"Behind nginx, {visitors} visitors with {each} photos each",
        ("/predict", "photos a second", "median wait", "busy", "right"),
    )
    cores = os.cpu_count() or 1
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        photos = distinct_photos(folder, visitors * each)
        expected = answers(photos)
        found = {}
        with server("app.py") as (url, _):
            crowd(url, photos[:2], expected[:2], 1)  # warm
            time.sleep(SETTLING)
            found["one process"] = crowd(url, photos, expected, visitors)
        shared = {"GRADIO_TEMP_DIR": str(folder / "files"), "OMP_NUM_THREADS": str(max(1, cores // 2))}
        with server("app.py", **shared) as (one, _), server("app.py", **shared) as (other, _):
            for url in (one, other):
                crowd(url, photos[:2], expected[:2], 1)
            time.sleep(SETTLING)
            with behind_nginx((one, other), folder) as url:
                found["two behind nginx"] = crowd(url, photos, expected, visitors)
    for title, load in found.items():
        right = f"{load.right} of {len(load.waits)}"
        table.add(title, f"{load.rate:.1f}", f"{load.median:.2f} s", load.busy, right)
    first, second = found.values()
    table.add("ratio", f"{second.rate / first.rate:.2f}", f"{second.median / first.median:.2f}", "", "")
    table.note = f"{cores} cores, shared with the clients"
    return table


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--quick", action="store_true", help="3 photos of each of 20 visitors: to see that all runs")
    options = parser.parse_args()
    if NGINX is None:
        sys.exit("This needs nginx, from your system's packages.")
    print(measure(20, 3) if options.quick else measure())


if __name__ == "__main__":
    main()
