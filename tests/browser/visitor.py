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
from playwright.sync_api import Locator, Page, expect

import vit
from vit.page import launch_options
from vit.page.explorer.packing import given
from vit.photo_files import open_photo

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


class Visitor:
    """Uses the page as people do. What is where on the canvas it knows from `explanation`, which the page never saw."""

    def __init__(self, page: Page, address: str, classifier: vit.Classifier, slot: str = "a") -> None:
        self.page = page
        self.slot = slot
        self.address = address
        self.classifier = classifier
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
        """Wait until the explorer shows the photo with all its maps."""
        self.photo = open_photo(photo)
        self.explanation = self.classifier.explain(self.photo)
        classes = min(5, len(self.classifier.labels))
        maps = sum(1 if method.columns == "heads" else classes for method in given(self.explanation))
        expect(self.page.locator(f'.explorer[data-photo="{photo.stem}"][data-maps="{maps}"]')).to_be_visible()

    def choose(self, group: str, value: object) -> None:
        self.settle()  # what is out of place in another map is disabled until then
        self.page.locator(f'input[name="{self.slot}-{group}"][value="{value}"]').check(force=True)

    def check(self, name: str, on: bool = True) -> None:
        self.page.locator(f'[data-view="{name}"]').set_checked(on)

    def slide(self, name: str, value: int) -> None:
        field = self.part("layer") if name == "layer" else self.page.locator(f'[data-view="{name}"]')
        field.fill(str(value))

    def plain(self) -> None:
        """The map alone: opaque, without grid."""
        self.slide("opacity", 100)
        self.check("grid", False)

    def box(self, width: float, height: float) -> tuple[float, ...]:
        """What the model saw, on a canvas of this size."""
        across, down = width / self.photo.width, height / self.photo.height
        return tuple(side * (down if index % 2 else across) for index, side in enumerate(self.explanation.box))

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
        self.part("photo").scroll_into_view_if_needed()
        bounds = self.part("photo").bounding_box()
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

    def canvas(self, part: str = "photo") -> np.ndarray:
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
