"""How it works: every page of the tour, and its numbers against those of `vit`."""

import math
import re
from dataclasses import replace
from urllib.parse import parse_qs, urlparse

import numpy as np
import pytest
import torch
from axe_playwright_python.sync_playwright import Axe
from browser.visitor import Visitor, visiting
from playwright.sync_api import expect
from serving import ROOT

from vit.explain.trace import embedded, trace
from vit.photos.examples import example_photos
from vit.registers import without_registers

PHOTO = example_photos()[0]
PATCH, LAYER, HEAD = 87, 5, 1
PAGES = re.findall(r'^    name: "(\w+)"', (ROOT / "vit/page/web/modes/tour-pages.js").read_text(), re.M)
MODEL = (ROOT / "vit" / "model.py").read_text().splitlines()


@pytest.fixture(scope="module")
def visitor(browser):
    with visiting(browser, f"patch={PATCH}&layer={LAYER}&head={HEAD}&mode=tour") as visitor:
        yield visitor


@pytest.fixture(scope="module")
def image(visitor):
    return visitor.classifier.preprocessing(visitor.photo)


@pytest.fixture(scope="module")
def followed(visitor, image):
    return trace(visitor.classifier.model, image, LAYER, HEAD, visitor.explanation.token(PATCH))


def turn_to(visitor, name, layer=None):
    visitor.part("tour-dots").locator("button").nth(PAGES.index(name)).click()
    expect(visitor.page).to_have_url(re.compile(f"at={name}"))
    expect(visitor.page.locator('[data-part="tour"][data-ready="true"]')).to_be_visible()
    visitor.settle()
    if layer is not None:
        visitor.slide("layer", layer)
        expect(visitor.page.locator('[data-part="tour"][data-ready="true"]')).to_be_visible()
        visitor.settle()


def rows(visitor, part):
    """The cells of a table, by the name of its row."""
    found = {}
    for row in visitor.part(f"numbers-{part}").locator("tbody tr").all():
        name, *cells = row.locator("th, td").all_text_contents()
        found[name] = [number(cell) for cell in cells]
    return found


def number(text):
    text = text.replace("−", "-").replace("> ", "").replace("< ", "")
    raised = text.translate(str.maketrans("⁻⁰¹²³⁴⁵⁶⁷⁸⁹", "-0123456789")).replace(" · 10", "e")
    found = re.search(r"-?[\d.]+(e[+-]?\d+)?", raised if "10" in text and "·" in text else text)
    return None if found is None else float(found[0]) / (100 if "%" in text else 1)


def near(found, expected):
    return found == pytest.approx(float(expected), rel=0.006, abs=6e-4)


def vector(visitor, name):
    """How many numbers a strip has, and the first of them."""
    text = visitor.part(f"vector-{name}").locator("span").text_content()
    count, _, first = text.partition(" numbers: ")
    return int(count), [number(one) for one in first.split()[:3]]


def same_vector(visitor, name, expected):
    count, first = vector(visitor, name)
    return count == expected.numel() and all(near(*pair) for pair in zip(first, expected.flatten().tolist()))


def test_every_page_by_the_next_button_and_back(visitor):
    turn_to(visitor, PAGES[0])
    assert 12 <= len(PAGES) <= 14
    titles = []
    for place, name in enumerate(PAGES):
        expect(visitor.page).to_have_url(re.compile(f"at={name}"))
        expect(visitor.part("tour-place")).to_have_text(f"How it works · {place + 1} of {len(PAGES)}")
        titles.append(visitor.text("tour-title"))
        text = visitor.text("tour-text")
        assert 20 < len(text.split()) <= 65 and "undefined" not in text and "{" not in text, text
        if visitor.part("tour-code").is_visible():
            line = int(visitor.text("tour-code").split()[-1])
            visitor.part("tour-code").click()
            shown = visitor.part("tour-lines").locator("mark").text_content()
            assert shown.split(maxsplit=1)[1].strip() == MODEL[line - 1].strip()
            visitor.page.keyboard.press("Escape")
        if place < len(PAGES) - 1:
            visitor.part("tour-next").click()
    assert len(set(titles)) == len(PAGES)
    assert visitor.part("tour-next").is_hidden()
    visitor.part("tour-title").focus()
    visitor.page.keyboard.press("ArrowLeft")
    expect(visitor.page).to_have_url(re.compile(f"at={PAGES[-2]}"))
    visitor.page.evaluate("document.activeElement.blur()")
    visitor.page.keyboard.press("ArrowRight")  # with the focus nowhere
    expect(visitor.page).to_have_url(re.compile(f"at={PAGES[-1]}"))
    visitor.page.reload()
    visitor.sees(PHOTO)
    expect(visitor.part("tour-place")).to_have_text(f"How it works · {len(PAGES)} of {len(PAGES)}")
    assert parse_qs(urlparse(visitor.page.url).query)["patch"] == [str(PATCH)]


def test_the_patch_becomes_numbers_and_gets_its_place(visitor, image):
    found = embedded(visitor.classifier.model, image, PATCH)
    turn_to(visitor, "embedding")
    assert same_vector(visitor, "pixels", found.pixels) and same_vector(visitor, "embedding", found.embedding)
    assert visitor.part("filters").locator("canvas").count() == 28
    names = visitor.part("features").locator("figcaption").all_text_contents()
    strongest = found.embedding.abs().topk(6).indices
    assert names == [f"filter {channel + 1}" for channel in strongest.tolist()]
    turn_to(visitor, "position")
    assert same_vector(visitor, "position", found.position)
    assert same_vector(visitor, "start", found.embedding + found.position)


def test_query_key_and_value(visitor, followed):
    turn_to(visitor, "patches")
    turn_to(visitor, "qkv")  # which begins where the embedding ends
    expect(visitor.part("title")).to_contain_text(f"layer 1, head {HEAD + 1}")
    turn_to(visitor, "qkv", LAYER)
    token = visitor.explanation.token(PATCH)
    for name, expected in (
        ("before", followed.before),
        ("normed", followed.normed),
        ("query", followed.query),
        ("keys", followed.keys[token]),
        ("values", followed.values[token]),
    ):
        assert same_vector(visitor, name, expected), name
    expect(visitor.part("title")).to_contain_text(f"layer {LAYER + 1}, head {HEAD + 1}")


def listed(visitor, followed):
    token = visitor.explanation.token(PATCH)
    order = followed.attention.argsort(descending=True, stable=True).tolist()
    return [*[other for other in order if other != token and other >= visitor.explanation.token(0)][:4], token]


def test_the_scores_add_up(visitor, followed):
    turn_to(visitor, "scores", LAYER)
    found = list(rows(visitor, "scores").values())
    for cells, token in zip(found, listed(visitor, followed)):
        expected = followed.products, followed.scores, followed.scores.exp(), followed.attention
        assert all(near(cell, values[token]) for cell, values in zip(cells[:3], expected))
        assert near(cells[3], followed.attention[token])
        assert near(cells[1], cells[0] / followed.query.numel() ** 0.5)  # by hand, from what is written
    terms = [cells[2] for cells in found]
    assert terms[-1] == pytest.approx(sum(terms[:-1]), rel=2e-3)
    assert near(terms[-1], followed.scores.exp().sum())
    for cells in found:
        assert cells[3] == pytest.approx(cells[2] / terms[-1], rel=0.01)
    assert sum(cells[3] for cells in found[:-1]) == pytest.approx(1, abs=0.005)
    written = re.sub(r"\(.*?\)", "", visitor.text("said-product").partition(": ")[2]).replace("− ", "+ -")
    *products, total = [math.prod(map(number, term.split("×"))) for term in re.split(" [+=] ", written)]
    rounded = 0.0005 * (2 + sum(abs(number(factor)) for factor in re.split(" [+=×] ", written)[:6]))  # three places
    assert sum(products) == pytest.approx(total, abs=rounded) and near(total, found[0][0])


def test_the_weighted_sum(visitor, followed):
    turn_to(visitor, "sum", LAYER)
    *each, total = rows(visitor, "sum").values()
    each, together = each[:5], each[5:]
    for cells, token in zip(each, listed(visitor, followed)):
        assert all(near(cell, value) for cell, value in zip(cells[1:], followed.values[token]))
    assert all(near(cell, value) for cell, value in zip(total[1:], followed.weighted))
    for place in (1, 2, 3):  # by hand
        terms = sum(cells[0] * cells[place] for cells in each)
        terms += sum(cells[place] for cells in together)
        assert terms == pytest.approx(total[place], abs=0.005 * (1 + abs(total[place])))
    assert same_vector(visitor, "weighted", followed.weighted)


def test_residual_and_mlp(visitor, followed):
    turn_to(visitor, "residual", LAYER)
    for part in ("before", "msa", "between"):
        assert near(number(visitor.text(f"length-{part}")), getattr(followed, part).norm())
    assert near(number(visitor.text("said-turned")), followed.turned)
    assert brightest(visitor) == int(followed.steps[visitor.explanation.token(0) :].argmax())
    turn_to(visitor, "mlp")
    for part in ("between", "mlp", "after"):
        assert near(number(visitor.text(f"length-{part}")), getattr(followed, part).norm())
    strongest = followed.written.topk(6).indices.tolist()
    found = rows(visitor, "neurons")
    assert list(found) == [f"neuron {neuron + 1}" for neuron in strongest]
    for neuron, cells in zip(strongest, found.values()):
        assert near(cells[0], followed.neurons[neuron]) and near(cells[1], followed.written[neuron])
    assert brightest(visitor) == int(followed.activations[visitor.explanation.token(0) :, strongest[0]].argmax())


def brightest(visitor):
    """The patch of the stage whose middle is lightest."""
    pixels = visitor.canvas("tour-stage").sum(axis=2)
    side = pixels.shape[0] / 14
    middles = ((np.arange(14) + 0.5) * side).astype(int)
    return int(pixels[middles][:, middles].argmax())


def test_layers_answer_and_distance(visitor):
    e = visitor.explanation
    turn_to(visitor, "layers")
    words = visitor.part("numbers-decided").locator("tbody td:nth-child(2)").all_text_contents()
    assert words == [layer[0][0].replace("_", " ") for layer in e.decided(1)]
    expect(visitor.part("tour-caption")).to_have_text(f"Lit = what the class token looks at, layer {e.tokens.shape[0]}")
    turn_to(visitor, "answer")
    with torch.inference_mode():
        logits = visitor.classifier.model(visitor.classifier.preprocessing(visitor.photo)[None])[0].double()
    found = rows(visitor, "logits")
    for (label, probability), (name, cells) in zip(visitor.classifier.predict(visitor.photo), found.items()):
        assert name == label.replace("_", " ")
        assert near(cells[0], logits[e.labels.index(label)]) and near(cells[1], logits[e.labels.index(label)].exp())
        assert near(cells[2], probability)
    assert near(found["sum"][1], logits.exp().sum())
    *terms, total = [cells[-1] for cells in rows(visitor, "logit").values()]
    assert total == next(iter(found.values()))[0] and sum(terms) == pytest.approx(total, abs=0.1)
    turn_to(visitor, "distance")
    visitor.page.locator(".tour details summary").click()
    for cells, expected in zip(rows(visitor, "distance").values(), e.attention_distance()):
        assert all(near(cell, value) for cell, value in zip(cells, expected))


def test_the_lengths_of_patches_with_registers_and_without(visitor):
    turn_to(visitor, "qkv")
    turn_to(visitor, "sinks")  # which begins with the last layer
    e, c = visitor.explanation, visitor.classifier
    before = replace(c, model=without_registers(c.model)).explain(visitor.photo)
    middle, longest, register = rows(visitor, "norms").values()
    for place, norms in enumerate(each.outliers()[0][-1] for each in (e, before)):
        assert near(middle[place], norms.median()) and near(longest[place], norms.max())
    registers = [place for place, name in enumerate(e.prefix) if name.startswith("register")]
    assert near(register[0], e.tokens[-1, registers].norm(dim=-1).mean()) and register[1] is None


def test_another_patch_is_followed_by_a_click(visitor, image):
    turn_to(visitor, "qkv", LAYER)
    visitor.click(PATCH + 20)
    other = trace(visitor.classifier.model, image, LAYER, HEAD, visitor.explanation.token(PATCH + 20))
    expect(visitor.part("vector-query").locator("span")).to_contain_text(f"{float(f'{other.query[0]:.3g}'):g}"[-4:])
    assert same_vector(visitor, "query", other.query)
    visitor.click(PATCH)
    expect(visitor.page).to_have_url(re.compile(rf"patch={PATCH}\b"))


def test_a_long_page_is_presented_from_its_top(visitor):
    turn_to(visitor, "answer")
    visitor.part("present").click()
    for part in ("tour-place", "ground"):
        expect(visitor.part(part)).to_be_in_viewport(ratio=0.95)
    visitor.part("present").click()


@pytest.mark.parametrize("width, height", [(390, 844), (820, 1000)])
def test_on_a_small_screen_the_stage_stays_in_sight(visitor, browser, width, height):
    context = browser.new_context(viewport={"width": width, "height": height}, has_touch=True)
    other = Visitor(context.new_page(), visitor.page.url, visitor.classifier)
    other.sees(PHOTO)
    turn_to(other, "question")
    for part in ("columns", "layer"):  # which would change nothing there
        expect(other.part(part)).to_be_hidden()
    turn_to(other, "scores")
    for part in ("columns", "layer"):
        expect(other.part(part)).to_be_visible()
    other.page.mouse.wheel(0, 400)
    expect(other.part("ground")).to_be_in_viewport(ratio=0.95)
    if width == 390:
        expect(other.part("tour-next")).to_be_in_viewport(ratio=1)
    other.part("tour-next").tap()
    expect(other.page.locator('[data-part="tour"][data-ready="true"]')).to_be_visible()
    stage, title = other.part("ground").bounding_box(), other.part("tour-title").bounding_box()
    assert stage["y"] >= 0 and title["y"] >= (stage["y"] + stage["height"] if width == 390 else 0)
    context.close()


@pytest.mark.parametrize("width, scheme", [(1440, "dark"), (390, "light")])
def test_axe_finds_no_violation_on_any_page(visitor, browser, width, scheme):
    context = browser.new_context(viewport={"width": width, "height": 900}, color_scheme=scheme)
    other = Visitor(context.new_page(), visitor.page.url, visitor.classifier)
    other.sees(PHOTO)
    for name in PAGES:
        turn_to(other, name)
        assert other.page.evaluate("document.documentElement.scrollWidth") <= width
        found = Axe().run(other.page, options={"runOnly": ["wcag2a", "wcag2aa", "wcag21a", "wcag21aa", "wcag22aa"]})
        assert not found.response["violations"], (name, found.generate_report())
    context.close()


def test_a_mode_is_loaded_when_it_is_opened_and_back_leaves_it(visitor, browser):
    page, asked = browser.new_page(viewport={"width": 1440, "height": 900}), []
    page.on("request", lambda request: asked.extend(re.findall(r"/modes/([\w-]+)\.js", request.url)))
    other = Visitor(page, visitor.address.split("?")[0] + f"?example={PHOTO.stem}", visitor.classifier)
    other.sees(PHOTO)
    assert not asked
    for title, mode, own in (("How it works", "tour", "tour"), ("What if", "what-if", "what-if")):
        page.get_by_role("tab", name=title).click()
        expect(page).to_have_url(re.compile(f"mode={mode}"))
        expect(other.part(own)).to_be_visible()
    assert {"tour", "tour-pages", "what-if", "what-if-stage"} <= set(asked) and "curves" not in asked
    page.go_back()
    expect(other.part("tour")).to_be_visible()
    page.go_back()
    expect(other.part("predictions")).to_be_visible()
    page.go_forward()
    expect(other.part("tour")).to_be_visible()
    page.close()
