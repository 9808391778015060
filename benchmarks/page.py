"""The page beside the least that Gradio can do, in one run and in headless Chromium.

    python -m benchmarks.page

Prints as ratios: a photo dropped to its map drawn, to the answer of a bare gr.Interface with the same model and a
Label; and our page opened to its first map drawn, to an empty Blocks page. The same on a slow network, and there how
long a photo takes to its first map: an example, a small photo of one's own, and a camera's. The frames a second while a
visitor hovers and scrubs. And what a stroke of "What if" costs the server, to a forward pass of its model.
"""

from __future__ import annotations

import argparse
import os
import shutil
import socket
import subprocess
import sys
import time
import urllib.request
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from functools import partial
from itertools import cycle
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from PIL import Image
from playwright.sync_api import Browser, Page, Request, ViewportSize, sync_playwright

from vit.photos.examples import example_photos

from .report import Table
from .timing import Timing, side_by_side

ROOT = Path(__file__).resolve().parent.parent
FLAGS = ["--no-sandbox", "--disable-gpu", "--disable-quic", "--no-first-run", "--disable-background-networking"]
SLOW = dict(offline=False, latency=150, downloadThroughput=200_000, uploadThroughput=200_000)  # 1.6 Mbit/s
OPENED = "document.querySelector('.explorer[data-photo]') && new Promise(requestAnimationFrame)"
EMPTY = "document.querySelector('footer') && new Promise(requestAnimationFrame)"
DRAWN = """name => document.querySelector(`.explorer[data-photo='${name}'][aria-busy=false]`)
  && new Promise(requestAnimationFrame)"""
ANSWERED = "document.querySelector('[data-testid=label-output-value]') && new Promise(requestAnimationFrame)"
FRAMES = """async (move) => {
  const canvas = document.querySelector('[data-part=stage]'), layer = document.querySelector('[data-part=layer]');
  const bounds = canvas.getBoundingClientRect();
  const steps = {
    hover: (number) => canvas.dispatchEvent(new PointerEvent('pointermove', {
      clientX: bounds.left + bounds.width * (0.3 + 0.4 * (number % 37) / 37),
      clientY: bounds.top + bounds.height * (0.2 + 0.6 * (number % 23) / 23) })),
    scrub: (number) => { layer.value = number % 12; layer.dispatchEvent(new Event('input')); },
  };
  let frames = 0;
  const start = performance.now();
  while (performance.now() - start < 3000) {
    steps[move](frames++);
    await new Promise(requestAnimationFrame);
  }
  return frames / ((performance.now() - start) / 1000);
}"""


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--rounds", type=int, default=20)
    parser.add_argument("--serve", choices=("bare", "empty"), help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.serve:
        return serve(options.serve)
    with ExitStack() as stack:
        ours = stack.enter_context(server("app.py"))
        bare = stack.enter_context(server("-m", "benchmarks.page", "--serve", "bare"))
        empty = stack.enter_context(server("-m", "benchmarks.page", "--serve", "empty"))
        playwright = stack.enter_context(sync_playwright())
        browser = playwright.chromium.launch(executable_path=shutil.which("chromium"), args=FLAGS)
        stack.callback(browser.close)
        size = ViewportSize(width=1440, height=1000)

        page, plain = browser.new_page(viewport=size), browser.new_page(viewport=size)
        page.goto(ours)
        plain.goto(bare)
        dropped = side_by_side(
            {"ours, to the map": drops(page, DRAWN), "bare, to the label": drops(plain, ANSWERED)},
            options.rounds,
            before={"bare, to the label": lambda: clear(plain)},
        )
        print(compared("A photo dropped", dropped), flush=True)
        for network, conditions in (("", None), (" on a slow network", SLOW)):
            opened: dict[str, Callable[[], object]] = {
                "ours, to the map": partial(opens, browser, ours, OPENED, conditions),
                "empty Blocks": partial(opens, browser, empty, EMPTY, conditions),
            }
            print(compared(f"The page opened{network}", side_by_side(opened, options.rounds)), flush=True)
        with TemporaryDirectory() as folder:
            timings = chosen(browser, ours, camera_photo(Path(folder)), options.rounds)
        print(table("A photo chosen on a slow network, just after the page was opened there", timings), flush=True)
        asked: list[Request] = []
        page.on("request", lambda request: asked.append(request))
        frames = Table("Looking around", ("", "frames a second", "requests"))
        for move in ("hover", "scrub"):
            frames.add(move, f"{page.evaluate(FRAMES, move):.0f}", len(asked))
        print(frames, flush=True)
    print(compared("A stroke of What if", strokes(options.rounds)))


def strokes(rounds: int) -> dict[str, Timing]:
    """What the server does for a stroke, from the photo's file to the answer's, beside the model alone."""
    import torch

    import vit
    from vit.memory import keep_freed_memory
    from vit.page import Models
    from vit.page.handlers import Handlers
    from vit.page.modes import ModeHandlers

    keep_freed_memory()
    classifier, photo = vit.load(), example_photos()[0]
    modes = ModeHandlers(Handlers(Models(classifier)))
    image = classifier.image(photo)[None]
    asked = {"grey": [60, 61, 62], "classes": [0, 1, 2, 3, 4]}

    @torch.inference_mode()
    def alone() -> None:
        classifier.model(image)

    contenders: dict[str, Callable[[], object]] = {
        "a stroke": lambda: modes.find_what_if(str(photo), classifier.name, asked),
        "a forward pass": alone,
    }
    return side_by_side(contenders, rounds)


def table(title: str, timings: dict[str, Timing]) -> Table:
    """The median of each, and between which times half of the rounds lie."""
    found = Table(title, ("", "median (quartiles)"))
    for name, timing in timings.items():
        found.add(name, str(timing).strip())
    return found


def compared(title: str, timings: dict[str, Timing]) -> Table:
    """The same of two, with their ratio."""
    found = table(title, timings)
    first, second = timings.values()
    found.add("ratio", f"{first.median / second.median:.2f}")
    return found


def clear(page: Page) -> None:
    """A free upload box and no answer, so that the next one is seen. Ours takes the next photo as it is."""
    if (button := page.get_by_label("Remove Image")).count():
        button.first.click()
    page.wait_for_selector("input[type=file]", state="attached")
    page.wait_for_function("!document.querySelector('[data-testid=label-output-value]')")


def drops(page: Page, drawn: str) -> Callable[[], None]:
    """Drops one photo after another, each time until its answer is drawn."""
    photos = cycle(example_photos())

    def drop() -> None:
        photo = next(photos)
        page.set_input_files("input[type=file]", photo)
        page.wait_for_function(drawn, arg=photo.stem)

    return drop


def arrives(browser: Browser, url: str, shown: str, conditions: dict[str, Any] | None) -> Page:
    """A visitor who was never here: nothing is cached."""
    context = browser.new_context(viewport=ViewportSize(width=1440, height=900))
    page = context.new_page()
    page.set_default_timeout(120_000)
    if conditions:
        network = context.new_cdp_session(page)
        network.send("Network.enable")
        network.send("Network.emulateNetworkConditions", conditions)
    page.goto(url, wait_until="commit")
    page.wait_for_function(shown)
    return page


def opens(browser: Browser, url: str, shown: str, conditions: dict[str, Any] | None) -> None:
    arrives(browser, url, shown, conditions).context.close()


def chosen(browser: Browser, url: str, camera: Path, rounds: int) -> dict[str, Timing]:
    """From the choice of a photo to its first map, while the rest of the opening's is still on its way."""
    small = example_photos()[2]
    page: list[Page] = []

    def fresh() -> None:
        if page:
            page.pop().context.close()
        page.append(arrives(browser, url, OPENED, SLOW))

    def example() -> None:
        name = example_photos()[1].stem
        page[0].click(f'.examples [data-name="{name}"]')
        page[0].wait_for_function(DRAWN, arg=name)

    def own(photo: Path) -> None:
        page[0].set_input_files("input[type=file]", photo)
        page[0].wait_for_function(DRAWN, arg=photo.stem)

    contenders: dict[str, Callable[[], object]] = {
        "an example": example,
        "a small photo": lambda: own(small),
        "a camera's photo": lambda: own(camera),
    }
    return side_by_side(contenders, rounds, warm_up=1, before=dict.fromkeys(contenders, fresh))


def camera_photo(folder: Path) -> Path:
    """Twelve megapixels, some megabytes."""
    with Image.open(example_photos()[0]) as photo:
        large = photo.resize((4032, 3024))
    noise = Image.effect_noise(large.size, 40).convert("RGB")
    Image.blend(large, noise, 0.2).save(folder / "camera.jpg", quality=92)
    return folder / "camera.jpg"


@contextmanager
def server(*command: str, every: float = 0.25) -> Iterator[str]:
    """A process of its own that serves on a free port, until it answers."""
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    environment = {**os.environ, "GRADIO_SERVER_PORT": str(port), "GRADIO_ANALYTICS_ENABLED": "False"}
    process = subprocess.Popen([sys.executable, *command], cwd=ROOT, env=environment, stdout=subprocess.DEVNULL)
    url = f"http://127.0.0.1:{port}"
    try:
        for _ in range(int(240 / every)):
            try:
                urllib.request.urlopen(url).close()
                break
            except OSError:
                time.sleep(every)
        yield url
    finally:
        process.terminate()
        process.wait()


def serve(what: str) -> None:
    import gradio as gr

    import vit
    from vit.memory import keep_freed_memory

    keep_freed_memory()
    if what == "empty":
        with gr.Blocks() as blocks:
            pass
    else:
        classifier = vit.load()
        blocks = gr.Interface(
            lambda photo: None if photo is None else dict(classifier.predict(photo)),
            gr.Image(type="pil"),
            gr.Label(),
            live=True,
            flagging_mode="never",
        )
    blocks.launch(quiet=True, ssr_mode=False)


if __name__ == "__main__":
    main()
