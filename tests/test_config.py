import json
import re

import pytest

from vit import ViTConfig


@pytest.mark.parametrize(
    "variant, sizes", [("Ti", (12, 192, 768, 3)), ("S", (12, 384, 1536, 6)), ("L", (24, 1024, 4096, 16))]
)
@pytest.mark.parametrize("patch", [8, 14, 16, 32])
def test_a_variant_has_the_papers_sizes_with_any_patch(variant, sizes, patch):
    config = ViTConfig.of(f"{variant}/{patch}", image_size=224)
    assert (config.layers, config.width, config.mlp_width, config.heads) == sizes
    assert config.grid == (224 // patch, 224 // patch)
    assert config.name == f"ViT-{variant}/{patch}"


def test_classes_and_image_size_are_free():
    config = ViTConfig.of("B/16", classes=3, image_size=(160, 320))
    assert (config.classes, config.image_size, config.grid) == (3, (160, 320), (10, 20))


def test_a_config_survives_json():
    config = ViTConfig.of("H/14", classes=7, image_size=(224, 280), layer_scale=1e-5, registers=4)
    assert ViTConfig(**json.loads(json.dumps(config.to_dict()))) == config


@pytest.mark.parametrize(
    "settings, said",
    [
        (dict(image_size=230), "make it 224 × 224"),
        (dict(image_size=(224, 250)), "make it 224 × 256"),
        (dict(image_size=4), "make it 16 × 16"),
        (
            dict(width=100, heads=12),
            "12 heads do not divide the width 100: choose a number of heads that does, such as 10",
        ),
        (dict(heads=0), "heads is 0, but must be at least 1"),
        (dict(classes=-1), "classes is -1, but must be at least 0"),
        (dict(image_size=(224,)), "image_size is a number of pixels, or (height, width)"),
        (dict(pool="avg"), "pool is 'avg', but must be one of class, mean, mean of norm, class + mean"),
        (dict(stochastic_depth=2), "stochastic_depth is 2, but must be from 0 up to 1"),
        (dict(class_token=False), "set pool='mean'"),
        (dict(distillation_head=True), "set distillation=True"),
        (dict(stem=(3, 4, 9), patch_size=8, image_size=224), "must be a multiple of that, not 8"),
    ],
)
def test_wrong_settings_say_what_to_change(settings, said):
    with pytest.raises(ValueError, match=re.escape(said)):
        ViTConfig(**settings)


@pytest.mark.parametrize("name", ["XL/16", "B", "B/15", "b/16", ""])
def test_an_unknown_variant_is_told_the_known_ones(name):
    with pytest.raises(ValueError, match=r"Ti, S, B, L, H.*8, 14, 16, 32"):
        ViTConfig.of(name)
