"""The page without a browser: its files, its models, its endpoints by the client library."""

import inspect
import io
import json
import os
import re
import shutil
import subprocess
import sys
import threading
from dataclasses import replace
from pathlib import Path

import gradio as gr
import httpx2 as httpx
import numpy as np
import pytest
import torch
from browser.visitor import serving
from conftest import SKIMAGE, randomise
from gradio.data_classes import FileData
from gradio_client import Client, handle_file
from gradio_client.exceptions import AppError
from PIL import Image
from safetensors import safe_open
from safetensors.numpy import load, load_file
from serving import ROOT

import vit
from vit.explain.explanation import NEEDS
from vit.explain.methods import METHODS
from vit.page import Models, build, scripts
from vit.page.explorer import keep, packing
from vit.page.kept import Kept
from vit.page.models import KNOWN, knows, title
from vit.page.photo import digests
from vit.page.scripts import SCRIPTS, VERSION
from vit.page.stubs import no_stubs
from vit.photos.examples import example_photos
from vit.photos.files import open_photo

CAT = SKIMAGE / "chelsea.png"


@pytest.fixture(scope="module")
def classifier():
    return vit.load()


@pytest.fixture(scope="module")
def client(classifier):
    with serving(build(Models(classifier), example_photos())) as url:
        yield Client(url, verbose=False)


def attention_of(tensors):
    """As the module's docstring says it, in float64."""
    return tensors["scale"].astype(float)[..., None] * tensors["attention"].astype(float) ** 2


def about(content, tmp_path):
    (tmp_path / "file.safetensors").write_bytes(content)
    with safe_open(tmp_path / "file.safetensors", "numpy") as file:
        return json.loads(file.metadata()["about"])


def packed(classifier, photo=CAT):
    explanation = classifier.explain(photo)
    return explanation, packing.pack(open_photo(photo), "cat", None, classifier, explanation)


def test_attention_comes_back_with_its_digits(classifier):
    explanation, _ = packed(classifier)
    content = packing.pack_attention(explanation)
    tensors = load(content)
    assert tensors["attention"].dtype == np.uint16 and len(content) < packing.MOST_BYTES
    found, expected = attention_of(tensors), explanation.attention.double().numpy()
    np.testing.assert_allclose(found.sum(axis=-1), 1, atol=1e-4)
    seen = expected > 1e-5  # a thousandth of a per cent
    assert np.abs(found / expected - 1)[seen].max() < 0.005
    assert np.abs(found - expected).max() < 1e-5


def test_the_first_file_is_small_and_has_the_class_tokens_look(classifier):
    explanation, content = packed(classifier)
    tensors = load(content)
    assert len(content) - tensors["photo"].nbytes <= 60_000
    found = tensors["looks_at_scale"].astype(float)[..., None] * tensors["looks_at"].astype(float) ** 2
    assert np.abs(found - explanation.attention[:, :, 0].numpy()).max() < 1e-5
    assert "attention" not in tensors


def test_larger_attention_goes_in_8_bits_and_the_largest_stays_here(classifier, monkeypatch):
    explanation, _ = packed(classifier)
    monkeypatch.setattr(packing, "MOST_BYTES", 2_000_000)
    content = packing.pack_attention(explanation)
    tensors = load(content)
    assert tensors["attention"].dtype == np.uint8 and len(content) <= packing.MOST_BYTES
    assert np.abs(attention_of(tensors) - explanation.attention.numpy()).max() < 0.004
    monkeypatch.setattr(packing, "MOST_BYTES", 1_000_000)
    with pytest.raises(ValueError, match="too large for one file"):
        packing.pack_attention(explanation)
    tensors = load(packed(classifier)[1])
    for name, expected in (
        ("looks_at", explanation.attention[:, :, 0]),
        ("looked_at_by", explanation.attention[..., 0]),
    ):
        found = tensors[f"{name}_scale"].astype(float)[..., None] * tensors[name].astype(float) ** 2
        assert np.abs(found - expected.numpy()).max() < 2e-5  # of a share of 1
    asked = load(packing.pack_patch(explanation, 87))
    token = len(explanation.prefix) + 87
    np.testing.assert_array_equal(asked["looks_at"], explanation.attention[:, :, token])
    np.testing.assert_array_equal(asked["looked_at_by"], explanation.attention[:, :, :, token])


@pytest.mark.parametrize("size, whole", [((224, 224), True), ((384, 384), False)])
def test_no_file_is_larger_than_16_megabytes(size, whole, tmp_path):
    """As many layers, heads and tokens as ViT-B/16, and few numbers otherwise."""
    config = vit.ViTConfig(image_size=size, width=48, mlp_width=48, heads=12, layers=12, classes=3)
    small = vit.Classifier(randomise(vit.ViT(config)), ["a", "b", "c"], vit.Preprocessing(size))
    explanation, content = packed(small)
    assert len(content) - load(content)["photo"].nbytes <= (60_000 if whole else 1_000_000)
    assert about(content, tmp_path)["whole"] is whole is packing.fits(explanation)
    assert not whole or len(packing.pack_attention(explanation)) <= 16_000_000


def test_the_file_says_what_was_seen(classifier, tmp_path):
    explanation, content = packed(classifier)
    told = about(content, tmp_path)
    predictions = [(each["label"], pytest.approx(each["probability"], rel=1e-4)) for each in told["predictions"]]
    assert predictions == classifier.predict(CAT)
    assert (told["title"], told["knows"]) == ("Everyday", "1,097 things and dishes")
    assert told["sizes"] == {"image": [224, 224], "patch": 16, "width": 192, "mlp": 768}
    assert told["size"] == [451, 300] and told["cropped"] and told["box"] == pytest.approx(list(explanation.box))
    assert [[label for label, _ in row] for row in told["decided"]] == [
        [label for label, _ in row] for row in explanation.decided(3)
    ]
    best = int(explanation.probabilities.argmax())
    assert told["lens"] == pytest.approx(explanation.lens[:, best].tolist())
    assert [method["name"] for method in told["methods"]] == list(METHODS)
    assert not any(method["missing"] for method in told["methods"])
    np.testing.assert_array_equal(load(content)["outliers"], explanation.outliers()[1].flatten(1))


@pytest.mark.parametrize(
    "size, said",
    [
        ((20, 16), ["A very small photo, 20 × 16 pixels: it is enlarged."]),
        ((300, 130), ["The model saw the middle 35 % of this photo: the rest was cut off."]),
        ((260, 200), []),
        ((600, 400), []),
    ],
)
def test_a_photo_of_odd_size_gets_a_word(classifier, tmp_path, size, said):
    photo = Image.new("RGB", size, "teal")
    content = packing.pack(photo, "teal", None, classifier, classifier.explain(photo))
    assert about(content, tmp_path)["remarks"] == said


def test_a_method_that_a_checkpoint_cannot_give_is_told_with_its_sentence(tiny_config, tmp_path):
    headless = vit.Classifier(
        randomise(vit.ViT(replace(tiny_config, classes=0))), [], vit.Preprocessing((32, 32)), "some/dino"
    )
    told = {method["name"]: method["missing"] for method in about(packed(headless)[1], tmp_path)["methods"]}
    assert told == {
        name: f"{method.title} {NEEDS['classes']}" if "classes" in method.needs else None
        for name, method in METHODS.items()
    }


def test_the_scripts_ask_nothing_of_others():
    sources = scripts.read(scripts.WEB)
    assert {"main.js", "photo.js", "panels/stage.js"} <= set(sources)
    for name, text in sources.items():
        assert "http" not in text and "innerHTML" not in text and "eval(" not in text, name
    page = scripts.WEB.parent
    assert not [*page.rglob("*.html"), *page.rglob("*.css")]  # templates, which Gradio would run


def test_scripts_alone_are_served_and_kept_as_long_as_they_stay_the_same(client):
    address = f"{client.src}web/{VERSION}/"
    for name, content in SCRIPTS.items():
        answer = httpx.get(address + name)
        assert answer.content == content
        assert answer.headers["content-type"].startswith("text/javascript")
        assert "immutable" in answer.headers["cache-control"]
    for other in (
        *(
            "package.json",
            "",
            ".",
            "data",
            "panels/",
            "nothing.js",
            "../scripts.py",
            "..%2fscripts.py",
            "%2e%2e/files.py",
        ),
        *("../../../app.py", "/etc/passwd", "//etc/passwd", "node_modules/typescript/lib/tsc.js"),
    ):
        answer = httpx.get(address + other, follow_redirects=True)
        assert answer.status_code == 404 and b"import" not in answer.content, other
    old = httpx.get(f"{client.src}web/{'0' * 16}/main.js")
    assert (old.status_code, old.text) == (404, "There is no such file: reload the page.")


def test_a_script_that_cannot_be_joined_is_told():
    for line in ('export * from "./other.js";', 'import all from "./other.js";', "export { one };"):
        with pytest.raises(ValueError, match=r"^main\.js has a line that cannot be joined"):
            scripts.served({"main.js": f"const one = 1;\n{line}\n"})


def test_the_page_and_its_files_are_compressed_and_what_it_needs_is_named_at_once(client):
    page = httpx.get(client.src, headers={"accept-encoding": "gzip"})
    opening = [value for value in re.findall(r'<link rel="preload" as="fetch" crossorigin href="(.+?)">', page.text)]
    assert len(opening) == 1 and page.headers["content-encoding"] == "gzip"
    assert page.text.index(f"web/{VERSION}/page.js") < page.text.index("</head>")
    first = httpx.get(opening[0], headers={"accept-encoding": "gzip"})
    assert first.headers["content-encoding"] == "gzip"
    tensors = load(first.content)
    assert len(first.content) - tensors["photo"].nbytes < 60_000
    plain = httpx.get(opening[0], headers={"accept-encoding": "identity"})
    assert "content-encoding" not in plain.headers and plain.content == first.content
    linked = httpx.get(f"{client.src}?example=sushi").text
    assert 'as="fetch"' not in linked and f"web/{VERSION}/page.js" in linked


LINKS = r'<link rel="modulepreload" fetchpriority="low" href="(assets/[^"]+)">'


def test_of_gradios_scripts_those_are_named_that_the_page_goes_on_to_ask_for(client, browser):
    named = re.findall(LINKS, httpx.get(client.src).text)
    assert {name.partition("-")[0].removeprefix("assets/") for name in named} > {"Blocks", "HTML", "Index"}
    page = browser.new_page()
    asked: list[str] = []
    page.on("request", lambda request: asked.append(request.url.removeprefix(client.src)))
    page.route(client.src, lambda route: route.fulfill(body=re.sub(LINKS, "", route.fetch().text())))
    page.goto(client.src)
    page.wait_for_selector("gradio-app .explorer[data-photo]")
    page.close()
    assert set(named) <= set(asked)  # without being named


def test_examples_have_small_pictures_at_addresses_of_their_own(client):
    config = httpx.get(f"{client.src}config").json()
    [shown] = [each for each in config["components"] if "examples" in each["props"].get("props", {})]
    sizes = []
    for example in shown["props"]["props"]["examples"]:
        answer = httpx.get(client.src + example["src"])
        assert answer.headers["content-type"] == "image/jpeg" and "immutable" in answer.headers["cache-control"]
        sizes.append(max(Image.open(io.BytesIO(answer.content)).size))
    assert sizes == [144] * len(example_photos())
    assert httpx.get(f"{client.src}web/pictures/page.js").status_code == 404


def test_another_script_has_another_address(tmp_path):
    """In a process of its own, from a copy of the page with one line more."""
    shutil.copytree(Path(vit.__file__).parent, tmp_path / "vit", ignore=shutil.ignore_patterns("foodvision"))
    code = "from vit.page.scripts import VERSION; print(VERSION)"

    def version():
        command = [sys.executable, "-c", code]
        return subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, check=True).stdout.strip()

    assert version() == VERSION
    with (tmp_path / "vit" / "page" / "web" / "data" / "words.js").open("a") as file:
        file.write("// another\n")
    assert version() != VERSION


def test_only_models_of_the_list_are_loaded(classifier, tmp_path):
    models = Models(classifier)
    assert models.get("everyday") is classifier
    assert len(models.get("foodvision-mini").labels) == 3
    assert models.get("foodvision-mini") is models.get("foodvision-mini")
    vit.save(classifier, tmp_path)
    for source in (str(tmp_path), "someone/else", "../foodvision", "", "/etc/passwd", "everyday#registers#registers"):
        with pytest.raises(vit.CheckpointError, match="the models of its list only"):
            models.get(source)
    assert Models(classifier, any_model=True).get(str(tmp_path)).labels == classifier.labels


def test_the_list_starts_with_the_pages_own_model(classifier, tmp_path):
    assert Models(classifier).rows[0]["source"] == "everyday"
    assert len(Models(classifier).rows) == len(KNOWN)
    own = vit.Classifier(classifier.model, classifier.labels, classifier.preprocessing, str(tmp_path / "my-model"))
    row = Models(own).rows[0]
    assert (row["name"], row["size"], row["knows"]) == ("my-model", "ViT-Ti/16", "1,097 classes")
    assert row["source"] == own.name
    assert len(Models(own).rows) == len(KNOWN) + 1


def test_a_model_with_sinks_is_given_registers(tiny_config):
    sinks = vit.Classifier(randomise(vit.ViT(tiny_config)), ["a", "b", "c"], vit.Preprocessing((32, 32)), "some/model")
    models = Models(sinks)
    given = models.get("some/model#registers")
    assert given.name == "some/model#registers" and models.get("some/model#registers") is given
    assert title(given) == "model with registers" and knows(given) == "3 classes"


def test_what_is_made_of_an_example_is_made_once(tmp_path):
    (tmp_path / "cat.jpg").write_bytes(CAT.read_bytes())
    photo, runs = str(tmp_path / "cat.jpg"), []
    kept = Kept(digests([tmp_path / "cat.jpg"]), "model")

    def keep(content, name):
        (tmp_path / name).write_bytes(content)
        return FileData(path=str(tmp_path / name), orig_name=name)

    def make():
        runs.append(1)
        return [keep(b"one", "one"), keep(b"two", "two")]

    for _ in range(3):
        found = list(kept.files("maps", photo, "model", make))
        assert [Path(file.path).read_bytes() for file in found] == [b"one", b"two"]
    assert len(runs) == 1
    list(kept.files("maps", photo, "another", make))
    list(kept.files("maps", str(CAT), "model", make))  # the same content: the example itself
    (tmp_path / "own.jpg").write_bytes(b"something else")
    list(kept.files("maps", str(tmp_path / "own.jpg"), "model", make))
    assert len(runs) == 3


def test_a_file_that_is_made_again_is_whole_for_those_who_read_it(tmp_path, monkeypatch):
    monkeypatch.setenv("GRADIO_TEMP_DIR", str(tmp_path))
    content, stop, short = bytes(300_000), threading.Event(), []
    path = Path(keep(content, "maps.safetensors").path)

    def read():
        while not stop.is_set():
            if (size := len(path.read_bytes())) != len(content):
                short.append(size)

    reader = threading.Thread(target=read)
    reader.start()
    for _ in range(300):
        assert keep(content, "maps.safetensors").path == str(path)
    stop.set()
    reader.join()
    assert not short and [each.name for each in path.parent.iterdir()] == ["maps.safetensors"]


def test_few_models_are_kept(classifier, tmp_path, tiny_base):
    models = Models(classifier, any_model=True)
    folders = [tmp_path / str(number) for number in range(5)]
    for folder in folders:
        vit.save(vit.load(tiny_base), folder)
    loaded = [models.get(str(folder)) for folder in folders]
    assert models.get(str(folders[-1])) is loaded[-1]
    assert models.get(str(folders[0])) is not loaded[0]


def test_three_endpoints_are_public_and_documented(client):
    endpoints = client.view_api(return_format="dict")
    assert set(endpoints["named_endpoints"]) == {"/predict", "/familiarity", "/explain"}
    assert not endpoints["unnamed_endpoints"]
    for endpoint in endpoints["named_endpoints"].values():
        assert endpoint["description"]
        assert [parameter["parameter_name"] for parameter in endpoint["parameters"]] == ["photo", "model"]


def test_predict(client, classifier):
    answer = client.predict(photo=handle_file(str(CAT)), api_name="/predict")
    predictions = classifier.predict(CAT)
    assert answer["label"] == predictions[0][0]
    assert [
        (each["label"], pytest.approx(each["confidence"], abs=1e-5)) for each in answer["confidences"]
    ] == predictions
    mini = client.predict(handle_file(str(CAT)), "foodvision-mini", api_name="/predict")
    assert mini["label"] == vit.load("foodvision-mini").predict(CAT)[0][0]


def test_familiarity(client):
    dishes = vit.load("foodvision-101")
    for name, like in (("pizza", True), ("chameleon", False)):
        [photo] = [photo for photo in example_photos() if photo.stem == name]
        answer = client.predict(handle_file(str(photo)), "foodvision-101", api_name="/familiarity")
        assert answer == pytest.approx(dishes.familiarity(photo), abs=1e-5)
        assert (answer >= 0.05) == like, (name, answer)


def test_explain(client, classifier):
    answer = client.predict(handle_file(str(CAT)), api_name="/explain")
    explanation = classifier.explain(CAT)
    maps = {name: values for path in answer["maps"] for name, values in load_file(path).items()}
    torch.testing.assert_close(
        torch.tensor(attention_of(load_file(answer["explanation"]))), explanation.attention.double(), atol=1e-5, rtol=0
    )
    np.testing.assert_allclose(maps["rollout"][0], explanation.rollout().flatten(1), atol=1e-6)
    np.testing.assert_allclose(maps["rollout"][4], explanation.rollout(2).flatten(1), atol=1e-6)
    for rank, (label, _) in enumerate(classifier.predict(CAT)):
        expected = explanation.relevance_by_layer(label).flatten(1)
        np.testing.assert_allclose(maps[f"relevance {rank}"][0], expected, atol=1e-6)
    for method in packing.given(explanation):
        columns = (
            enumerate(("mean", "max", 0, 1, 2)) if method.columns == "heads" else enumerate(packing.best(explanation))
        )
        for place, column in columns:
            found = maps[method.name][place] if method.columns == "heads" else maps[f"{method.name} {place}"][0]
            expected = method.map(explanation, column).flatten(-2).reshape(-1, 196)
            np.testing.assert_allclose(found, expected, atol=1e-6, err_msg=method.name)


def test_wrong_input_gets_a_sentence(client, tmp_path):
    (tmp_path / "text.png").write_text("hello")
    for endpoint in ("/predict", "/familiarity", "/explain"):
        with pytest.raises(AppError, match=r"'text\.png' is not a photo that can be read"):
            client.predict(handle_file(str(tmp_path / "text.png")), api_name=endpoint)
    with pytest.raises(AppError, match="There is no photo: choose one first"):
        client.predict(None, api_name="/predict")


def test_a_model_without_classes_says_so(tiny_config):
    headless = vit.Classifier(
        randomise(vit.ViT(replace(tiny_config, classes=0))), [], vit.Preprocessing((32, 32)), "some/dino"
    )
    with serving(build(Models(headless))) as url, pytest.raises(AppError, match="some/dino has no classifier"):
        Client(url, verbose=False).predict(handle_file(str(CAT)), api_name="/predict")


@pytest.mark.parametrize(
    "options, said",
    [
        (["--port", "{port}"], "is not free"),
        (["--port", "0", "--model", "no/such/model"], "There is no file"),
        (["--mcp"], "--mcp needs one more package: run pip install 'gradio[mcp]'"),
    ],
)
def test_a_start_that_fails_ends_with_a_sentence(client, options, said):
    port = client.src.rstrip("/").rpartition(":")[2]
    options = [option.format(port=port) for option in options]
    done = subprocess.run([sys.executable, ROOT / "app.py", *options], capture_output=True, text=True)
    assert done.returncode == 1
    assert done.stderr.startswith("vit: ") and said in done.stderr and done.stderr.count("\n") == 1


def test_the_model_code_knows_nothing_of_the_page():
    code = "import sys, vit, vit.export, vit.__main__; sys.exit('gradio' in sys.modules)"
    environment = {**os.environ, "PYTHONPATH": str(ROOT)}
    assert subprocess.run([sys.executable, "-c", code], env=environment).returncode == 0


def test_a_file_that_is_made_again_is_not_written_over():
    """It may just be on its way to somebody: the first half of one and nothing of the other would arrive."""
    first = Path(keep(b"attention", "looks.safetensors").path)
    with first.open("rb") as on_its_way:
        again = Path(keep(b"attention", "looks.safetensors").path)
        assert again == first and not again.samefile(f"/proc/self/fd/{on_its_way.fileno()}")
    assert first.read_bytes() == b"attention" and [*first.parent.iterdir()] == [first]


def test_components_are_known_by_their_files_again_after_the_page_was_imported():
    assert inspect.getfile(gr.HTML) == str(Path(gr.__file__).parent / "components" / "html.py")
    with no_stubs(), pytest.raises(OSError):
        inspect.getfile(gr.HTML)
