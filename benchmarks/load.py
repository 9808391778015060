"""The page under load, beside a bare gr.Interface of the same model, in one run and with real clients.

    python -m benchmarks.load [--quick] [--soak]

50 visitors, each a gradio_client of its own, ask for 10 photos each, one after the other; all photos are distinct, so
that no cache answers. Clients and server share the machine, but not their priorities. Both servers are there and warm
from the start, and are visited in turns, four times each: machines are not as fast at all times. Prints for both, as
medians of the rounds, photos a second, the median wait, and the processor's time that the server took for a photo; of
all rounds, how often a visitor was told to come again, and how many answers were right; the ratios of each round; then
how many explanations ours makes a second. In the end the server's memory over 2,000 photos, and over 200 explanations,
for which `--soak` asks alone.
"""

from __future__ import annotations

import argparse
import os
import socket
import statistics
import subprocess
import sys
import tempfile
import threading
import time
import urllib.request
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field, replace
from pathlib import Path

import torch
from gradio_client import Client, handle_file
from gradio_client.exceptions import AppError
from gradio_client.utils import QueueError
from PIL import Image

import vit
from vit.photos.examples import example_photos
from vit.precision import FLAGS, has_instructions

from .report import Table

ROOT = Path(__file__).resolve().parent.parent
BARE = "-m", "benchmarks.load", "--serve"
SOAK = {"/predict": (100, 500, 1000, 1500, 2000), "/explain": (20, 100, 200)}
SETTLING = 3.0  # seconds after the first answers, in which ours tries out precisions
CLOSE = 0.02  # of a probability: batches round otherwise


@dataclass
class Load:
    """What a crowd of visitors got."""

    seconds: float = 0.0
    waits: list[float] = field(default_factory=list)
    busy: int = 0
    right: int = 0
    server: float = 0.0  # seconds of the processor

    @property
    def rate(self) -> float:
        return len(self.waits) / self.seconds

    @property
    def median(self) -> float:
        return statistics.median(self.waits)

    @property
    def figures(self) -> tuple[float, float, float]:
        """Photos a second, the median wait, and the processor's seconds for a photo."""
        return self.rate, self.median, self.server / len(self.waits)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--visitors", type=int, default=50)
    parser.add_argument("--each", type=int, default=10, help="photos of each visitor (default: %(default)s)")
    parser.add_argument("--rounds", type=int, default=4, help="how often each is visited (default: %(default)s)")
    parser.add_argument("--quick", action="store_true", help="few photos and visitors: to see that all runs")
    parser.add_argument("--soak", action="store_true", help="the server's memory alone")
    parser.add_argument("--serve", action="store_true", help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.serve:
        return serve()
    if not options.soak:
        how = (20, 3, 1) if options.quick else (options.visitors, options.each, options.rounds)
        print(measure(*how), flush=True)
    for endpoint, counts in SOAK.items():
        print(soak((20, 40) if options.quick else counts, endpoint), flush=True)


def measure(visitors: int = 50, each: int = 10, rounds: int = 4) -> Table:
    """Ours, the bare one, their ratio, and explanations."""
    found: dict[str, list[Load]] = {"bare gr.Interface": [], "ours": []}
    count = visitors * each
    with tempfile.TemporaryDirectory() as folder, ExitStack() as servers:
        photos = distinct_photos(Path(folder), count * rounds + 2)
        expected = answers(photos)
        started = {name: servers.enter_context(server(*command)) for name, command in zip(found, (BARE, ("app.py",)))}
        for url, _ in started.values():
            crowd(url, photos[-2:], expected[-2:], 1)  # warm
        time.sleep(SETTLING)
        for turn in range(rounds):
            part = slice(turn * count, (turn + 1) * count)
            for name in list(started)[:: -1 if turn % 2 else 1]:
                url, process = started[name]
                found[name].append(crowd(url, photos[part], expected[part], visitors, process.pid))
        few = photos[: max(10, visitors)]
        explained = crowd(started["ours"][0], few, [[]] * len(few), min(10, visitors), endpoint="/explain")
    table = Table(
        f"Under load, {visitors} visitors with {each} photos each, rounds: {rounds}",
        ("/predict", "photos a second", "median wait", "busy", "right", "processor for a photo"),
    )
    for name, loads in found.items():
        rate, wait, seconds = (statistics.median(values) for values in zip(*(load.figures for load in loads)))
        right, busy = sum(load.right for load in loads), sum(load.busy for load in loads)
        table.add(name, f"{rate:.1f}", f"{wait:.2f} s", busy, f"{right} of {count * rounds}", f"{seconds * 1e3:.0f} ms")
    ratios = [[mine / its for mine, its in zip(ours.figures, bare.figures)] for bare, ours in zip(*found.values())]
    rate, wait, seconds = (statistics.median(values) for values in zip(*ratios))
    table.add("ratio", f"{rate:.2f}", f"{wait:.2f}", "", "", f"{seconds:.2f}")
    table.note = (
        f"Each round's ratios: {', '.join(f'{rate:.2f} and {wait:.2f}' for rate, wait, _ in ratios)}\n"
        f"/explain, ours: {explained.rate:.1f} a second, median wait {explained.median:.2f} s, busy {explained.busy}"
    )
    return table


def crowd(
    url: str,
    photos: list[Path],
    expected: list[list[dict[str, float]]],
    visitors: int,
    pid: int = 0,
    endpoint: str = "/predict",
) -> Load:
    """Visitors who come at once; who is told that it is busy tries again after half a second."""
    # Without certificates, which a client would read again for each request, and which http does not need. Each has a
    # name of its own, by which nginx tells them apart.
    names = [{"user-agent": f"visitor {number}"} for number in range(visitors)]
    clients = [Client(url, verbose=False, ssl_verify=False, headers=name) for name in names]
    load, changing, start = Load(), threading.Lock(), threading.Barrier(visitors + 1)

    def visit(visitor: int) -> None:
        start.wait()
        for photo, wanted in list(zip(photos, expected))[visitor::visitors]:
            begun, busy, answer = time.perf_counter(), 0, None
            while answer is None:
                try:
                    answer = clients[visitor].predict(handle_file(str(photo)), api_name=endpoint)
                except (AppError, QueueError, OSError):
                    busy += 1
                    time.sleep(0.5)
            waited = time.perf_counter() - begun
            with changing:
                load.waits.append(waited)
                load.busy += busy
                load.right += any(_same(answer["confidences"], each) for each in wanted)

    threads = [threading.Thread(target=visit, args=(visitor,)) for visitor in range(visitors)]
    for thread in threads:
        thread.start()
    start.wait()
    begun, before = time.perf_counter(), processor_time(pid)
    for thread in threads:
        thread.join()
    load.seconds, load.server = time.perf_counter() - begun, processor_time(pid) - before
    for client in clients:
        client.close()
    return load


def answers(photos: list[Path]) -> list[list[dict[str, float]]]:
    """What is right for each photo: what the model says of it alone, in each precision that a server may choose."""
    model, names = vit.load(), [name for name in FLAGS if has_instructions(name, torch.device("cpu"))]
    return [[dict(replace(model, precision=name).predict(photo)) for name in names] for photo in photos]


def _same(confidences: list[dict[str, float]], wanted: dict[str, float]) -> bool:
    found = {str(each["label"]): each["confidence"] for each in confidences}
    return all(abs(found.get(label, 0) - share) < CLOSE for label, share in wanted.items() if share > CLOSE)


def distinct_photos(folder: Path, count: int) -> list[Path]:
    """The examples, each time cut otherwise."""
    examples = [Image.open(photo).convert("RGB") for photo in example_photos()]
    photos = []
    for number in range(count):
        whole, cut = examples[number % len(examples)], 1 + number // len(examples)
        width, height = whole.size
        part = whole.crop((cut % (width // 8), cut // 2 % (height // 8), width - cut % (width // 9), height))
        part.resize((512, 384)).save(folder / f"{number:04}.jpg", quality=90)
        photos.append(folder / f"{number:04}.jpg")
    return photos


def soak(counts: tuple[int, ...], endpoint: str, visitors: int = 10) -> Table:
    """The server's memory after so many photos."""
    table = Table(f"Memory when asked to {endpoint[1:]}", ("photos", "server"))
    with tempfile.TemporaryDirectory() as folder, server("app.py") as (url, process):
        every, start = distinct_photos(Path(folder), counts[-1]), 0
        for count in counts:
            part, start = every[start:count], count
            crowd(url, part, [[]] * len(part), visitors, endpoint=endpoint)
            table.add(count, f"{resident(process.pid) / 1e6:.0f} MB")
    return table


def resident(pid: int) -> int:
    return int(Path(f"/proc/{pid}/statm").read_text().split()[1]) * os.sysconf("SC_PAGE_SIZE")


def processor_time(pid: int) -> float:
    if not pid:
        return 0.0
    fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


def free_port() -> int:
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        return free.getsockname()[1]


@contextmanager
def server(*command: str, **variables: str) -> Iterator[tuple[str, subprocess.Popen[bytes]]]:
    """A process of its own that serves on a free port, with a cache of its own, until it answers."""
    port = free_port()
    with tempfile.TemporaryDirectory() as cache:
        environment = {**os.environ, "GRADIO_SERVER_PORT": str(port), "GRADIO_TEMP_DIR": cache}
        environment |= {"GRADIO_ANALYTICS_ENABLED": "False", **variables}
        # In a session of its own, as on a machine of its own, priorities count among its own threads alone.
        process = subprocess.Popen(
            [sys.executable, *command], cwd=ROOT, env=environment, stdout=subprocess.DEVNULL, start_new_session=True
        )
        try:
            for _ in range(960):
                try:
                    urllib.request.urlopen(f"http://127.0.0.1:{port}").close()
                    break
                except OSError:
                    time.sleep(0.25)
            yield f"http://127.0.0.1:{port}", process
        finally:
            process.terminate()
            process.wait()


def serve() -> None:
    """The least that Gradio needs for the same model."""
    import gradio as gr

    from vit.memory import keep_freed_memory

    keep_freed_memory()
    classifier = vit.load()
    page = gr.Interface(
        lambda photo: dict(classifier.predict(photo)),
        gr.Image(type="pil"),
        gr.Label(),
        api_name="predict",
        flagging_mode="never",
    )
    page.launch(quiet=True, ssr_mode=False)


if __name__ == "__main__":
    main()
