"""The page without a browser: its files, its models, its endpoints by the client library."""

import json
import os
import shutil
import subprocess
import sys
from dataclasses import replace
from pathlib import Path

import httpx2 as httpx
import numpy as np
import pytest
import torch
from browser.visitor import serving
from conftest import SKIMAGE, randomise
from gradio_client import Client, handle_file
from gradio_client.exceptions import AppError
from safetensors import safe_open
from safetensors.numpy import load, load_file

import app
import vit
from vit.explanation import NEEDS
from vit.methods import METHODS
from vit.page import Models, build, scripts
from vit.page.explorer import packing
from vit.page.models import KNOWN
from vit.page.scripts import SCRIPTS, VERSION
from vit.photo_files import open_photo

CAT = SKIMAGE / "chelsea.png"


@pytest.fixture(scope="module")
def classifier():
    return vit.load()


@pytest.fixture(scope="module")
def client(classifier):
    with serving(build(Models(classifier), app.EXAMPLES)) as url:
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
    explanation, content = packed(classifier)
    tensors = load(content)
    assert tensors["attention"].dtype == np.uint16 and len(content) < packing.MOST_BYTES
    found, expected = attention_of(tensors), explanation.attention.double().numpy()
    np.testing.assert_allclose(found.sum(axis=-1), 1, atol=1e-4)
    seen = expected > 1e-5  # a thousandth of a per cent
    assert np.abs(found / expected - 1)[seen].max() < 0.005
    assert np.abs(found - expected).max() < 1e-5


def test_larger_attention_goes_in_8_bits_and_the_largest_stays_here(classifier, monkeypatch):
    explanation, _ = packed(classifier)
    monkeypatch.setattr(packing, "MOST_BYTES", 2_000_000)
    _, content = packed(classifier)
    tensors = load(content)
    assert tensors["attention"].dtype == np.uint8 and len(content) <= packing.MOST_BYTES
    assert np.abs(attention_of(tensors) - explanation.attention.numpy()).max() < 0.004
    monkeypatch.setattr(packing, "MOST_BYTES", 1_000_000)
    tensors = load(packed(classifier)[1])
    assert "attention" not in tensors
    np.testing.assert_array_equal(tensors["looks_at"], explanation.attention[:, :, 0])
    np.testing.assert_array_equal(tensors["looked_at_by"], explanation.attention[:, :, :, 0])
    asked = load(packing.pack_patch(explanation, 87))
    token = len(explanation.prefix) + 87
    np.testing.assert_array_equal(asked["looks_at"], explanation.attention[:, :, token])
    np.testing.assert_array_equal(asked["looked_at_by"], explanation.attention[:, :, :, token])


@pytest.mark.parametrize("size, whole", [((224, 224), True), ((384, 384), False)])
def test_no_file_is_larger_than_16_megabytes(size, whole, tmp_path):
    """As many layers, heads and tokens as ViT-B/16, and few numbers otherwise."""
    config = vit.ViTConfig(image_size=size, width=48, mlp_width=48, heads=12, layers=12, classes=3)
    small = vit.Classifier(randomise(vit.ViT(config)), ["a", "b", "c"], vit.Preprocessing(size))
    _, content = packed(small)
    assert len(content) <= 16_000_000
    assert about(content, tmp_path)["whole"] is whole
    assert (load(content).get("attention") is not None) is whole


def test_the_file_says_what_was_seen(classifier, tmp_path):
    explanation, content = packed(classifier)
    told = about(content, tmp_path)
    predictions = [(each["label"], pytest.approx(each["probability"], rel=1e-4)) for each in told["predictions"]]
    assert predictions == classifier.predict(CAT)
    assert told["size"] == [451, 300] and told["cropped"] and told["box"] == pytest.approx(list(explanation.box))
    assert [[label for label, _ in row] for row in told["decided"]] == [
        [label for label, _ in row] for row in explanation.decided(3)
    ]
    best = int(explanation.probabilities.argmax())
    assert told["lens"] == pytest.approx(explanation.lens[:, best].tolist())
    assert [method["name"] for method in told["methods"]] == list(METHODS)
    assert not any(method["missing"] for method in told["methods"])
    np.testing.assert_array_equal(load(content)["outliers"], explanation.outliers()[1].flatten(1))


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
    assert {"main.js", "photo.js", "panels/stage.js"} <= set(SCRIPTS)
    for name, content in SCRIPTS.items():
        text = content.decode()
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
            "%2e%2e/work.py",
        ),
        *("../../../app.py", "/etc/passwd", "//etc/passwd", "node_modules/typescript/lib/tsc.js"),
    ):
        answer = httpx.get(address + other, follow_redirects=True)
        assert answer.status_code == 404 and b"import" not in answer.content, other
    old = httpx.get(f"{client.src}web/{'0' * 16}/main.js")
    assert (old.status_code, old.text) == (404, "There is no such script: reload the page.")


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
    assert models.get("foodvision-101") is classifier
    assert len(models.get("foodvision-mini").labels) == 3
    assert models.get("foodvision-mini") is models.get("foodvision-mini")
    vit.save(classifier, tmp_path)
    for source in (str(tmp_path), "someone/else", "../foodvision", "", "/etc/passwd"):
        with pytest.raises(vit.CheckpointError, match="the models of its list only"):
            models.get(source)
    assert Models(classifier, any_model=True).get(str(tmp_path)).labels == classifier.labels


def test_the_list_starts_with_the_pages_own_model(classifier, tmp_path):
    assert Models(classifier).choices[0][1] == "foodvision-101"
    assert len(Models(classifier).choices) == len(KNOWN)
    own = vit.Classifier(classifier.model, classifier.labels, classifier.preprocessing, str(tmp_path / "my-model"))
    text, source = Models(own).choices[0]
    assert text == "my-model · ViT-Ti/16 · 101 classes" and source == own.name
    assert len(Models(own).choices) == len(KNOWN) + 1


def test_few_models_are_kept(classifier, tmp_path, tiny_base):
    models = Models(classifier, any_model=True)
    folders = [tmp_path / str(number) for number in range(5)]
    for folder in folders:
        vit.save(vit.load(tiny_base), folder)
    loaded = [models.get(str(folder)) for folder in folders]
    assert models.get(str(folders[-1])) is loaded[-1]
    assert models.get(str(folders[0])) is not loaded[0]


def test_two_endpoints_are_public_and_documented(client):
    endpoints = client.view_api(return_format="dict")
    assert set(endpoints["named_endpoints"]) == {"/predict", "/explain"} and not endpoints["unnamed_endpoints"]
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


def test_explain(client, classifier):
    answer = client.predict(handle_file(str(CAT)), api_name="/explain")
    explanation = classifier.explain(CAT)
    tensors = load_file(answer["explanation"])
    torch.testing.assert_close(torch.tensor(attention_of(tensors)), explanation.attention.double(), atol=1e-5, rtol=0)
    maps = {name: values for path in answer["maps"] for name, values in load_file(path).items()}
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
    for endpoint in ("/predict", "/explain"):
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
    done = subprocess.run([sys.executable, app.__file__, *options], capture_output=True, text=True)
    assert done.returncode == 1
    assert done.stderr.startswith("app.py: ") and said in done.stderr and done.stderr.count("\n") == 1


def test_the_model_code_knows_nothing_of_the_page():
    code = "import sys, vit, vit.export, vit.__main__; sys.exit('gradio' in sys.modules)"
    environment = {**os.environ, "PYTHONPATH": str(Path(app.__file__).parent)}
    assert subprocess.run([sys.executable, "-c", code], env=environment).returncode == 0
