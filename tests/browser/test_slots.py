"""Explorers beside each other, and under a path of a larger app: each has a state and answers of its own."""

import re
import socket
import threading
import time
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

import gradio as gr
import httpx2 as httpx
import pytest
import uvicorn
from browser.visitor import Visitor, close, serving
from fastapi import FastAPI
from gradio.processing_utils import save_file_to_cache
from playwright.sync_api import expect

import vit
from vit.explain import drawing
from vit.page import Models, build, launch_options
from vit.page.explorer import Explorer
from vit.page.handlers import Handlers
from vit.page.photo import PhotoBox
from vit.page.scripts import SCRIPTS, VERSION, WEB, read
from vit.page.wiring import answer_questions
from vit.photos.examples import example_photos

EXAMPLES = {photo.stem: photo for photo in example_photos()}
PATH = "/some/path"
FETCHED = """performance.getEntriesByType("resource").filter(({ name }) => name.includes("/web/"))
  .map(({ name, responseStatus }) => [name, responseStatus])"""
EXPORTED = """(url) => import(url).then(({ default: page }) =>
  Object.fromEntries(Object.entries(page).map(([name, exported]) => [name, Object.keys(exported)])))"""
SHOWN = {"a": "pizza", "b": "sushi"}


class Beside(Visitor):
    """Uses one explorer of a page that has two."""

    def __init__(self, page, classifier, slot):
        self.page, self.classifier, self.slot = page, classifier, slot

    @property
    def root(self):
        return self.page.locator(".explorer").nth("ab".index(self.slot))

    def part(self, name):
        return self.root.locator(f'[data-part="{name}"]')


@pytest.fixture(scope="module")
def pair(browser):
    classifier = vit.load()
    handlers = Handlers(Models(classifier), example_photos())
    with gr.Blocks() as blocks, gr.Row():
        for slot, name in SHOWN.items():
            with gr.Column():
                explorer = Explorer(slot)
            answer_questions(explorer, handlers)

            def show(explorer=explorer, name=name):
                photo = save_file_to_cache(EXAMPLES[name], explorer.GRADIO_CACHE)
                return handlers.open(photo, classifier.name)

            blocks.load(show, None, explorer)
    with serving(blocks) as url:
        page = browser.new_page(viewport={"width": 1800, "height": 1000})
        page.goto(f"{url}?b-layer=5&head=1")
        visitors = {slot: Beside(page, classifier, slot) for slot in SHOWN}
        for slot, visitor in visitors.items():
            visitor.sees(EXAMPLES[SHOWN[slot]])
            visitor.plain()
        yield visitors["a"], visitors["b"]
        page.close()


def test_each_shows_its_own_photo_and_follows_its_own_words(pair):
    a, b = pair
    assert "layer 12, head 2" in a.text("title") and "layer 6" in b.text("title")
    assert close(a.patches(), drawing.heat(a.explanation.class_attention(1)[11]))
    assert close(b.patches(), drawing.heat(b.explanation.class_attention()[5]))


def test_a_change_in_one_leaves_the_other_as_it_is(pair):
    a, b = pair
    before = b.canvas()
    a.choose("map", "rollout")
    a.choose("head", "max")
    a.choose("scale", "shared")
    a.slide("layer", 3)
    a.check("smooth")
    a.part("classes").locator("button.class").nth(2).click()
    a.away()
    assert (b.canvas() == before).all()
    expect(b.page.locator('input[name="b-map"]:checked')).to_have_value("class_attention")
    expect(a.page.locator('input[name="a-map"]:checked')).to_have_value("relevance")
    a.check("smooth", False)
    a.choose("scale", "own")
    label = a.classifier.predict(EXAMPLES["pizza"])[2][0]
    assert close(a.patches(), drawing.heat(a.explanation.relevance_by_layer(label)[3]))


def test_the_keyboard_moves_the_one_that_has_the_focus(pair):
    a, b = pair
    title = a.text("title")
    b.choose("map", "class_attention")
    b.slide("layer", 5)
    b.part("stage").focus()
    b.page.keyboard.press("ArrowRight")
    assert "layer 7" in b.text("title") and a.text("title") == title


def test_each_gets_what_it_asked_for(pair):
    for visitor in pair:
        with visitor.page.expect_download() as download:
            visitor.open_share()
            visitor.part("save-arrays").click()
        assert download.value.suggested_filename == f"{SHOWN[visitor.slot]}.npz"
        visitor.part("close").click()


@contextmanager
def mounted(blocks):
    """As a part of another app."""
    outer = FastAPI()
    passed_on = ("theme", "css", "head", "app_kwargs")
    options = {name: value for name, value in launch_options().items() if name in passed_on}
    gr.mount_gradio_app(outer, blocks, path=PATH, ssr_mode=False, **options)
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    server = uvicorn.Server(uvicorn.Config(outer, port=port, log_level="error"))
    thread = threading.Thread(target=server.run, daemon=True)
    thread.start()
    while not server.started:
        time.sleep(0.05)
    yield f"http://127.0.0.1:{port}{PATH}/"
    server.should_exit = True
    thread.join()


@contextmanager
def proxied(blocks):
    """Behind a proxy that takes the path away before it passes a request on."""

    class Proxy(BaseHTTPRequestHandler):
        def forward(self):
            body = self.rfile.read(int(self.headers.get("content-length", 0)))
            url = inner.rstrip("/") + self.path.removeprefix(PATH)
            headers = {name.lower(): value for name, value in self.headers.items()} | {"accept-encoding": "identity"}
            with client.stream(self.command, url, content=body, headers=headers) as answer:
                self.send_response(answer.status_code)
                for name in ("content-type", "location"):
                    if name in answer.headers:
                        self.send_header(name, answer.headers[name])
                self.end_headers()
                for part in answer.iter_raw():
                    self.wfile.write(part)

        do_GET = do_POST = forward

        def log_message(self, *arguments):
            pass

    client = httpx.Client(timeout=60)
    _, inner, _ = blocks.launch(prevent_thread_lock=True, quiet=True, root_path=PATH, **launch_options())
    proxy = ThreadingHTTPServer(("127.0.0.1", 0), Proxy)
    threading.Thread(target=proxy.serve_forever, daemon=True).start()
    yield f"http://127.0.0.1:{proxy.server_port}{PATH}/"
    proxy.shutdown()
    blocks.close()


@pytest.mark.parametrize("served", [mounted, proxied])
def test_the_page_under_a_path(browser, served):
    classifier = vit.load()
    with served(build(Models(classifier), example_photos()).queue()) as url:
        page = browser.new_page(viewport={"width": 1440, "height": 1000})
        visitor = Visitor(page, url, classifier)
        visitor.drop(EXAMPLES["pizza"])
        visitor.plain()
        assert close(visitor.patches(), drawing.heat(visitor.explanation.class_attention()[11]))
        fetched = page.evaluate(FETCHED)
        scripts = [name for name in SCRIPTS if not name.startswith("modes/")]
        pictures = [example["src"] for example in PhotoBox(example_photos()).props["examples"]]
        wanted = [f"web/{VERSION}/{name}" for name in scripts] + pictures
        assert sorted(fetched) == sorted([url + name, 200] for name in wanted)  # each of them once
        exported = page.evaluate(EXPORTED, f"{url}web/{VERSION}/page.js")
        sources = {name: text for name, text in read(WEB).items() if not name.startswith("modes/")}
        words = r"^export (?:async )?(?:const|class|function) (\w+)"
        assert exported == {name: re.findall(words, text, re.M) for name, text in sources.items()}
        page.close()
