"""A public page is safe by default: what a visitor could try over HTTP, against the running app."""

import threading
import time
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import httpx2 as httpx
import pytest
from browser.visitor import Visitor, serving
from conftest import SKIMAGE
from gradio_client import Client, handle_file
from gradio_client.exceptions import AppError
from playwright.sync_api import expect
from serving import ROOT, app_process

import vit
from vit.page import Models, build, handlers, launch_options, wiring
from vit.photos.examples import example_photos

CAT = SKIMAGE / "chelsea.png"
META = {"_type": "gradio.FileData"}


@pytest.fixture(scope="module")
def address(tmp_path_factory):
    """The app as it is started, with a cache of its own."""
    with app_process(GRADIO_TEMP_DIR=str(tmp_path_factory.mktemp("cache"))) as (url, _):
        yield url


@pytest.fixture
def web():
    """A server that a visitor could name, and what it was asked for."""
    asked = []

    class Handler(BaseHTTPRequestHandler):
        def do_GET(self):
            asked.append(self.path)
            self.send_response(200)
            self.end_headers()
            self.wfile.write(CAT.read_bytes())

        def log_message(self, *arguments):
            pass

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    yield f"http://127.0.0.1:{server.server_port}", asked
    server.shutdown()


def functions(address):
    """Every function of the page by its number, the private ones too: a visitor's browser calls them so."""
    config = httpx.get(f"{address}/config").json()
    return {dependency["id"]: len(dependency["inputs"]) for dependency in config["dependencies"]}


def call(address, number, data, session="mallory", **event):
    """Call a function as a browser does; returns all that the server said."""
    body = {"fn_index": number, "data": data, "session_hash": session, **event}
    joined = httpx.post(f"{address}/gradio_api/queue/join", json=body, timeout=20)
    if joined.status_code != 200:
        return joined.text
    said = ""
    with httpx.stream("GET", f"{address}/gradio_api/queue/data?session_hash={session}", timeout=20) as answer:
        for line in answer.iter_lines():
            said += line
            if '"process_completed"' in line or '"close_stream"' in line or '"unexpected_error"' in line:
                break
    return said


def upload(address, path=CAT):
    with open(path, "rb") as file:
        return httpx.post(f"{address}/gradio_api/upload", files={"files": (path.name, file)}).json()[0]


@pytest.mark.parametrize("model", ["someone/else", "/etc", "../foodvision", "vit/pretrained/foodvision-mini", ""])
def test_visitors_cannot_load_other_models(address, model):
    client = Client(address, verbose=False)
    for endpoint in ("/predict", "/familiarity", "/explain"):
        with pytest.raises(AppError) as refused:
            client.predict(handle_file(str(CAT)), model, api_name=endpoint)
        assert "list" in str(refused.value) and str(ROOT) not in str(refused.value)


def test_nor_by_the_functions_of_the_browser(address, tiny_base):
    photo = {"path": upload(address), "meta": META}
    for number, inputs in functions(address).items():
        for data in ([str(tiny_base)] * inputs, [photo, str(tiny_base), None][:inputs]):
            said = call(address, number, data)
            assert f'"data":["{tiny_base}"' not in said and "confidences" not in said
            if "safetensors" in said:  # a photo is explained, by the page's own model
                assert '"model":"everyday"' in said and "steak" not in said


@pytest.mark.parametrize(
    "path",
    ["/etc/passwd", str(ROOT / "app.py"), str(ROOT / "vit" / "model.py"), str(Path.home()), "../../../etc/passwd"],
)
def test_visitors_cannot_read_files(address, path):
    for route in ("file=", "file/", "stream/", "proxy="):
        answer = httpx.get(f"{address}/gradio_api/{route}{path}")
        assert answer.status_code in (403, 404, 405, 400), route
        assert b"root:" not in answer.content and b"import" not in answer.content
    photo = {"path": path, "meta": META}
    for number, inputs in functions(address).items():
        said = call(address, number, [photo, "everyday", photo][:inputs])
        assert "explanation.safetensors" not in said and "confidences" not in said


def test_a_files_name_cannot_lead_elsewhere(address):
    for name in ("../../../../tmp/evil.png", "..\\evil.png", "/etc/evil.png", "a/../../b.png"):
        answer = httpx.post(f"{address}/gradio_api/upload", files={"files": (name, CAT.read_bytes())})
        if answer.status_code == 200:
            kept = Path(answer.json()[0])
            assert "pytest" in str(kept) and ".." not in kept.parts and kept.parent.parent.name != "etc"
    assert not Path("/tmp/evil.png").exists() and not Path("/etc/evil.png").exists()


def test_visitors_cannot_make_it_fetch(address, web):
    url, asked = web
    for target in (f"{url}/photo.png", "http://example.com/photo.png"):
        photo = {"path": target, "url": target, "meta": META}
        for number, inputs in functions(address).items():
            call(address, number, [photo, photo, photo][:inputs])
            said = call(address, number, [photo, "everyday", {"explanation": photo}][:inputs])
            assert "explanation.safetensors" not in said
    with pytest.raises(AppError, match="Photos are not fetched from an address: save the photo, and send the file"):
        Client(address, verbose=False).predict({"path": f"{url}/photo.png", "meta": META}, api_name="/predict")
    for route in ("proxy=", "file="):
        httpx.get(f"{address}/gradio_api/{route}{url}/photo.png", follow_redirects=False)
    assert asked == []


def test_visitors_do_not_see_each_others_photos(address):
    """What one has can only be had by who knows its address, which has a hash of the content in it."""
    client = Client(address, verbose=False)
    client.predict(handle_file(str(CAT)), api_name="/explain")
    kept = Path(upload(address))
    assert len(kept.parent.name) == 64
    assert httpx.get(f"{address}/gradio_api/file={kept}").status_code == 200
    for folder in (kept.parent, kept.parent.parent):
        for tail in ("", "/", "/.", "/*"):
            answer = httpx.get(f"{address}/gradio_api/file={folder}{tail}")
            assert answer.status_code in (403, 404) and kept.name.encode() not in answer.content
    # Another's session says nothing without its name, and gives no state of its own.
    for session in ("", "*", "null", "other"):
        try:
            said = httpx.get(f"{address}/gradio_api/queue/data?session_hash={session}", timeout=20).text
        except httpx.TransportError:  # it hangs up
            said = ""
        assert kept.name not in said and "safetensors" not in said
    for page in ("monitoring", "monitoring/summary", "gradio_api/runs", "gradio_api/run-history/records"):
        assert kept.name not in httpx.get(f"{address}/{page}", follow_redirects=True).text


def test_the_servers_paths_stay_its_own(address, tmp_path):
    for page in ("", "config", "gradio_api/info", "gradio_api/openapi.json"):
        text = httpx.get(f"{address}/{page}").text
        assert str(ROOT) not in text and str(Path.home()) not in text, page
    (tmp_path / "text.png").write_text("hello")
    with pytest.raises(AppError) as refused:
        Client(address, verbose=False).predict(handle_file(str(tmp_path / "text.png")), api_name="/explain")
    assert "/" not in str(refused.value)


def test_an_unforeseen_error_says_nothing_of_the_server(monkeypatch):
    classifier = vit.load()
    monkeypatch.setattr(vit.Classifier, "answers", lambda *arguments: 1 / 0)
    with serving(build(Models(classifier))) as url, pytest.raises(AppError) as refused:
        Client(url, verbose=False).predict(handle_file(str(CAT)), api_name="/predict")
    assert str(refused.value) == "Something went wrong here: try again, or try another photo."


def test_nothing_but_two_endpoints_is_told(address):
    assert set(httpx.get(f"{address}/gradio_api/info").json()["named_endpoints"]) == {
        "/predict",
        "/familiarity",
        "/explain",
    }
    client = Client(address, verbose=False)
    for name in ("ask_patch", "save_arrays", "choose", "follow_link", "pick", "lambda"):
        with pytest.raises(ValueError, match="Cannot find a function"):
            client.predict(api_name=f"/{name}")


def test_a_large_file_is_refused(address):
    answer = httpx.post(f"{address}/gradio_api/upload", files={"files": ("a.png", bytes(21_000_000))})
    assert answer.status_code == 413


def test_what_visitors_sent_is_deleted(monkeypatch, tmp_path):
    """In seconds instead of minutes: 600 s between looks and an age of 3,000 s leave nothing after an hour."""
    assert sum(wiring.DELETE_CACHE) <= 3600
    monkeypatch.setattr(wiring, "DELETE_CACHE", (1, 6))
    monkeypatch.setenv("GRADIO_TEMP_DIR", str(tmp_path))
    with serving(build(Models(vit.load()))) as url:
        Client(url, verbose=False).predict(handle_file(str(CAT)), api_name="/explain")
        assert any(path.suffix == ".safetensors" for path in tmp_path.rglob("*"))
        for _ in range(80):
            time.sleep(0.25)
            if not any(path.is_file() for path in tmp_path.rglob("*")):
                break
        assert not any(path.is_file() for path in tmp_path.rglob("*"))


@pytest.fixture
def busy(monkeypatch):
    """A page whose model takes its time, with room for two."""
    free = threading.Event()
    assert handlers.WAITING == 64 and sum(wiring.DELETE_CACHE) >= handlers.LATELY
    monkeypatch.setattr(handlers, "WAITING", 2)
    blocks = build(Models(vit.load()), example_photos())  # which explains the photo that it opens with
    answers = [vit.classifier.Answer([("pizza", 1.0)], None)]
    monkeypatch.setattr(vit.Classifier, "answers", lambda *arguments: free.wait(30) and answers)
    monkeypatch.setattr(vit.Classifier, "explain", lambda *arguments: free.wait(30) and 1 / 0)
    _, url, _ = blocks.queue(max_size=8).launch(prevent_thread_lock=True, quiet=True, **launch_options())
    yield url.rstrip("/"), free
    free.set()
    blocks.close()


def test_so_many_wait_and_the_next_are_told_how_many_and_how_long(busy, browser):
    url, free = busy
    config = httpx.get(f"{url}/config").json()
    [number] = [each["id"] for each in config["dependencies"] if each["api_name"] == "predict"]
    photo = {"path": upload(url), "meta": META}
    for visitor in range(2):
        body = {"fn_index": number, "data": [photo, "everyday"], "session_hash": f"visitor-{visitor}"}
        assert httpx.post(f"{url}/gradio_api/queue/join", json=body, timeout=20).status_code == 200
    time.sleep(1)  # until both wait
    said = call(url, number, [photo, "everyday"], session="one-too-many")
    assert "Busy: 2 are waiting, which takes about 2 seconds. Try again then." in said
    page = browser.new_page()
    Visitor(page, url, vit.load())
    page.locator(".examples button").nth(1).click()
    expect(page.get_by_text("Busy: 2 are waiting").first).to_be_visible()
    page.close()
    free.set()
