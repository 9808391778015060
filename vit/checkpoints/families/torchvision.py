"""torchvision's ViTs."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from ...config import ViTConfig
from ...photos.preprocessing import Preprocessing
from ..defaults import IMAGENET_MEAN, IMAGENET_STD, all_labels, default_preprocessing
from ..family import END, Description, Family, Files, State
from ..shapes import from_shapes

if TYPE_CHECKING:
    from torchvision.models import WeightsEnum


def describe(state: State, files: Files) -> Description:
    architecture = from_shapes(state, position_resampling="align corners")
    weights = _weights(architecture, files.name)
    if weights is None:
        labels, preprocessing = {}, default_preprocessing(architecture, IMAGENET_MEAN, IMAGENET_STD)
    else:
        how = weights.transforms()
        labels = dict(enumerate(weights.meta["categories"]))
        size, crop = how.resize_size[0], how.crop_size[0]
        preprocessing = Preprocessing(size, (crop, crop), how.interpolation.value, tuple(how.mean), tuple(how.std))
    if len(labels) != architecture.classes:
        labels = {}
    return Description(architecture, all_labels(labels, architecture.classes), preprocessing)


def _weights(architecture: ViTConfig, file_name: str) -> WeightsEnum | None:
    """torchvision's own entry for the file: of that name, else the first for this shape."""
    from torchvision.models import get_model_weights  # slow to import, and other families do without

    entries = []
    for name in ("vit_b_16", "vit_b_32", "vit_l_16", "vit_l_32", "vit_h_14"):
        entries += list(get_model_weights(name))
    named = [entry for entry in entries if entry.url.endswith("/" + file_name)]
    shape = f"vit_{architecture.name.removeprefix('ViT-').replace('/', '_').lower()}"
    like = [
        entry
        for entry in entries
        if re.search(rf"/{shape}[-_]", entry.url) and entry.meta["min_size"] == architecture.image_size
    ]
    return next(iter(named + like), None)


TORCHVISION = Family(
    patch_projection=r"conv_proj\.weight",
    renames={
        r"class_token": "class_token",
        r"encoder\.pos_embedding": "position_embedding",
        rf"conv_proj\.{END}": r"patch_embedding.projection.\1",
        rf"encoder\.layers\.encoder_layer_(\d+)\.ln_1\.{END}": r"blocks.\1.attention_norm.\2",
        rf"encoder\.layers\.encoder_layer_(\d+)\.self_attention\.in_proj_{END}": r"blocks.\1.attention.qkv.\2",
        rf"encoder\.layers\.encoder_layer_(\d+)\.self_attention\.out_proj\.{END}": r"blocks.\1.attention.out.\2",
        rf"encoder\.layers\.encoder_layer_(\d+)\.ln_2\.{END}": r"blocks.\1.mlp_norm.\2",
        # linear_1 and linear_2 are the names in files from before torchvision 0.13.
        rf"encoder\.layers\.encoder_layer_(\d+)\.mlp\.(?:0|linear_1)\.{END}": r"blocks.\1.mlp.fc1.\2",
        rf"encoder\.layers\.encoder_layer_(\d+)\.mlp\.(?:3|linear_2)\.{END}": r"blocks.\1.mlp.fc2.\2",
        rf"encoder\.ln\.{END}": r"norm.\1",
        rf"heads\.(?:head|0)\.{END}": r"head.\1",
    },
    describe=describe,
)
