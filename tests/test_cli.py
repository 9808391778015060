import subprocess
import sys

import pytest
from conftest import SKIMAGE, randomise

import vit
from vit.__main__ import main

CAT, COFFEE = str(SKIMAGE / "chelsea.png"), str(SKIMAGE / "coffee.png")


@pytest.fixture(scope="module")
def folder(tmp_path_factory, tiny_config):
    path = tmp_path_factory.mktemp("tiny")
    model = randomise(vit.ViT(tiny_config))
    vit.save(vit.Classifier(model, ["pizza", "steak", "sushi"], vit.Preprocessing((32, 32))), path)
    return str(path)


def test_summary_of_a_variant(capsys):
    assert main(["summary", "B/16"]) == 0
    out = capsys.readouterr().out
    assert out.startswith("ViT-B/16: 224 × 224 pixels, 14 × 14 patches, 197 tokens, 1000 classes")
    assert out.split()[-1] == "86,567,656"


def test_summary_of_a_checkpoint(capsys, folder):
    assert main(["summary", folder]) == 0
    assert "ViT-2 layers × 64/8: 32 × 32 pixels, 4 × 4 patches, 17 tokens, 3 classes" in capsys.readouterr().out


def test_predict_prints_each_photo_with_its_labels(capsys, folder):
    assert main(["predict", CAT, COFFEE, "--model", folder, "--top-k", "2", "--precision", "float32"]) == 0
    lines = capsys.readouterr().out.splitlines()
    assert [lines[0], lines[3]] == [CAT, COFFEE] and len(lines) == 6
    label, probability = vit.load(folder).predict(CAT)[0]
    assert lines[1].split() == [f"{probability:.1%}", label]


def test_one_bad_photo_does_not_lose_the_others(capsys, folder, tmp_path):
    (tmp_path / "text.jpg").write_text("hello")
    assert main(["predict", str(tmp_path / "text.jpg"), CAT, "--model", folder]) == 1
    captured = capsys.readouterr()
    assert captured.out.startswith(CAT)
    assert captured.err == "vit: 'text.jpg' is not a photo that can be read: save it as JPEG, PNG or WebP.\n"


def test_a_missing_model_gets_a_sentence_and_no_traceback(capsys):
    assert main(["predict", CAT, "--model", "not/a/model"]) == 1
    assert (
        capsys.readouterr().err
        == "vit: There is no file or folder 'not/a/model': check the path; a Hub id is owner/name.\n"
    )


def test_a_model_without_a_classifier_gets_a_sentence(capsys, tmp_path, tiny_config):
    config = vit.ViTConfig(**{**tiny_config.to_dict(), "classes": 0})
    vit.save(vit.Classifier(vit.ViT(config), [], vit.Preprocessing((32, 32))), tmp_path)
    assert main(["predict", CAT, "--model", str(tmp_path)]) == 1
    assert "has no classifier, so it predicts nothing" in capsys.readouterr().err


def test_an_unknown_variant_is_told_the_known_ones(capsys):
    assert main(["summary", "B/17"]) == 1
    assert "There is no variant 'B/17': write one of Ti, S, B, L, H" in capsys.readouterr().err


def test_a_variant_has_no_weights_to_predict_with(capsys):
    assert main(["predict", CAT, "--model", "B/16"]) == 1
    assert capsys.readouterr().err.startswith("vit: B/16 is an architecture without weights")


def test_a_reader_that_leaves_early_is_no_error(folder):
    command = f"{sys.executable} -m vit predict {' '.join([CAT] * 300)} --model {folder} | head -1"
    done = subprocess.run(command, shell=True, capture_output=True, text=True)
    assert (done.stdout, done.stderr) == (CAT + "\n", "")


@pytest.mark.parametrize("arguments", [[], ["predict"], ["predict", CAT, "--model", "x", "--top-k", "0"]])
def test_wrong_arguments_show_the_usage(capsys, arguments):
    with pytest.raises(SystemExit) as stop:
        main(arguments)
    assert stop.value.code == 2
    assert "usage: python -m vit" in capsys.readouterr().err


@pytest.mark.parametrize(
    "called, name",
    [
        ("/checkout/vit/__main__.py", "python -m vit"),
        ("/venv/bin/vit", "vit"),
        ("/venv/Scripts/vit.exe", "vit"),
    ],
)
def test_the_usage_says_how_it_was_called(capsys, monkeypatch, called, name):
    monkeypatch.setattr(sys, "argv", [called])
    with pytest.raises(SystemExit):
        main(["predict", "--help"])
    assert capsys.readouterr().out.startswith(f"usage: {name} predict [-h]")


def test_as_a_command():
    done = subprocess.run([sys.executable, "-m", "vit", "summary", "Ti/16"], capture_output=True, text=True)
    assert done.returncode == 0 and done.stdout.split()[-1] == "5,717,416"
