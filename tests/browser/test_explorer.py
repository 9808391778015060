"""Every control of the explorer changes what is drawn, to what `vit` computes without the page."""

import re
from itertools import pairwise

import numpy as np
import pytest
import torch
from browser.visitor import Visitor, close, serving
from playwright.sync_api import expect

import app
import vit
from vit import drawing, maps
from vit.methods import METHODS
from vit.page import Models, build

PIZZA = next(photo for photo in app.EXAMPLES if photo.stem == "pizza")


@pytest.fixture(scope="module")
def address():
    with serving(build(Models(vit.load()), app.EXAMPLES)) as url:
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
    visitor.part("class-token").click()
    visitor.choose("map", "class_attention")
    visitor.choose("direction", "looks_at")
    visitor.choose("head", "mean")
    visitor.choose("scale", "own")
    for name in ("smooth", "mark", "leaveOut"):
        visitor.check(name, False)
    visitor.slide("layer", 11)
    visitor.plain()
    visitor.away()


def test_a_photo_shows_its_predictions(visitor):
    rows = visitor.part("classes").locator("button.class")
    predictions = visitor.classifier.predict(PIZZA)
    assert rows.count() == len(predictions) == 5
    for row, (label, probability) in zip(rows.all(), predictions):
        name, share = row.locator("span").all_text_contents()
        assert name == label and float(share.split()[0]) == pytest.approx(100 * probability, rel=1e-2)


def test_each_layer(visitor):
    found = visitor.explanation.class_attention()
    drawn = []
    for layer in range(12):
        visitor.slide("layer", layer)
        drawn.append(visitor.patches())
        assert close(drawn[-1], drawing.heat(found[layer]))
        assert visitor.text("layer-number") == f"layer {layer} of 0–11"
    assert not any(close(one, other) for one, other in pairwise(drawn))  # or the comparison says nothing


COLUMNS = {"heads": ["mean", "max", 0, 1, 2], "classes": [0, 3]}  # heads, and classes by their rank
EVERY = [(method, column) for method in METHODS.values() for column in COLUMNS[method.columns]]


@pytest.mark.parametrize("method, column", EVERY, ids=[f"{method.name}-{column}" for method, column in EVERY])
def test_each_method_by_head_or_class(visitor, method, column):
    e = visitor.explanation
    visitor.choose("map", method.name)
    if method.columns == "heads":
        visitor.choose("head", column)
        name = column if isinstance(column, str) else f"head {column}"
    else:
        visitor.part("classes").locator("button.class").nth(column).click()
        name = column = visitor.classifier.predict(PIZZA)[column][0]
    visitor.slide("layer", 8)
    found = method.map(e, column)
    found, layer = (found[8], ", layer 8") if found.ndim == 3 else (found, "")
    assert found.max() > found.min()
    assert close(visitor.patches(), drawing.heat(found))
    assert visitor.number("low") == pytest.approx(found.min().item(), rel=1e-2)
    assert visitor.number("high") == pytest.approx(found.max().item(), rel=1e-2)
    assert ("%" in visitor.text("low")) is ("%" in visitor.text("high")) is (method.unit == "share")
    if not method.of_token:
        caption = method.caption.replace("{class}", name)
        assert visitor.text("title").startswith(caption[0].upper() + caption[1:] + layer)
        assert visitor.text("elsewhere") == method.note
    label = f"Layer 8, {name}" if layer else name
    expect(visitor.part("cells").get_by_label(label, exact=True)).to_have_attribute("aria-pressed", "true")


def test_each_method_has_its_button(visitor):
    labels = visitor.part("methods").locator("label")
    assert labels.all_text_contents() == [method.title for method in METHODS.values()]
    assert [label.get_attribute("title") for label in labels.all()] == [method.paper for method in METHODS.values()]


def test_a_class_shows_its_relevance_and_a_second_one_the_difference(visitor):
    classes, e = visitor.part("classes").locator("button.class"), visitor.explanation
    labels = [label for label, _ in visitor.classifier.predict(PIZZA)]
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
    assert visitor.number("high") == pytest.approx(highest, rel=1e-2)
    assert visitor.number("low") == pytest.approx(-highest, rel=1e-2)
    visitor.page.get_by_label(f"The difference to {labels[0]}", exact=True).click()
    assert close(visitor.patches(), drawing.heat(e.difference(labels[3], labels[0]), signed=True))


def test_a_pinned_patch_shows_what_it_looks_at_and_what_looks_at_it(visitor):
    e = visitor.explanation
    visitor.slide("layer", 4)
    visitor.click(87)
    assert close(outside(visitor.patches(), 87), outside(drawing.heat(e.looks_at(87)[4]), 87))
    assert "patch 87 (row 6, column 3)" in visitor.text("title")
    visitor.choose("direction", "looked_at_by")
    assert close(outside(visitor.patches(), 87), outside(drawing.heat(e.looked_at_by(87)[4]), 87))
    visitor.choose("head", 2)
    assert close(outside(visitor.patches(), 87), outside(drawing.heat(e.looked_at_by(87, 2)[4]), 87))
    visitor.part("class-token").click()
    visitor.choose("direction", "looks_at")
    visitor.choose("head", "mean")
    assert close(visitor.patches(), drawing.heat(e.class_attention()[4]))


def outside(colours, patch):
    """All but the patch, which has an outline: its middle is free of it, but the smaller the nearer."""
    kept = colours.reshape(-1, 3).copy()
    kept[patch] = 0
    return kept


def test_hovering_names_the_patch_and_its_share(visitor):
    found = visitor.explanation.class_attention()[11].flatten()
    for patch in (0, 100, 195):
        visitor.hover(patch)
        rank = int((found > found[patch]).sum()) + 1
        words = visitor.text("patch-text")
        assert words.startswith(f"Patch {patch} (row {patch // 14}, column {patch % 14}): ")
        assert float(words.split(": ")[1].split()[0]) == pytest.approx(100 * found[patch].item(), rel=1e-2)
        place = re.search(r"the (?:(\d+)(?:st|nd|rd|th) )?highest of 196\.$", words)
        assert int(place[1] or 1) == rank
    enlarged, (left, top, right, bottom) = visitor.canvas("patch"), visitor.box(*visitor.photo.size)
    x, y = left + (right - left) * 13 / 14, top + (bottom - top) * 13 / 14
    cut = visitor.photo.crop((round(x), round(y), round(right), round(bottom))).resize((112, 112))
    assert np.abs(enlarged - np.asarray(cut).astype(int)).mean() < 12
    visitor.away()
    assert "Point at a patch" in visitor.text("patch-text")


def test_the_shared_scale_is_that_of_all_layers_and_heads(visitor):
    e = visitor.explanation
    every = np.stack([e.class_attention(heads).numpy() for heads in ("mean", "max", 0, 1, 2)])
    visitor.choose("scale", "shared")
    visitor.slide("layer", 3)
    assert close(visitor.patches(), drawing.heat(e.class_attention()[3], (every.min(), every.max())))
    assert visitor.number("high") == pytest.approx(every.max(), rel=1e-2)


@pytest.fixture
def with_outliers(browser):
    """A visitor of a model that has two sinks, planted at two places: what ships has registers, and none."""
    planted = vit.load()
    with torch.no_grad():
        planted.model.position_embedding[0, [1 + 17, 1 + 150]] += 30
    with serving(build(Models(planted), app.EXAMPLES)) as url:
        page = browser.new_page(viewport={"width": 1440, "height": 1000})
        visitor = Visitor(page, url, planted)
        visitor.drop(PIZZA)
        visitor.plain()
        yield visitor
        page.close()


def test_outliers_are_marked_and_left_out(with_outliers):
    visitor = with_outliers
    e = visitor.explanation
    _, flagged = e.outliers()
    assert flagged[11].any()
    plain = visitor.patches()
    visitor.check("mark")
    marked = visitor.patches()
    assert (np.abs(marked - plain).max(axis=-1) > 30).tolist() == flagged[11].tolist()  # a white cross in the middle
    visitor.check("mark", False)
    share = e.class_attention()[11][flagged[11]].sum().item()
    assert f"{flagged[11].sum()}, {100 * share:.3g} % together" in visitor.text("outliers")
    visitor.check("leaveOut")
    assert close(visitor.patches(), drawing.heat(maps.leave_out(e.class_attention(), flagged)[11]))
    visitor.hover(int(flagged[11].flatten().nonzero()[0]))
    assert "left out as an outlier" in visitor.text("patch-text")
    visitor.away()
    visitor.choose("map", "rollout")
    assert close(visitor.patches(), drawing.heat(maps.leave_out(e.rollout(), flagged)[11]))


def test_what_the_class_token_gives_itself_is_said(visitor):
    visitor.slide("layer", 2)
    visitor.choose("head", 1)
    share = visitor.explanation.class_attention_elsewhere(1)["class"][2].item()
    assert visitor.number("elsewhere") == pytest.approx(share, rel=1e-2)
    assert "to itself" in visitor.text("elsewhere")


@pytest.mark.parametrize("smooth", [False, True])
@pytest.mark.parametrize("opacity", [0, 60, 100])
def test_the_picture_is_that_of_drawing(visitor, smooth, opacity):
    """The whole canvas, with what the model did not see, against the pictures of the command line."""
    visitor.slide("opacity", opacity)
    visitor.check("smooth", smooth)
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


def test_grid_lines_lie_between_the_patches(visitor):
    before = visitor.canvas()
    visitor.check("grid")
    changed = np.abs(visitor.canvas() - before).max(axis=-1) > 8
    left, top, right, _ = visitor.box(before.shape[1], before.shape[0])
    lines = {round(left + column / 14 * (right - left)) for column in range(15)}
    inside = changed[round(top) + 8]  # a row of pixels between two lines
    assert all(inside[line - 1 : line + 2].any() for line in lines)
    assert all(any(abs(x - line) <= 2 for line in lines) for x in np.flatnonzero(inside))


def test_the_running_top_three_follow_the_layer(visitor):
    for layer, best in enumerate(visitor.explanation.decided(3)):
        visitor.slide("layer", layer)
        visitor.settle()
        rows = visitor.part("lens-list").locator("li").all()
        assert [row.locator("span").first.text_content() for row in rows] == [label for label, _ in best]
        shares = [float(row.locator("span").last.text_content().split()[0]) for row in rows]
        assert shares == pytest.approx([100 * share for _, share in best], rel=1e-2)


def test_the_sheet_shows_all_layers_and_heads_and_is_clicked_in(visitor):
    e, cells = visitor.explanation, visitor.part("cells")
    assert cells.locator("button").count() == 12 * 5
    sheet, ratio = visitor.canvas("sheet-canvas"), 1
    frame = visitor.part("sheet-canvas").bounding_box()
    for layer, row, heads in ((0, 0, "mean"), (3, 2, 0), (9, 4, 2), (11, 1, "max")):
        bounds = cells.get_by_label(
            f"Layer {layer}, {f'head {heads}' if isinstance(heads, int) else heads}"
        ).bounding_box()
        size = (bounds["width"] - 4) * ratio
        middles = (np.arange(14) + 0.5) / 14 * size + 2
        y, x = bounds["y"] - frame["y"] + middles, bounds["x"] - frame["x"] + middles
        drawn = sheet[np.round(y - 0.5).astype(int)][:, np.round(x - 0.5).astype(int)]
        difference = np.abs(drawn - drawing.heat(e.class_attention(heads)[layer]).astype(int)).max(axis=-1)
        assert (difference <= 6).mean() > 0.95, (layer, row)  # a cell's pixels are few, and some lie on a border
    cells.get_by_label("Layer 6, head 1").click()
    visitor.away()
    assert close(visitor.patches(), drawing.heat(e.class_attention(1)[6]))
    expect(cells.get_by_label("Layer 6, head 1")).to_have_attribute("aria-pressed", "true")


def test_play_moves_through_the_layers_and_stops(visitor):
    visitor.slide("layer", 0)
    visitor.part("play").click()
    expect(visitor.part("layer-number")).to_have_text("layer 2 of 0–11", timeout=5000)
    visitor.part("play").click()
    expect(visitor.part("play")).to_have_attribute("aria-pressed", "false")
    stopped = visitor.text("layer-number")
    visitor.page.wait_for_timeout(1500)
    assert visitor.text("layer-number") == stopped


def test_hovering_and_scrubbing_ask_the_server_nothing(visitor):
    asked = []
    visitor.page.on("request", lambda request: asked.append(request.url))
    for patch in range(0, 196, 7):
        visitor.hover(patch)
    for layer in range(12):
        visitor.slide("layer", layer)
    for kind in METHODS:
        visitor.choose("map", kind)
    visitor.part("classes").locator("button.class").nth(2).click()
    visitor.click(50)
    visitor.choose("direction", "looked_at_by")
    visitor.check("smooth")
    visitor.away()
    assert asked == []


def test_what_the_model_did_not_see_is_said(visitor):
    assert visitor.explanation.box[0] > 1
    assert "The model saw the lit part" in visitor.text("seen")
