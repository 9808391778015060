"""Odd and hostile files: each gets a prediction or one sentence, and none takes much memory in the running app."""

import contextlib
import subprocess
import threading
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from pathlib import Path

import pytest
from gradio_client import Client, handle_file
from gradio_client.exceptions import AppError
from hostile_files import ALL, CAT, FILES, MEGABYTE, PREDICTION
from serving import app_process

import vit
from vit.photos import files

ALLOWED = 300 * MEGABYTE
LABELS = vit.load().labels
LARGEST = [
    "26 megapixels, turned.jpg",
    "108 megapixels, turned.jpg",
    "26 megapixels, clear, turned.png",
    "12 megapixels, clear.webp",
    "26 megapixels, clear.tif",
]


@pytest.fixture(scope="module")
def made(tmp_path_factory) -> Callable[[str], Path]:
    folder = tmp_path_factory.mktemp("hostile")

    def make(name: str) -> Path:
        path = folder / name
        if not path.exists():
            path.write_bytes(ALL[name][0]())
        assert path.stat().st_size <= 20 * MEGABYTE
        return path

    return make


@pytest.mark.parametrize("name", FILES)
def test_a_photo_or_a_sentence(name, made):
    expected = ALL[name][1]
    look = vit.Preprocessing(248, (224, 224)).view
    if expected == PREDICTION:
        assert look(made(name)).size == (224, 224)
    else:
        with pytest.raises(vit.PhotoError) as error:
            look(made(name))
        assert_a_sentence(str(error.value), expected)


def assert_a_sentence(said: str, expected: str) -> None:
    assert expected in said
    assert said.endswith(".") and "\n" not in said and "/" not in said


@dataclass
class Running:
    """The app, and how much memory it and the processes it starts hold."""

    process: subprocess.Popen
    client: Client
    start: int = 0

    def predict(self, path: Path) -> str:
        """The likeliest label; where there is none, the sentence."""
        try:
            return self.client.predict(photo=handle_file(str(path)), api_name="/predict")["label"]
        except AppError as error:
            return str(error)

    def explain(self, path: Path) -> str:
        """Where the explanation is."""
        return self.client.predict(photo=handle_file(str(path)), api_name="/explain")["explanation"]

    def growth(self, work: Callable[[], str]) -> tuple[str, int]:
        """What the work returns, and by how much memory had grown at its highest, since the warm-up."""
        pid = self.process.pid
        Path(f"/proc/{pid}/clear_refs").write_text("5")  # forget the highest so far
        highest, over = 0, threading.Event()

        def watch() -> None:
            nonlocal highest
            while not over.wait(0.02):
                highest = max(highest, sum(resident(each) for each in family(pid)))

        watcher = threading.Thread(target=watch)
        watcher.start()
        try:
            said = work()
        finally:
            over.set()
            watcher.join()
        return said, max(highest, resident(pid, "VmHWM")) - self.start


def resident(pid: int, field: str = "VmRSS") -> int:
    with contextlib.suppress(OSError):  # it has ended
        for line in Path(f"/proc/{pid}/status").read_text().splitlines():
            if line.startswith(field):
                return int(line.split()[1]) * 1024
    return 0


def family(pid: int) -> list[int]:
    """A process and those it started; before their program begins, their memory is its own."""
    found = [pid]
    for task in Path(f"/proc/{pid}/task").glob("*/children"):
        with contextlib.suppress(OSError):
            children = task.read_text().split()
            programs = {int(each): Path(f"/proc/{each}/cmdline").read_bytes() for each in children}
            found += [each for each, program in programs.items() if files.__file__.encode() in program]
    return found


@pytest.fixture(scope="module")
def running(tmp_path_factory):
    folder = tmp_path_factory.mktemp("app")
    with app_process(GRADIO_TEMP_DIR=str(folder)) as served:
        started = Running(served.process, Client(served.url, verbose=False))
        CAT.save(folder / "cat.jpg")
        for _ in range(5):
            started.predict(folder / "cat.jpg")
        started.start = resident(served.process.pid)
        yield started


@pytest.mark.parametrize("name", ALL)
def test_in_the_running_app(name, running, made):
    expected = ALL[name][1]
    path = made(name)
    proc = Path(f"/proc/{running.process.pid}/clear_refs")
    said, grown = running.growth(partial(running.predict, path)) if proc.exists() else (running.predict(path), 0)
    if expected == PREDICTION:
        assert said in LABELS
    else:
        assert_a_sentence(said, expected)
    print(f"{name}: {grown / MEGABYTE:.0f} MB")
    assert grown < ALLOWED
    if not proc.exists():
        pytest.skip("the outcome is right; the memory cannot be measured without /proc")


@pytest.mark.parametrize("name", LARGEST)
def test_explained_in_the_running_app(name, running, made):
    """What the page does with a photo that is dropped there."""
    if not Path("/proc/self/clear_refs").exists():
        pytest.skip("memory cannot be measured without /proc")
    path = made(name)
    said, grown = running.growth(partial(running.explain, path))
    assert said
    print(f"{name}: {grown / MEGABYTE:.0f} MB")
    assert grown < ALLOWED
