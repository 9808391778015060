"""The page beside the least that Gradio can do, in one run and in headless Chromium.

    python -m benchmarks.page

Prints as ratios: a photo dropped to its map drawn, to the answer of a bare gr.Interface with the same model and a
Label; and our page ready to use, to an empty Blocks page. And the frames a second while a visitor hovers and scrubs.
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
from itertools import cycle
from pathlib import Path

from playwright.sync_api import Browser, Page, Request, ViewportSize, sync_playwright

from .timing import Timing, side_by_side

ROOT = Path(__file__).resolve().parent.parent
PHOTOS = sorted((ROOT / "examples").glob("*.jpg"))
FLAGS = ["--no-sandbox", "--disable-gpu", "--disable-quic", "--no-first-run", "--disable-background-networking"]
DRAWN = "name => document.querySelector(`.explorer[data-photo='${name}']`) && new Promise(requestAnimationFrame)"
ANSWERED = "document.querySelector('[data-testid=label-output-value]') && new Promise(requestAnimationFrame)"
FRAMES = """async (move) => {
  const canvas = document.querySelector('[data-part=photo]'), layer = document.querySelector('[data-part=layer]');
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
        show("A photo dropped", dropped)
        ready = side_by_side(
            {
                "ours": lambda: opens(browser, ours, ".explorer .empty", "input[type=file]"),
                "empty Blocks": lambda: opens(browser, empty, "footer"),
            },
            options.rounds,
        )
        show("The page ready to use", ready)
        asked: list[Request] = []
        page.on("request", lambda request: asked.append(request))
        for move in ("hover", "scrub"):
            print(f"{move}: {page.evaluate(FRAMES, move):.0f} frames a second, {len(asked)} requests")


def show(title: str, timings: dict[str, Timing]) -> None:
    print(title)
    for name, timing in timings.items():
        print(f"  {name:20} {timing}")
    first, second = timings.values()
    print(f"  ratio                {first.median / second.median:7.2f}", flush=True)


def clear(page: Page) -> None:
    """A free upload box and no answer, so that the next one is seen. Ours takes the next photo as it is."""
    if (button := page.get_by_label("Remove Image")).count():
        button.first.click()
    page.wait_for_selector("input[type=file]", state="attached")
    page.wait_for_function("!document.querySelector('[data-testid=label-output-value]')")


def drops(page: Page, drawn: str) -> Callable[[], None]:
    """Drops one photo after another, each time until its answer is drawn."""
    photos = cycle(PHOTOS)

    def drop() -> None:
        photo = next(photos)
        page.set_input_files("input[type=file]", photo)
        page.wait_for_function(drawn, arg=photo.stem)

    return drop


def opens(browser: Browser, url: str, *shown: str) -> None:
    """A visitor who was never here: nothing is cached."""
    context = browser.new_context()
    page = context.new_page()
    page.goto(url)
    for selector in shown:
        page.wait_for_selector(selector, state="attached")
    context.close()


@contextmanager
def server(*command: str) -> Iterator[str]:
    """A process of its own that serves on a free port, until it answers."""
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    environment = {**os.environ, "GRADIO_SERVER_PORT": str(port), "GRADIO_ANALYTICS_ENABLED": "False"}
    process = subprocess.Popen([sys.executable, *command], cwd=ROOT, env=environment, stdout=subprocess.DEVNULL)
    url = f"http://127.0.0.1:{port}"
    try:
        for _ in range(240):
            try:
                urllib.request.urlopen(url).close()
                break
            except OSError:
                time.sleep(0.25)
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
