"""What if: every tool, and what the page says of it against `vit`."""

import re
from dataclasses import replace

import pytest
import torch
from axe_playwright_python.sync_playwright import Axe
from browser.visitor import Visitor, visiting
from playwright.sync_api import expect

from vit.explain.what_if import Changes, fewest
from vit.page.explorer.tour import evidence
from vit.photos.examples import example_photos

PHOTO = example_photos()[0]


@pytest.fixture(scope="module")
def opened(browser):
    with visiting(browser, "mode=what-if") as visitor:
        yield visitor


@pytest.fixture
def visitor(opened):
    if opened.part("reset").is_enabled():
        opened.part("reset").click()
    opened.page.locator('[name="a-what-if-brush"][value="grey"]').check(force=True)
    opened.page.evaluate("document.querySelectorAll('.what-if details').forEach((each) => { each.open = true; })")
    ready(opened)
    return opened


def ready(visitor):
    visitor.settle()
    expect(visitor.page.locator('[data-part="what-if"][data-ready="true"]')).to_be_visible()
    visitor.settle()


def choose(visitor, group, value):
    visitor.page.locator(f'[name="a-what-if-{group}"][value="{value}"]').check(force=True)


def point(visitor, patch):
    bounds = visitor.part("paint").bounding_box()
    row, column = divmod(patch, 14)
    return bounds["x"] + (column + 0.5) * bounds["width"] / 14, bounds["y"] + (row + 0.5) * bounds["height"] / 14


def drag(visitor, *patches):
    visitor.part("paint").scroll_into_view_if_needed()
    visitor.page.mouse.move(*point(visitor, patches[0]))
    visitor.page.mouse.down()
    for patch in patches[1:]:
        visitor.page.mouse.move(*point(visitor, patch))
    visitor.page.mouse.up()


def says(visitor, changes, classifier=None, photo=None):
    """Whether the page says what `vit` does."""
    ready(visitor)
    found = (classifier or visitor.classifier).what_if(photo or visitor.photo, changes)
    index = int(found.probabilities.argmax())
    expected = found.labels[index].replace("_", " "), 100 * found.probabilities[index].item()
    name, _, share = visitor.text("after-answer").rpartition(", ")
    words = visitor.part("what-if-strip").locator("figcaption").all_text_contents()
    table = visitor.part("moved-rows").locator("tr").first.locator("td").nth(1).text_content()
    first = visitor.explanation.probabilities.argmax()
    return (
        (name, float(re.sub(r"[<> %]", "", share))) == (expected[0], pytest.approx(expected[1], rel=0.06, abs=0.51))
        and words == [layer[0][0].replace("_", " ") for layer in found.decided(1)]
        and float(re.sub(r"[<> %]", "", table))
        == pytest.approx(100 * found.probabilities[first].item(), rel=0.1, abs=0.51)
    )


@pytest.mark.parametrize("brush", ["grey", "blurred", "removed"])
def test_patches_are_painted(visitor, brush):
    choose(visitor, "brush", brush)
    drag(visitor, 60, 62)  # a fast hand leaps over 61
    drag(visitor, 88)
    expect(visitor.page).to_have_url(re.compile(rf"at={brush}%3A60-62.88"))
    assert says(visitor, Changes(**{brush: (60, 61, 62, 88)}))
    choose(visitor, "brush", "back")
    drag(visitor, 61)
    assert says(visitor, Changes(**{brush: (60, 62, 88)}))
    visitor.part("undo").click()
    visitor.part("undo").click()  # a stroke at once
    visitor.part("undo").click()
    assert says(visitor, Changes())


def test_patches_change_places(visitor):
    choose(visitor, "brush", "swapped")
    drag(visitor, 20)
    drag(visitor, 130)
    assert says(visitor, Changes(swapped=((20, 130),)))
    visitor.part("reset").click()
    visitor.part("shuffle").click()
    assert says(visitor, Changes(shuffled=1))
    choose(visitor, "positions", "dropped")
    assert says(visitor, Changes(shuffled=1, positions="dropped"))
    choose(visitor, "positions", "shuffled")
    assert says(visitor, Changes(shuffled=1, positions="shuffled"))


def test_heads_and_layers_are_switched_off(visitor):
    rows = visitor.part("switch-rows")
    rows.locator('[data-layer="4"]:not([data-head])').click()
    rows.locator('[data-layer="10"][data-head="1"]').click()
    expect(rows.locator('[data-layer="10"][data-head="1"]')).to_have_attribute("aria-pressed", "true")
    assert says(visitor, Changes(layers_off=(4,), heads_off=((10, 1),)))
    rows.locator('[data-layer="4"]:not([data-head])').click()
    assert says(visitor, Changes(heads_off=((10, 1),)))


def test_the_photo_is_turned_cropped_and_sized(visitor):
    choose(visitor, "turn", 90)
    assert says(visitor, Changes(), photo=visitor.photo.rotate(-90, expand=True))
    choose(visitor, "turn", 0)
    choose(visitor, "crop", 0.5)
    width, height = visitor.photo.size
    middle = [round(width / 4), round(height / 4), round(width * 3 / 4), round(height * 3 / 4)]
    assert says(visitor, Changes(), photo=visitor.photo.crop(middle))
    choose(visitor, "crop", 1)
    choose(visitor, "size", 0.5)
    how = visitor.classifier.preprocessing
    resize = round(how.resize / 2) if isinstance(how.resize, int) else (112, 112)
    half = replace(visitor.classifier, preprocessing=replace(how, resize=resize, crop=how.crop and (112, 112)))
    assert says(visitor, Changes(), half)


def test_the_last_stroke_wins(visitor):
    patches = [row * 14 + column for row in range(3, 9) for column in range(3, 11)]
    drag(visitor, *patches)
    assert says(visitor, Changes(grey=tuple(patches)))


def test_by_the_keyboard(visitor):
    visitor.part("paint").focus()
    visitor.page.mouse.move(2, 2)
    for key in ("ArrowRight", "ArrowUp", "Enter"):
        visitor.page.keyboard.press(key)
    assert says(visitor, Changes(grey=(7 * 14 + 8 - 14,)))


@pytest.mark.parametrize("goal", ["fool", "keep"])
def test_a_challenge_and_its_greedy_answer(visitor, goal):
    visitor.part(goal).click()
    ready(visitor)
    visitor.part("greedy").click()
    image, e = visitor.classifier.preprocessing(visitor.photo), visitor.explanation
    with torch.inference_mode():
        found = fewest(visitor.classifier.model, image, evidence(e), e.class_index(None), goal == "keep")
    said = "No number does it." if found is None else f"The greedy answer by relevance: {len(found)}."
    expect(visitor.part("greedy-text")).to_have_text(said)
    drag(visitor, 70)
    ready(visitor)
    expect(visitor.part("count")).to_contain_text("1 patch")


def test_a_tall_card_leaves_the_stage_as_it_is(visitor):
    below, above = visitor.part("stage").bounding_box(), visitor.part("paint").bounding_box()
    assert below == pytest.approx(above, abs=1.5)


@pytest.mark.parametrize("width, scheme", [(1440, "light"), (390, "dark")])
def test_axe_finds_no_violation(opened, browser, width, scheme):
    context = browser.new_context(viewport={"width": width, "height": 900}, color_scheme=scheme)
    path = opened.address.split("?")[0] + f"?example={PHOTO.stem}&mode=what-if&at=grey:3;goal:fool"
    other = Visitor(context.new_page(), path, opened.classifier)
    other.sees(PHOTO)
    ready(other)
    other.page.evaluate("document.querySelectorAll('.what-if details').forEach((each) => { each.open = true; })")
    assert other.page.evaluate("document.documentElement.scrollWidth") <= width
    found = Axe().run(other.page, options={"runOnly": ["wcag2a", "wcag2aa", "wcag21a", "wcag21aa", "wcag22aa"]})
    assert not found.response["violations"], found.generate_report()
    context.close()
