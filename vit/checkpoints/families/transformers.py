"""Hugging Face's transformers: ViT, DeiT, DINO, DINOv2, DINOv2 with registers."""

from __future__ import annotations

from typing import Any

from ...config import ViTConfig
from ...photos.preprocessing import Preprocessing
from ..defaults import HALF, IMAGENET_MEAN, IMAGENET_STD, all_labels
from ..family import END, Description, Family, Files, Json, State
from ..shapes import from_shapes


def describe(state: State, files: Files) -> Description:
    config = files.config
    known: Json = {}
    names = {
        "patch_size": "patch_size",
        "num_channels": "channels",
        "num_hidden_layers": "layers",
        "hidden_size": "width",
        "intermediate_size": "mlp_width",
        "num_attention_heads": "heads",
        "qkv_bias": "qkv_bias",
        "num_register_tokens": "registers",
    }
    known.update({ours: config[theirs] for theirs, ours in names.items() if theirs in config})
    if "mlp_ratio" in config and "hidden_size" in config:
        known["mlp_width"] = int(config["hidden_size"] * config["mlp_ratio"])
    if isinstance(side := config.get("patch_size"), (list, tuple)) and len(set(side)) == 1:
        known["patch_size"] = side[0]
    if "image_size" in config:
        known["image_size"] = config["image_size"]
    kind = config.get("model_type", "dinov2" if "blocks.0.attention_scale.scale" in state else "vit")
    dinov2 = kind.startswith("dinov2")
    known["norm_eps"] = config.get("layer_norm_eps", 1e-6 if dinov2 else 1e-12)
    # Of these only DINOv2 with registers was trained with an antialiased position embedding.
    registers = kind == "dinov2_with_registers" or "register_tokens" in state
    known["position_resampling"] = "antialias" if registers else "bicubic"
    if str((config.get("architectures") or [""])[0]).endswith("ForImageClassification") and "id2label" in config:
        known["classes"] = len(config["id2label"])

    architecture = from_shapes(state, **known)
    labels = {int(index): str(label) for index, label in config.get("id2label", {}).items()}
    preprocessing = _preprocessing(files.processor, kind, architecture)
    return Description(architecture, all_labels(labels, architecture.classes), preprocessing)


def _preprocessing(processor: Json, kind: str, architecture: ViTConfig) -> Preprocessing:
    """A preprocessor_config.json, old or new, with the defaults of its class for what it leaves out."""
    name = str(processor.get("image_processor_type") or processor.get("feature_extractor_type") or "")
    if not name:
        name = {"deit": "DeiT", "dinov2": "Bit", "dinov2_with_registers": "Bit"}.get(kind, "ViT")
    if not name.startswith(("ViT", "DeiT", "Bit", "CLIP")):
        raise ValueError(f"preprocessor_config.json is for a {name}, which is not known here.")
    bit, deit = name.startswith(("Bit", "CLIP")), name.startswith("DeiT")
    defaults: Json = dict(
        size=256 if deit or (bit and not processor) else 224, do_center_crop=bit or deit, crop_size=224
    )
    if not processor and not (bit or deit):
        defaults["size"] = list(architecture.native_size)
    defaults["resample"] = 3 if bit or deit else 2
    defaults["image_mean"], defaults["image_std"] = (IMAGENET_MEAN, IMAGENET_STD) if bit else (HALF, HALF)
    said = {**defaults, **{key: value for key, value in processor.items() if value is not None}}

    resize = _size(said["size"], square=not bit)
    crop = _size(said["crop_size"], square=True) if said["do_center_crop"] else None
    mean, std = tuple(said["image_mean"]), tuple(said["image_std"])
    if not said.get("do_normalize", True):
        mean, std = (0.0,) * 3, (1.0,) * 3
    if not said.get("do_resize", True):
        resize = crop or architecture.native_size
    methods = {0: "nearest", 1: "lanczos", 2: "bilinear", 3: "bicubic"}
    if said["resample"] not in methods:
        raise ValueError(f"Resampling method {said['resample']} of preprocessor_config.json is not known here.")
    assert not isinstance(crop, int)
    return Preprocessing(resize, crop, methods[said["resample"]], mean, std, "transformers")


def _size(size: Any, square: bool) -> int | tuple[int, int]:
    if isinstance(size, dict):
        if size.get("shortest_edge"):
            return int(size["shortest_edge"])
        if "height" not in size or "width" not in size:
            raise ValueError(f"the size {size} in preprocessor_config.json is of a kind that is not known here.")
        return int(size["height"]), int(size["width"])
    if isinstance(size, (list, tuple)):
        return int(size[0]), int(size[1])
    return (int(size), int(size)) if square else int(size)


TRANSFORMERS = Family(
    patch_projection=r"(\w+\.)?embeddings\.patch_embeddings\.projection\.weight",
    renames={
        r"(?:\w+\.)?embeddings\.cls_token": "class_token",
        r"(?:\w+\.)?embeddings\.distillation_token": "distillation_token",
        r"(?:\w+\.)?embeddings\.register_tokens": "register_tokens",
        r"(?:\w+\.)?embeddings\.position_embeddings": "position_embedding",
        rf"(?:\w+\.)?embeddings\.patch_embeddings\.projection\.{END}": r"patch_embedding.projection.\1",
        rf"(?:\w+\.)?encoder\.layer\.(\d+)\.(?:layernorm_before|norm1)\.{END}": r"blocks.\1.attention_norm.\2",
        rf"(?:\w+\.)?encoder\.layer\.(\d+)\.attention\.attention\.(query|key|value)\.{END}": (
            r"blocks.\1.attention.\2.\3"
        ),
        rf"(?:\w+\.)?encoder\.layer\.(\d+)\.attention\.output\.dense\.{END}": r"blocks.\1.attention.out.\2",
        r"(?:\w+\.)?encoder\.layer\.(\d+)\.layer_scale1\.lambda1": r"blocks.\1.attention_scale.scale",
        rf"(?:\w+\.)?encoder\.layer\.(\d+)\.(?:layernorm_after|norm2)\.{END}": r"blocks.\1.mlp_norm.\2",
        rf"(?:\w+\.)?encoder\.layer\.(\d+)\.(?:intermediate\.dense|mlp\.fc1)\.{END}": r"blocks.\1.mlp.fc1.\2",
        rf"(?:\w+\.)?encoder\.layer\.(\d+)\.(?:output\.dense|mlp\.fc2)\.{END}": r"blocks.\1.mlp.fc2.\2",
        r"(?:\w+\.)?encoder\.layer\.(\d+)\.layer_scale2\.lambda1": r"blocks.\1.mlp_scale.scale",
        rf"(?:\w+\.)?layernorm\.{END}": r"norm.\1",
        rf"(?:cls_)?classifier\.{END}": r"head.\1",
        rf"distillation_classifier\.{END}": r"distillation_head.\1",
    },
    unused=(
        r"(?:\w+\.)?pooler\.dense\.(weight|bias)",  # made for pre-training; classifying reads the class token itself
        r"(?:\w+\.)?embeddings\.mask_token",  # stands for hidden patches in pre-training
    ),
    model_types=("vit", "deit", "dinov2", "dinov2_with_registers"),
    describe=describe,
)
