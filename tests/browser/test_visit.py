"""A visit from the first photo to what is taken away: upload, examples, keyboard, phone, models, exports, links."""

import base64
import re
import threading
from contextlib import contextmanager
from itertools import pairwise
from pathlib import Path
from urllib.parse import parse_qs, urlparse

import numpy as np
import pillow_heif
import pytest
from axe_playwright_python.sync_playwright import Axe
from browser.visitor import Visitor, close, picture, serving
from conftest import SKIMAGE, randomise
from gradio.utils import get_upload_folder
from hub_server import HubServer, Trouble
from hub_server import visit as visit_hub
from huggingface_hub import constants
from peers import PEERS
from PIL import Image
from playwright.sync_api import expect
from serving import ROOT, app_process

import vit
from vit.explain import drawing
from vit.explain.explanation import NEEDS
from vit.explain.methods import METHODS
from vit.page import Models, build
from vit.page.explorer import packing
from vit.page.handlers import Handlers
from vit.page.models import REGISTERS
from vit.photos.examples import example_photos

CAT = SKIMAGE / "chelsea.png"
EXAMPLES = {photo.stem: photo for photo in example_photos()}


@pytest.fixture(scope="module")
def classifier():
    return vit.load()


@pytest.fixture(scope="module")
def address(classifier):
    with serving(build(Models(classifier), example_photos())) as url:
        yield url


@pytest.fixture
def visit(browser, address, classifier):
    """Opens the page: visit(width=390, color_scheme="dark", path="?…")."""
    contexts = []

    def open_page(url=address, classifier=classifier, path="", width=1440, height=1000, **options):
        contexts.append(browser.new_context(viewport={"width": width, "height": height}, **options))
        return Visitor(contexts[-1].new_page(), url.rstrip("/") + "/" + path, classifier)

    yield open_page
    for context in contexts:
        context.close()


def test_photos_of_any_shape(visit, photos, tmp_path):
    visitor = visit()
    for number, photo in enumerate(photos):
        photo.save(path := tmp_path / f"photo-{number}.png")
        visitor.drop(path)
        visitor.plain()
        assert close(visitor.patches(), drawing.heat(visitor.explanation.class_attention()[11]))
        height, width, _ = visitor.canvas().shape
        left, top, right, bottom = visitor.explanation.box
        assert width / height == pytest.approx((right - left) / (bottom - top), rel=0.02)  # what the model saw


@pytest.mark.parametrize("size", [(4000, 700), (700, 4000)])
def test_all_of_a_panorama_or_a_tower_is_large_and_is_scrolled(visit, photos, tmp_path, size):
    photos[1].resize(size).save(path := tmp_path / "long.png")
    visitor = visit()
    visitor.drop(path)
    visitor.plain()
    visitor.check("whole")
    visitor.whole = True
    assert close(visitor.patches(), drawing.heat(visitor.explanation.class_attention()[11]))
    height, width, _ = visitor.canvas().shape
    stage = visitor.part("scroller").bounding_box()
    assert max(width, height) / min(width, height) == pytest.approx(4000 / 700, rel=0.01)
    assert min(width, height) >= 0.95 * stage["height"]
    visitor.hover(7 * 14 + 7)  # what the model saw is in the middle
    expect(visitor.part("patch-text")).to_be_visible()
    assert visitor.page.evaluate("document.documentElement.scrollWidth") <= 1440


def test_a_photo_unlike_the_training_photos_gets_that_said(visit):
    visitor = visit(path="?example=pizza&model=foodvision-101", classifier=vit.load("foodvision-101"))
    visitor.sees(EXAMPLES["pizza"])
    for name, unfamiliar in (("chameleon", True), ("pizza", False)):
        visitor.drop(EXAMPLES[name])
        assert visitor.explanation.unfamiliar is unfamiliar
        expect(visitor.part("unfamiliar")).to_be_visible(visible=unfamiliar)
    visitor.drop(EXAMPLES["chameleon"])
    expect(visitor.part("unfamiliar")).to_have_text("I don’t know photos like this. My best guess:")
    label, probability = visitor.classifier.predict(EXAMPLES["chameleon"])[0]
    expect(visitor.part("answer")).to_have_text(f"{label}, {100 * probability:.0f} %?")
    expect(visitor.part("other")).to_have_text("Ask Everyday: it knows 1,097 things and dishes")


def test_a_guess_is_called_one(visit, tmp_path):
    visitor = visit()
    noise = np.random.default_rng(0).integers(0, 255, (300, 400, 3), np.uint8)
    Image.fromarray(noise).save(path := tmp_path / "noise.png")
    visitor.drop(path)
    assert visitor.classifier.predict(path)[0][1] < 0.25
    expect(visitor.part("unfamiliar")).to_have_text("I am not sure. My best guess:")
    visitor.drop(EXAMPLES["pizza"])
    expect(visitor.part("unfamiliar")).to_be_hidden()


def test_transparency_and_few_pixels_get_a_word(visit, tmp_path):
    visitor = visit()
    visitor.sees(example_photos()[0])
    expect(visitor.part("remarks")).to_be_hidden()
    Image.new("RGBA", (20, 16), (200, 30, 30, 128)).save(tmp_path / "small.png")
    visitor.drop(tmp_path / "small.png")
    expect(visitor.part("remarks")).to_have_text(
        "Transparent parts are shown on white. A very small photo, 20 × 16 pixels: it is enlarged."
    )


def test_a_cameras_photo_is_sent_smaller(visit, photos, tmp_path):
    noise = Image.effect_noise((3000, 2000), 60).convert("RGB")
    Image.blend(photos[0].resize(noise.size), noise, 0.3).save(path := tmp_path / "camera.jpg", quality=92)
    assert path.stat().st_size > 2_000_000
    visitor = visit()
    visitor.sees(example_photos()[0])
    visitor.drop(path)
    latest = max(Path(get_upload_folder()).glob("*/camera.jpg"), key=lambda sent: sent.stat().st_mtime)
    assert latest.stat().st_size < 400_000
    with Image.open(latest) as sent:
        assert sent.size == (1024, 683)
    assert visitor.text("answer").startswith(visitor.classifier.predict(path)[0][0] + ", ")
    visitor.plain()
    found, expected = visitor.patches(), drawing.heat(visitor.explanation.class_attention()[11])
    assert np.abs(found - expected.astype(int)).mean() < 12  # nearly what it sees of the whole file


def test_a_phones_photo_lies_upright(visit, photos, tmp_path):
    exif = Image.Exif()
    exif[0x0112] = 6  # to be turned by 90 degrees
    photos[0].save(path := tmp_path / "turned.jpg", exif=exif)
    visitor = visit()
    visitor.drop(path)
    visitor.check("whole")
    height, width, _ = visitor.canvas().shape
    assert width / height == pytest.approx(photos[0].height / photos[0].width, rel=0.02)


def test_each_example(visit):
    visitor = visit()
    buttons = visitor.page.locator(".examples button")
    assert buttons.count() == len(example_photos()) == 14
    for number, photo in enumerate(example_photos()):
        buttons.nth(number).click()
        expect(buttons.nth(number)).to_have_attribute("aria-pressed", "true")
        visitor.sees(photo)
        visitor.plain()
        label, _ = visitor.classifier.predict(photo)[0]
        expect(visitor.part("answer")).to_contain_text(f"{label}, ")
        assert close(visitor.patches(), drawing.heat(visitor.explanation.class_attention()[11]))


def test_a_photo_is_dropped_anywhere_on_the_page(visit):
    visitor = visit()
    visitor.page.evaluate(
        """([numbers, name]) => {
            const dropped = new DataTransfer();
            dropped.items.add(new File([new Uint8Array(numbers)], name, { type: "image/png" }));
            const drop = new DragEvent("drop", { dataTransfer: dropped, bubbles: true });
            document.querySelector("footer").dispatchEvent(drop);
        }""",
        [list(CAT.read_bytes()), CAT.name],
    )
    visitor.sees(CAT)


def test_a_photo_is_taken(visit):
    visitor = visit(permissions=["camera"])
    visitor.part("own").click()
    visitor.page.get_by_role("button", name="Camera").click()
    visitor.page.wait_for_function("document.querySelector('[data-part=finder]').videoWidth > 0")
    _no_violation(visitor)
    visitor.page.get_by_role("button", name="Take the photo").click()
    expect(visitor.page.locator('.explorer[data-photo="photo"]')).to_be_visible()
    expect(visitor.part("shutter")).to_be_hidden()


def test_a_photo_is_pasted(visit):
    visitor = visit(permissions=["clipboard-read", "clipboard-write"])
    visitor.page.evaluate(
        """async (numbers) => {
            const blob = new Blob([new Uint8Array(numbers)], { type: "image/png" });
            await navigator.clipboard.write([new ClipboardItem({ "image/png": blob })]);
        }""",
        list(CAT.read_bytes()),
    )
    visitor.part("own").click()
    visitor.page.get_by_role("button", name="Paste").click()
    expect(visitor.part("classes").locator("span").first).to_have_text(visitor.classifier.predict(CAT)[0][0])


def test_a_file_that_is_no_photo_gets_a_sentence_and_loses_nothing(visit, tmp_path):
    visitor = visit()
    (tmp_path / "text.png").write_text("hello")
    said = visitor.page.get_by_text("'text.png' is not a photo that can be read: save it as JPEG, PNG or WebP.")
    for before in (None, EXAMPLES["sushi"]):
        if before:
            visitor.drop(before)
        visitor.page.set_input_files("input[type=file]", tmp_path / "text.png")
        expect(said).to_be_visible()
        visitor.page.get_by_label("Close").click()
    visitor.plain()
    assert close(visitor.patches(), drawing.heat(visitor.explanation.class_attention()[11]))
    assert _save(visitor, "save-arrays")[1] == "sushi.npz"
    visitor.part("close").click()
    choose_model(visitor, "FoodVision Mini")
    expect(visitor.part("model-name")).to_have_text("FoodVision Mini")
    visitor.page.set_input_files("input[type=file]", tmp_path / "text.png")
    expect(said).to_be_visible()  # the same file, said again


def choose_model(visitor, name):
    visitor.part("model").click()
    visitor.part("model-list").locator("button").filter(has_text=name).first.click()


def test_the_last_photo_counts(visit, photos, tmp_path):
    """A large file is still being sent when a small one is chosen."""
    photos[0].resize((4000, 3000)).save(tmp_path / "large.png", compress_level=1)
    visitor = visit()
    visitor.page.set_input_files("input[type=file]", tmp_path / "large.png")
    visitor.page.set_input_files("input[type=file]", EXAMPLES["pizza"])
    visitor.sees(EXAMPLES["pizza"])
    visitor.page.wait_for_timeout(1500)
    expect(visitor.page.locator('.explorer[data-photo="pizza"]')).to_be_visible()


def test_a_photo_that_is_no_longer_kept_gets_a_sentence(visit, photos, tmp_path, monkeypatch):
    monkeypatch.setattr(packing, "MOST_BYTES", 0)
    visitor = visit()
    photos[1].save(tmp_path / "old.png")
    visitor.drop(tmp_path / "old.png")
    for kept in Path(get_upload_folder()).glob("*/old.png"):
        kept.unlink()
    visitor.open_share()
    visitor.part("save-arrays").click()
    said = visitor.page.get_by_text("The photo is no longer kept here: choose it again.")
    expect(said).to_be_visible()
    visitor.part("close").click()
    visitor.page.get_by_label("Close").click()
    visitor.click(100)
    expect(said).to_be_visible()
    expect(visitor.part("working")).to_be_hidden()  # back to the class token, whose look is here
    expect(visitor.part("back")).to_be_hidden()


def test_examples_work_wherever_the_app_is_started(browser, classifier, tmp_path):
    with app_process(folder=tmp_path, command=[ROOT / "app.py"]) as (url, _):
        page = browser.new_page()
        visitor = Visitor(page, url + "/?example=pizza", classifier)
        visitor.sees(EXAMPLES["pizza"])
        page.get_by_role("button", name="sushi").click()
        visitor.sees(EXAMPLES["sushi"])
        page.close()


def test_a_file_that_is_too_large_gets_a_sentence(visit, tmp_path):
    visitor = visit()
    (tmp_path / "large.png").write_bytes(bytes(21_000_000))
    visitor.page.set_input_files("input[type=file]", tmp_path / "large.png")
    expect(visitor.part("said")).to_contain_text("The photo could not be sent: ")
    visitor.drop(EXAMPLES["pizza"])
    expect(visitor.part("said")).to_be_empty()


def test_the_keyboard(visit):
    visitor = visit()
    visitor.drop(EXAMPLES["pizza"])
    visitor.plain()
    visitor.part("stage").focus()
    press, e = visitor.page.keyboard.press, visitor.explanation
    for _ in range(3):
        press("ArrowLeft")
    press("ArrowDown")
    assert close(visitor.patches(), drawing.heat(e.class_attention("max")[8]))
    press("ArrowDown")
    press("ArrowRight")
    assert close(visitor.patches(), drawing.heat(e.class_attention(0)[9]))
    for key in ("Shift+ArrowRight", "Shift+ArrowUp"):
        press(key)
    visitor.settle()
    expect(visitor.part("spoken")).to_contain_text("The patch in row 7, column 9")  # from the middle, 8 and 8
    press("Enter")
    expect(visitor.part("title")).to_have_text("What the patch in row 7, column 9 looks at, layer 10, head 1")
    expect(visitor.part("spoken")).to_contain_text("What the patch in row 7, column 9 looks at, layer 10, head 1")
    press("Escape")
    assert close(visitor.patches(), drawing.heat(e.class_attention(0)[9]))
    press("ArrowRight")
    expect(visitor.part("spoken")).to_contain_text("What the class token looks at, layer 11, head 1. Highest value")


def test_the_stage_is_reached_by_six_tabs(visit):
    visitor = visit()
    visitor.sees(example_photos()[0])
    reached = []
    for _ in range(6):
        visitor.page.keyboard.press("Tab")
        reached.append(visitor.page.evaluate("document.activeElement.dataset.part"))
    assert "stage" in reached, reached


def test_everything_is_reached_by_tab(visit):
    visitor = visit()
    visitor.drop(EXAMPLES["pizza"])
    visitor.part("classes").locator("button.class").first.click()
    visitor.page.evaluate("document.activeElement.blur()")
    reached = set()
    for _ in range(50):
        visitor.page.keyboard.press("Tab")
        reached.add(
            visitor.page.evaluate(
                """() => { const at = document.activeElement; return at.dataset.part ?? at.dataset.term
                    ?? (at.dataset.name ? "example" : at.dataset.place ? "column" : at.name || at.className); }"""
            )
        )
    assert {"model", "own", "example", "stage", "more", "column", "unfold", "play", "layer"} <= reached
    assert {"present", "help", "share", "a-overlay", "class", "less", "attention", "softmax"} <= reached


def test_a_projector_by_one_key(visit):
    visitor = visit()
    visitor.sees(example_photos()[0])
    small = visitor.part("answer").evaluate("e => parseFloat(getComputedStyle(e).fontSize)")
    visitor.page.keyboard.press("p")
    expect(visitor.part("pipeline")).to_be_hidden()
    expect(visitor.part("share")).to_be_hidden()
    visitor.settle()
    assert visitor.part("answer").evaluate("e => parseFloat(getComputedStyle(e).fontSize)") > 1.2 * small
    visitor.page.keyboard.press("ArrowLeft")
    expect(visitor.part("layer")).to_have_value("10")
    for part in ("stage", "answer", "layer"):
        expect(visitor.part(part)).to_be_in_viewport(ratio=0.99)
    visitor.page.keyboard.press("Escape")
    expect(visitor.part("pipeline")).to_be_visible()


@pytest.mark.parametrize(
    "width, height", [(390, 844), (768, 1024), (1000, 800), (1440, 900), (1920, 1080), (2560, 1440)]
)
def test_stage_and_answer_are_seen_without_scrolling(visit, width, height):
    visitor = visit(width=width, height=height)
    visitor.sees(example_photos()[0])
    for part in ("stage", "answer"):
        expect(visitor.part(part)).to_be_in_viewport(ratio=0.99)
    assert visitor.page.evaluate("document.documentElement.scrollWidth") <= width
    if width >= 1440:
        expect(visitor.part("pipeline")).to_be_in_viewport(ratio=0.99)
        bounds = visitor.page.evaluate(
            """() => { const all = [...document.querySelectorAll('.photos, .side, .stage-area')]
                .map((part) => part.getBoundingClientRect());
            return [Math.min(...all.map(({ left }) => left)), Math.max(...all.map(({ right }) => right))]; }"""
        )
        assert bounds[0] == pytest.approx(width - bounds[1], abs=24)  # in the middle
        assert bounds[1] - bounds[0] > 0.7 * width


@pytest.mark.parametrize("width, height", [(390, 844), (768, 1024), (1000, 800), (1280, 720), (1440, 900)])
def test_nothing_is_cut_off_and_what_unfolds_moves_nothing_aside(visit, width, height):
    visitor = visit(width=width, height=height, path="?photo=own")
    visitor.sees(example_photos()[0])
    assert visitor.part("model-name").evaluate("e => e.scrollWidth <= e.clientWidth")
    with visitor.view():
        bounds = visitor.part("view").bounding_box()
        assert bounds["y"] >= 0 and bounds["y"] + bounds["height"] <= height
    places = [visitor.part(part).bounding_box()["x"] for part in ("stage", "answer")]
    visitor.part("unfold").click()
    expect(visitor.part("sheet")).to_be_visible()
    assert [visitor.part(part).bounding_box()["x"] for part in ("stage", "answer")] == places


@pytest.mark.parametrize("height", [700, 900, 1000])
@pytest.mark.parametrize("shown", ["", "&map=relevance&class=0&against=1", "&patch=87&head=1"])
def test_the_layer_stays_in_the_caption(visit, height, shown):
    visitor = visit(height=height, path=f"?example=spaghetti&layer=8&task=Where+does+it+look%3F{shown}")
    visitor.sees(EXAMPLES["spaghetti"])
    where, title = visitor.part("where"), visitor.part("title-line").bounding_box()
    expect(where).to_contain_text("layer 9")
    cut = """e => { const clip = e.parentElement.getBoundingClientRect(); const own = e.getBoundingClientRect();
        return own.bottom > clip.bottom + 1 || own.right > clip.right + 1 || e.scrollWidth > e.clientWidth + 1; }"""
    assert not where.evaluate(cut)
    strip = visitor.part("strip").bounding_box()
    assert title["y"] + title["height"] <= strip["y"] + 1


@pytest.mark.parametrize("width, height", [(1000, 800), (1440, 900), (1920, 1080), (2560, 1440)])
def test_how_sure_it_was_stands_at_each_layer(visit, width, height):
    visitor = visit(width=width, height=height, path="?example=spaghetti")
    visitor.sees(EXAMPLES["spaghetti"])
    places = """() => [...document.querySelectorAll('.pictures p')].map((name) => {
        const words = document.createRange(); words.selectNodeContents(name);
        const { left, right, top, bottom } = words.getBoundingClientRect(); return [left, right, top, bottom]; })"""
    strip, tops = visitor.part("layers").bounding_box(), set()
    for layer, [(label, share)] in enumerate(visitor.explanation.decided(1)):
        visitor.slide("layer", layer)
        now = visitor.page.locator(".pictures .now p")
        expect(now).to_have_text(re.compile(rf"^{layer + 1} · [\d.<> ]+ %$"))
        said = re.search(r"· .*?([\d.]+) %", now.text_content())
        assert float(said[1]) == pytest.approx(100 * share, rel=0.06, abs=0.051)
        names = visitor.page.evaluate(places)
        assert all(one[1] + 3 < other[0] for one, other in pairwise(names))  # none over another
        assert names[-1][1] < width and visitor.part("layers").bounding_box() == strip
        tops.add(tuple(name[2] for name in names))
        visitor.part("ribbon").hover(position={"x": strip_place(visitor, layer), "y": 8})
        title = visitor.part("strip").get_attribute("title")
        assert title.startswith(f"Layer {layer + 1}: {label}, ") and title.endswith(said[1] + " %")
    assert len(tops) == 1  # nothing moves
    assert visitor.page.evaluate("document.documentElement.scrollWidth") <= width


def strip_place(visitor, layer):
    return (layer + 0.5) / 12 * visitor.part("ribbon").bounding_box()["width"]


def test_few_words_are_on_the_first_screen(visit):
    visitor = visit(height=900)
    visitor.sees(example_photos()[0])
    words = visitor.page.evaluate(
        """() => {
            const walker = document.createTreeWalker(document.body, NodeFilter.SHOW_TEXT);
            const words = [];
            for (let node = walker.nextNode(); node; node = walker.nextNode()) {
                const range = document.createRange();
                range.selectNodeContents(node);
                const { width, height, top } = range.getBoundingClientRect();
                const seen = node.parentElement.checkVisibility({ visibilityProperty: true });
                if (width > 1 && height > 1 && top < innerHeight && seen && !node.parentElement.closest(".spoken"))
                    words.push(...(node.textContent.match(/[a-zA-Z]{2,}/g) ?? []));
            }
            return words;
        }"""
    )
    assert 30 < len(words) <= 110, words


def test_a_phone_by_touch(visit):
    visitor = visit(width=390, has_touch=True, is_mobile=True, device_scale_factor=2)
    visitor.drop(EXAMPLES["sushi"])
    visitor.plain()
    assert visitor.page.evaluate("document.documentElement.scrollWidth") <= 390
    assert close(visitor.patches(), drawing.heat(visitor.explanation.class_attention()[11]))
    visitor.page.touchscreen.tap(*visitor.point_at(100))
    expect(visitor.part("patch-text")).to_contain_text("tap again: what does this patch look at?")
    expect(visitor.part("back")).to_be_hidden()
    visitor.page.touchscreen.tap(*visitor.point_at(100))
    expect(visitor.part("title")).to_contain_text("the patch in row 8, column 3")
    visitor.part("back").tap()
    strip = visitor.part("pictures").bounding_box()
    visitor.page.touchscreen.tap(strip["x"] + strip["width"] * 4.5 / 12, strip["y"] + 10)
    expect(visitor.part("layer")).to_have_value("4")
    visitor.slide("layer", 11)
    visitor.part("classes").locator("button.class").first.tap()
    expect(visitor.part("stage")).to_be_in_viewport(ratio=0.6)  # what it does is seen
    visitor.page.locator("button.less").nth(2).tap()
    labels = [label for label, _ in visitor.classifier.predict(EXAMPLES["sushi"])]
    expected = drawing.heat(visitor.explanation.difference(labels[0], labels[2]), signed=True)
    assert close(visitor.patches(), expected)
    shown = visitor.page.locator("body").inner_text().lower()
    assert "shift" not in shown and "keys" not in shown


def test_dark_mode(visit):
    light, dark = (visit(color_scheme=scheme) for scheme in ("light", "dark"))
    for visitor in (light, dark):
        visitor.drop(EXAMPLES["pizza"])
    colour = "e => getComputedStyle(e).color"
    assert light.part("answer").evaluate(colour) != dark.part("answer").evaluate(colour)
    assert light.canvas().mean() > dark.canvas().mean() + 40  # pale, and dim
    for visitor in (light, dark):
        visitor.plain()
    assert np.array_equal(light.canvas(), dark.canvas())  # what measures means the same


@pytest.mark.parametrize("scheme", ["light", "dark"])
@pytest.mark.parametrize("shade", [0, 255])
def test_what_is_lit_stands_out_on_black_and_on_white(visit, scheme, shade, tmp_path):
    noise = np.random.default_rng(0).integers(0, 12, (224, 224, 3))
    Image.fromarray(np.abs(shade - noise).astype(np.uint8)).save(path := tmp_path / "plain.png")
    visitor = visit(color_scheme=scheme)
    visitor.drop(path)
    found = np.where(visitor.explanation.outliers()[1][11], np.nan, visitor.explanation.class_attention()[11]).ravel()
    drawn = visitor.patches().reshape(-1, 3)
    lit, unlit = drawn[np.nanargmax(found)], drawn[np.nanargmin(found)]
    assert np.abs(lit - shade).max() < 16
    assert np.abs(lit - unlit).min() > 40


@pytest.mark.parametrize("scheme", ["light", "dark"])
@pytest.mark.parametrize("width", [1440, 390])
def test_axe_finds_no_violation(visit, scheme, width, tmp_path):
    visitor = visit(width=width, color_scheme=scheme, path="?photo=own&task=Why+here%3F")  # two notices
    visitor.sees(example_photos()[0])
    _no_violation(visitor)
    for opened in ("model", "own", "more", "help", "lens"):
        visitor.part(opened).click()
        _no_violation(visitor)
        visitor.page.keyboard.press("Escape")
    visitor.part("pipeline").locator('[data-term="position embedding"]').click()  # the longest equation
    _no_violation(visitor)
    visitor.page.keyboard.press("Escape")
    Image.effect_noise((40, 30), 90).convert("RGB").save(tmp_path / "noise.png")  # unfamiliar, and small
    visitor.drop(tmp_path / "noise.png")
    expect(visitor.part("remarks")).to_be_visible()
    visitor.part("unfold").click()
    _no_violation(visitor)
    visitor.click(87)  # pinned
    expect(visitor.part("back")).to_be_visible()
    visitor.choose("overlay", "heat")
    visitor.check("whole")
    _no_violation(visitor)
    visitor.part("classes").locator("button.class").first.click()
    visitor.page.locator("button.less").nth(2).click()
    (tmp_path / "text.png").write_text("hello")
    visitor.page.set_input_files("input[type=file]", tmp_path / "text.png")
    expect(visitor.page.get_by_text("is not a photo that can be read")).to_be_visible()
    _no_violation(visitor)
    visitor.page.get_by_label("Close").click()
    visitor.open_share()
    _no_violation(visitor)
    visitor.part("close").click()
    visitor.page.keyboard.press("p")
    _no_violation(visitor)


def _no_violation(visitor):
    visitor.page.wait_for_timeout(300)  # colours fade into each other
    found = Axe().run(visitor.page, options={"runOnly": ["wcag2a", "wcag2aa", "wcag21a", "wcag21aa", "wcag22aa"]})
    assert not found.response["violations"], found.generate_report()


def test_no_request_leaves_the_machine(visit):
    visitor = visit()
    hosts = set()
    visitor.page.on("request", lambda request: hosts.add(urlparse(request.url).hostname))
    visitor.page.reload()
    visitor.sees(example_photos()[0])
    visitor.drop(EXAMPLES["pizza"])
    visitor.part("model").click()
    visitor.page.keyboard.press("Escape")
    visitor.open_share()
    assert hosts - {None, "", "127.0.0.1", "localhost"} == set()
    assert visitor.page.evaluate("JSON.stringify({...localStorage})") == "{}"  # nothing of the visit is kept


def test_another_model_is_chosen(visit):
    visitor = visit()
    visitor.drop(EXAMPLES["sushi"])
    choose_model(visitor, "FoodVision Mini")
    expect(visitor.part("model-name")).to_have_text("FoodVision Mini")
    expect(visitor.part("knows")).to_have_text("knows pizza, steak, sushi")
    visitor.classifier = vit.load("foodvision-mini")
    expect(visitor.part("classes").locator("button.class")).to_have_count(3)
    visitor.explanation = visitor.classifier.explain(visitor.photo)
    visitor.plain()
    assert close(visitor.patches(), drawing.heat(visitor.explanation.class_attention()[11]))


def test_any_model_is_typed_where_that_is_allowed(visit, classifier, tiny_base):
    with serving(build(Models(classifier, any_model=True), example_photos())) as url:
        visitor = visit(url)
        visitor.drop(EXAMPLES["pizza"])
        for text, said in (("no/such/folder", "There is no file or folder 'no/such/folder'"), (str(tiny_base), None)):
            visitor.part("model").click()
            visitor.part("any-name").fill(text)
            visitor.part("any-name").press("Enter")
            if said:
                expect(visitor.page.get_by_text(said)).to_be_visible()
                assert visitor.text("model-name") == "Everyday"
        expect(visitor.part("model-name")).to_have_text(tiny_base.name)
        visitor.classifier = vit.load(tiny_base)
        visitor.sees(EXAMPLES["pizza"])
        visitor.plain()
        assert close(visitor.patches(), drawing.heat(visitor.explanation.class_attention()[1]))


def test_without_the_hub_the_model_stays(visit, tmp_path, monkeypatch):
    with HubServer() as hub:
        visit_hub(hub, tmp_path, monkeypatch)  # which has no model
        visitor = visit()
        visitor.drop(EXAMPLES["sushi"])
        choose_model(visitor, "DINO S/16")
        expect(visitor.page.get_by_text("There is no model facebook/dino-vits16 on the Hub")).to_be_visible()
        expect(visitor.page.get_by_text("Everyday stays.")).to_be_visible()
        expect(visitor.part("loading")).to_be_hidden()
        assert visitor.text("model-name") == "Everyday"


@contextmanager
def half_a_dino(tmp_path, monkeypatch, repo="facebook/dino-vits16"):
    """A Hub with a small DINO of random weights, by the Hub's real client; it comes half, until the event is set."""
    PEERS["facebook/dino"]().save(folder := tmp_path / "dino")
    files = {path.name: path.read_bytes() for path in folder.iterdir()}
    hold = threading.Event()
    monkeypatch.setattr(constants, "DOWNLOAD_CHUNK_SIZE", 1 << 14)  # the file is small, and a chunk is a step
    with HubServer() as hub:
        visit_hub(hub, tmp_path / "home", monkeypatch)
        hub.commit(repo, files)
        hub.troubles["model.safetensors"] = Trouble(stop_at=len(files["model.safetensors"]) // 2, hold=hold, times=1)
        yield hold
        hold.set()


def test_a_model_comes_from_the_hub_with_a_progress_bar(visit, tmp_path, monkeypatch):
    with half_a_dino(tmp_path, monkeypatch) as hold:
        visitor = visit()
        visitor.drop(EXAMPLES["golden_retriever"])
        choose_model(visitor, "DINO S/16")
        expect(visitor.part("loading-text")).to_have_text(re.compile(r"DINO S/16: 0 of \d+ MB"))
        visitor.page.wait_for_function("document.querySelector('[data-part=loading-share]').value > 0.2")
        assert visitor.part("loading-share").evaluate("bar => bar.value") < 0.8
        other = visit(path="?example=sushi")  # somebody else's link does not wait for it
        other.sees(EXAMPLES["sushi"])
        hold.set()
        expect(visitor.part("model-name")).to_have_text("DINO S/16", timeout=20000)
        expect(visitor.part("answer")).to_have_text("It names nothing")
        expect(visitor.part("predictions")).to_be_hidden()
        expect(visitor.part("loading")).to_be_hidden()


def test_a_load_is_cancelled(visit, tmp_path, monkeypatch):
    with half_a_dino(tmp_path, monkeypatch, "facebook/dinov2-small") as hold:
        visitor = visit()
        visitor.drop(EXAMPLES["sushi"])
        before = visitor.text("model-name")
        choose_model(visitor, "DINOv2 S/14")
        expect(visitor.part("loading-text")).to_have_text(re.compile(r"DINOv2 S/14: 0 of \d+ MB"))
        visitor.part("loading").get_by_text("Cancel").click()
        expect(visitor.part("loading")).to_be_hidden()
        hold.set()  # it arrives, and is not shown
        choose_model(visitor, "FoodVision Mini")
        expect(visitor.part("model-name")).to_have_text("FoodVision Mini")
        visitor.page.wait_for_timeout(1500)
        assert before != visitor.text("model-name") == "FoodVision Mini"
        expect(visitor.part("loading")).to_be_hidden()


def test_sinks_are_moved_to_registers_and_back(visit, imagenet):
    models = Models(imagenet)
    with serving(build(models)) as url:
        visitor = visit(url, imagenet)
        visitor.drop(CAT)
        assert visitor.explanation.outliers()[1][11].any()
        visitor.slide("layer", 10)
        visitor.part("give-registers").click()
        expect(visitor.part("given")).to_be_visible(timeout=120_000)
        expect(visitor.part("layer")).to_have_value("10")  # to be compared
        visitor.slide("layer", 11)
        expect(visitor.part("sinks")).to_be_hidden()
        for registers in (True, False):
            visitor.classifier = models.get(imagenet.name + REGISTERS) if registers else imagenet
            visitor.sees(CAT)
            visitor.plain()
            assert bool(visitor.explanation.outliers()[1][11].any()) is not registers
            assert close(visitor.patches(), drawing.heat(visitor.explanation.class_attention()[11]))
            if registers:
                visitor.part("take-back").click()
                expect(visitor.part("given")).to_be_hidden()
                expect(visitor.part("sinks")).to_be_visible()


def test_the_view_is_saved_as_a_picture(visit):
    visitor = visit()
    visitor.drop(EXAMPLES["pizza"])
    visitor.plain()
    visitor.slide("layer", 6)
    content, name = _save(visitor, "save-view")
    assert name == "pizza-class_attention-layer-7.png"
    size = visitor.canvas().shape[0]  # the stage is larger than the photo
    saved = picture(content)[:size, :size]
    down, across = visitor.middles(size, size)
    drawn = saved[down.astype(int)][:, across.astype(int)]
    assert close(drawn, drawing.heat(visitor.explanation.class_attention()[6]))


def test_the_sheet_is_saved_with_all_layers(visit):
    visitor = visit()
    visitor.drop(EXAMPLES["pizza"])
    visitor.plain()
    content, name = _save(visitor, "save-sheet")
    assert name == "pizza-class_attention-all-layers.png"
    saved = picture(content)
    width, height = 240, 240
    down, across = visitor.middles(width, height)
    for layer in range(12):
        left, top = 8 + layer % 4 * 248, layer // 4 * (height + 32) + 24
        drawn = saved[top + down.astype(int)][:, left + across.astype(int)]
        assert close(drawn, drawing.heat(visitor.explanation.class_attention()[layer])), layer


def test_the_arrays_are_saved(visit, tmp_path):
    visitor = visit()
    visitor.drop(EXAMPLES["pizza"])
    visitor.click(87)
    for _ in range(2):  # as often as one likes
        content, name = _save(visitor, "save-arrays")
    assert name == "pizza.npz"
    (tmp_path / name).write_bytes(content)
    arrays, e = np.load(tmp_path / name), visitor.explanation
    for found, expected in (
        (arrays["attention"], e.attention),
        (arrays["class_attention"][:, 1], e.class_attention(1)),
        (arrays["rollout"], e.rollout()),
        (arrays["relevance"], e.relevance()),
        (arrays["looks_at"], e.looks_at(87)),
        (arrays["probabilities"], e.probabilities),
    ):
        np.testing.assert_allclose(found, expected, atol=1e-6)


def _save(visitor, button):
    if not visitor.part("share-dialog").evaluate("dialog => dialog.open"):
        visitor.open_share()
    with visitor.page.expect_download() as download:
        visitor.part(button).click()
    return download.value.path().read_bytes(), download.value.suggested_filename


def test_a_link_opens_the_same_view(visit):
    visitor = visit()
    visitor.page.locator('.examples [data-name="sushi"]').click()
    visitor.sees(EXAMPLES["sushi"])
    visitor.slide("layer", 4)
    visitor.choose("head", 2)
    visitor.click(100)
    visitor.choose("direction", "looked_at_by")
    visitor.choose("overlay", "tiles")
    visitor.check("grid")
    visitor.open_share()
    visitor.part("task-field").fill("Why here? <b>")
    link = visitor.part("link").input_value()
    visitor.part("close").click()
    asked = parse_qs(urlparse(link).query)
    assert asked["example"] == ["sushi"] and asked["patch"] == ["100"] and asked["layer"] == ["4"]
    other = visit(path="?" + urlparse(link).query)
    other.sees(EXAMPLES["sushi"])
    assert other.text("title") == visitor.text("title")
    expect(other.part("task-text")).to_have_text("Why here? <b>")
    visitor.away()
    for each in (visitor, other):  # the line takes some room: at one size
        each.page.keyboard.press("p")
    one, two = visitor.canvas(), other.canvas()
    height, width = min(one.shape[0], two.shape[0]), min(one.shape[1], two.shape[1])
    assert np.abs(one[:height, :width] - two[:height, :width]).mean() < 12


def test_the_address_follows_and_back_goes_back(visit):
    visitor = visit()
    visitor.sees(example_photos()[0])
    address = lambda: parse_qs(urlparse(visitor.page.url).query)  # noqa: E731
    expect(visitor.page).to_have_url(re.compile("example="))
    visitor.choose("overlay", "tiles")
    expect(visitor.page).to_have_url(re.compile("overlay=tiles"))
    visitor.click(100)
    expect(visitor.page).to_have_url(re.compile("patch=100"))
    visitor.page.locator('.examples [data-name="sushi"]').click()
    visitor.sees(EXAMPLES["sushi"])
    expect(visitor.page).to_have_url(re.compile("example=sushi"))
    visitor.slide("layer", 3)
    expect(visitor.page).to_have_url(re.compile("layer=3"))
    visitor.page.reload()
    visitor.sees(EXAMPLES["sushi"])
    expect(visitor.part("layer")).to_have_value("3")
    visitor.page.go_back()
    visitor.sees(example_photos()[0])
    assert address()["patch"] == ["100"]
    expect(visitor.part("back")).to_be_visible()
    visitor.page.go_back()
    expect(visitor.part("back")).to_be_hidden()
    visitor.page.go_forward()
    expect(visitor.part("back")).to_be_visible()


@pytest.mark.parametrize("model", ["everyday", "foodvision-mini"])
@pytest.mark.parametrize("how", ["own", "example"])
def test_a_photo_that_is_chosen_while_a_link_is_followed_stays(visit, monkeypatch, classifier, model, how):
    followed, go_on = threading.Event(), threading.Event()
    load = Handlers._loading

    def slow(*asked):
        followed.set()
        go_on.wait(20)
        yield from load(*asked)

    monkeypatch.setattr(Handlers, "_loading", slow)
    visitor = visit(path=f"?example=sushi&model={model}")
    assert followed.wait(20)
    if how == "own":
        visitor.page.set_input_files("input[type=file]", CAT)
    else:
        visitor.page.locator('.examples [data-name="pizza"]').click()
    photo = CAT if how == "own" else EXAMPLES["pizza"]
    visitor.sees(photo)
    go_on.set()
    visitor.page.wait_for_timeout(1500)
    visitor.classifier = vit.load(model)
    expect(visitor.part("model-name")).to_have_text("Everyday" if model == "everyday" else "FoodVision Mini")
    visitor.sees(photo)
    expect(visitor.part("loading")).to_be_hidden()
    visitor.plain()
    assert close(visitor.patches(), drawing.heat(visitor.explanation.class_attention()[11]))


def test_another_photo_is_looked_at_from_the_last_layer_on(visit):
    visitor = visit()
    visitor.drop(CAT)
    layer = visitor.part("layer")
    visitor.slide("layer", 3)
    visitor.page.locator('.examples [data-name="sushi"]').click()
    visitor.sees(EXAMPLES["sushi"])
    expect(layer).to_have_value("11")
    visitor.slide("layer", 4)
    choose_model(visitor, "FoodVision Mini")
    expect(visitor.part("model-name")).to_have_text("FoodVision Mini")
    expect(layer).to_have_value("4")
    visitor.choose("head", 1)
    expect(visitor.page).to_have_url(re.compile("layer=4&head=1"))
    visitor.classifier = vit.load("foodvision-mini")
    visitor.drop(CAT)
    expect(layer).to_have_value("4")
    visitor.choose("head", "mean")
    visitor.page.locator('.examples [data-name="pizza"]').click()
    visitor.sees(EXAMPLES["pizza"])
    expect(layer).to_have_value("11")
    expect(visitor.page).to_have_url(re.compile("example=pizza.*layer=11"))
    visitor.page.go_back()
    visitor.sees(CAT)
    expect(layer).to_have_value("4")


def test_a_link_opens_a_class_of_another_model(visit):
    visitor = visit(
        path="?example=pizza&model=foodvision-mini&map=relevance&class=1&layer=3",
        classifier=vit.load("foodvision-mini"),
    )
    visitor.sees(EXAMPLES["pizza"])
    visitor.plain()
    label = visitor.classifier.predict(EXAMPLES["pizza"])[1][0]
    assert close(visitor.patches(), drawing.heat(visitor.explanation.relevance_by_layer(label)[3]))


def test_ones_own_photo_is_not_in_the_link(visit):
    visitor = visit()
    visitor.drop(CAT)
    visitor.open_share()
    link = urlparse(visitor.part("link").input_value()).query
    assert "example" not in parse_qs(link)
    visitor.part("copy-link").click()
    expect(visitor.part("link-text")).to_contain_text("Your own photo is not in it")
    other = visit(path="?" + link)
    expect(other.part("photo-missing")).to_contain_text("The photo of this link stayed with its sender: choose it here")
    with other.page.expect_file_chooser():
        other.part("choose-it").click()
    other.drop(CAT)
    expect(other.part("photo-missing")).to_be_hidden()


def test_ones_own_photo_is_there_when_the_page_is_loaded_again(visit):
    visitor = visit()
    visitor.sees(example_photos()[0])
    visitor.drop(CAT)
    visitor.slide("layer", 4)
    expect(visitor.page).to_have_url(re.compile("photo=own.*layer=4"))
    visitor.page.reload()
    visitor.sees(CAT)
    expect(visitor.part("layer")).to_have_value("4")
    expect(visitor.page.locator(".examples button").first).to_have_attribute("title", "your last photo")
    expect(visitor.part("photo-missing")).to_be_hidden()


def thumbnail(visitor):
    """The pixels of the photo of one's own in the rail (144, 144, 3)."""
    drawn = (
        visitor.page.locator(".examples button")
        .first.locator("img")
        .evaluate(
            """async (image) => {
            await image.decode();
            const canvas = Object.assign(document.createElement("canvas"), { width: 144, height: 144 });
            canvas.getContext("2d").drawImage(image, 0, 0);
            return canvas.toDataURL("image/png");
        }"""
        )
    )
    return picture(base64.b64decode(drawn.partition(",")[2]))


def the_middle(photo):
    side = min(photo.size)
    left, top = (photo.width - side) / 2, (photo.height - side) / 2
    return np.asarray(photo.resize((144, 144), box=(left, top, left + side, top + side), reducing_gap=3)).astype(int)


@pytest.mark.parametrize("format", ["png", "heic"])
def test_ones_own_photo_has_its_place_in_the_rail(visit, format, tmp_path):
    pillow_heif.register_heif_opener()
    with Image.open(CAT) as cat:
        cat.save(path := tmp_path / f"own.{format}")
    visitor = visit()
    buttons = visitor.page.locator(".examples button")
    visitor.drop(path)
    expect(buttons).to_have_count(15)
    expect(buttons.first).to_have_attribute("aria-pressed", "true")
    assert np.abs(thumbnail(visitor) - the_middle(visitor.photo)).mean() < 6
    visitor.page.locator('.examples [data-name="spaghetti"]').click()
    visitor.sees(EXAMPLES["spaghetti"])
    expect(buttons.first).to_have_attribute("aria-pressed", "false")
    visitor.page.keyboard.press("ArrowUp")
    expect(buttons.first).to_be_focused()
    visitor.page.keyboard.press("Enter")
    visitor.sees(path)
    expect(buttons.first).to_have_attribute("aria-pressed", "true")
    expect(visitor.page.locator('.examples [aria-pressed="true"]')).to_have_count(1)
    visitor.plain()
    assert close(visitor.patches(), drawing.heat(visitor.explanation.class_attention()[11]))


def test_only_the_last_photo_of_ones_own_is_in_the_rail(visit, photos, tmp_path):
    visitor = visit(width=390, has_touch=True, is_mobile=True)
    visitor.drop(CAT)
    photos[2].save(path := tmp_path / "second.png")
    visitor.drop(path)
    buttons = visitor.page.locator(".examples button")
    expect(buttons).to_have_count(15)
    assert np.abs(thumbnail(visitor) - the_middle(photos[2])).mean() < 6
    visitor.page.locator('.examples [data-name="sushi"]').tap()
    visitor.sees(EXAMPLES["sushi"])
    buttons.first.tap()
    visitor.sees(path)
    expect(buttons.first).to_be_in_viewport(ratio=0.9)
    assert visitor.page.evaluate("document.documentElement.scrollWidth") <= 390
    (tmp_path / "text.png").write_text("hello")
    visitor.page.set_input_files("input[type=file]", tmp_path / "text.png")
    expect(visitor.page.get_by_text("is not a photo that can be read")).to_be_visible()
    expect(buttons.first).to_have_attribute("aria-pressed", "true")  # it is shown still


def test_a_photo_of_the_rail_that_is_no_longer_kept_gets_a_sentence(visit, photos, tmp_path):
    visitor = visit()
    photos[1].save(path := tmp_path / "gone.png")
    visitor.drop(path)
    visitor.page.locator('.examples [data-name="sushi"]').click()
    visitor.sees(EXAMPLES["sushi"])
    for kept in Path(get_upload_folder()).glob("*/gone.png"):
        kept.unlink()
    visitor.page.locator(".examples button").first.click()
    expect(visitor.page.get_by_text("The photo is no longer kept here: choose it again.")).to_be_visible()
    expect(visitor.page.locator(".explorer")).to_have_attribute("aria-busy", "false")
    expect(visitor.page.locator('.examples [data-name="sushi"]')).to_have_attribute("aria-pressed", "true")
    visitor.sees(EXAMPLES["sushi"])


def test_a_photo_that_is_chosen_is_seen_at_once_and_what_is_old_is_dimmed(visit):
    visitor = visit()
    visitor.sees(example_photos()[0])
    visitor.page.route("**/queue/join*", lambda route: None)  # the server never answers
    visitor.page.set_input_files("input[type=file]", CAT)
    expect(visitor.part("coming")).to_be_visible(timeout=1000)
    expect(visitor.page.locator(".explorer")).to_have_attribute("aria-busy", "true")
    assert float(visitor.page.locator(".side").evaluate("e => getComputedStyle(e).opacity")) < 0.5


def test_a_map_that_does_not_arrive_is_fetched_again_and_then_gets_a_sentence(visit):
    visitor = visit()
    visitor.sees(example_photos()[0])
    visitor.page.route("**/explanation.safetensors", lambda route: route.abort(), times=1)
    visitor.page.locator('.examples [data-name="sushi"]').click()
    visitor.sees(EXAMPLES["sushi"])
    visitor.page.route("**/explanation.safetensors", lambda route: route.abort())
    visitor.page.locator('.examples [data-name="pizza"]').click()
    expect(visitor.part("working")).to_contain_text("The map could not be fetched")
    expect(visitor.page.locator(".explorer")).to_have_attribute("aria-busy", "false")
    assert visitor.text("answer").startswith("sushi, ")  # what is shown is what was there


def test_an_answer_comes_though_gradios_client_closed_its_connection_just_when_it_was_asked_for(visit):
    """As on a slow network, when the last answer and the next question cross: the client never listens again."""
    visitor = visit()
    visitor.sees(example_photos()[0])
    closed = 'data: {"msg": "close_stream"}\n\n'
    visitor.page.route(
        "**/queue/data*", lambda route: route.fulfill(body=closed, content_type="text/event-stream"), times=1
    )
    with visitor.page.expect_request(re.compile("/queue/data")):
        visitor.page.locator('.examples [data-name="sushi"]').click()
    visitor.sees(EXAMPLES["sushi"])


def test_the_page_opens_with_a_photo_explained_and_runs_no_model(visit, monkeypatch, address, classifier):
    visit().sees(example_photos()[0])  # somebody was here before
    monkeypatch.setattr(vit.Classifier, "explain", lambda *_: pytest.fail("the model was run"))
    visitor = visit()
    expect(visitor.page.locator('.explorer[data-whole="true"]')).to_be_visible(timeout=20000)
    monkeypatch.undo()
    visitor.sees(example_photos()[0])
    assert visitor.text("answer").startswith(classifier.predict(example_photos()[0])[0][0])


def test_the_opening_plays_once_and_stops_at_a_touch(browser, address):
    context = browser.new_context(viewport={"width": 1440, "height": 900}, reduced_motion="no-preference")
    page = context.new_page()
    page.goto(address)
    page.wait_for_function("document.querySelectorAll('.pictures .later').length > 3")
    page.mouse.click(3, 500)
    page.wait_for_function("document.querySelectorAll('.pictures > div').length && !document.querySelector('.later')")
    context.close()


@pytest.mark.parametrize("how", ["click", "hover", "keyboard"])
def test_a_word_explains_itself(visit, how):
    visitor = visit()
    visitor.sees(example_photos()[0])
    term = visitor.part("columns-name")
    if how == "click":
        term.click()
    elif how == "hover":
        term.hover()
    else:
        term.focus()
        visitor.page.keyboard.press("Enter")
    expect(visitor.part("meaning")).to_contain_text("A layer looks in several ways at once")
    assert visitor.part("equation").locator("math").count() == 1
    line = visitor.text("code").partition(":")[2].strip()
    assert line in [each.strip() for each in (ROOT / "vit" / "model.py").read_text().splitlines()]
    visitor.page.keyboard.press("Escape")
    expect(visitor.part("meaning")).to_be_hidden()


def test_a_link_that_makes_no_sense_opens_the_page(visit):
    visitor = visit(path="?example=../../etc/passwd&model=no/such&layer=99&head=x&map=<b>&patch=-1")
    expect(visitor.page.get_by_text("This page offers the models of its list only")).to_be_visible()
    visitor.drop(EXAMPLES["pizza"])
    assert visitor.text("title") == "Lit = what the class token looks at, layer 12"


@pytest.mark.parametrize("method", [method for method in METHODS.values() if "classes" in method.needs])
def test_a_link_to_what_a_model_cannot_give_gets_a_sentence(visit, method):
    classifier = small(labels=())
    with serving(build(Models(classifier))) as url:
        visitor = visit(url, classifier, path=f"?map={method.name}&layer=1")
        visitor.drop(CAT)
        expect(visitor.part("working")).to_have_text(f"{method.title} {NEEDS['classes']}")
        assert visitor.text("title") == "Lit = what the class token looks at, layer 2"


def small(labels=("pizza", "steak", "sushi"), **options):
    config = vit.ViTConfig(
        image_size=(32, 48), patch_size=8, width=64, heads=2, mlp_width=128, layers=3, classes=len(labels), **options
    )
    return vit.Classifier(randomise(vit.ViT(config)), list(labels), vit.Preprocessing((32, 48)), "small")


def test_attention_that_is_too_large_is_asked_patch_by_patch(visit, monkeypatch):
    monkeypatch.setattr(packing, "MOST_BYTES", 0)
    classifier = small(registers=2)
    with serving(build(Models(classifier))) as url:
        visitor = visit(url, classifier)
        visitor.drop(CAT)
        visitor.plain()
        e = visitor.explanation
        assert close(visitor.patches(), drawing.heat(e.class_attention()[2]))
        asked = []
        visitor.page.on("request", lambda request: asked.append(request.url))
        visitor.click(7)
        expect(visitor.part("working")).to_be_hidden()
        visitor.page.wait_for_function("document.querySelector('[data-part=working]').hidden")
        visitor.choose("direction", "looked_at_by")
        visitor.choose("head", 1)
        visitor.slide("layer", 1)
        visitor.away()
        drawn = visitor.patches().reshape(-1, 3)
        expected = drawing.heat(e.looked_at_by(7, 1)[1]).reshape(-1, 3)
        assert close(np.delete(drawn, 7, 0), np.delete(expected, 7, 0))
        assert asked  # it did come from the server
        for patch in (1, 2, 3, 8, 9, 10):  # faster than they are answered
            visitor.page.mouse.click(*visitor.point_at(patch))
        expect(visitor.part("title")).to_contain_text("the patch in row 2, column 5")
        expect(visitor.part("working")).to_be_hidden()


def test_a_model_without_class_token(visit):
    classifier = small(class_token=False, pool="mean")
    with serving(build(Models(classifier))) as url:
        visitor = visit(url, classifier)
        visitor.drop(CAT)
        visitor.plain()
        expect(visitor.part("back")).to_be_hidden()
        patch = 2 * 6 + 3  # the middle of 4 × 6
        assert "the patch in row 3, column 4" in visitor.text("title")
        expected = drawing.heat(visitor.explanation.looks_at(patch)[2]).reshape(-1, 3)
        assert close(np.delete(visitor.patches().reshape(-1, 3), patch, 0), np.delete(expected, patch, 0))
        visitor.choose("map", "rollout")
        assert close(visitor.patches(), drawing.heat(visitor.explanation.rollout()[2]))


def test_a_model_without_classes(visit):
    classifier = small(labels=())
    with serving(build(Models(classifier))) as url:
        visitor = visit(url, classifier)
        visitor.drop(CAT)
        visitor.plain()
        expect(visitor.part("answer")).to_have_text("It names nothing")
        for hidden in ("predictions", "lens", "ribbon"):
            expect(visitor.part(hidden)).to_be_hidden()
        given = [method.title for method in METHODS.values() if "classes" not in method.needs]
        assert visitor.part("methods").locator("label").all_text_contents() == given
        assert close(visitor.patches(), drawing.heat(visitor.explanation.class_attention()[2]))


def test_texts_from_outside_are_only_ever_text(visit, tmp_path):
    evil = ("<img src=x onerror='window.hacked=1'>", "${window.hacked=1}", "{{constructor}}")
    classifier = vit.Classifier(small(evil).model, list(evil), vit.Preprocessing((32, 48)), "<b>small</b>")
    name = "<img src=x onerror=window.hacked=1>.png"
    (tmp_path / name).write_bytes(CAT.read_bytes())
    with serving(build(Models(classifier))) as url:
        visitor = visit(url, classifier)
        visitor.page.set_input_files("input[type=file]", tmp_path / name)
        expect(visitor.part("classes")).to_be_visible()
        labels = visitor.part("classes").locator("button.class span:first-child")
        assert set(labels.all_text_contents()) == set(evil)
        visitor.part("classes").locator("button.class").first.click()
        visitor.open_share()
        visitor.part("task-field").fill(evil[0])
        visitor.settle()
        assert visitor.page.evaluate("window.hacked") is None
        assert visitor.page.locator(".explorer img:not(.coming, .examples img), .explorer b").count() == 0
        assert visitor.text("title").startswith("Lit = relevance for ")
