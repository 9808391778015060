"""Which map is right: the curves that are drawn, and the photo along them, against `vit`."""

import re

import pytest
from axe_playwright_python.sync_playwright import Axe
from browser.visitor import visiting
from playwright.sync_api import expect

from vit.explain.faithfulness import deletion, insertion, masked, random_map, removal_order
from vit.explain.methods import METHODS
from vit.photos.examples import example_photos

PHOTO = example_photos()[0]
EVERY = 2 * (len(METHODS) + 5)


@pytest.fixture(scope="module")
def visitor(browser):
    with visiting(browser, "mode=curves", height=1100) as visitor:
        page = visitor.page
        visitor.part("run").click()
        expect(page.locator('[data-part="curves"]:not([data-count="0"])')).to_be_visible()
        visitor.part("stop").click()  # a run that is stopped leaves what has come
        visitor.settle()
        stopped = int(visitor.part("curves").get_attribute("data-count"))
        expect(visitor.part("run")).to_be_visible()
        page.wait_for_timeout(500)
        assert stopped <= int(visitor.part("curves").get_attribute("data-count")) < EVERY
        visitor.part("run").click()
        expect(page.locator(f'[data-part="curves"][data-count="{EVERY}"]')).to_be_visible(timeout=120_000)
        yield visitor


def curves_of(visitor, map):
    image, index = visitor.classifier.preprocessing(visitor.photo), visitor.explanation.class_index(None)
    return [make(visitor.classifier.model, image, map, index) for make in (deletion, insertion)]


def test_areas_and_lines(visitor):
    for method in METHODS.values():
        both = curves_of(visitor, method.last(visitor.explanation))
        cells = visitor.part("area-rows").locator(f'[data-method="{method.name}"] td').all_text_contents()
        assert [float(cell) for cell in cells] == pytest.approx([curve.area for curve in both], abs=6e-4)
        for kind, curve in zip(("deletion", "insertion"), both):
            points = visitor.part(f"chart-{kind}").locator(f'[data-method="{method.name}"]').get_attribute("points")
            drawn = [float(point.split(",")[1]) for point in points.split()]
            assert drawn == pytest.approx([108 - 102 * share for share in curve.probabilities.tolist()], abs=0.05)
    chance = [curves_of(visitor, random_map(visitor.explanation.grid, seed)) for seed in range(5)]
    found = {method.title: curves_of(visitor, method.last(visitor.explanation)) for method in METHODS.values()}
    better = []
    for kind, sign in enumerate((1, -1)):  # small is right when patches go, large when they come
        areas = sorted(curves[kind].area for curves in chance)
        said = visitor.part("area-rows").locator('[data-method="random"] td').nth(kind).text_content()
        assert said == f"{areas[0]:.3f} to {areas[-1]:.3f}"
        order = sorted(found, key=lambda title: sign * found[title][kind].area)
        better.append([t for t in order if sign * found[t][kind].area < min(sign * area for area in areas)])
    gone, there = (", ".join(titles) or "none" for titles in better)
    said = f"Better than chance, the best first: when patches go, {gone}; when they come, {there}."
    assert visitor.text("verdict").startswith(said if any(better) else "On this photo no map does better than chance")


def test_along_a_curve(visitor):
    map = METHODS["rollout"].last(visitor.explanation)
    curve = curves_of(visitor, map)[0]
    visitor.part("area-rows").locator('[data-method="rollout"] button').click()
    visitor.part("point").fill("7")
    expect(visitor.page).to_have_url(re.compile("at=deletion%3Arollout%3A7"))
    label = visitor.explanation.labels[curve.answers[7]].replace("_", " ")
    expect(visitor.part("point-text")).to_contain_text(f"it says {label};")
    order = removal_order(map)
    image = visitor.classifier.preprocessing(visitor.photo)
    gone = (masked(image, order, (curve.shares * len(order)).round()[7:8], 16)[0] == 0).all(dim=0)[8::16, 8::16]
    pixels = visitor.canvas("curves-stage")
    side = pixels.shape[0] / 14
    for row in range(14):
        for column in range(14):
            colour = pixels[int((row + 0.5) * side), int((column + 0.5) * side)]
            assert (abs(colour - 128).max() <= 1) == bool(gone[row, column]), (row, column)


def test_a_curve_is_dragged_along_and_found_again(visitor):
    chart = visitor.part("chart-deletion").bounding_box()
    at = lambda point: chart["x"] + chart["width"] * (34 + 260 * point / 14) / 300  # noqa: E731
    curve = curves_of(visitor, METHODS["rollout"].last(visitor.explanation))[0]
    down = (108 - 102 * curve.probabilities[3].item()) / 130
    visitor.page.mouse.move(at(3), chart["y"] + chart["height"] * down)
    visitor.page.mouse.down()
    expect(visitor.page).to_have_url(re.compile(r"at=deletion%3A\w+%3A3"))
    for point in range(4, 10):  # the curve that was taken stays in the hand
        visitor.page.mouse.move(at(point), chart["y"] + 5)
    visitor.page.mouse.up()
    expect(visitor.page).to_have_url(re.compile(r"at=deletion%3A\w+%3A9"))
    said = visitor.text("point-text")
    visitor.page.reload()
    visitor.sees(PHOTO)
    expect(visitor.part("point-text")).to_have_text(said, timeout=120_000)
    expect(visitor.page.locator(f'[data-part="curves"][data-count="{EVERY}"]')).to_be_visible(timeout=120_000)


@pytest.mark.parametrize("width, scheme", [(1440, "light"), (1440, "dark"), (390, "light"), (390, "dark")])
def test_axe_finds_no_violation(visitor, width, scheme):
    visitor.page.set_viewport_size({"width": width, "height": 900})
    visitor.page.emulate_media(color_scheme=scheme)
    visitor.page.evaluate("(dark) => document.body.classList.toggle('dark', dark)", scheme == "dark")
    visitor.page.wait_for_timeout(300)
    assert visitor.page.evaluate("document.documentElement.scrollWidth") <= width
    found = Axe().run(visitor.page, options={"runOnly": ["wcag2a", "wcag2aa", "wcag21a", "wcag21aa", "wcag22aa"]})
    assert not found.response["violations"], found.generate_report()
