"""A visitor of the page in headless Chromium, and what is drawn on the explorer's canvas."""

from __future__ import annotations

import base64
import io
import re
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import gradio as gr
import numpy as np
from PIL import Image
from playwright.sync_api import Browser, Locator, Page, expect

import vit
from vit.page import Models, build, launch_options
from vit.page.explorer.packing import given
from vit.photos.examples import example_photos
from vit.photos.files import open_photo

expect.set_options(timeout=20_000)  # two cores run the page, the model and the tests

FLAGS = [
    "--no-sandbox",
    "--disable-gpu",
    "--disable-quic",
    "--no-first-run",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
    "--use-fake-device-for-media-stream",  # a camera that shows a test picture
    "--use-fake-ui-for-media-stream",
]
LEVELS = 6  # that a colour may differ by: attention comes rounded, which can shift it to the next of 256 colours


@contextmanager
def serving(blocks: gr.Blocks) -> Iterator[str]:
    _, url, _ = blocks.queue(max_size=32).launch(prevent_thread_lock=True, quiet=True, **launch_options())
    try:
        yield url
    finally:
        blocks.close()


@contextmanager
def visiting(browser: Browser, path: str, height: int = 1000) -> Iterator[Visitor]:
    """Somebody who opens a link to the first example, on a page of their own."""
    classifier = vit.load()
    with serving(build(Models(classifier), example_photos())) as url:
        page = browser.new_page(viewport={"width": 1440, "height": height})
        visitor = Visitor(page, f"{url.rstrip('/')}/?example={example_photos()[0].stem}&{path}", classifier)
        visitor.sees(example_photos()[0])
        yield visitor
        page.close()


class Visitor:
    """Uses the page as people do. What is where on the canvas it knows from `explanation`, which the page never saw."""

    whole = False  # the whole photo is shown, not only what the model saw

    def __init__(self, page: Page, address: str, classifier: vit.Classifier, slot: str = "a") -> None:
        self.page = page
        self.slot = slot
        self.address = address
        self.classifier = classifier
        page.emulate_media(reduced_motion="reduce")  # the opening is not waited for
        page.goto(address)
        expect(page.locator("input[type=file]").first).to_be_attached()

    def part(self, name: str) -> Locator:
        return self.page.locator(f'[data-part="{name}"]')

    def text(self, name: str) -> str:
        self.settle()
        return self.part(name).text_content() or ""

    def drop(self, photo: Path) -> None:
        """A photo into the upload box, and wait for its maps."""
        self.page.set_input_files("input[type=file]", photo)
        self.sees(photo)

    def sees(self, photo: Path) -> None:
        """Wait until the explorer shows the photo with all its maps and all of the attention."""
        self.photo = open_photo(photo)
        self.explanation = self.classifier.explain(self.photo)
        classes = min(5, len(self.classifier.labels))
        maps = sum(1 if method.columns == "heads" else classes for method in given(self.explanation))
        ready = f'[data-photo="{photo.stem}"][data-maps="{maps}"][data-whole="true"][aria-busy="false"]'
        expect(self.page.locator(f".explorer{ready}").first).to_be_visible()

    def choose(self, group: str, value: object) -> None:
        """A choice, in the window of the view or out of it."""
        self.settle()  # what is out of place in another map is disabled until then
        if group == "head":
            column = {"mean": 0, "max": 1}.get(value)
            self.part("columns").locator("button").nth(value + 2 if column is None else column).click()
        elif group == "overlay":
            self.part("overlay").locator(f'input[value="{value}"]').check(force=True)
        else:
            with self.view():
                self.page.locator(f'input[name="{self.slot}-{group}"][value="{value}"]').check(force=True)

    @contextmanager
    def view(self) -> Iterator[None]:
        """The window of the view, open."""
        self.part("more").click()
        expect(self.part("more")).to_have_attribute("aria-expanded", "true")
        yield
        self.part("more").click()
        self.settle()

    def check(self, name: str, on: bool = True) -> None:
        with self.view():
            self.part("view").locator(f'[data-view="{name}"]').set_checked(on)

    def slide(self, name: str, value: int) -> None:
        if name == "layer":
            self.part("layer").fill(str(value))
            return
        with self.view():
            self.part("view").locator(f'[data-view="{name}"]').fill(str(value))

    def plain(self) -> None:
        """The map alone: its heat, opaque, without lines, patch by patch, and with its sinks."""
        self.choose("overlay", "heat")
        with self.view():
            self.part("view").locator('[data-view="opacity"]').fill("100")
            for name in ("grid", "smooth"):
                self.part("view").locator(f'[data-view="{name}"]').set_checked(False)
            if (sinks := self.part("view").locator('[data-view="leaveOut"]')).is_visible():
                sinks.set_checked(False)

    def open_share(self) -> None:
        self.part("share").click()
        expect(self.part("link")).to_be_visible()

    def box(self, width: float, height: float) -> tuple[float, ...]:
        """What the model saw, on a canvas of this size: all of it, or a part where the whole photo is shown."""
        left, top, right, bottom = self.explanation.box
        if not self.whole:
            return (0, 0, width, height)
        across, down = width / self.photo.width, height / self.photo.height
        return (left * across, top * down, right * across, bottom * down)

    def middles(self, width: float, height: float) -> tuple[np.ndarray, np.ndarray]:
        """Down and across, the middles of the patches on a canvas of this size."""
        left, top, right, bottom = self.box(width, height)
        rows, columns = self.explanation.grid
        return (
            top + (np.arange(rows) + 0.5) / rows * (bottom - top),
            left + (np.arange(columns) + 0.5) / columns * (right - left),
        )

    def point_at(self, patch: int) -> tuple[float, float]:
        """Where in the window the middle of a patch is."""
        self.part("stage").scroll_into_view_if_needed()
        bounds = self.part("stage").bounding_box()
        down, across = self.middles(bounds["width"], bounds["height"])
        row, column = divmod(patch, self.explanation.grid[1])
        return bounds["x"] + across[column], bounds["y"] + down[row]

    def hover(self, patch: int) -> None:
        self.page.mouse.move(*self.point_at(patch))
        self.settle()

    def click(self, patch: int) -> None:
        self.page.mouse.click(*self.point_at(patch))
        self.away()

    def away(self) -> None:
        """The pointer off the canvas, where it marks nothing."""
        self.page.mouse.move(2, 2)
        self.settle()

    def settle(self) -> None:
        """Until the next two frames have been drawn."""
        self.page.evaluate("() => new Promise(done => requestAnimationFrame(() => requestAnimationFrame(done)))")

    def canvas(self, part: str = "stage") -> np.ndarray:
        """The pixels of a canvas (height, width, 3)."""
        self.settle()
        data = self.part(part).evaluate("canvas => canvas.toDataURL('image/png')")
        return picture(base64.b64decode(data.partition(",")[2]))

    def patches(self) -> np.ndarray:
        """The colour in the middle of each patch (R, C, 3)."""
        pixels = self.canvas()
        down, across = self.middles(pixels.shape[1], pixels.shape[0])
        return pixels[down.astype(int)][:, across.astype(int)]

    def number(self, name: str) -> float:
        """The number in a text, percentages as shares."""
        text = self.text(name)
        value = float(re.search(r"-?[\d.]+(e-?\d+)?", text)[0])
        return value / 100 if "%" in text else value


def picture(content: bytes) -> np.ndarray:
    return np.asarray(Image.open(io.BytesIO(content)).convert("RGB")).astype(int)


def close(one: np.ndarray, other: np.ndarray) -> bool:
    return bool(np.abs(one.astype(int) - other.astype(int)).max() <= LEVELS)
