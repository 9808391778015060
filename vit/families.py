"""What a checkpoint says about itself: architecture, labels and preprocessing, in each family's own words.

The shapes of the parameters give most of the architecture; the checkpoint's config, where there is one, has the
last word.
"""

from __future__ import annotations

import math
import re
from collections.abc import Collection, Sequence
from dataclasses import dataclass, field
from functools import cache
from typing import Any

import torchvision

from .config import ViTConfig
from .images import Preprocessing
from .key_maps import KeyMap, State
from .refusals import SWIGLU, NotAPlainViT, refuse

IMAGENET_MEAN, IMAGENET_STD = (0.485, 0.456, 0.406), (0.229, 0.224, 0.225)
HALF = (0.5, 0.5, 0.5)
# What timm's models are made with: read off the shapes, or of no effect on what is computed.
TIMM_ARGUMENTS = {
    *("attn_drop_rate", "class_token", "depth", "drop_path_rate", "drop_rate", "dynamic_img_pad", "dynamic_img_size"),
    *("embed_dim", "fc_norm", "fix_init", "global_pool", "img_size", "in_chans", "init_values", "mlp_ratio"),
    *("no_embed_class", "num_classes", "num_heads", "patch_drop_rate", "patch_size", "pos_drop_rate", "proj_drop_rate"),
    *("qkv_bias", "reg_tokens", "strict_img_size", "weight_init"),
}
TIMM_HEADS = {"vit_base_patch16_gap_224": 16}  # not 64 wide
Json = dict[str, Any]


@dataclass(frozen=True)
class Files:
    """What lies beside the weights, empty where there is nothing, and the name of the weights' file.

    The name is the only hint at the preprocessing of a bare file.
    """

    name: str
    config: Json = field(default_factory=dict)  # config.json
    processor: Json = field(default_factory=dict)  # preprocessor_config.json


@dataclass(frozen=True)
class Checkpoint:
    """A checkpoint turned into our shape: all that a `Classifier` is made of but the weights."""

    config: ViTConfig
    labels: list[str]
    preprocessing: Preprocessing

    def __post_init__(self) -> None:
        if len(self.labels) != self.config.classes:
            raise ValueError(f"it has {len(self.labels)} labels for {self.config.classes} classes.")
        if self.config.channels != 3:
            raise ValueError(f"it takes images of {self.config.channels} channels, and photos have three.")
        if self.preprocessing.image_size is None:
            raise ValueError("its preprocessing neither crops nor squashes, so that patches would not divide a photo.")
        self.config.check_image(*self.preprocessing.image_size)


def describe(state: State, names: Collection[str], key_map: KeyMap, files: Files) -> Checkpoint:
    """The checkpoint whose parameters are `state` under our names, and were called `names` in the file."""
    if key_map.library == "vit":
        return _ours(state, files.config)
    if key_map.library == "transformers":
        return _transformers(state, files.config, files.processor)
    if key_map.library == "torchvision":
        return _torchvision(state, files.name)
    return _timm(state, names, files.config, files.name)


def from_shapes(state: State, sizes: Sequence[Sequence[int]] = (), **known: Any) -> ViTConfig:
    """The architecture that parameters of these shapes have; `known` fields are not asked of them.

    `sizes` are image sizes, (height, width), to believe if they fit the position embedding: a config may still have the
    size of the model that was fine-tuned.
    """
    projection = _shape(state, "patch_embedding.projection.weight", dimensions=4)
    stem = _stem(state)
    width = known.get("width", projection[0])
    head = _shape(state, "head.weight", dimensions=2) if "head.weight" in state else None
    mlp_width = known.get("mlp_width") or _shape(state, "blocks.0.mlp.fc1.weight", dimensions=2)[0]
    if (
        "blocks.0.mlp.fc2.weight" in state
        and mlp_width == 2 * _shape(state, "blocks.0.mlp.fc2.weight", dimensions=2)[1]
    ):
        refuse(SWIGLU)  # timm packs its gate and its values into one matrix of a plain name
    fields: Json = dict(
        patch_size=projection[2] * ViTConfig(stem=stem, patch_size=32, image_size=32).stem_stride,
        channels=projection[1] if stem is None else _shape(state, "patch_embedding.stem.conv.weight", dimensions=4)[1],
        classes=0 if head is None else head[0],
        layers=1 + max((int(name.split(".")[1]) for name in state if re.match(r"blocks\.\d+\.", name)), default=-1),
        width=width,
        mlp_width=mlp_width,
        layer_scale=1.0 if "blocks.0.attention_scale.scale" in state else None,
        registers=_shape(state, "register_tokens", dimensions=3)[1] if "register_tokens" in state else 0,
        class_token="class_token" in state,
        distillation="distillation_token" in state,
        distillation_head="distillation_head.weight" in state,
        pool="class + mean" if head is not None and head[1] == 2 * width else "class",
        qkv_bias="blocks.0.attention.qkv.bias" in state,
        stem=stem,
    )
    fields.update(known)
    if "heads" not in fields:
        fields["heads"] = _heads(width)
    if "image_size" not in fields:
        fields["image_size"] = _image_size(state, fields, sizes)
    return ViTConfig(**fields)


def _shape(state: State, name: str, dimensions: int) -> tuple[int, ...]:
    if name not in state:
        raise NotAPlainViT(f"It has no parameter that would be {name!r}.")
    shape = tuple(state[name].shape)
    if len(shape) != dimensions:
        raise NotAPlainViT(f"The parameter {name!r} has the shape {shape}, but must have {dimensions} dimensions.")
    return shape


def _heads(width: int) -> int:
    """Heads are 64 wide everywhere but in the giants; nothing in the shapes tells."""
    known = {1152: 16, 1280: 16, 1408: 16, 1664: 16}
    if width not in known and width % 64:
        raise NotAPlainViT(
            f"The number of heads of a model {width} wide cannot be told from its parameters: "
            "put a config.json beside the file."
        )
    return known.get(width, width // 64)


def _stem(state: State) -> tuple[int, ...] | None:
    if "patch_embedding.stem.conv.weight" not in state:
        return None
    blocks = {m[1] for name in state if (m := re.match(r"patch_embedding\.stem\.stages\.(\d+_\d+)\.", name))}
    stages = [int(block.split("_")[0]) for block in blocks]
    return tuple(stages.count(stage) for stage in sorted(set(stages)))


def _image_size(state: State, fields: Json, sizes: Sequence[Sequence[int]]) -> tuple[int, int]:
    """Of `sizes` the first whose patches fill the position embedding, else the square whose patches do."""
    length = _shape(state, "position_embedding", dimensions=3)[1]
    placed, patch = fields["class_token"] + fields["distillation"], fields["patch_size"]
    # The class token has a place before the patches; registers may have one too; or, as in DeiT III, neither has.
    counts = [length - before for before in (placed, placed + fields["registers"], 0)]
    for height, width in sizes:
        if (height // patch) * (width // patch) in counts:
            return height, width
    for count in counts:
        side = math.isqrt(max(0, count))
        if side and side * side == count:
            return side * patch, side * patch
    raise NotAPlainViT(f"A position embedding for {length} tokens belongs to no square image: give a config.json.")


def _ours(state: State, config: Json) -> Checkpoint:
    if not config:
        architecture = from_shapes(state)
        return Checkpoint(
            architecture, _labels({}, architecture.classes), _default_preprocessing(architecture, HALF, HALF)
        )
    return Checkpoint(
        ViTConfig(**config["architecture"]), list(config["labels"]), Preprocessing(**config["preprocessing"])
    )


def _transformers(state: State, config: Json, processor: Json) -> Checkpoint:
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
    return Checkpoint(architecture, _labels(labels, architecture.classes), _processor(processor, kind, architecture))


def _processor(processor: Json, kind: str, architecture: ViTConfig) -> Preprocessing:
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


def _timm(state: State, names: Collection[str], config: Json, file_name: str) -> Checkpoint:
    trained = config.get("pretrained_cfg") or config  # old configs have no inner one
    arguments = config.get("model_args") or {}
    if unknown := sorted(set(arguments) - TIMM_ARGUMENTS):
        raise ValueError(f"its model_args set {', '.join(unknown)}, which is not known here.")
    known: Json = dict(norm_eps=1e-6, position_resampling="antialias")
    if "depth" in arguments:
        known["layers"] = arguments["depth"]
    if heads := arguments.get("num_heads") or TIMM_HEADS.get(str(config.get("architecture"))):
        known["heads"] = heads
    if "num_classes" in config:
        known["classes"] = config["num_classes"]
    if "distillation_token" in state:
        known["distillation_head"] = True  # timm averages both, with a classifier and without
    known["pool"] = _timm_pool(state, names, config.get("global_pool"))
    sizes = [arguments.get("img_size"), (trained.get("input_size") or [])[1:]]
    architecture = from_shapes(
        state, [[size] * 2 if isinstance(size, int) else size for size in sizes if size], **known
    )

    synsets = config.get("label_names") or config.get("labels") or trained.get("label_names") or {}
    descriptions = config.get("label_descriptions") or trained.get("label_descriptions") or {}
    pairs = synsets.items() if isinstance(synsets, dict) else enumerate(synsets)
    labels = {int(index): str(descriptions.get(synset, synset)) for index, synset in pairs}

    if config:
        preprocessing = _timm_preprocessing(trained, architecture)
    else:
        # Trained on ImageNet's mean and deviation: DeiT, DINO, DINOv2, MAE. On 0.5: the ViTs from Google.
        others = re.search(r"deit|dino|mae|moco", file_name) or architecture.distillation or architecture.layer_scale
        mean, std = (IMAGENET_MEAN, IMAGENET_STD) if others else (HALF, HALF)
        preprocessing = _default_preprocessing(architecture, mean, std)
    return Checkpoint(architecture, _labels(labels, architecture.classes), preprocessing)


def _timm_pool(state: State, names: Collection[str], said: str | None) -> str:
    if said not in (None, "token", "avg"):
        refuse(f"a ViT whose head reads {said!r}, neither the class token nor the mean of the patches")
    if said == "token" or (said is None and "class_token" in state and "fc_norm.weight" not in names):
        return "class"
    return "mean" if "fc_norm.weight" in names else "mean of norm"


def _timm_preprocessing(trained: Json, architecture: ViTConfig) -> Preprocessing:
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


def _torchvision(state: State, file_name: str) -> Checkpoint:
    architecture = from_shapes(state, position_resampling="align corners")
    weights = _torchvision_weights(architecture, file_name)
    if weights is None:
        labels, preprocessing = {}, _default_preprocessing(architecture, IMAGENET_MEAN, IMAGENET_STD)
    else:
        how = weights.transforms()
        labels = dict(enumerate(weights.meta["categories"]))
        size, crop = how.resize_size[0], how.crop_size[0]
        preprocessing = Preprocessing(size, (crop, crop), how.interpolation.value, tuple(how.mean), tuple(how.std))
    if len(labels) != architecture.classes:
        labels = {}
    return Checkpoint(architecture, _labels(labels, architecture.classes), preprocessing)


def _torchvision_weights(architecture: ViTConfig, file_name: str) -> torchvision.models.WeightsEnum | None:
    """torchvision's own entry for the file: of that name, else the first for this shape."""
    entries = []
    for name in ("vit_b_16", "vit_b_32", "vit_l_16", "vit_l_32", "vit_h_14"):
        entries += list(torchvision.models.get_model_weights(name))
    named = [entry for entry in entries if entry.url.endswith("/" + file_name)]
    shape = f"vit_{architecture.name.removeprefix('ViT-').replace('/', '_').lower()}"
    like = [
        entry
        for entry in entries
        if re.search(rf"/{shape}[-_]", entry.url) and entry.meta["min_size"] == architecture.image_size
    ]
    return next(iter(named + like), None)


def _default_preprocessing(architecture: ViTConfig, mean: tuple[float, ...], std: tuple[float, ...]) -> Preprocessing:
    """What timm does with a ViT of which nothing else is known: the middle 90 %, bicubic."""
    height, width = architecture.native_size
    if height != width:
        return Preprocessing((height, width), None, "bicubic", mean, std)
    return Preprocessing(math.floor(height / 0.9), (height, width), "bicubic", mean, std)


def _labels(labels: dict[int, str], classes: int) -> list[str]:
    """One label for each class: the checkpoint's own, ImageNet's where there are 1000, else a number."""
    if not labels and classes == 1000:
        return list(imagenet_labels())
    return [labels.get(index, f"class {index}") for index in range(classes)]


@cache
def imagenet_labels() -> tuple[str, ...]:
    return tuple(torchvision.models.ViT_B_16_Weights.DEFAULT.meta["categories"])
