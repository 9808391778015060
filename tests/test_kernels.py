"""oneDNN's products beside MKL's."""

import pytest
import torch
from conftest import SKIMAGE, randomise
from torch import nn

import vit
from vit import kernels

CAT = SKIMAGE / "chelsea.png"
onednn = pytest.mark.skipif(not torch.backends.mkldnn.is_available(), reason="this PyTorch has no oneDNN")


@onednn
@pytest.mark.parametrize("bias", [True, False])
def test_a_linear_layer_and_its_gradient_are_those_of_float64(bias):
    linear = nn.Linear(48, 40, bias=bias)
    z, gradient = torch.randn(2, 9, 48, requires_grad=True), torch.randn(2, 9, 40)
    with kernels.OneDNN():
        found = linear(z)
    found.backward(gradient)
    exact = z.detach().double().requires_grad_()
    expected = linear.double()(exact)
    expected.backward(gradient.double())
    torch.testing.assert_close(found.double(), expected, rtol=0, atol=1e-5)
    torch.testing.assert_close(z.grad.double(), exact.grad, rtol=0, atol=1e-5)


@onednn
@pytest.mark.parametrize("slow", [True, False])
def test_answers_and_maps_are_those_of_the_model_by_itself(tiny_config, monkeypatch, slow):
    monkeypatch.setattr(kernels, "mkl_is_slow", lambda: slow)
    model = randomise(vit.ViT(tiny_config))
    classifier = vit.Classifier(model, ["pizza", "steak", "sushi"], vit.Preprocessing(36, (32, 32)))
    explanation, images = classifier.explain(CAT), classifier.image(CAT)[None]
    recording = model.record(images)
    torch.testing.assert_close(classifier.logits(images), recording.logits, rtol=0, atol=1e-5)
    torch.testing.assert_close(explanation.attention, torch.cat(recording.attention), rtol=0, atol=1e-5)
    expected = torch.autograd.grad(recording.logits[0, 1], recording.attention)
    torch.testing.assert_close(explanation.gradients("steak").attention, torch.cat(expected), rtol=1e-4, atol=1e-5)
    assert ("_LinearBackward" in _graph(explanation)) == slow


def _graph(explanation):
    """The names of what a backward pass goes through."""
    nodes, todo = set(), [explanation.backward.recording.logits.grad_fn]
    while todo:
        if (node := todo.pop()) is not None and node not in nodes:
            nodes.add(node)
            todo += [before for before, _ in node.next_functions]
    return {node.name() for node in nodes}


@onednn
def test_other_kinds_of_numbers_are_left_alone():
    z = torch.randn(3, 8)
    for dtype in (torch.float64, torch.bfloat16):
        linear = nn.Linear(8, 4).to(dtype)
        expected = linear(z.to(dtype))
        with kernels.OneDNN():
            assert torch.equal(linear(z.to(dtype)), expected)
