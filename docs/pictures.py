"""The README's pictures of the page: a story that moves, and two stills.

    python docs/pictures.py [address of a running app]

Time stands still in the page while the story is photographed: it looks the same however fast the machine is.
"""

from __future__ import annotations

import io
import shutil
import sys
from contextlib import nullcontext
from pathlib import Path

from PIL import Image
from playwright.sync_api import Browser, Page, Route, ViewportSize, sync_playwright

DOCS = Path(__file__).resolve().parent
sys.path.insert(0, str(DOCS.parent))

from benchmarks.page import FLAGS, server  # noqa: E402

READY = '.explorer[data-photo][data-whole="true"][aria-busy="false"]'
STORY = 3300  # milliseconds of the opening
STEP = 100
MOST_BYTES = 1_500_000


def main() -> None:
    given = sys.argv[1:]
    with nullcontext(given[0]) if given else server("app.py") as url, sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=shutil.which("chromium"), args=FLAGS)
        save(DOCS / "story.webp", story(browser, url))
        for name, width, height, scale, scheme in (("explorer", 1440, 900, 1, "light"), ("phone", 390, 844, 2, "dark")):
            still(browser, url, width, height, scale, scheme).save(DOCS / f"{name}.webp", quality=80, method=6)
        browser.close()
    for picture in sorted(DOCS.glob("*.webp")):
        print(f"{picture.name}: {picture.stat().st_size / 1000:.0f} kB")


def still(browser: Browser, url: str, width: int, height: int, scale: int, scheme: str) -> Image.Image:
    page = browser.new_page(
        viewport=ViewportSize(width=width, height=height),
        device_scale_factor=scale,
        color_scheme="dark" if scheme == "dark" else "light",
        reduced_motion="reduce",
        has_touch=width < 700,
        is_mobile=width < 700,
    )
    page.goto(url)
    page.wait_for_selector(READY)
    page.wait_for_timeout(1000)
    taken = photographed(page)
    page.close()
    return taken


def story(browser: Browser, url: str) -> list[tuple[Image.Image, int]]:
    """Pictures, each with its milliseconds: the opening, the layers, a class, a patch."""
    page = browser.new_page(viewport=ViewportSize(width=1440, height=860), color_scheme="dark")
    page.clock.install(time=0)
    held: list[Route] = []
    page.route("**/explanation.safetensors", lambda route: held.append(route))  # until time stands still
    page.goto(url, wait_until="commit")
    page.wait_for_selector(".gradio-container .explorer .examples img", state="attached")  # Gradio has taken over
    page.wait_for_timeout(500)
    page.clock.pause_at(600_000)
    for route in held:
        route.continue_()
    while not page.locator(".pictures .later").count():
        page.clock.run_for(20)
    frames = []
    for _ in range(0, STORY, STEP):
        page.clock.run_for(STEP)
        frames.append((photographed(page), STEP))
    page.unroute("**/explanation.safetensors")
    while not page.locator(READY).count():  # all else is here
        page.clock.run_for(STEP)
        page.wait_for_timeout(20)
    frames.append((photographed(page), 900))
    layers = int(page.get_attribute('[data-part="layer"]', "max") or 0) + 1
    for layer in range(layers):
        does(page, '[data-part="layer"]', f"e => {{ e.value = {layer}; e.dispatchEvent(new Event('input')); }}")
        frames.append((photographed(page), 220 if layer < layers - 1 else 900))
    does(page, ".asks button", "e => e.click()")
    frames.append((photographed(page), 1800))
    does(page, ".asks button", "e => e.click()")  # where does it look?
    does(page, '[data-part="stage"]', PIN)
    frames.append((photographed(page), 2200))
    page.close()
    return frames


PIN = """e => {
  const { left, top, width, height } = e.getBoundingClientRect();
  e.dispatchEvent(new PointerEvent("click", { clientX: left + 0.54 * width, clientY: top + 0.54 * height }));
}"""


def does(page: Page, selector: str, action: str) -> None:
    page.locator(selector).first.evaluate(action)
    for _ in range(4):  # what is drawn later, too
        page.clock.run_for(STEP)


def photographed(page: Page) -> Image.Image:
    return Image.open(io.BytesIO(page.screenshot())).convert("RGB")


def save(path: Path, frames: list[tuple[Image.Image, int]]) -> None:
    """As well as it fits."""
    pictures = [picture.resize((1080, 645), Image.Resampling.LANCZOS) for picture, _ in frames]
    for quality in (75, 65, 55, 45, 35):
        pictures[0].save(
            path,
            save_all=True,
            append_images=pictures[1:],
            duration=[duration for _, duration in frames],
            loop=0,
            quality=quality,
            method=4,
        )
        if path.stat().st_size <= MOST_BYTES:
            return
    raise SystemExit(f"{path.name} is {path.stat().st_size:,} bytes, more than {MOST_BYTES:,}: make it shorter.")


if __name__ == "__main__":
    main()
