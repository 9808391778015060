"""Photos at another size than the checkpoint's own, and in their own shape."""

import pickle

import numpy as np
import pytest
import timm
import torch
from conftest import SKIMAGE
from PIL import Image

import vit
from benchmarks.material import in_timm
from vit.classifier import available
from vit.explain.explanation import UnsupportedError
from vit.photos.files import PhotoError

CAT, COFFEE = SKIMAGE / "chelsea.png", SKIMAGE / "coffee.png"


def test_a_larger_size_is_timms_with_its_positions_resampled(real):
    own = in_timm(real.model)
    larger = in_timm(real.model)
    larger.set_input_size((320, 320))
    assert own.pos_embed.shape != larger.pos_embed.shape
    transform = timm.data.create_transform(
        (3, 320, 320), interpolation="bicubic", mean=(0.5,) * 3, std=(0.5,) * 3, crop_pct=320 / round(248 * 320 / 224)
    )
    with torch.inference_mode():
        expected = larger(transform(Image.open(CAT))[None])[0].softmax(dim=0)
    explanation = real.explain(CAT, size=320)
    assert explanation.grid == (20, 20) and explanation.class_attention().shape == (12, 20, 20)
    torch.testing.assert_close(explanation.probabilities, expected, rtol=0, atol=1e-4)
    label, probability = real.predict(CAT, 1, size=320)[0]
    assert (label, probability) == (real.labels[expected.argmax()], pytest.approx(expected.max().item(), abs=1e-4))


def test_as_much_is_cut_off_at_any_size(real):
    small, large = real.explain(CAT), real.explain(CAT, size=320)
    assert large.box == pytest.approx(small.box, abs=2)


@pytest.mark.parametrize("size, grid", [(None, (11, 17)), (320, (16, 25))])
def test_fitted_nothing_is_cut_off(real, size, grid):
    explanation = real.explain(CAT, size=size, fit=True)
    assert explanation.grid == grid
    with Image.open(CAT) as photo:
        assert explanation.box == (0, 0, *photo.size)
    assert explanation.relevance().shape == grid
    side = size or 224
    assert grid[0] * grid[1] == pytest.approx((side / 16) ** 2, rel=0.06)
    assert grid[0] / grid[1] == pytest.approx(300 / 451, rel=0.04)


def test_a_long_strip_fits(real):
    assert real.explain(Image.new("RGB", (4000, 40)), fit=True).grid == (1, 140)


@pytest.mark.parametrize(
    "preprocessing, expected",
    [
        (vit.Preprocessing(248, (224, 224)), vit.Preprocessing(496, (448, 448))),
        (vit.Preprocessing((240, 256), (224, 224)), vit.Preprocessing((480, 512), (448, 448))),
        (vit.Preprocessing((224, 224)), vit.Preprocessing((448, 448))),
        (vit.Preprocessing(224), vit.Preprocessing(448)),
    ],
)
def test_preprocessing_at_another_size(preprocessing, expected):
    assert preprocessing.at_size(448) == expected


def test_a_size_that_patches_do_not_divide_gets_a_sentence(real):
    with pytest.raises(ValueError, match=r"do not divide an image of 450 × 450 .*: make it 448 × 448"):
        real.explain(CAT, size=450)


@pytest.mark.parametrize("size", [0, -16, 448.0, "448", (224, 320)])
def test_a_size_that_is_none_gets_a_sentence(real, size):
    with pytest.raises(ValueError, match=r"^size is .*, but must be a whole number: the image's side in pixels\.$"):
        real.predict(CAT, size=size)


@pytest.mark.parametrize("fit", [False, True])
def test_a_size_far_too_large_gets_a_sentence_about_the_size(real, fit):
    with pytest.raises(PhotoError, match=r"would become [0-9,]+ × [0-9,]+, which is too large: choose a smaller size"):
        real.predict(CAT, size=8960, fit=fit)


def test_a_size_that_memory_would_not_do_for_gets_a_sentence(real, monkeypatch):
    monkeypatch.setattr("vit.classifier.available", lambda: 50_000_000)
    assert real.explain(CAT).grid == (14, 14)
    with pytest.raises(UnsupportedError, match=r"takes 0\.[0-9] GB, and 0\.1 GB are free: choose a smaller size"):
        real.explain(CAT, size=448)


def test_there_is_memory():
    assert available() is None or 1e7 < available() < 1e14


def test_an_explanation_is_pickled_without_its_model_and_has_a_short_repr(real):
    explanation = real.explain(CAT)
    label, probability = real.predict(CAT)[0]
    assert repr(explanation) == f"Explanation({label!r} {probability:.0%}, 14 × 14 patches, 12 layers, 3 heads)"
    stored = pickle.dumps(explanation)
    attention = explanation.attention.numel() * 4
    assert len(stored) < 1.5 * attention
    again = pickle.loads(stored)
    assert torch.equal(again.rollout(), explanation.rollout()) and again.box == explanation.box
    with pytest.raises(UnsupportedError, match="stored without its model"):
        again.relevance()


def test_arrays_are_photos_and_lists_get_a_sentence(real):
    with Image.open(COFFEE) as photo:
        assert real.predict(np.asarray(photo)) == real.predict(COFFEE)
    for wrong in ([CAT, COFFEE], torch.zeros(3, 8, 8), np.zeros((3, 8, 8)), None):
        with pytest.raises(PhotoError, match=f"ask about one at a time, not about a {type(wrong).__name__}"):
            real.predict(wrong)
    with pytest.raises(PhotoError, match=r"not about a ndarray \(3, 8, 8\) of float32\.$"):
        real.predict(np.zeros((3, 8, 8), dtype=np.float32))
