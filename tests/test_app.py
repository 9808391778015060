"""The page in a real browser and through gradio_client, around a small model with random weights."""

import os
import shutil
import subprocess
import sys

import pytest
from conftest import SKIMAGE, randomise
from gradio_client import Client, handle_file
from gradio_client.exceptions import AppError
from playwright.sync_api import expect, sync_playwright

import app
import vit

CAT = SKIMAGE / "chelsea.png"
FLAGS = [
    "--no-sandbox",
    "--disable-gpu",
    "--disable-quic",
    "--no-first-run",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
]


@pytest.fixture(scope="module")
def classifier(tiny_config):
    return vit.Classifier(randomise(vit.ViT(tiny_config)), ["pizza", "steak", "sushi"], vit.Preprocessing((32, 32)))


@pytest.fixture(scope="module")
def address(classifier):
    blocks = app.page(classifier)
    _, url, _ = blocks.queue().launch(prevent_thread_lock=True, quiet=True, **app.LAUNCH)
    yield url
    blocks.close()


@pytest.fixture(scope="module")
def browser():
    chromium = shutil.which("chromium")
    if chromium is None and not os.environ.get("CI"):
        pytest.skip("needs Chromium, from your system's packages")
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=chromium, args=FLAGS)
        yield browser
        browser.close()


@pytest.fixture
def visit(browser, address):
    page = browser.new_page()
    page.goto(address)
    yield page
    page.close()


def test_an_uploaded_photo_shows_its_predictions(visit, classifier):
    label, probability = classifier.predict(CAT)[0]
    visit.set_input_files("input[type=file]", CAT)
    expect(visit.get_by_test_id("label-output-value")).to_have_text(label)
    expect(visit.get_by_text(f"{probability:.0%}", exact=True)).to_be_visible()


def test_an_example_shows_its_predictions(visit, classifier):
    for number in (0, len(app.EXAMPLES) - 1):
        visit.locator("button.gallery-item").nth(number).click()
        expect(visit.get_by_test_id("label-output-value")).to_have_text(classifier.predict(app.EXAMPLES[number])[0][0])


def test_a_file_that_is_no_photo_gets_a_sentence(visit, tmp_path):
    (tmp_path / "text.png").write_text("hello")
    visit.set_input_files("input[type=file]", tmp_path / "text.png")
    expect(
        visit.get_by_text("'text.png' is not a photo that can be read: save it as JPEG, PNG or WebP.")
    ).to_be_visible()


def test_the_client_library_predicts(address, classifier):
    answer = Client(address, verbose=False).predict(handle_file(str(CAT)), api_name="/predict")
    predictions = classifier.predict(CAT)
    assert answer["label"] == predictions[0][0]
    assert [
        (each["label"], pytest.approx(each["confidence"], abs=1e-5)) for each in answer["confidences"]
    ] == predictions


def test_the_client_library_gets_the_sentence(address, tmp_path):
    (tmp_path / "text.png").write_text("hello")
    with pytest.raises(AppError, match="is not a photo that can be read"):
        Client(address, verbose=False).predict(handle_file(str(tmp_path / "text.png")), api_name="/predict")


@pytest.mark.parametrize(
    "options, said",
    [(["--port", "{port}"], "is not free"), (["--port", "0", "--model", "no/such/model"], "There is no file")],
)
def test_a_start_that_fails_ends_with_a_sentence(address, options, said):
    port = address.rstrip("/").rpartition(":")[2]
    options = [option.format(port=port) for option in options]
    done = subprocess.run([sys.executable, app.__file__, *options], capture_output=True, text=True)
    assert done.returncode == 1
    assert done.stderr.startswith("app.py: ") and said in done.stderr and done.stderr.count("\n") == 1
