"""timm's ViTs, and what names parameters as they do: the papers' own files of DeiT, DINO, DINOv2 and MAE."""

from __future__ import annotations

import math
import re
from collections.abc import Collection

from ...config import ViTConfig
from ...photos.preprocessing import Preprocessing
from ..defaults import HALF, IMAGENET_MEAN, IMAGENET_STD, all_labels, default_preprocessing
from ..family import END, Description, Family, Files, Json, State
from ..refusals import refuse
from ..shapes import from_shapes

# What timm's models are made with: read off the shapes, or of no effect on what is computed.
ARGUMENTS = {
    *("attn_drop_rate", "class_token", "depth", "drop_path_rate", "drop_rate", "dynamic_img_pad", "dynamic_img_size"),
    *("embed_dim", "fc_norm", "fix_init", "global_pool", "img_size", "in_chans", "init_values", "mlp_ratio"),
    *("no_embed_class", "num_classes", "num_heads", "patch_drop_rate", "patch_size", "pos_drop_rate", "proj_drop_rate"),
    *("qkv_bias", "reg_tokens", "strict_img_size", "weight_init"),
}
HEADS = {"vit_base_patch16_gap_224": 16}  # not 64 wide


def describe(state: State, files: Files) -> Description:
    config = files.config
    trained = config.get("pretrained_cfg") or config  # old configs have no inner one
    arguments = config.get("model_args") or {}
    if unknown := sorted(set(arguments) - ARGUMENTS):
        raise ValueError(f"its model_args set {', '.join(unknown)}, which is not known here.")
    known: Json = dict(norm_eps=1e-6, position_resampling="antialias")
    if "depth" in arguments:
        known["layers"] = arguments["depth"]
    if heads := arguments.get("num_heads") or HEADS.get(str(config.get("architecture"))):
        known["heads"] = heads
    if "num_classes" in config:
        known["classes"] = config["num_classes"]
    if "distillation_token" in state:
        known["distillation_head"] = True  # timm averages both, with a classifier and without
    known["pool"] = _pool(state, files.parameters, config.get("global_pool"))
    sizes = [arguments.get("img_size"), (trained.get("input_size") or [])[1:]]
    architecture = from_shapes(
        state, [[size] * 2 if isinstance(size, int) else size for size in sizes if size], **known
    )

    synsets = config.get("label_names") or config.get("labels") or trained.get("label_names") or {}
    descriptions = config.get("label_descriptions") or trained.get("label_descriptions") or {}
    pairs = synsets.items() if isinstance(synsets, dict) else enumerate(synsets)
    labels = {int(index): str(descriptions.get(synset, synset)) for index, synset in pairs}

    if config:
        preprocessing = _preprocessing(trained, architecture)
    else:
        # Trained on ImageNet's mean and deviation: DeiT, DINO, DINOv2, MAE. On 0.5: the ViTs from Google.
        others = re.search(r"deit|dino|mae|moco", files.name) or architecture.distillation or architecture.layer_scale
        mean, std = (IMAGENET_MEAN, IMAGENET_STD) if others else (HALF, HALF)
        preprocessing = default_preprocessing(architecture, mean, std)
    return Description(architecture, all_labels(labels, architecture.classes), preprocessing)


def _pool(state: State, names: Collection[str], said: str | None) -> str:
    if said not in (None, "token", "avg"):
        refuse(f"a ViT whose head reads {said!r}, neither the class token nor the mean of the patches")
    if said == "token" or (said is None and "class_token" in state and "fc_norm.weight" not in names):
        return "class"
    return "mean" if "fc_norm.weight" in names else "mean of norm"


def _preprocessing(trained: Json, architecture: ViTConfig) -> Preprocessing:
    crop = tuple(trained.get("input_size") or (3, *architecture.native_size))[1:]
    share = trained.get("crop_pct") or 0.875
    mode = trained.get("crop_mode") or "center"
    scaled = tuple(math.floor(side / share) for side in crop)
    if mode not in ("center", "squash") or (mode == "center" and scaled[0] != scaled[1]):
        raise ValueError(f"Crop mode {mode!r} at {crop[0]} × {crop[1]} of the checkpoint's config is not known here.")
    return Preprocessing(
        scaled[0] if mode == "center" else scaled,
        crop,
        trained.get("interpolation") or "bicubic",
        tuple(trained.get("mean") or IMAGENET_MEAN),
        tuple(trained.get("std") or IMAGENET_STD),
    )


TIMM = Family(
    patch_projection=r"patch_embed\.proj\.weight",
    renames={
        r"cls_token": "class_token",
        r"dist_token": "distillation_token",
        r"(?:reg_token|register_tokens)": "register_tokens",  # timm's name, and that of DINOv2's own files
        r"pos_embed": "position_embedding",
        rf"patch_embed\.proj\.{END}": r"patch_embedding.projection.\1",
        rf"patch_embed\.backbone\.(?:stem\.)?(conv|norm)\.{END}": r"patch_embedding.stem.\1.\2",
        rf"patch_embed\.backbone\.stages\.(\d+)\.blocks\.(\d+)\.((?:conv|norm)\d)\.{END}": (
            r"patch_embedding.stem.stages.\1_\2.\3.\4"
        ),
        r"patch_embed\.backbone\.stages\.(\d+)\.blocks\.(\d+)\.downsample\.conv\.weight": (
            r"patch_embedding.stem.stages.\1_\2.shortcut.0.weight"
        ),
        rf"patch_embed\.backbone\.stages\.(\d+)\.blocks\.(\d+)\.downsample\.norm\.{END}": (
            r"patch_embedding.stem.stages.\1_\2.shortcut.1.\3"
        ),
        rf"blocks\.(\d+)\.norm1\.{END}": r"blocks.\1.attention_norm.\2",
        rf"blocks\.(\d+)\.attn\.qkv\.{END}": r"blocks.\1.attention.qkv.\2",
        rf"blocks\.(\d+)\.attn\.proj\.{END}": r"blocks.\1.attention.out.\2",
        r"blocks\.(\d+)\.ls1\.gamma": r"blocks.\1.attention_scale.scale",
        rf"blocks\.(\d+)\.norm2\.{END}": r"blocks.\1.mlp_norm.\2",
        rf"blocks\.(\d+)\.mlp\.(fc1|fc2)\.{END}": r"blocks.\1.mlp.\2.\3",
        r"blocks\.(\d+)\.ls2\.gamma": r"blocks.\1.mlp_scale.scale",
        rf"(?:fc_)?norm\.{END}": r"norm.\1",
        rf"head\.{END}": r"head.\1",
        rf"head_dist\.{END}": r"distillation_head.\1",
    },
    unused=(r"mask_token",),
    architectures=r"(vit|deit|deit3|flexivit)_.*",
    describe=describe,
)
