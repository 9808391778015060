"""Explanations of a photo: a planted case in which every method must point at one patch, and what must not leak."""

import weakref

import numpy as np
import pytest
import torch
from conftest import SKIMAGE, randomise
from PIL import Image

import vit
from vit.explain.explanation import NEEDS
from vit.explain.methods import METHODS

CAT, COFFEE = SKIMAGE / "chelsea.png", SKIMAGE / "coffee.png"
PLANTED = 9  # of the patches of a 4 × 4 grid


def planted_classifier() -> vit.Classifier:
    """Weights set by hand: the class token looks at patch PLANTED in both layers, and decides by what it sees."""
    config = vit.ViTConfig(image_size=32, patch_size=8, width=8, heads=1, mlp_width=8, layers=2, classes=2)
    model = vit.ViT(config).eval()
    with torch.no_grad():
        for name, parameter in model.named_parameters():
            parameter.copy_(torch.ones_like(parameter) if "norm.weight" in name else torch.zeros_like(parameter))
        # Channel 0 marks the class token, 1 the planted patch, 2 all other patches, 3 carries the patch's brightness.
        model.position_embedding[0, 0, 0] = 4
        model.position_embedding[0, 1:, 2] = 4
        model.position_embedding[0, 1 + PLANTED, 1:3] = torch.tensor([4.0, 0.0])
        model.patch_embedding.projection.weight[3] = 1 / (3 * 8 * 8)
        for block in model.blocks:
            block.attention.qkv.weight[0, 0] = 20  # the class token asks …
            block.attention.qkv.weight[8, 1] = 20  # … and the planted patch answers
            block.attention.qkv.weight[16 + 3, 3] = 1
            block.attention.qkv.weight[16 + 4, 1] = 1
            block.attention.out.weight.copy_(torch.eye(8))
        model.head.weight[0, 4] = model.head.weight[0, 3] = 1
        model.head.weight[1, 4] = model.head.weight[1, 3] = -1
    return vit.Classifier(model, ["there", "not there"], vit.Preprocessing((32, 32)))


@pytest.fixture(scope="module")
def planted() -> vit.Explanation:
    photo = Image.new("RGB", (32, 32), "gray")
    row, column = divmod(PLANTED, 4)
    photo.paste("white", (8 * column, 8 * row, 8 * column + 8, 8 * row + 8))
    return planted_classifier().explain(photo)


def column(method, label):
    """The mean of the heads, or a class."""
    return "mean" if method.columns == "heads" else label


PLANTED_MAPS = {
    **{name: lambda e, method=method: method.last(e, column(method, "there")) for name, method in METHODS.items()},
    "class attention, max of heads": lambda e: e.class_attention("max")[0],
    "rollout, weakest links cut": lambda e: e.rollout(discard=0.9)[-1],
    "rollout from the last layer": lambda e: e.rollout(start=1)[-1],
    "relevance from the last layer": lambda e: e.relevance("there", start=1),
    "difference": lambda e: e.difference("there", "not there"),
}


@pytest.mark.parametrize("method", PLANTED_MAPS)
def test_every_method_points_at_the_planted_patch(planted, method):
    found = PLANTED_MAPS[method](planted)
    assert found.shape == (4, 4)
    assert found.argmax() == PLANTED
    assert found.flatten()[PLANTED] > 2 * found.flatten().sort().values[-2]


def test_who_looks_at_the_planted_patch(planted):
    assert planted.probabilities[0] > 0.5
    assert planted.looks_at(PLANTED).shape == planted.looked_at_by(PLANTED).shape == (2, 4, 4)
    token = 1 + PLANTED
    assert torch.equal(planted.looks_at(PLANTED)[0].flatten(), planted.attention[0, 0, token, 1:])
    assert torch.equal(planted.looked_at_by(PLANTED)[1].flatten(), planted.attention[1, 0, 1:, token])
    with pytest.raises(ValueError, match="There is no patch 16: this photo has the patches 0 to 15"):
        planted.looks_at(16)


@pytest.fixture(scope="module")
def tiny(tiny_config):
    config = vit.ViTConfig(**{**tiny_config.to_dict(), "layers": 3, "registers": 2})
    return vit.Classifier(randomise(vit.ViT(config)), ["pizza", "steak", "sushi"], vit.Preprocessing((32, 48)))


ALL = {
    **PLANTED_MAPS,
    **{name: lambda e, method=method: method.map(e, column(method, 1)) for name, method in METHODS.items()},
    "relevance from the last layer": lambda e: e.relevance(1, start=1),
    "difference": lambda e: e.difference(1, "sushi"),
    "logit lens": lambda e: e.lens,
    "attention distance": lambda e: e.attention_distance(),
    "outliers": lambda e: e.outliers()[0],
}


@pytest.mark.parametrize("method", ALL)
def test_the_maps_of_a_photo_do_not_depend_on_the_photo_before(tiny, method):
    alone = ALL[method](tiny.explain(CAT))
    before = tiny.explain(COFFEE)
    ALL[method](before)
    assert torch.equal(ALL[method](tiny.explain(CAT)), alone)
    assert not torch.equal(ALL[method](before), alone)


def test_explaining_leaves_no_gradient_in_the_model(tiny):
    tiny.explain(CAT).relevance()
    assert all(parameter.grad is None for parameter in tiny.model.parameters())


def test_a_frozen_model_is_explained_as_any_other(tiny, tiny_config):
    expected = tiny.explain(CAT).relevance("steak")
    tiny.model.requires_grad_(False)
    try:
        assert torch.equal(tiny.explain(CAT).relevance("steak"), expected)
    finally:
        tiny.model.requires_grad_(True)


def test_classes_in_one_pass_have_the_gradients_of_passes_of_their_own(tiny):
    """Bit for bit, and again when those that are kept were dropped."""
    together = tiny.explain(CAT)
    for index in (0, 1, 2, 0):
        alone = tiny.explain(CAT).gradients(index)
        found = together.gradients(index)
        assert torch.equal(found.attention, alone.attention) and torch.equal(found.tokens, alone.tokens)
        together.backward.found.clear()


def test_what_is_held_for_gradients_is_bounded_and_goes_with_the_explanation(tiny, monkeypatch):
    explanations = [tiny.explain(CAT) for _ in range(4)]
    graphs = [weakref.ref(each.backward.recording.logits.grad_fn) for each in explanations[2:]]
    assert [each.backward.recording is None for each in explanations] == [True, True, False, False]
    expected = explanations[3].relevance("steak")
    assert torch.equal(explanations[0].relevance("steak"), expected)  # recorded again, which lets go of another
    assert sum(each.backward.recording is not None for each in explanations) == 2
    explanations.clear()
    assert [graph() for graph in graphs] == [None, None]
    monkeypatch.setattr(type(tiny.explain(CAT).backward), "GRAPH_BYTES", 0)
    large = tiny.explain(CAT)
    assert large.backward.recording is None and torch.equal(large.relevance("steak"), expected)


def test_the_gradients_are_those_of_the_logit(tiny):
    """Nudge one number of the last layer's class token, see what the logit does, and compare."""
    explanation = tiny.explain(CAT)
    gradient = explanation.backward(1).tokens[-1]
    tokens = explanation.tokens[-1].clone()

    def logit(z):
        with torch.no_grad():
            return tiny.model.double().classify(z[None])[0, 1].item()

    try:
        nudged = tokens.double()
        nudged[0, 5] += 1e-4
        change = (logit(nudged) - logit(tokens.double())) / 1e-4
    finally:
        tiny.model.float()
    assert gradient[0, 5].item() == pytest.approx(change, rel=1e-2, abs=1e-4)
    assert gradient[1:].abs().max() == 0  # of the last layer the head reads the class token alone


def test_what_is_not_spent_on_patches_is_reported(tiny):
    explanation = tiny.explain(CAT)
    elsewhere = explanation.class_attention_elsewhere()
    assert list(elsewhere) == ["class", "register 1", "register 2"]
    total = explanation.class_attention().flatten(1).sum(-1) + sum(elsewhere.values())
    torch.testing.assert_close(total, torch.ones(3), rtol=0, atol=1e-5)


def test_the_logit_lens_ends_in_the_prediction(tiny):
    explanation = tiny.explain(CAT)
    assert len(explanation.decided()) == 3
    last = [(label, pytest.approx(probability, abs=1e-5)) for label, probability in tiny.predict(CAT)]
    assert explanation.decided()[-1] == last
    torch.testing.assert_close(explanation.lens[-1], explanation.probabilities, rtol=0, atol=1e-5)


def test_the_logit_lens_is_the_norm_and_the_head_on_each_layers_class_token(tiny):
    explanation, model = tiny.explain(CAT), tiny.model
    with torch.no_grad():
        for layer, tokens in enumerate(explanation.tokens):
            expected = model.head(model.norm(tokens[0])).softmax(-1)
            torch.testing.assert_close(explanation.lens[layer], expected, rtol=0, atol=1e-5)
    assert not torch.allclose(explanation.lens[0], explanation.lens[-1], atol=1e-3)


POOLS = {
    "class": ({}, {0: 1.0}),
    "mean": ({"pool": "mean", "registers": 1}, dict.fromkeys(range(2, 18), 1 / 16)),
    "mean of norm": ({"pool": "mean of norm", "class_token": False}, dict.fromkeys(range(16), 1 / 16)),
    "class + mean": ({"pool": "class + mean"}, {0: 0.5, **dict.fromkeys(range(1, 17), 1 / 32)}),
    "distilled": ({"distillation": True, "distillation_head": True}, {0: 0.5, 1: 0.5}),
}


@pytest.mark.parametrize("pool", POOLS)
def test_maps_start_from_the_tokens_that_the_head_reads(tiny_config, pool):
    settings, reads = POOLS[pool]
    config = vit.ViTConfig(**{**tiny_config.to_dict(), **settings})
    explanation = vit.Classifier(randomise(vit.ViT(config)), ["a", "b", "c"], vit.Preprocessing((32, 32))).explain(CAT)
    assert {token: weight for token, weight in enumerate(explanation.reads.tolist()) if weight} == pytest.approx(reads)
    # The logit's gradient by the last layer's tokens is zero at exactly the others.
    gradient = explanation.backward(0).tokens[-1].abs().sum(-1)
    assert set(gradient.nonzero().flatten().tolist()) == set(reads)
    assert max(explanation.gradient_attention(index)[-1].max() for index in range(3)) > 0


def test_relevance_can_be_asked_for_in_inference_mode_and_after(tiny):
    expected = tiny.explain(CAT).relevance(0)
    with torch.inference_mode():
        explanation = tiny.explain(CAT)
        assert torch.equal(tiny.explain(CAT).relevance(0), expected)
    assert torch.equal(explanation.relevance(0), expected)


def test_grad_cam_of_a_single_layer_says_why_not(tiny_config):
    config = vit.ViTConfig(**{**tiny_config.to_dict(), "layers": 1})
    single = vit.Classifier(randomise(vit.ViT(config)), ["a", "b", "c"], vit.Preprocessing((32, 32)))
    with pytest.raises(ValueError, match="reads the tokens between two blocks, and this checkpoint has a single one"):
        single.explain(CAT).grad_cam()


def test_a_class_is_named_by_label_or_index_and_the_likeliest_by_default(tiny):
    explanation = tiny.explain(CAT)
    best = tiny.predict(CAT)[0][0]
    assert torch.equal(explanation.relevance(), explanation.relevance(best))
    for name in (1, "1", torch.tensor(1).item(), np.int64(1)):
        assert torch.equal(explanation.relevance(name), explanation.relevance("steak"))
    for wrong in ("soup", 3, -1):
        with pytest.raises(ValueError, match=r"There is no class .*: use one of the labels, or a number up to 2"):
            explanation.relevance(wrong)


LACKING = {
    "class token": ({"class_token": False, "pool": "mean"}, ["a", "b", "c"]),
    "classes": ({"classes": 0}, []),
    "two layers": ({"layers": 1}, ["a", "b", "c"]),
}


@pytest.mark.parametrize("method", METHODS.values(), ids=METHODS)
@pytest.mark.parametrize("need", NEEDS)
def test_a_method_works_or_says_what_it_needs(tiny_config, need, method):
    settings, labels = LACKING[need]
    config = vit.ViTConfig(**{**tiny_config.to_dict(), **settings})
    explanation = vit.Classifier(randomise(vit.ViT(config)), labels, vit.Preprocessing((32, 32))).explain(CAT)
    if need in method.needs:
        with pytest.raises(ValueError, match=f"^{method.title} {NEEDS[need]}$"):
            method.map(explanation)
    else:
        found = method.map(explanation)
        assert found.shape in ((4, 4), (config.layers, 4, 4)) and found.abs().max() > 0


def test_without_a_class_token_what_still_makes_sense_works(tiny_config):
    config = vit.ViTConfig(**{**tiny_config.to_dict(), "class_token": False, "pool": "mean"})
    explanation = vit.Classifier(randomise(vit.ViT(config)), ["a", "b", "c"], vit.Preprocessing((32, 32))).explain(CAT)
    for found in (
        explanation.rollout()[-1],
        explanation.relevance(),
        explanation.grad_cam(),
        explanation.looks_at(3)[0],
    ):
        assert found.shape == (4, 4) and found.abs().max() > 0
    torch.testing.assert_close(explanation.rollout()[-1].sum(), torch.tensor(1.0))
    for method in ("class_attention", "class_attention_elsewhere"):
        with pytest.raises(
            ValueError, match=f"{method} asks the class token, and this checkpoint has none: use rollout"
        ):
            getattr(explanation, method)()


def test_without_a_head_what_still_makes_sense_works(tiny_config):
    config = vit.ViTConfig(**{**tiny_config.to_dict(), "classes": 0})
    explanation = vit.Classifier(randomise(vit.ViT(config)), [], vit.Preprocessing((32, 32))).explain(CAT)
    assert explanation.class_attention().shape == explanation.rollout().shape == (2, 4, 4)
    for method in ("relevance", "gradient_attention", "grad_cam", "decided"):
        with pytest.raises(ValueError, match="needs a classifier, and this checkpoint has none"):
            getattr(explanation, method)()
