"""The architecture that parameters have, read off their shapes."""

from __future__ import annotations

import math
import re
from collections.abc import Sequence
from typing import Any

from ..config import ViTConfig
from .errors import NotAPlainViT
from .family import Json, State
from .refusals import SWIGLU, refuse


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
