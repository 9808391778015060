"""From `python app.py` to its first answer, beside a bare gr.Interface with the same model.

    python -m benchmarks.start

Each is started in a process of its own, and asked over its API for what is in a photo as soon as it listens. Beside
them, as most of both is imports: `import gradio` and `import torch` alone.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
import time
import urllib.request
from collections.abc import Callable
from functools import partial

from vit.photos.examples import example_photos

from .page import ROOT, server
from .report import Table, arguments
from .timing import side_by_side

BARE = "-m", "benchmarks.load", "--serve"


def answer(*command: str) -> None:
    """Start a server, wait until it listens, and ask it what is in a photo."""
    with server(*command, every=0.05) as url:
        api = f"{url}/gradio_api"
        with urllib.request.urlopen(_upload(api)) as sent:
            [path] = json.load(sent)
        photo = {"path": path, "meta": {"_type": "gradio.FileData"}}
        with urllib.request.urlopen(f"{api}/info") as found:
            parameters = json.load(found)["named_endpoints"]["/predict"]["parameters"]
        data = json.dumps({"data": [photo, *(each["parameter_default"] for each in parameters[1:])]}).encode()
        request = urllib.request.Request(f"{api}/call/predict", data, {"Content-Type": "application/json"})
        with urllib.request.urlopen(request) as asked:
            event = json.load(asked)["event_id"]
        with urllib.request.urlopen(f"{api}/call/predict/{event}") as answered:
            said = answered.read().decode()
        assert "event: complete" in said, said


def _upload(api: str) -> urllib.request.Request:
    photo, boundary = example_photos()[0], "boundary"
    head = f'--{boundary}\r\nContent-Disposition: form-data; name="files"; filename="{photo.name}"\r\n\r\n'
    body = head.encode() + photo.read_bytes() + f"\r\n--{boundary}--\r\n".encode()
    return urllib.request.Request(f"{api}/upload", body, {"Content-Type": f"multipart/form-data; boundary={boundary}"})


def imports(name: str) -> None:
    subprocess.run([sys.executable, "-c", f"import {name}"], cwd=ROOT, check=True, env=dict(os.environ))


def measure(rounds: int = 5) -> list[Table]:
    contenders: dict[str, Callable[[], object]] = {
        "app.py to its first answer": partial(answer, "app.py"),
        "a bare gr.Interface to its first answer": partial(answer, *BARE),
        "import gradio": partial(imports, "gradio"),
        "import torch": partial(imports, "torch"),
        "import vit": partial(imports, "vit"),
    }
    times = side_by_side(contenders, rounds, warm_up=1)
    bare = times["a bare gr.Interface to its first answer"].median
    table = Table("Start", ("", "seconds", "÷ the bare gr.Interface"))
    for name, timing in times.items():
        table.add(name, f"{timing.median:.1f}", f"{timing.median / bare:.2f}")
    return [table]


def main() -> None:
    parser = arguments(__doc__)
    parser.add_argument("--rounds", type=int, default=5, help="how often each is started (default: %(default)s)")
    options = parser.parse_args()
    started = time.perf_counter()
    for table in measure(options.rounds):
        print(table)
    print(f"{time.perf_counter() - started:.0f} s")


if __name__ == "__main__":
    main()
