"""A token followed through a layer, against plain arithmetic on the weights, and against the recorded pass."""

import math
from dataclasses import replace

import pytest
import torch
from conftest import randomise

import vit
from vit.explain.trace import embedded, trace
from vit.registers import add_register_neurons

CONFIGS = {
    "plain": {},
    "layer scale": {"layer_scale": 0.3},
    "no bias of q, k and v": {"qkv_bias": False},
    "no class token": {"class_token": False, "pool": "mean"},
}


def model_of(tiny_config, **options):
    return randomise(vit.ViT(replace(tiny_config, **options)))


@pytest.fixture
def image():
    return torch.randn(3, 32, 32, generator=torch.Generator().manual_seed(3))


def norm(x, weight, bias, eps):
    """LN by hand, for one token."""
    middle = sum(x) / len(x)
    spread = sum((value - middle) ** 2 for value in x) / len(x)
    return (x - middle) / math.sqrt(spread + eps) * weight + bias


@pytest.mark.parametrize("options", CONFIGS.values(), ids=CONFIGS)
def test_each_number_by_hand(tiny_config, image, options):
    model = model_of(tiny_config, **options)
    weights = {name.removeprefix("blocks.1."): value.detach().double() for name, value in model.state_dict().items()}
    z = model.record(image[None]).tokens[0][0].detach().double()  # that enter the second layer
    token, head, eps, D, Dh = 5, 1, tiny_config.norm_eps, 64, 32
    found = trace(model, image, layer=1, head=head, token=token)

    rows = [norm(x, weights["attention_norm.weight"], weights["attention_norm.bias"], eps) for x in z]
    qkv = [weights["attention.qkv.weight"] @ row + weights.get("attention.qkv.bias", 0) for row in rows]
    part = lambda t, which, h: qkv[t][which * D + h * Dh : which * D + (h + 1) * Dh]  # noqa: E731
    sums = []
    for h in range(2):
        products = [float(part(token, 0, h) @ part(t, 1, h)) for t in range(len(z))]
        exponentials = [math.exp(product / math.sqrt(Dh)) for product in products]
        shares = [one / sum(exponentials) for one in exponentials]
        sums.append(sum(share * part(t, 2, h) for t, share in enumerate(shares)))
        near(found.heads[h], shares)
        if h == head:
            near(found.products, products)
            near(found.scores, [product / math.sqrt(Dh) for product in products])
            near(found.attention, shares)
            near(found.terms, exponentials)
    scale = weights.get("attention_scale.scale", 1)
    msa = (weights["attention.out.weight"] @ torch.cat(sums) + weights["attention.out.bias"]) * scale
    between = z[token] + msa
    cosine = sum(z[token] * between) / math.sqrt(sum(z[token] ** 2) * sum(between**2))
    assert found.turned == pytest.approx(math.acos(cosine) / math.pi * 180, rel=1e-4)
    mlp_normed = norm(between, weights["mlp_norm.weight"], weights["mlp_norm.bias"], eps)
    entering = weights["mlp.fc1.weight"] @ mlp_normed + weights["mlp.fc1.bias"]
    neurons = torch.tensor([x * (1 + math.erf(x / math.sqrt(2))) / 2 for x in entering.tolist()], dtype=torch.double)
    scale = weights.get("mlp_scale.scale", torch.ones(D))
    mlp = (weights["mlp.fc2.weight"] @ neurons + weights["mlp.fc2.bias"]) * scale
    written = [(neurons[m] * weights["mlp.fc2.weight"][:, m] * scale).norm() for m in range(len(neurons))]
    for one, other in (
        (found.before, z[token]),
        (found.normed, rows[token]),
        (found.query, part(token, 0, head)),
        (found.keys, torch.stack([part(t, 1, head) for t in range(len(z))])),
        (found.values, torch.stack([part(t, 2, head) for t in range(len(z))])),
        (found.weighted, sums[head]),
        (found.msa, msa),
        (found.between, between),
        (found.mlp_normed, mlp_normed),
        (found.neurons, neurons),
        (found.written, written),
        (found.mlp, mlp),
        (found.after, between + mlp),
    ):
        near(one, other)


def near(one, other):
    torch.testing.assert_close(one.double(), torch.as_tensor(other, dtype=torch.double), rtol=1e-4, atol=1e-4)


@pytest.mark.parametrize("registers", [False, True])
def test_it_is_the_recorded_pass(tiny_config, image, registers):
    model = model_of(tiny_config)
    if registers:
        model = add_register_neurons(model, ((0, 3), (1, 7)))
    recording = model.record(image[None])
    for layer, head, token in ((0, 0, 0), (0, 1, 9), (1, 0, model.config.prefix_tokens + 2)):
        found = trace(model, image, layer, head, token)
        near(found.after, recording.tokens[layer][0, token])
        near(found.heads, recording.attention[layer][0, :, token])
        every = [trace(model, image, layer, head, other) for other in range(found.steps.numel())]
        near(found.steps, [float(one.msa.norm() / one.before.norm()) for one in every])
        near(found.activations, torch.stack([one.neurons for one in every]))


def test_a_patch_is_embedded(tiny_config, image):
    model = model_of(tiny_config)
    found = embedded(model, image, patch=6)  # the second row's third of four
    pixels = image[:, 8:16, 16:24]
    assert torch.equal(found.pixels, pixels)
    E = model.patch_embedding.projection
    near(found.embedding, [float((filter * pixels).sum() + bias) for filter, bias in zip(E.weight, E.bias)])
    near(found.embedding + found.position, model.embed(image[None])[0, 7])
    near(found.features[:, 1, 2], found.embedding)
    a, b = model.position_embedding[0, 7], model.position_embedding[0, 1 + 13]
    near(found.similarity[3, 1], float(a @ b / a.norm() / b.norm()))


@pytest.mark.parametrize("wrong", [(2, 0, 0), (0, 2, 0), (0, 0, 17), (-1, 0, 0)])
def test_what_is_not_there_gets_a_sentence(tiny_config, image, wrong):
    with pytest.raises(ValueError, match=r"There is no (layer|head|token) "):
        trace(model_of(tiny_config), image, *wrong)
    with pytest.raises(ValueError, match="There is no patch 16: this image has the patches 0 to 15"):
        embedded(model_of(tiny_config), image, 16)
