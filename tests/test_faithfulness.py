"""Deletion and insertion curves: small cases counted by hand, and a plain loop as the referee."""

import math
from itertools import pairwise

import pytest
import torch
from conftest import randomise
from torch import nn

import vit
from vit.explain.faithfulness import Curve, deletion, even_counts, insertion, masked, random_map, removal_order

P = 4
NINE_TENTHS = math.log(9)  # the logit whose probability is 0.9 against a logit of 0


def summing_model(grid: tuple[int, int] = (2, 2)) -> vit.ViT:
    """Attention and MLP do nothing, and the head sums the patches' brightness: logits (sum, 0)."""
    size = (P * grid[0], P * grid[1])
    config = vit.ViTConfig(size, P, classes=2, layers=1, width=2, mlp_width=2, heads=1, class_token=False, pool="mean")
    model = vit.ViT(config).eval()
    model.norm = nn.Identity()
    with torch.no_grad():
        for parameter in model.parameters():
            parameter.zero_()
        model.patch_embedding.projection.weight[0] = 1 / (3 * P * P)
        model.head.weight[0, 0] = grid[0] * grid[1]
    return model


def image_of(values: list[list[float]]) -> torch.Tensor:
    """An image whose patches have these brightnesses."""
    return torch.tensor(values).repeat_interleave(P, 0).repeat_interleave(P, 1).expand(3, -1, -1).contiguous()


@pytest.fixture(scope="module")
def one_patch() -> tuple[vit.ViT, torch.Tensor, torch.Tensor]:
    """A model, an image in which only the third of four patches counts, and the map that says so."""
    return summing_model(), image_of([[0, 0], [NINE_TENTHS, 0]]), torch.tensor([[0.2, 0.1], [0.9, 0.0]])


@pytest.fixture(scope="module")
def tiny(tiny_config) -> vit.ViT:
    return randomise(vit.ViT(tiny_config))


CASES = [
    (deletion, False, [0.9, 0.5, 0.5, 0.5, 0.5], 0.55),
    (deletion, True, [0.9, 0.9, 0.9, 0.9, 0.5], 0.85),
    (insertion, False, [0.5, 0.9, 0.9, 0.9, 0.9], 0.85),
    (insertion, True, [0.5, 0.5, 0.5, 0.5, 0.9], 0.55),
]


@pytest.mark.parametrize(("make", "least_first", "probabilities", "area"), CASES)
def test_curves_counted_by_hand(one_patch, make, least_first, probabilities, area):
    curve = make(*one_patch, index=0, steps=4, least_first=least_first)
    torch.testing.assert_close(curve.shares, torch.tensor([0, 0.25, 0.5, 0.75, 1]))
    torch.testing.assert_close(curve.probabilities, torch.tensor(probabilities))
    assert (curve.answers[curve.probabilities > 0.6] == 0).all()
    assert curve.area == pytest.approx(area)


def test_the_other_class_has_the_rest(one_patch):
    curve = deletion(*one_patch, index=1, steps=4)
    torch.testing.assert_close(curve.probabilities, torch.tensor([0.1, 0.5, 0.5, 0.5, 0.5]))


def test_area_of_uneven_shares():
    none = torch.zeros(0)
    assert Curve(torch.tensor([0, 0.25, 1]), torch.tensor([1.0, 0.5, 0.1]), none).area == pytest.approx(0.4125)
    assert Curve(torch.tensor([0.0, 1.0]), torch.ones(2), none).area == 1


def test_equal_patches_go_in_reading_order_and_come_back_in_reverse():
    map = torch.tensor([[0, 2, 0], [2, 0, 1]])
    assert removal_order(map).tolist() == [1, 3, 5, 0, 2, 4]
    assert removal_order(map, least_first=True).tolist() == [4, 2, 0, 5, 3, 1]
    assert removal_order(torch.zeros(40, 50)).tolist() == list(range(2000))


def test_counts_are_as_even_as_whole_patches_allow():
    assert even_counts(196, 14).tolist() == list(range(0, 197, 14))
    assert even_counts(5, 3).tolist() == [0, 2, 3, 5]
    assert even_counts(2, 4).tolist() == [0, 1, 1, 2, 2]


def test_masked_replaces_the_first_patches_by_the_mean_colour():
    image = image_of([[1, 2, 3], [4, 5, 6]])
    given = image.clone()
    images = masked(image, torch.tensor([4, 0, 1, 2, 3, 5]), torch.tensor([0, 2, 6]), P)
    assert torch.equal(images, torch.stack([given, image_of([[0, 2, 3], [4, 0, 6]]), torch.zeros_like(image)]))
    assert torch.equal(image, given)


def referee(model, image, map, index, steps, insert, least_first):
    """One image at a time, one patch at a time, pixels cut out by slices: nothing shared with the code under test."""
    size, (rows, columns) = model.config.patch_size, map.shape
    places = [(row, column) for row in range(rows) for column in range(columns)]
    places.sort(key=lambda place: map[place].item(), reverse=not least_first)
    probabilities = []
    for step in range(steps + 1):
        shown = torch.zeros_like(image) if insert else image.clone()
        for row, column in places[: round(len(places) * step / steps)]:
            patch = (slice(None), slice(row * size, (row + 1) * size), slice(column * size, (column + 1) * size))
            shown[patch] = image[patch] if insert else 0
        with torch.no_grad():
            probabilities.append(model(shown[None]).softmax(dim=-1)[0, index].item())
    area = sum((a + b) / 2 / steps for a, b in pairwise(probabilities))
    return torch.tensor(probabilities), area


@pytest.mark.parametrize("least_first", [False, True])
@pytest.mark.parametrize("make", [deletion, insertion])
@pytest.mark.parametrize("size", [(32, 32), (16, 48)])
def test_curves_agree_with_a_plain_loop(tiny, make, least_first, size):
    image, map = torch.randn(3, *size), random_map((size[0] // 8, size[1] // 8), seed=3)
    curve = make(tiny, image, map, index=1, steps=4, least_first=least_first)
    probabilities, area = referee(tiny, image, map, 1, 4, make is insertion, least_first)
    torch.testing.assert_close(curve.probabilities, probabilities, rtol=0, atol=1e-6)
    assert curve.area == pytest.approx(area, abs=1e-6)
    assert curve.probabilities.unique().numel() == 5  # a curve that could differ


def test_a_curve_starts_at_the_prediction_and_ends_at_the_mean_colour(tiny):
    image = torch.randn(3, 32, 32)
    curve = deletion(tiny, image, random_map((4, 4)), index=2)
    with torch.no_grad():
        ends = tiny(torch.stack([image, torch.zeros_like(image)])).softmax(dim=-1)[:, 2]
    torch.testing.assert_close(curve.probabilities[[0, -1]], ends, rtol=0, atol=1e-6)
    assert len(curve.shares) == len(curve.probabilities) == 15


@pytest.mark.parametrize("steps", [1, 5, 16, 30])
def test_insertion_is_deletion_of_the_least_relevant_read_backwards(tiny, steps):
    image, map = torch.randn(3, 24, 40), random_map((3, 5)).round(decimals=1)  # 15 patches, some equal
    inserted = insertion(tiny, image, map, index=0, steps=steps)
    deleted = deletion(tiny, image, map, index=0, steps=steps, least_first=True)
    assert torch.equal(inserted.probabilities, deleted.probabilities.flip(0))
    torch.testing.assert_close(inserted.shares, 1 - deleted.shares.flip(0))
    assert inserted.area == pytest.approx(deleted.area)


def test_only_the_order_of_the_map_counts(tiny):
    image, map = torch.randn(3, 32, 32), random_map((4, 4))
    assert torch.equal(deletion(tiny, image, map, 0).probabilities, deletion(tiny, image, 2 * map + 1, 0).probabilities)


@pytest.mark.parametrize("batch", [1, 4, 100])
def test_the_batch_size_does_not_change_the_curve(tiny, batch):
    image, map = torch.randn(3, 32, 32), random_map((4, 4))
    curve, other = deletion(tiny, image, map, 0), deletion(tiny, image, map, 0, batch=batch)
    torch.testing.assert_close(other.probabilities, curve.probabilities, rtol=0, atol=1e-6)
    assert torch.equal(other.shares, curve.shares)


def test_half_precision_and_gradients_are_left_alone(tiny_config):
    model = randomise(vit.ViT(tiny_config))
    image, map = torch.randn(3, 32, 32), random_map((4, 4)).requires_grad_()
    full = deletion(model, image, map, 0)
    half = deletion(model.half(), image, map, 0)
    assert half.probabilities.dtype == torch.float32
    torch.testing.assert_close(half.probabilities, full.probabilities, rtol=0, atol=0.05)
    assert all(parameter.grad is None for parameter in model.parameters())


def test_random_maps_repeat_by_their_seed():
    assert torch.equal(random_map((2, 3), 5), random_map((2, 3), 5))
    assert not torch.equal(random_map((2, 3), 5), random_map((2, 3), 6))


def test_a_map_made_of_a_photo_has_its_curves(real, photos):
    explanation = real.explain(photos[0])
    index = explanation.class_index(None)
    curve = deletion(real.model, real.preprocessing(photos[0]), explanation.relevance(), index, steps=7)
    assert curve.probabilities[0] == pytest.approx(explanation.probabilities[index].item(), abs=1e-4)
    assert curve.probabilities[-1] < 0.1 * curve.probabilities[0]


WRONG = [
    (dict(map=torch.zeros(4, 2)), r"shape \(4, 2\), but this image has 2 × 2 patches"),
    (dict(map=torch.zeros(3, 2, 2)), "of a single layer"),
    (dict(map=torch.full((2, 2), torch.nan)), "NaN"),
    (dict(steps=0), "steps is 0"),
    (dict(batch=0), "batch is 0"),
    (dict(index=2), "no class 2: this model has the classes 0 to 1"),
    (dict(index=-1), "no class -1"),
    (dict(image=torch.zeros(1, 3, 8, 8)), r"images\[0\]"),
    (dict(image=torch.zeros(3, 9, 8)), "do not divide"),
]


@pytest.mark.parametrize("make", [deletion, insertion])
@pytest.mark.parametrize(("wrong", "sentence"), WRONG)
def test_what_has_no_curve_says_so(one_patch, make, wrong, sentence):
    model, image, map = one_patch
    with pytest.raises(ValueError, match=sentence):
        make(model, **{**dict(image=image, map=map, index=0), **wrong})


def test_a_checkpoint_without_a_classifier_says_so():
    model = vit.ViT(vit.ViTConfig(8, 4, classes=0, layers=1, width=2, mlp_width=2, heads=1))
    with pytest.raises(ValueError, match="no classifier"):
        deletion(model, torch.zeros(3, 8, 8), torch.zeros(2, 2), 0)
