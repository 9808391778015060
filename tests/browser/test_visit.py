"""A visit from the first photo to what is taken away: upload, examples, keyboard, phone, models, exports, links."""

import re
import threading
from pathlib import Path
from urllib.parse import parse_qs, urlparse

import numpy as np
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

import app
import vit
from vit import drawing
from vit.explanation import NEEDS
from vit.methods import METHODS
from vit.page import Models, build
from vit.page.explorer import packing

CAT = SKIMAGE / "chelsea.png"
EXAMPLES = {photo.stem: photo for photo in app.EXAMPLES}


@pytest.fixture(scope="module")
def classifier():
    return vit.load()


@pytest.fixture(scope="module")
def address(classifier):
    with serving(build(Models(classifier), app.EXAMPLES)) as url:
        yield url


@pytest.fixture
def visit(browser, address, classifier):
    """Opens the page: visit(width=390, color_scheme="dark", path="?…")."""
    contexts = []

    def open_page(url=address, classifier=classifier, path="", width=1440, **options):
        contexts.append(browser.new_context(viewport={"width": width, "height": 1000}, **options))
        return Visitor(contexts[-1].new_page(), url.rstrip("/") + "/" + path, classifier)

    yield open_page
    for context in contexts:
        context.close()


def test_photos_of_any_shape(visit, photos, tmp_path):
    visitor = visit()
    visitor.part("empty").wait_for()
    for number, photo in enumerate(photos):
        photo.save(path := tmp_path / f"photo-{number}.png")
        visitor.drop(path)
        visitor.plain()
        assert close(visitor.patches(), drawing.heat(visitor.explanation.class_attention()[11]))
        height, width, _ = visitor.canvas().shape
        assert width / height == pytest.approx(photo.width / photo.height, rel=0.02)  # its own shape


def test_a_photo_unlike_the_training_photos_gets_that_said(visit):
    visitor = visit()
    for name, unfamiliar in (("chameleon", True), ("pizza", False)):
        visitor.drop(EXAMPLES[name])
        assert visitor.explanation.unfamiliar is unfamiliar
        expect(visitor.part("unfamiliar")).to_be_visible(visible=unfamiliar)
    expect(visitor.part("unfamiliar")).to_have_text("This photo is like nothing it was trained on: these are guesses.")


def test_a_phones_photo_lies_upright(visit, photos, tmp_path):
    exif = Image.Exif()
    exif[0x0112] = 6  # to be turned by 90 degrees
    photos[0].save(path := tmp_path / "turned.jpg", exif=exif)
    visitor = visit()
    visitor.drop(path)
    height, width, _ = visitor.canvas().shape
    assert width / height == pytest.approx(photos[0].height / photos[0].width, rel=0.02)


def test_each_example(visit):
    visitor = visit()
    buttons = visitor.page.locator(".examples button")
    assert buttons.count() == len(app.EXAMPLES) == 14
    for number, photo in enumerate(app.EXAMPLES):
        buttons.nth(number).click()
        visitor.sees(photo)
        visitor.plain()
        label = visitor.part("classes").locator("button.class span").first
        expect(label).to_have_text(visitor.classifier.predict(photo)[0][0])
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
    visitor.page.get_by_role("button", name="Camera").click()
    visitor.page.wait_for_function("document.querySelector('[data-part=finder]').videoWidth > 0")
    _no_violation(visitor)
    visitor.page.get_by_role("button", name="Take the photo").click()
    expect(visitor.page.locator('.explorer[data-photo="photo"]')).to_be_visible()
    expect(visitor.page.locator("dialog")).to_be_hidden()


def test_a_photo_is_pasted(visit):
    visitor = visit(permissions=["clipboard-read", "clipboard-write"])
    visitor.page.evaluate(
        """async (numbers) => {
            const blob = new Blob([new Uint8Array(numbers)], { type: "image/png" });
            await navigator.clipboard.write([new ClipboardItem({ "image/png": blob })]);
        }""",
        list(CAT.read_bytes()),
    )
    visitor.page.get_by_role("button", name="Paste").click()
    expect(visitor.part("body")).to_be_visible()
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
    visitor.page.get_by_role("button", name=re.compile("^Model")).click()
    visitor.page.get_by_label("FoodVision Mini").check()
    expect(visitor.part("model")).to_have_text("foodvision-mini")
    visitor.page.set_input_files("input[type=file]", tmp_path / "text.png")
    expect(said).to_be_visible()  # the same file, said again


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
    visitor.part("save-arrays").click()
    said = visitor.page.get_by_text("The photo is no longer kept here: choose it again.")
    expect(said).to_be_visible()
    visitor.page.get_by_label("Close").click()
    visitor.click(100)
    expect(said).to_be_visible()
    expect(visitor.part("working")).to_be_hidden()  # back to the class token, whose look is here
    expect(visitor.part("pinned")).to_be_hidden()


def test_examples_work_wherever_the_app_is_started(browser, classifier, tmp_path):
    with app_process(folder=tmp_path, script=ROOT / "app.py") as (url, _):
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
    visitor.part("photo").focus()
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
    assert visitor.text("patch-text").startswith("Patch 92 (row 6, column 8)")  # from the middle, 7 and 7
    expect(visitor.part("spoken")).to_contain_text("Patch 92")
    press("Enter")
    expect(visitor.part("pinned")).to_have_text("Patch 92 (row 6, column 8) ×")
    assert "what patch 92" in visitor.text("title").lower()
    expect(visitor.part("spoken")).to_contain_text("What patch 92 (row 6, column 8) looks at, layer 9, head 0")
    press("Escape")
    assert close(visitor.patches(), drawing.heat(e.class_attention(0)[9]))
    press("ArrowRight")
    expect(visitor.part("spoken")).to_contain_text("What the class token looks at, layer 10, head 0. Highest value")


def test_everything_is_reached_by_tab(visit):
    visitor = visit()
    visitor.drop(EXAMPLES["pizza"])
    visitor.part("classes").locator("button.class").first.click()
    reached = set()
    visitor.page.locator("body").press("Home")
    visitor.page.evaluate("document.activeElement.blur()")
    for _ in range(90):
        visitor.page.keyboard.press("Tab")
        reached.add(
            visitor.page.evaluate(
                """() => { const at = document.activeElement;
                return at.dataset.part ?? at.dataset.view ?? (at.dataset.layer ? "cell" : at.name || at.className); }"""
            )
        )
    controls = {
        "file",
        "paste",
        "camera",
        "photo",
        "play",
        "layer",
        "class-token",
        "save-view",
        "save-sheet",
        "save-arrays",
        "copy-link",
    }
    views = {"opacity", "grid", "smooth", "mark", "leaveOut"}
    assert controls | views <= reached
    # A group of choices is one stop, arrows move in it; so is the sheet. Nothing is pinned, no head in relevance.
    assert {"a-map", "a-scale", "class", "less", "cell"} <= reached


def test_a_phone_by_touch(visit):
    visitor = visit(width=390, has_touch=True, is_mobile=True, device_scale_factor=2)
    visitor.drop(EXAMPLES["sushi"])
    visitor.plain()
    assert visitor.page.evaluate("document.documentElement.scrollWidth") <= 390
    assert close(visitor.patches(), drawing.heat(visitor.explanation.class_attention()[11]))
    visitor.page.touchscreen.tap(*visitor.point_at(100))
    expect(visitor.part("patch-text")).to_contain_text("Patch 100 (row 7, column 2): ")
    expect(visitor.part("pinned")).to_be_hidden()
    visitor.page.touchscreen.tap(*visitor.point_at(100))
    expect(visitor.part("pinned")).to_contain_text("Patch 100")
    visitor.part("pinned").tap()
    visitor.page.touchscreen.tap(5, 5)
    visitor.page.locator("button.less").nth(2).tap()
    labels = [label for label, _ in visitor.classifier.predict(EXAMPLES["sushi"])]
    expected = drawing.heat(visitor.explanation.difference(labels[0], labels[2]), signed=True)
    assert close(visitor.patches(), expected)


def test_dark_mode(visit):
    light, dark = (visit(color_scheme=scheme) for scheme in ("light", "dark"))
    for visitor in (light, dark):
        visitor.drop(EXAMPLES["pizza"])
    colour = "e => getComputedStyle(e).color"
    assert light.part("title").evaluate(colour) != dark.part("title").evaluate(colour)
    assert np.array_equal(light.canvas(), dark.canvas())  # the map's colours mean the same


@pytest.mark.parametrize("scheme", ["light", "dark"])
@pytest.mark.parametrize("width", [1440, 390])
def test_axe_finds_no_violation(visit, scheme, width):
    visitor = visit(width=width, color_scheme=scheme)
    visitor.page.get_by_role("button", name=re.compile("^Model")).click()  # the list of models open
    _no_violation(visitor)
    visitor.drop(EXAMPLES["pizza"])
    _no_violation(visitor)
    visitor.part("classes").locator("button.class").first.click()
    visitor.page.locator("button.less").nth(2).click()
    visitor.part("copy-link").click()
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
    visitor.drop(EXAMPLES["pizza"])
    visitor.page.get_by_role("button", name=re.compile("^Model")).click()
    assert hosts - {None, "", "127.0.0.1", "localhost"} == set()
    assert visitor.page.evaluate("JSON.stringify({...localStorage})") == "{}"  # nothing of the visit is kept


def test_another_model_is_chosen(visit):
    visitor = visit()
    visitor.drop(EXAMPLES["sushi"])
    visitor.page.get_by_role("button", name=re.compile("^Model")).click()
    visitor.page.get_by_label("FoodVision Mini").check()
    expect(visitor.part("model")).to_have_text("foodvision-mini")
    visitor.classifier = vit.load("foodvision-mini")
    expect(visitor.part("classes").locator("button.class")).to_have_count(3)
    visitor.explanation = visitor.classifier.explain(visitor.photo)
    visitor.plain()
    assert close(visitor.patches(), drawing.heat(visitor.explanation.class_attention()[11]))
    expect(visitor.page.get_by_role("button", name="Model: foodvision-mini")).to_be_visible()


def test_any_model_is_typed_where_that_is_allowed(visit, classifier, tiny_base):
    with serving(build(Models(classifier, any_model=True), app.EXAMPLES)) as url:
        visitor = visit(url)
        visitor.drop(EXAMPLES["pizza"])
        visitor.page.get_by_role("button", name=re.compile("^Model")).click()
        field = visitor.page.get_by_role("combobox", name="Model")
        for text, said in (("no/such/folder", "There is no file or folder 'no/such/folder'"), (str(tiny_base), None)):
            field.fill(text)
            field.press("Enter")
            if said:
                expect(visitor.page.get_by_text(said)).to_be_visible()
                assert visitor.text("model") == "foodvision-101"
        expect(visitor.part("model")).to_have_text(tiny_base.name)
        visitor.classifier = vit.load(tiny_base)
        visitor.sees(EXAMPLES["pizza"])
        visitor.plain()
        assert close(visitor.patches(), drawing.heat(visitor.explanation.class_attention()[1]))


def test_without_the_hub_the_model_stays(visit, tmp_path, monkeypatch):
    with HubServer() as hub:
        visit_hub(hub, tmp_path, monkeypatch)  # which has no model
        visitor = visit()
        visitor.drop(EXAMPLES["sushi"])
        visitor.page.get_by_role("button", name=re.compile("^Model")).click()
        visitor.page.get_by_label("DINO S/16").check()
        expect(visitor.page.get_by_text("There is no model facebook/dino-vits16 on the Hub")).to_be_visible()
        expect(visitor.page.get_by_label("FoodVision 101")).to_be_checked()
        expect(visitor.page.get_by_role("button", name="Model: foodvision-101")).to_be_visible()
        assert visitor.text("model") == "foodvision-101"


def test_a_model_comes_from_the_hub_with_a_progress_bar(visit, tmp_path, monkeypatch):
    """A small DINO of random weights, by the Hub's real client; the bar is held half way."""
    PEERS["facebook/dino"]().save(folder := tmp_path / "dino")
    files = {path.name: path.read_bytes() for path in folder.iterdir()}
    hold = threading.Event()
    monkeypatch.setattr(constants, "DOWNLOAD_CHUNK_SIZE", 1 << 14)  # the file is small, and a chunk is a step
    with HubServer() as hub:
        visit_hub(hub, tmp_path / "home", monkeypatch)
        hub.commit("facebook/dino-vits16", files)
        hub.troubles["model.safetensors"] = Trouble(stop_at=len(files["model.safetensors"]) // 2, hold=hold, times=1)
        visitor = visit()
        visitor.drop(EXAMPLES["golden_retriever"])
        visitor.page.get_by_role("button", name=re.compile("^Model")).click()
        visitor.page.get_by_label("DINO S/16").check()
        expect(visitor.page.locator(".progress-bar").first).to_be_visible()
        expect(visitor.page.get_by_text(re.compile(r"facebook/dino-vits16: 0 of \d+ MB")).first).to_be_visible()
        share = visitor.page.locator(".progress-bar").first.evaluate("bar => bar.style.width")
        assert 20 < float(share.rstrip("%")) < 80
        hold.set()
        expect(visitor.part("model")).to_have_text("dino-vits16", timeout=20000)
        expect(visitor.part("no-classes")).to_be_visible()
        expect(visitor.part("predictions")).to_be_hidden()


def test_the_view_is_saved_as_a_picture(visit):
    visitor = visit()
    visitor.drop(EXAMPLES["pizza"])
    visitor.plain()
    visitor.slide("layer", 6)
    content, name = _save(visitor, "save-view")
    assert name == "pizza-class_attention-layer-6.png"
    width, height = visitor.photo.size
    saved = picture(content)[:height, :width]
    down, across = visitor.middles(width, height)
    drawn = saved[down.astype(int)][:, across.astype(int)]
    assert close(drawn, drawing.heat(visitor.explanation.class_attention()[6]))


def test_the_sheet_is_saved_with_all_layers(visit):
    visitor = visit()
    visitor.drop(EXAMPLES["pizza"])
    visitor.plain()
    content, name = _save(visitor, "save-sheet")
    assert name == "pizza-class_attention-all-layers.png"
    saved = picture(content)
    width, height = 240, round(240 * visitor.photo.height / visitor.photo.width)
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
    with visitor.page.expect_download() as download:
        visitor.part(button).click()
    return download.value.path().read_bytes(), download.value.suggested_filename


def test_a_link_opens_the_same_view(visit):
    visitor = visit()
    visitor.page.locator(".examples button").nth(1).click()
    visitor.sees(EXAMPLES["sushi"])
    visitor.slide("layer", 4)
    visitor.choose("head", 2)
    visitor.click(100)
    visitor.choose("direction", "looked_at_by")
    visitor.part("copy-link").click()
    link = visitor.part("link").input_value()
    asked = parse_qs(urlparse(link).query)
    assert asked["example"] == ["sushi"] and asked["patch"] == ["100"] and asked["layer"] == ["4"]
    other = visit(path="?" + urlparse(link).query)
    other.sees(EXAMPLES["sushi"])
    assert other.text("title") == visitor.text("title")
    visitor.away()
    assert np.array_equal(other.canvas(), visitor.canvas())


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
    visitor.part("copy-link").click()
    assert "example" not in parse_qs(urlparse(visitor.part("link").input_value()).query)
    expect(visitor.part("link-text")).to_contain_text("Your own photo is not in it")


def test_a_link_that_makes_no_sense_opens_the_page(visit):
    visitor = visit(path="?example=../../etc/passwd&model=no/such&layer=99&head=x&map=<b>&patch=-1")
    expect(visitor.page.get_by_text("This page offers the models of its list only")).to_be_visible()
    visitor.drop(EXAMPLES["pizza"])
    assert visitor.text("title") == "What the class token looks at, layer 11, mean of the heads"


@pytest.mark.parametrize("method", [method for method in METHODS.values() if "classes" in method.needs])
def test_a_link_to_what_a_model_cannot_give_gets_a_sentence(visit, method):
    classifier = small(labels=())
    with serving(build(Models(classifier))) as url:
        visitor = visit(url, classifier, path=f"?map={method.name}&layer=1")
        visitor.drop(CAT)
        expect(visitor.part("failed")).to_have_text(f"{method.title} {NEEDS['classes']}")
        assert visitor.text("title") == "What the class token looks at, layer 1, mean of the heads"


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
        assert "register 2" in visitor.text("elsewhere")
        for patch in (1, 2, 3, 8, 9, 10):  # faster than they are answered
            visitor.page.mouse.click(*visitor.point_at(patch))
        expect(visitor.part("title")).to_contain_text("patch 10 ")
        expect(visitor.part("working")).to_be_hidden()


def test_a_model_without_class_token(visit):
    classifier = small(class_token=False, pool="mean")
    with serving(build(Models(classifier))) as url:
        visitor = visit(url, classifier)
        visitor.drop(CAT)
        visitor.plain()
        expect(visitor.part("class-token")).to_be_hidden()
        patch = 2 * 6 + 3  # the middle of 4 × 6
        assert f"patch {patch} " in visitor.text("title")
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
        expect(visitor.part("no-classes")).to_be_visible()
        for hidden in ("predictions", "lens"):
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
        expect(visitor.part("body")).to_be_visible()
        labels = visitor.part("classes").locator("button.class span:first-child")
        assert set(labels.all_text_contents()) == set(evil)
        visitor.part("classes").locator("button.class").first.click()
        visitor.part("copy-link").click()
        visitor.settle()
        assert visitor.page.evaluate("window.hacked") is None
        assert visitor.page.locator(".explorer img, .explorer b").count() == 0
        assert visitor.text("title").startswith("Relevance for ")
