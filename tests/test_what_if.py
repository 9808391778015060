"""What if: each change against plain arithmetic on the image or the weights."""

import copy

import pytest
import torch
from conftest import randomise
from PIL import Image

import vit
from vit.explain.explanation import UnsupportedError
from vit.explain.what_if import Changes, changed_image, fewest, order, run

P = 8


@pytest.fixture(scope="module")
def model(tiny_config):
    return randomise(vit.ViT(tiny_config))


@pytest.fixture
def image():
    return torch.randn(3, 32, 32, generator=torch.Generator().manual_seed(3))


def place(patch):
    row, column = divmod(patch, 4)
    return (slice(None), slice(row * P, row * P + P), slice(column * P, column * P + P))


def test_nothing_changed_is_the_same_pass(model, image):
    found, plain = run(model, image, Changes()), model.record(image[None])
    assert torch.allclose(found.logits, plain.logits, atol=1e-5)
    for one, other in zip(found.attention + found.tokens, plain.attention + plain.tokens):
        assert torch.allclose(one, other, atol=1e-5)


def test_grey_and_swapped_patches(image):
    found = changed_image(image, Changes(grey=(5,), swapped=((0, 14),)), P)
    expected = image.clone()
    expected[place(5)] = 0
    expected[place(0)], expected[place(14)] = image[place(14)], image[place(0)]
    assert torch.equal(found, expected)


def test_a_blurred_patch_is_a_mean_of_its_neighbourhood(image):
    flat = torch.ones_like(image)
    assert torch.allclose(changed_image(flat, Changes(blurred=(5,)), P), flat, atol=1e-5)
    found = changed_image(image, Changes(blurred=(5,)), P)
    assert found[place(5)].std() < 0.2 * image[place(5)].std()
    found[place(5)] = image[place(5)]
    assert torch.equal(found, image)


def test_shuffled_patches_are_all_there_in_other_places(image):
    found, turned = changed_image(image, Changes(shuffled=4), P), order(16, Changes(shuffled=4)).tolist()
    assert sorted(turned) == list(range(16)) and turned != list(range(16))
    for at, patch in enumerate(turned):
        assert torch.equal(found[place(at)], image[place(patch)])


def test_a_removed_patch_leaves_no_token(model, image):
    found = run(model, image, Changes(removed=(3, 7)))
    z = model.embed(image[None])
    z = z[:, [token for token in range(17) if token not in (4, 8)]]
    for block in model.blocks:
        z = block(z)
    assert torch.allclose(found.logits, model.classify(z), atol=1e-5)
    assert found.attention[0].shape == (1, 2, 15, 15)


def test_without_positions_a_shuffle_changes_nothing(model, image):
    """A set has no order: only the positions tell it."""
    dropped = run(model, image, Changes(positions="dropped"))
    shuffled = run(model, image, Changes(positions="dropped", shuffled=1))
    assert torch.allclose(dropped.logits, shuffled.logits, atol=1e-4)
    assert not torch.allclose(run(model, image, Changes(shuffled=1)).logits, model(image[None]), atol=1e-2)
    without = copy.deepcopy(model)
    without.position_embedding.data[:, 1:] = 0
    assert torch.allclose(dropped.logits, without(image[None]), atol=1e-4)
    turned = run(model, image, Changes(positions="shuffled"))
    assert not torch.allclose(turned.logits, model(image[None]), atol=1e-2)


def test_a_head_that_is_off_says_nothing(model, image):
    found = run(model, image, Changes(heads_off=((1, 0),)))
    other = copy.deepcopy(model)
    with torch.no_grad():  # its values are 0, and what it sums too
        qkv = other.blocks[1].attention.qkv
        qkv.weight[128:160], qkv.bias[128:160] = 0, 0
    assert torch.allclose(found.logits, other(image[None]), atol=1e-5)
    assert not torch.allclose(found.logits, model(image[None]), atol=1e-3)
    assert torch.equal(model(image[None]), model(image[None]))


def test_a_layer_that_is_off_is_left_out(model, image):
    found = run(model, image, Changes(layers_off=(0,)))
    z = model.blocks[1](model.embed(image[None]))
    assert torch.allclose(found.logits, model.classify(z), atol=1e-5)
    assert found.layers == (1,) and torch.equal(found.tokens[0], model.embed(image[None]))


@pytest.mark.parametrize("keep", [False, True])
def test_the_greedy_answer_is_the_first_number_that_does_it(model, image, keep):
    index, map = int(model(image[None]).argmax()), torch.rand(4, 4, generator=torch.Generator().manual_seed(1))
    ranked = sorted(range(16), key=lambda patch: -map.flatten()[patch])
    expected = None
    for count in range(1, 17):
        tried = image.clone()
        for patch in ranked[count:] if keep else ranked[:count]:
            tried[place(patch)] = 0
        if (int(model(tried[None]).argmax()) == index) is keep:
            expected = tuple(ranked[:count])
            break
    assert fewest(model, image, map, index, keep, batch=3) == expected and (expected or not keep)


@pytest.mark.parametrize(
    "wrong",
    [
        Changes(grey=(16,)),
        Changes(swapped=((0, 99),)),
        Changes(layers_off=(2,)),
        Changes(heads_off=((0, 2),)),
        Changes(removed=tuple(range(16))),
    ],
)
def test_what_is_not_there_gets_a_sentence(model, image, wrong):
    with pytest.raises(ValueError, match=r"There is no (patch|layer|head)|All patches are taken out"):
        run(model, image, wrong)


def test_a_classifier_explains_a_changed_pass(model):
    photo = Image.new("RGB", (32, 32), "#aa5500")
    classifier = vit.Classifier(model, ["pizza", "steak", "sushi"], vit.Preprocessing((32, 32)))
    plain, same = classifier.explain(photo), classifier.what_if(photo, Changes())
    for name in ("probabilities", "attention", "tokens", "lens"):
        assert torch.allclose(getattr(plain, name), getattr(same, name), atol=1e-5), name
    changes = Changes(removed=(3,), layers_off=(0,))
    found, recording = classifier.what_if(photo, changes), run(model, classifier.preprocessing(photo), changes)
    assert torch.allclose(found.probabilities, recording.logits[0].softmax(dim=0), atol=1e-6)
    assert torch.equal(found.attention[0, 1], torch.eye(17)) and not found.attention[1, :, :, 4].any()
    left = [token for token in range(17) if token != 4]
    assert torch.allclose(found.attention[1][:, left][:, :, left], recording.attention[0][0], atol=1e-6)
    assert not found.tokens[:, 4].any() and torch.equal(found.tokens[1, left], recording.tokens[1][0])
    with pytest.raises(UnsupportedError, match="no maps for a class"):
        found.relevance()
