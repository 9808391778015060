"""The file that is written, in ONNX Runtime: with the answers of the model on real photos."""

import json
import re
from pathlib import Path

import numpy as np
import onnxruntime
import pytest
import torch
from conftest import randomise

import vit
from vit import onnx_export
from vit.__main__ import main
from vit.photos.examples import example_photos


def opened(file: Path) -> onnxruntime.InferenceSession:
    return onnxruntime.InferenceSession(file, providers=["CPUExecutionProvider"])


@pytest.fixture(scope="session")
def mini() -> vit.Classifier:
    return vit.load("foodvision-mini")


@pytest.fixture(scope="session")
def exported(mini, tmp_path_factory) -> onnxruntime.InferenceSession:
    file = tmp_path_factory.mktemp("onnx") / "mini.onnx"
    onnx_export.write(mini, file)
    return opened(file)


@pytest.fixture(scope="session")
def images(mini, photos) -> torch.Tensor:
    return torch.stack([mini.image(photo) for photo in photos])


@torch.inference_mode()
def test_a_batch_of_any_size_has_the_logits_of_the_model(mini, exported, images):
    for batch in (images, images[:1]):
        [logits] = exported.run(["logits"], {"images": batch.numpy()})
        np.testing.assert_allclose(logits, mini.model(batch).numpy(), rtol=0, atol=1e-4)


def test_the_metadata_suffices_to_answer(mini, exported, photos):
    about = exported.get_modelmeta().custom_metadata_map
    assert about["input"] == "normalised"
    preprocessing, labels = vit.Preprocessing(**json.loads(about["preprocessing"])), json.loads(about["labels"])
    for photo in photos:
        [logits] = exported.run(None, {"images": preprocessing(photo)[None].numpy()})
        assert labels[logits.argmax()] == mini.predict(photo)[0][0]


@pytest.mark.parametrize("pixels", ["uint8", "float32"])
def test_pixels_are_normalised_in_the_graph(tiny_base, tmp_path, photos, pixels):
    classifier = vit.load(tiny_base)
    onnx_export.write(classifier, tmp_path / "pixels.onnx", pixels)
    session = opened(tmp_path / "pixels.onnx")
    assert session.get_modelmeta().custom_metadata_map["input"] == "pixels"
    for photo in photos:
        array = np.asarray(photo.resize((32, 32), 3)).transpose(2, 0, 1)[None].astype(pixels)
        [[logits]] = session.run(None, {"images": array})
        with torch.inference_mode():
            expected = classifier.model(classifier.image(photo)[None])[0]
        np.testing.assert_allclose(logits, expected.numpy(), rtol=0, atol=1e-4)


def test_registers_and_images_that_follow_the_photo(tmp_path, photos):
    """Neurons that write to registers, and a preprocessing without a crop: the file has one size."""
    config = vit.ViTConfig(
        image_size=32, patch_size=8, width=64, heads=2, mlp_width=128, layers=2, classes=3, registers=2,
        register_neurons=((0, 3), (1, 5)), pool="class + mean", layer_scale=0.5,
    )  # fmt: skip
    classifier = vit.Classifier(randomise(vit.ViT(config)), ["a", "b", "c"], vit.Preprocessing(32))
    onnx_export.write(classifier, tmp_path / "model.onnx")
    assert opened(tmp_path / "model.onnx").get_inputs()[0].shape == ["batch", 3, 32, 32]
    assert max(one.difference for one in onnx_export.compare(classifier, tmp_path / "model.onnx", photos)) < 1e-4


def test_a_difference_is_seen(tiny_base, tmp_path, photos):
    classifier = vit.load(tiny_base)
    onnx_export.write(classifier, tmp_path / "model.onnx")
    with torch.no_grad():
        classifier.model.head.bias[1] += 0.5
    found = [one.difference for one in onnx_export.compare(classifier, tmp_path / "model.onnx", photos)]
    assert found == pytest.approx([0.5] * len(photos), abs=1e-4)


def test_the_command_prints_its_proof(tiny_base, tmp_path, capsys):
    file = tmp_path / "new" / "tiny.onnx"
    assert main(["export", str(tiny_base), "--onnx", str(file), "--pixels"]) == 0
    assert opened(file).get_inputs()[0].type == "tensor(uint8)"
    *rows, size, last = capsys.readouterr().out.splitlines()
    classifier = vit.load(tiny_base)
    for photo, row in zip(example_photos(), rows, strict=True):
        label, probability = classifier.predict(photo)[0]
        assert row == f"{photo.stem}: {probability:.2%} {label}; ONNX Runtime: {probability:.2%} {label}"
    assert size == f"{file}: {file.stat().st_size:,} bytes"
    difference = re.fullmatch(r"Largest difference of the logits on 14 photos: (.+)", last)
    assert 0 <= float(difference[1]) < 1e-4
