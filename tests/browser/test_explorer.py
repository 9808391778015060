"""Every control of the explorer changes what is drawn, to what `vit` computes without the page."""

import re
from itertools import pairwise

import numpy as np
import pytest
import torch
from browser.visitor import Visitor, close, serving
from PIL import Image
from playwright.sync_api import expect

import vit
from vit.explain import drawing, maps
from vit.explain.methods import METHODS
from vit.page import Models, build
from vit.photos.examples import example_photos

DIGITS = dict(rel=0.06, abs=0.051)  # what is read has two digits
PIZZA = next(photo for photo in example_photos() if photo.stem == "pizza")


@pytest.fixture(scope="module")
def address():
    with serving(build(Models(vit.load()), example_photos())) as url:
        yield url


@pytest.fixture(scope="module")
def visitor(browser, address):
    page = browser.new_page(viewport={"width": 1440, "height": 1000})
    visitor = Visitor(page, address, vit.load())
    visitor.drop(PIZZA)
    yield visitor
    page.close()


@pytest.fixture(autouse=True)
def fresh(visitor):
    """The class token's attention in the last layer, the map alone."""
    visitor.page.keyboard.press("Escape")  # a window that a test left open
    visitor.settle()
    if visitor.part("back").is_visible():
        visitor.part("back").click()
    visitor.choose("map", "class_attention")
    visitor.choose("direction", "looks_at")
    visitor.choose("head", "mean")
    visitor.choose("scale", "own")
    visitor.slide("layer", 11)
    visitor.plain()
    if visitor.whole:
        visitor.check("whole", False)
        visitor.whole = False
    visitor.away()


def test_a_photo_shows_its_predictions(visitor):
    rows = visitor.part("classes").locator("button.class")
    predictions = visitor.classifier.predict(PIZZA)
    assert rows.count() == len(predictions) == 5
    for row, (label, probability) in zip(rows.all(), predictions):
        name, share = row.locator("span").all_text_contents()
        assert name == label and float(share.split()[0]) == pytest.approx(100 * probability, **DIGITS)
    label, probability = predictions[0]
    assert visitor.text("answer") == f"{label}, {100 * probability:.0f} %"
    assert visitor.text("knows") == "knows 1,097 things and dishes"


def test_each_layer(visitor):
    found = visitor.explanation.class_attention()
    drawn = []
    for layer in range(12):
        visitor.slide("layer", layer)
        drawn.append(visitor.patches())
        assert close(drawn[-1], drawing.heat(found[layer]))
        assert visitor.part("layer").get_attribute("aria-valuetext").startswith(f"layer {layer + 1} of 12: ")
    assert not any(close(one, other) for one, other in pairwise(drawn))  # or the comparison says nothing


COLUMNS = {"heads": ["mean", "max", 0, 1, 2], "classes": [0, 3]}  # heads, and classes by their rank
EVERY = [(method, column) for method in METHODS.values() for column in COLUMNS[method.columns]]


@pytest.mark.parametrize("method, column", EVERY, ids=[f"{method.name}-{column}" for method, column in EVERY])
def test_each_method_by_head_or_class(visitor, method, column):
    e = visitor.explanation
    visitor.choose("map", method.name)
    if method.columns == "heads":
        visitor.choose("head", column)
        name = column if isinstance(column, str) else f"head {column + 1}"
    else:
        visitor.part("columns").locator("button").nth(column).click()
        name = column = visitor.classifier.predict(PIZZA)[column][0]
    if visitor.part("layer").is_visible():  # not where a map is of the whole model
        visitor.slide("layer", 8)
    found = method.map(e, column)
    found, layer = (found[8], ", layer 9") if found.ndim == 3 else (found, "")
    assert found.max() > found.min()
    assert close(visitor.patches(), drawing.heat(found))
    assert visitor.number("low") == pytest.approx(found.min().item(), **DIGITS)
    assert visitor.number("high") == pytest.approx(found.max().item(), **DIGITS)
    assert ("%" in visitor.text("low")) is ("%" in visitor.text("high")) is (method.unit == "share")
    if not method.of_token:
        caption = method.caption.replace("{class}", name)
        assert visitor.text("title").startswith(caption[0].upper() + caption[1:] + layer)
        assert visitor.text("note") == method.note
    pressed = visitor.part("columns").locator('[aria-pressed="true"]')
    name = {"mean": "All heads, their mean", "max": "All heads, their maximum"}.get(name, name)
    assert pressed.count() == 1 and pressed.get_attribute("aria-label") == name


def test_each_method_has_its_button(visitor):
    labels = visitor.part("methods").locator("label")
    assert labels.all_text_contents() == [method.title for method in METHODS.values()]
    assert [label.get_attribute("title") for label in labels.all()] == [method.paper for method in METHODS.values()]


@pytest.mark.parametrize("method", METHODS.values(), ids=METHODS)
def test_each_method_explains_itself(visitor, method):
    visitor.choose("map", method.name)
    visitor.part("more").click()
    visitor.part("what").click()
    assert visitor.text("term") == method.term and visitor.text("meaning")
    visitor.page.keyboard.press("Escape")
    visitor.page.keyboard.press("Escape")


def test_a_class_shows_its_relevance_and_a_second_one_the_difference(visitor):
    classes, e = visitor.part("classes").locator("button.class"), visitor.explanation
    labels = [label for label, _ in visitor.classifier.predict(PIZZA)]
    if visitor.part("more-classes").is_visible():
        visitor.part("more-classes").click()
    for rank in (0, 3):
        classes.nth(rank).click()
        assert close(visitor.patches(), drawing.heat(e.relevance(labels[rank])))
        expect(classes.nth(rank)).to_have_attribute("aria-pressed", "true")
    visitor.slide("layer", 5)
    assert close(visitor.patches(), drawing.heat(e.relevance_by_layer(labels[3])[5]))
    visitor.slide("layer", 11)
    classes.nth(1).click(modifiers=["Shift"])
    assert close(visitor.patches(), drawing.heat(e.difference(labels[3], labels[1]), signed=True))
    highest = e.difference(labels[3], labels[1]).abs().max().item()
    assert visitor.number("high") == pytest.approx(highest, **DIGITS)
    assert visitor.number("low") == pytest.approx(-highest, **DIGITS)
    visitor.page.get_by_label(f"The difference to {labels[0]}", exact=True).click()
    assert close(visitor.patches(), drawing.heat(e.difference(labels[3], labels[0]), signed=True))


def test_a_pinned_patch_shows_what_it_looks_at_and_what_looks_at_it(visitor):
    e = visitor.explanation
    visitor.slide("layer", 4)
    visitor.click(87)
    assert close(outside(visitor.patches(), 87), outside(drawing.heat(e.looks_at(87)[4]), 87))
    assert "the patch in row 7, column 4" in visitor.text("title")
    visitor.choose("direction", "looked_at_by")
    assert close(outside(visitor.patches(), 87), outside(drawing.heat(e.looked_at_by(87)[4]), 87))
    visitor.choose("head", 2)
    assert close(outside(visitor.patches(), 87), outside(drawing.heat(e.looked_at_by(87, 2)[4]), 87))
    visitor.part("back").click()
    visitor.choose("head", "mean")
    visitor.away()
    assert close(visitor.patches(), drawing.heat(e.class_attention()[4]))


def outside(colours, patch):
    """All but the patch, which has an outline: its middle is free of it, but the smaller the nearer."""
    kept = colours.reshape(-1, 3).copy()
    kept[patch] = 0
    return kept


def test_the_share_of_a_patch_stands_at_the_pointer(visitor):
    found = visitor.explanation.class_attention()[11].flatten()
    for patch in (0, 100, 182):
        visitor.hover(patch)
        share = 100 * found[patch].item()
        digits = 2 if share < 0.1 else 1 if share < 9.95 else 0
        expected = f"{round(share, digits):g} % · click: what does this patch look at?"
        expect(visitor.part("patch-text")).to_have_text(expected)
        x, y = visitor.point_at(patch)
        bubble = visitor.part("patch-text").bounding_box()
        away = max(
            bubble["x"] - x, x - bubble["x"] - bubble["width"], bubble["y"] - y, y - bubble["y"] - bubble["height"]
        )
        assert 0 < away < 60  # beside it, and not over it
        rank = int((found > found[patch]).sum()) + 1
        expect(visitor.part("spoken")).to_contain_text(f"row {patch // 14 + 1}, column {patch % 14 + 1}: ")
        place = re.search(r"the (?:(\d+)(?:st|nd|rd|th) )?highest of 196\.$", visitor.text("spoken"))
        assert int(place[1] or 1) == rank
    visitor.away()
    expect(visitor.part("patch-text")).to_be_hidden()


@pytest.mark.parametrize("overlay", ["spotlight", "heat"])
def test_every_patch_can_be_pointed_at(visitor, overlay):
    visitor.choose("overlay", overlay)
    visitor.settle()
    under = "points => points.map(([x, y]) => document.elementFromPoint(x, y)?.dataset.part)"
    found = visitor.page.evaluate(under, [visitor.point_at(patch) for patch in range(196)])
    assert found == ["stage"] * 196


def test_the_shared_scale_is_that_of_all_layers_and_heads(visitor):
    e = visitor.explanation
    every = np.stack([e.class_attention(heads).numpy() for heads in ("mean", "max", 0, 1, 2)])
    visitor.choose("scale", "shared")
    visitor.slide("layer", 3)
    assert close(visitor.patches(), drawing.heat(e.class_attention()[3], (every.min(), every.max())))
    assert visitor.number("high") == pytest.approx(every.max(), **DIGITS)


@pytest.fixture
def with_outliers(browser):
    """A visitor of a model that has two sinks, planted at two places: what ships has registers, and none."""
    planted = vit.load()
    with torch.no_grad():
        planted.model.position_embedding[0, [1 + 17, 1 + 150]] += 30
    with serving(build(Models(planted), example_photos())) as url:
        page = browser.new_page(viewport={"width": 1440, "height": 1000})
        visitor = Visitor(page, url, planted)
        visitor.drop(PIZZA)
        visitor.plain()
        yield visitor
        page.close()


def test_sinks_are_left_out_and_shown_in_one_click(with_outliers):
    visitor = with_outliers
    e = visitor.explanation
    _, flagged = e.outliers()
    assert flagged[11].any()
    expected = drawing.heat(maps.leave_out(e.class_attention(), flagged)[11]).astype(int)
    seen = ~flagged[11].numpy()
    visitor.part("show-sinks").click()  # which were shown before
    assert close(visitor.patches()[seen], expected[seen])
    share = 100 * e.class_attention()[11][flagged[11]].sum().item()
    said = re.match(
        r"(\d+) patches hold the model’s notes and no picture, ([\d.]+) % of the look", visitor.text("sinks-text")
    )
    assert int(said[1]) == flagged[11].sum() and float(said[2]) == pytest.approx(share, **DIGITS)
    visitor.hover(int(flagged[11].flatten().nonzero()[0]))
    assert visitor.text("patch-text").startswith("a sink, left out")
    visitor.away()
    visitor.part("show-sinks").click()
    assert close(visitor.patches(), drawing.heat(e.class_attention()[11]))
    visitor.part("show-sinks").click()
    visitor.choose("map", "rollout")
    expected = drawing.heat(maps.leave_out(e.rollout(), flagged)[11])
    assert close(visitor.patches()[seen], expected[seen])


def test_a_model_without_sinks_says_nothing_of_them(visitor):
    assert not visitor.explanation.outliers()[1].any()
    expect(visitor.part("sinks")).to_be_hidden()


def test_what_the_class_token_gives_itself_and_others_is_said(visitor):
    visitor.slide("layer", 2)
    visitor.choose("head", 1)
    shares = visitor.explanation.class_attention_elsewhere(1)
    itself = shares["class"][2].item()
    others = sum(share[2].item() for share in shares.values()) - itself
    said = re.findall(r"([\d.]+) %", visitor.text("elsewhere"))
    assert [float(each) for each in said] == pytest.approx([100 * itself, 100 * others], **DIGITS)


@pytest.mark.parametrize("smooth", [False, True])
@pytest.mark.parametrize("opacity", [0, 60, 100])
def test_the_picture_is_that_of_drawing(visitor, smooth, opacity):
    """The whole photo, with what the model did not see, against the pictures of the command line."""
    visitor.slide("opacity", opacity)
    visitor.check("smooth", smooth)
    visitor.check("whole")
    visitor.whole = True
    visitor.slide("layer", 5)
    drawn = visitor.canvas()
    height, width, _ = drawn.shape
    expected = drawing.overlay(
        visitor.photo.resize((width, height)),
        visitor.explanation.class_attention()[5],
        visitor.box(width, height),
        opacity=opacity / 100,
        smooth=smooth,
    )
    difference = np.abs(drawn - np.asarray(expected).astype(int))
    assert difference.mean() < 2.5 and np.quantile(difference, 0.98) <= 16


def test_the_picture_of_a_difference_is_that_of_drawing(visitor):
    """Over a grey photo, whose own red and blue are not the map's."""
    classes = visitor.part("classes").locator("button.class")
    classes.nth(0).click()
    classes.nth(1).click(modifiers=["Shift"])
    visitor.slide("opacity", 60)
    labels = [label for label, _ in visitor.classifier.predict(PIZZA)]
    drawn = visitor.canvas()
    height, width, _ = drawn.shape
    box = visitor.explanation.box
    expected = drawing.overlay(
        visitor.photo.resize((width, height), Image.Resampling.BICUBIC, box=box, reducing_gap=3),
        visitor.explanation.difference(labels[0], labels[1]),
        (0, 0, width, height),
        signed=True,
    )
    assert alike(drawn, np.asarray(expected).astype(int))
    assert np.median(drawn) > 128  # light, though most of the map is near zero


# What is not read, in light mode: a colour over dark photos, one over light photos, and the photo's share.
GROUNDS, SHARE = ((168, 174, 186), (98, 105, 121)), 0.4


def seen(visitor):
    """What the model saw at the stage's size, and the same with the lights down (both height, width, 3)."""
    height, width, _ = visitor.canvas().shape
    photo = visitor.photo.resize((width, height), Image.Resampling.BICUBIC, box=visitor.explanation.box, reducing_gap=3)
    colour = np.asarray(photo).astype(float)
    grey = (colour @ [0.299, 0.587, 0.114])[..., None].repeat(3, axis=-1)
    ground = [np.interp(grey.mean() / 255, (0.25, 0.65), ends) for ends in zip(*GROUNDS)]
    return colour, np.asarray(ground) * (1 - SHARE) + grey * SHARE


def field(found, height, width):
    """The map evenly between the middles of patches, at each pixel (height, width)."""
    steps = torch.tensor(found)[None, None].float()
    return torch.nn.functional.interpolate(steps, (height, width), mode="bilinear")[0, 0].numpy()


def alike(drawn, expected):
    difference = np.abs(drawn - expected)
    return difference.mean() < 3 and np.quantile(difference, 0.97) <= 20


@pytest.mark.parametrize("layer", [3, 11])
def test_the_spotlight_lights_what_is_read(visitor, layer):
    visitor.choose("overlay", "spotlight")
    visitor.check("smooth")
    visitor.slide("layer", layer)
    found = visitor.explanation.class_attention()[layer].numpy()
    colour, ground = seen(visitor)
    drawn = visitor.canvas()
    low, high = np.percentile(found, [5, 98.5])
    light = np.clip((field(found, *drawn.shape[:2]) - low) / (high - low), 0, 1)[..., None] ** 0.75
    assert alike(drawn, ground * (1 - light) + colour * light)
    assert not alike(drawn, colour) and not alike(drawn, ground)


def test_a_tile_is_as_large_as_its_share(visitor):
    visitor.choose("overlay", "tiles")
    found = visitor.explanation.class_attention()[11].numpy()
    colour, ground = seen(visitor)
    drawn = visitor.canvas()
    height, width, _ = drawn.shape
    side = np.sqrt(found / found.max())
    rows, columns = ((np.arange(size) + 0.5) * 14 / size for size in (height, width))
    row, column = rows.astype(int)[:, None], columns.astype(int)[None]
    away = np.maximum(np.abs(rows % 1 - 0.5)[:, None], np.abs(columns % 1 - 0.5)[None])  # from the patch's middle
    inside = (away < side[row, column] / 2)[..., None]
    assert alike(drawn, np.where(inside, colour, ground))


def test_contours_enclose_three_quarters_of_the_look(visitor):
    visitor.choose("overlay", "contours")
    found = visitor.explanation.class_attention()[11].numpy()
    colour, ground = seen(visitor)
    drawn = visitor.canvas()
    values = np.sort(found.ravel())[::-1]
    level = values[np.searchsorted(values.cumsum(), 0.75 * values.sum())]
    smooth = field(found, *drawn.shape[:2])
    expected = np.where((smooth >= level)[..., None], colour, ground)
    levels = [values[np.searchsorted(values.cumsum(), share * values.sum())] for share in (0.25, 0.5, 0.75)]
    down, across = np.gradient(smooth)
    slope = np.hypot(down, across)
    clear = np.min([np.abs(smooth - one) > 6 * slope for one in levels], axis=0)  # away from the lines
    assert clear.mean() > 0.5 and alike(drawn[clear], expected[clear])
    assert not alike(drawn[~clear], expected[~clear])  # where the lines are


def test_grid_lines_lie_between_the_patches(visitor):
    before = visitor.canvas()
    visitor.check("grid")
    changed = np.abs(visitor.canvas() - before).max(axis=-1) > 8
    left, top, right, _ = visitor.box(before.shape[1], before.shape[0])
    lines = {round(left + column / 14 * (right - left)) for column in range(1, 14)}
    lines |= {0, before.shape[1]}
    inside = changed[round(top) + 8]  # a row of pixels between two lines
    assert all(inside[max(0, line - 1) : line + 2].any() for line in lines if line < before.shape[1])
    assert all(any(abs(x - line) <= 2 for line in lines) for x in np.flatnonzero(inside))


def test_each_layer_has_the_word_that_it_would_say(visitor):
    words = [best[0][0] for best in visitor.explanation.decided(1)]
    chapters = [
        (each.text_content(), int(each.get_attribute("data-from")), int(each.get_attribute("data-to")))
        for each in visitor.part("ribbon").locator("li").all()
    ]
    assert [word for word, first, last in chapters for _ in range(first, last + 1)] == words
    assert all(one[0] != other[0] for one, other in pairwise(chapters))
    for layer in (0, 6, 11):
        visitor.slide("layer", layer)
        visitor.settle()
        share = 100 * visitor.explanation.decided(1)[layer][0][1]
        text = visitor.part("layer").get_attribute("aria-valuetext")
        assert text.startswith(f"layer {layer + 1} of 12: {words[layer]}, ")
        assert float(re.search(r"([\d.]+) %$", text)[1]) == pytest.approx(share, **DIGITS)


def test_the_sheet_shows_all_layers_and_heads_and_is_clicked_in(visitor):
    e, cells = visitor.explanation, visitor.part("cells")
    visitor.part("unfold").click()
    visitor.page.wait_for_timeout(300)
    assert cells.locator("button").count() == 12 * 5
    sheet, ratio = visitor.canvas("sheet-canvas"), 1
    frame = visitor.part("sheet-canvas").bounding_box()
    for layer, row, heads in ((0, 0, "mean"), (3, 2, 0), (9, 4, 2), (11, 1, "max")):
        bounds = cells.get_by_label(
            f"Layer {layer + 1}, " + {"mean": "all", "max": "max"}.get(heads, f"head {row - 1}"), exact=True
        ).bounding_box()
        size = (bounds["width"] - 4) * ratio
        middles = (np.arange(14) + 0.5) / 14 * size + 2
        y, x = bounds["y"] - frame["y"] + middles, bounds["x"] - frame["x"] + middles
        drawn = sheet[np.round(y - 0.5).astype(int)][:, np.round(x - 0.5).astype(int)]
        difference = np.abs(drawn - drawing.heat(e.class_attention(heads)[layer]).astype(int)).max(axis=-1)
        assert (difference <= 6).mean() > 0.95, (layer, row)  # a cell's pixels are few, and some lie on a border
    cells.get_by_label("Layer 7, head 2").click()
    visitor.away()
    assert close(visitor.patches(), drawing.heat(e.class_attention(1)[6]))
    expect(cells.get_by_label("Layer 7, head 2")).to_have_attribute("aria-pressed", "true")
    visitor.part("unfold").click()
    expect(visitor.part("sheet")).to_be_hidden()


def test_play_moves_through_the_layers_and_stops(visitor):
    visitor.slide("layer", 0)
    visitor.part("play").click()
    expect(visitor.part("layer")).to_have_attribute("aria-valuetext", re.compile("^layer 3 of 12"), timeout=5000)
    visitor.part("play").click()
    expect(visitor.part("play")).to_have_attribute("aria-pressed", "false")
    stopped = visitor.part("layer").input_value()
    visitor.page.wait_for_timeout(1500)
    assert visitor.part("layer").input_value() == stopped


def test_hovering_and_scrubbing_ask_the_server_nothing(visitor):
    asked = []
    visitor.page.on("request", lambda request: asked.append(request.url))
    for patch in range(0, 196, 7):
        visitor.hover(patch)
    for layer in range(12):
        visitor.slide("layer", layer)
    for kind in METHODS:
        visitor.choose("map", kind)
    for overlay in ("spotlight", "tiles", "contours", "heat"):
        visitor.choose("overlay", overlay)
    visitor.part("classes").locator("button.class").nth(2).click()
    visitor.click(50)
    visitor.choose("direction", "looked_at_by")
    visitor.check("smooth")
    visitor.away()
    assert asked == []


def test_what_the_model_saw_fills_the_stage_and_the_whole_photo_is_a_click_away(visitor):
    height, width, _ = visitor.canvas().shape
    left, top, right, bottom = visitor.explanation.box
    assert left > 1 and width / height == pytest.approx((right - left) / (bottom - top), rel=0.01)
    visitor.check("whole")
    visitor.whole = True
    height, width, _ = visitor.canvas().shape
    assert width / height == pytest.approx(visitor.photo.width / visitor.photo.height, rel=0.02)
