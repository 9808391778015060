"""The page before Gradio is there: what is shown, and what becomes of what was asked meanwhile."""

from __future__ import annotations

import pytest
from browser.visitor import serving
from playwright.sync_api import expect

import vit
from vit.page import Models, build
from vit.photos.examples import example_photos

LATE = "**/assets/Blocks-*.js"  # of Gradio's scripts, one that it cannot do without
PLACES = """[...document.querySelectorAll('.explorer *')]
  .filter((one) => one.getClientRects().length && !one.matches('input'))
  .map((one) => [one.getBoundingClientRect().toJSON(), getComputedStyle(one).color, getComputedStyle(one).fontSize])"""


@pytest.fixture(scope="module")
def address():
    with serving(build(Models(vit.load()), example_photos())) as url:
        yield url


@pytest.fixture(params=["light", "dark"])
def held(browser, address, request):
    """A page to which a script of Gradio's comes late, and what lets it come."""
    page = browser.new_page(viewport={"width": 1440, "height": 1000}, color_scheme=request.param)
    page.emulate_media(reduced_motion="reduce", color_scheme=request.param)
    late = []
    page.route(LATE, lambda route: late.append(route))
    page.goto(address, wait_until="commit")

    def release():
        for route in late:
            route.continue_()

    yield page, release
    page.close()


def test_the_photo_is_explained_before_gradio_is_there_and_nothing_moves_when_it_comes(held):
    page, release = held
    explorer = page.locator(".explorer")
    expect(explorer).to_have_attribute("data-photo", example_photos()[0].stem)
    page.wait_for_function("[...document.images].every((image) => image.complete)")
    page.wait_for_timeout(500)
    assert page.evaluate("!document.querySelector('gradio-app .explorer')")
    early = page.evaluate(PLACES)
    assert len(early) > 150
    page.evaluate("window.early = document.querySelector('[data-part=stage]')")
    release()
    page.wait_for_selector("gradio-app .explorer[data-whole=true]")
    page.wait_for_timeout(500)
    assert page.evaluate("window.early === document.querySelector('[data-part=stage]')")
    assert page.evaluate(PLACES) == early
    assert page.locator(".explorer").count() == 1


def test_what_is_asked_before_gradio_is_there_is_answered_then(held):
    page, release = held
    example = example_photos()[2].stem
    page.locator(f'.examples [data-name="{example}"]').click()
    expect(page.locator(".explorer")).to_have_attribute("aria-busy", "true")
    release()
    expect(page.locator(f'gradio-app .explorer[data-photo="{example}"][aria-busy=false]')).to_be_visible()


def test_of_two_photos_that_are_asked_for_before_the_last_is_shown(held):
    page, release = held
    first, last = (example_photos()[number].stem for number in (2, 4))
    for name in (first, last):
        page.locator(f'.examples [data-name="{name}"]').click()
    asked = []
    page.on("request", lambda request: asked.append(request.post_data or "") if "/run/predict" in request.url else None)
    release()
    expect(page.locator(f'gradio-app .explorer[data-photo="{last}"][data-whole=true]')).to_be_visible()
    assert [name for name in (first, last) if any(name in body for body in asked)] == [last]


def test_a_page_that_was_scrolled_stays_where_it_is(held):
    page, release = held
    expect(page.locator(".explorer")).to_have_attribute("data-photo", example_photos()[0].stem)
    page.set_viewport_size({"width": 390, "height": 600})
    page.locator("[data-part=stage]").focus()
    page.wait_for_function("scrollTo(0, 300), scrollY > 250")
    top = page.evaluate("scrollY")
    release()
    page.wait_for_selector("gradio-app .explorer[data-whole=true]")
    assert page.evaluate("scrollY") == top


def test_without_gradios_scripts_a_sentence_comes_in_the_end(browser, address):
    page = browser.new_page()
    page.clock.install()
    page.route(LATE, lambda route: route.abort())
    page.goto(address)
    expect(page.locator(".explorer[data-photo]")).to_be_visible()
    page.clock.fast_forward(20_000)
    expect(page.get_by_role("alert")).to_have_text("A part of the page could not be loaded: reload it.")
    page.close()


def test_a_photo_of_ones_own_is_sent_before_and_explained_then(held, tmp_path):
    page, release = held
    expect(page.locator("input[type=file]")).to_be_attached()
    own = tmp_path / "own.jpg"
    own.write_bytes(example_photos()[3].read_bytes())
    with page.expect_response("**/gradio_api/upload") as sent:
        page.set_input_files("input[type=file]", own)
    assert sent.value.ok
    release()
    expect(page.locator('gradio-app .explorer[data-photo="own"][aria-busy=false]')).to_be_visible()


def test_what_was_opened_before_gradio_is_there_stays_open(held):
    page, release = held
    expect(page).to_have_title("ViT Explorer")
    page.locator('[data-part="own"]').click()
    way = page.get_by_role("button", name="Camera")
    way.focus()
    release()
    page.wait_for_selector("gradio-app .explorer[data-whole=true]")
    expect(way).to_be_visible()
    expect(way).to_be_focused()


def test_without_our_script_gradio_says_so(browser, address):
    page = browser.new_page()
    page.route("**/web/*/page.js", lambda route: route.abort())
    page.goto(address)
    expect(page.get_by_text("A part of the page could not be loaded: reload it.").first).to_be_visible()
    page.close()
