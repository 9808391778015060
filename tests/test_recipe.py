import math

import pytest
import torch
from PIL import Image

import vit
from vit.finetune.recipe import Augmentation, Recipe, parameter_groups, schedule, seed_of


def test_the_learning_rate_rises_and_falls_as_a_cosine():
    recipe = Recipe(warm_up=0.1)
    rates = [schedule(recipe, 100, step) for step in range(100)]
    assert rates[:10] == [(step + 1) / 10 for step in range(10)]
    assert rates[10] == 1 and rates[55] == pytest.approx(0.5)
    assert rates[99] == pytest.approx((1 + math.cos(math.pi * 89 / 90)) / 2)
    assert rates[10:] == sorted(rates[10:], reverse=True)


def test_lower_layers_learn_slower_and_only_matrices_decay(tiny_config):
    model = vit.ViT(tiny_config)  # two layers
    recipe = Recipe(learning_rate=1.0, layer_decay=0.5, weight_decay=0.1)
    groups = parameter_groups(model, recipe, layers=2)
    of = {id(parameter): group for group in groups for parameter in group["params"]}
    assert len(of) == sum(len(group["params"]) for group in groups) == len(list(model.parameters()))

    def setting(name):
        group = of[id(model.get_parameter(name))]
        return group["lr"], group["weight_decay"]

    assert setting("head.weight") == (1, 0.1)
    assert setting("head.bias") == setting("norm.weight") == (1, 0)
    assert setting("blocks.1.mlp.fc1.weight") == (0.5, 0.1)
    assert setting("blocks.0.attention.qkv.weight") == (0.25, 0.1)
    assert setting("patch_embedding.projection.weight") == (0.125, 0.1)
    assert setting("position_embedding") == setting("class_token") == (0.125, 0)


@pytest.mark.parametrize(
    "options, sentence",
    [
        (dict(epochs=0), r"^epochs is 0, but must be at least 1\.$"),
        (dict(crop=1.5), r"^crop is 1\.5, but must be from 0\.01 to 1\.$"),
        (dict(learning_rate=-1e-3), r"^learning rate is -0\.001, but must be at least 0\.$"),
        (dict(learning_rate=math.nan), r"^learning rate is nan"),
    ],
)
def test_a_wrong_choice_gets_a_sentence(options, sentence):
    with pytest.raises(ValueError, match=sentence):
        Recipe(**options)


def test_small_images_come_first():
    recipe = Recipe(small_size=160, small_epochs=2)
    assert [recipe.image_size(epoch, (224, 224)) for epoch in range(3)] == [(160, 160), (160, 160), (224, 224)]


def test_the_last_epochs_are_plain():
    recipe = Recipe(epochs=3, plain_epochs=1, mixup=0.2, rand_augment=7)
    assert [(each.mixup, each.rand_augment) for each in map(recipe.in_epoch, range(3))] == [(0.2, 7), (0.2, 7), (0, 0)]


def test_an_augmented_photo_has_the_size_and_the_range_of_a_view(photos):
    preprocessing = vit.Preprocessing((64, 64), mean=(0.5, 0.4, 0.3), std=(0.2, 0.2, 0.2))
    image = Augmentation(Recipe(), preprocessing, (48, 64))(photos[0])
    assert image.shape == (3, 48, 64) and image.dtype == torch.float32
    for channel, mean in zip(image, preprocessing.mean):
        assert -mean / 0.2 - 1e-5 <= channel.min() and channel.max() <= (1 - mean) / 0.2 + 1e-5


def test_without_chance_an_augmented_photo_is_the_view_or_its_mirror():
    square = Image.effect_noise((64, 64), 80).convert("RGB")
    preprocessing = vit.Preprocessing((64, 64))
    plain = Augmentation(Recipe(crop=1.0, rand_augment=0), preprocessing, (64, 64))
    views = {True: 0, False: 0}
    for seed in range(20):
        torch.manual_seed(seed)
        image, view = plain(square), preprocessing(square)
        mirrored = bool((image - view.flip(-1)).abs().max() < 0.02)
        assert mirrored or (image - view).abs().max() < 0.02
        views[mirrored] += 1
    assert min(views.values()) > 3


def test_seeds_of_different_places_differ():
    places = {seed_of(seed, epoch, photo) for seed in range(5) for epoch in range(20) for photo in range(50)}
    assert len(places) == 5 * 20 * 50
    assert seed_of(1, 2) != seed_of(2, 1) != seed_of(2, 1, 0)
