"""The explain command: what it writes can be read again, and is what Python computes."""

import json

import numpy as np
import pytest
import torch
from conftest import SKIMAGE, randomise
from PIL import Image

import vit
from vit.__main__ import main
from vit.explain.methods import METHODS

CAT, COFFEE = str(SKIMAGE / "chelsea.png"), str(SKIMAGE / "coffee.png")
COLUMNS = {"heads": "mean", "classes": "steak"}
PICTURES = {
    *("patches", "methods", "layers", "heads", "rollout_layers", "norms", "lens"),
    *("attention_distance", "heads_by_distance_and_entropy"),
    *METHODS,
}


def save(tiny_config, folder, labels=("pizza", "steak", "sushi"), **settings) -> str:
    config = vit.ViTConfig(**{**tiny_config.to_dict(), "classes": len(labels), **settings})
    model = randomise(vit.ViT(config))
    vit.save(vit.Classifier(model, list(labels), vit.Preprocessing(36, (32, 32))), folder)
    return str(folder)


@pytest.fixture(scope="module")
def model(tmp_path_factory, tiny_config):
    return save(tiny_config, tmp_path_factory.mktemp("model"), registers=1)


@pytest.fixture(scope="module")
def written(tmp_path_factory, model):
    out = tmp_path_factory.mktemp("out")
    options = ["--label", "steak", "--against", "sushi", "--curves"]
    assert main(["explain", CAT, "--model", model, "--out", str(out), *options]) == 0
    return out / "chelsea"


def test_the_arrays_are_what_python_computes(written, model):
    explanation = vit.load(model).explain(CAT)
    arrays = np.load(written / "maps.npz")
    expected = {
        **{name: method.map(explanation, COLUMNS[method.columns]) for name, method in METHODS.items()},
        "class_attention": torch.stack([explanation.class_attention(head) for head in (0, 1)], dim=1),
        "relevance": explanation.relevance("steak"),
        "difference": explanation.difference("steak", "sushi"),
        "lens": explanation.lens,
        "attention_distance": explanation.attention_distance(),
        "entropy": explanation.entropy(),
        "norms": explanation.outliers()[0],
        "outliers": explanation.outliers()[1],
    }
    assert set(arrays) == {*expected, "class_attention_elsewhere"}
    for name, tensor in expected.items():
        np.testing.assert_allclose(arrays[name], tensor.numpy(), atol=1e-6, err_msg=name)
    total = arrays["class_attention"].sum((-1, -2)) + arrays["class_attention_elsewhere"].sum(-1)
    np.testing.assert_allclose(total, 1, atol=1e-5)


def test_the_json_says_how_they_were_made(written, model):
    made = json.loads((written / "maps.json").read_text())
    assert (made["photo"], made["model"]) == (CAT, model)
    assert (made["label"], made["options"]["against"], made["left_out"]) == ("steak", "sushi", {})
    assert made["tokens_before_patches"] == ["class", "register 1"]
    assert made["predictions"][0][0] == vit.load(model).predict(CAT)[0][0]
    assert len(made["after_each_layer"]) == 2
    arrays = np.load(written / "maps.npz")
    assert {name: tuple(about["shape"]) for name, about in made["arrays"].items()} == {
        name: arrays[name].shape for name in arrays
    }
    assert all(0 <= made["curves"][name]["deletion"]["area"] <= 1 for name in ("relevance", "rollout", "random"))


def test_the_pictures_are_there_and_overlays_have_the_photos_size(written):
    names = {path.stem for path in written.glob("*.png")}
    assert names == PICTURES | {"difference", "deletion", "insertion"}
    with Image.open(CAT) as photo:
        for name in ("patches", "relevance", "rollout", "grad_cam"):
            with Image.open(written / f"{name}.png") as picture:
                assert picture.size == photo.size


def test_every_choice_of_a_map_can_be_made(tmp_path, model):
    options = ["--heads", "max", "--patch", "5", "--discard", "0.5", "--start", "1"]
    assert main(["explain", CAT, "--model", model, "--out", str(tmp_path), *options]) == 0
    arrays, explanation = np.load(tmp_path / "chelsea" / "maps.npz"), vit.load(model).explain(CAT)
    expected = {
        "rollout": explanation.rollout("max", discard=0.5, start=1),
        "relevance": explanation.relevance(start=1),
        "looks_at": explanation.looks_at(5, "max"),
        "looked_at_by": explanation.looked_at_by(5, "max"),
    }
    for name, tensor in expected.items():
        np.testing.assert_allclose(arrays[name], tensor.numpy(), atol=1e-6, err_msg=name)
    assert (tmp_path / "chelsea" / "looked_at_by.png").is_file()


def test_methods_can_be_chosen(tmp_path, model):
    options = ["--methods", "grad_cam", "relevance"]
    assert main(["explain", CAT, "--model", model, "--out", str(tmp_path), *options]) == 0
    arrays, pictures = np.load(tmp_path / "chelsea" / "maps.npz"), {path.stem for path in tmp_path.rglob("*.png")}
    assert set(METHODS) & set(arrays) == set(METHODS) & pictures == {"grad_cam", "relevance"}


def test_the_model_itself_is_written_once(written, model):
    arrays, classifier = np.load(written.parent / "model" / "model.npz"), vit.load(model)
    np.testing.assert_allclose(arrays["position_similarity"], classifier.position_similarity().numpy(), atol=1e-6)
    np.testing.assert_allclose(arrays["filters"], classifier.filter_components().numpy(), atol=1e-6)
    assert {path.name for path in (written.parent / "model").glob("*.png")} == {
        "position_similarity.png",
        "filters.png",
    }


def test_many_photos_get_a_folder_each_and_a_bad_one_loses_nothing(tmp_path, model, capsys):
    (tmp_path / "text.jpg").write_text("hello")
    (tmp_path / "chelsea.png").write_bytes((SKIMAGE / "chelsea.png").read_bytes())
    (tmp_path / "answers.csv.png").write_bytes((SKIMAGE / "chelsea.png").read_bytes())
    photos = [CAT, *(str(tmp_path / name) for name in ("text.jpg", "chelsea.png", "answers.csv.png")), COFFEE]
    assert main(["explain", *photos, "--model", model, "--out", str(tmp_path / "out"), "--own-scale", "--smooth"]) == 1
    written = {path.name for path in (tmp_path / "out").iterdir()}
    assert written == {"chelsea", "chelsea-2", "coffee", "answers.csv-2", "model", "answers.csv"}
    captured = capsys.readouterr()
    assert "'text.jpg' is not a photo that can be read" in captured.err
    assert "5/5" in captured.err  # the progress bar


@pytest.mark.parametrize(
    "options, said",
    [
        (["--label", "soup"], "There is no class 'soup'"),
        (["--against", "soup"], "There is no class 'soup'"),
        (["--layer", "2"], "There is no layer 2: this model has the layers 0 to 1"),
        (["--start", "5"], "There is no layer 5: this model has the layers 0 to 1"),
        (["--patch", "16"], "There is no patch 16: this photo has the patches 0 to 15"),
        (["--heads", "2"], "There is no head 2: use 'mean', 'max' or a number from 0 to 1"),
        (["--discard", "1"], "discard is the share of links to cut"),
    ],
)
def test_a_wrong_class_or_layer_gets_a_sentence(tmp_path, model, options, said, capsys):
    assert main(["explain", CAT, "--model", model, "--out", str(tmp_path), *options]) == 1
    assert said in capsys.readouterr().err
    assert not list(tmp_path.glob("chelsea/*"))


def test_a_place_that_cannot_be_written_gets_a_sentence(tmp_path, model, capsys):
    (tmp_path / "file").write_text("")
    assert main(["explain", CAT, "--model", model, "--out", str(tmp_path / "file")]) == 1
    assert "cannot be written" in capsys.readouterr().err


@pytest.mark.parametrize("size", [(300, 1), (1, 300), (1, 1)])
def test_the_thinnest_photos(tmp_path, model, size):
    Image.new("RGB", size, "red").save(tmp_path / "thin.png")
    assert main(["explain", str(tmp_path / "thin.png"), "--model", model, "--out", str(tmp_path / "out")]) == 0


def test_outliers_can_be_left_out(tmp_path):
    planted = vit.load()
    with torch.no_grad():
        planted.model.position_embedding[0, [1 + 17, 1 + 150]] += 30
    vit.save(planted, tmp_path / "planted")
    for name, options in (("with", ["--start", "3"]), ("without", ["--start", "3", "--without-outliers"])):
        folders = ["--model", str(tmp_path / "planted"), "--out", str(tmp_path / name)]
        assert main(["explain", CAT, *folders, *options]) == 0
    whole, cleared = (np.load(tmp_path / name / "chelsea" / "maps.npz") for name in ("with", "without"))
    flagged = whole["outliers"]
    assert flagged[-1].flatten().nonzero()[0].tolist() == [17, 150]
    assert (cleared["class_attention"][-1][:, flagged[-1]] == 0).all()
    assert (cleared["relevance"][flagged[-1]] == 0).all()
    assert (cleared["rollout"][flagged[3:]] == 0).all() and (cleared["rollout"][~flagged[3:]] > 0).all()
    np.testing.assert_array_equal(cleared["relevance"][~flagged[-1]], whole["relevance"][~flagged[-1]])
    assert (whole["class_attention"][-1][:, flagged[-1]] > 0).all()


def test_what_a_checkpoint_cannot_give_is_left_out_and_said(tmp_path, tiny_config):
    headless = save(tiny_config, tmp_path / "headless", labels=())
    assert main(["explain", CAT, "--model", headless, "--out", str(tmp_path / "a"), "--curves"]) == 0
    made = json.loads((tmp_path / "a" / "chelsea" / "maps.json").read_text())
    assert set(made["left_out"]) == {*needing("classes"), "lens", "curves"}
    assert "needs a classifier" in made["left_out"]["relevance"]

    pooled = save(tiny_config, tmp_path / "pooled", class_token=False, pool="mean")
    assert main(["explain", CAT, "--model", pooled, "--out", str(tmp_path / "b")]) == 0
    made = json.loads((tmp_path / "b" / "chelsea" / "maps.json").read_text())
    assert set(made["left_out"]) == {*needing("class token"), "class_attention_elsewhere"}


def needing(need):
    return {name for name, method in METHODS.items() if need in method.needs}


def test_arrays_alone_are_those_beside_the_pictures(tmp_path, model, written):
    options = ["--label", "steak", "--against", "sushi", "--curves", "--arrays-only"]
    assert main(["explain", CAT, "--model", model, "--out", str(tmp_path), *options]) == 0
    names = {str(path.relative_to(tmp_path)) for path in tmp_path.rglob("*.*")}
    assert names == {"chelsea/maps.npz", "chelsea/maps.json", "model/model.npz", "answers.csv"}
    alone, beside = np.load(tmp_path / "chelsea" / "maps.npz"), np.load(written / "maps.npz")
    assert set(alone) == set(beside)
    for name in alone:
        np.testing.assert_allclose(alone[name], beside[name], atol=1e-6, err_msg=name)
    assert json.loads((tmp_path / "chelsea" / "maps.json").read_text())["curves"]
