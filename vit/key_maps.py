"""Other people's parameter names → ours: one table of renames for each way of naming them.

A table turns every name of a file into a name of `vit.ViT`. What a file carries beyond the model and is known to
be without effect on it is listed as unused; whatever no rule knows keeps its name and is reported as left over.
"""

from __future__ import annotations

import re
from collections.abc import Collection
from dataclasses import dataclass, field

import torch
from torch import Tensor

from .config import ViTConfig

State = dict[str, Tensor]


@dataclass(frozen=True)
class KeyMap:
    """How one library names the parameters of a ViT."""

    library: str
    mark: str  # a pattern that finds this library's patch projection, and nobody else's
    renames: dict[str, str]  # pattern → replacement, tried in order, the first that matches the whole name
    unused: tuple[str, ...] = field(default=())  # patterns of parameters without effect on the model's output


_END = r"(weight|bias)"

TRANSFORMERS = KeyMap(
    library="transformers",
    mark=r"(\w+\.)?embeddings\.patch_embeddings\.projection\.weight",
    renames={
        r"(?:\w+\.)?embeddings\.cls_token": "class_token",
        r"(?:\w+\.)?embeddings\.distillation_token": "distillation_token",
        r"(?:\w+\.)?embeddings\.register_tokens": "register_tokens",
        r"(?:\w+\.)?embeddings\.position_embeddings": "position_embedding",
        rf"(?:\w+\.)?embeddings\.patch_embeddings\.projection\.{_END}": r"patch_embedding.projection.\1",
        rf"(?:\w+\.)?encoder\.layer\.(\d+)\.(?:layernorm_before|norm1)\.{_END}": r"blocks.\1.attention_norm.\2",
        rf"(?:\w+\.)?encoder\.layer\.(\d+)\.attention\.attention\.(query|key|value)\.{_END}": (
            r"blocks.\1.attention.\2.\3"
        ),
        rf"(?:\w+\.)?encoder\.layer\.(\d+)\.attention\.output\.dense\.{_END}": r"blocks.\1.attention.out.\2",
        r"(?:\w+\.)?encoder\.layer\.(\d+)\.layer_scale1\.lambda1": r"blocks.\1.attention_scale.scale",
        rf"(?:\w+\.)?encoder\.layer\.(\d+)\.(?:layernorm_after|norm2)\.{_END}": r"blocks.\1.mlp_norm.\2",
        rf"(?:\w+\.)?encoder\.layer\.(\d+)\.(?:intermediate\.dense|mlp\.fc1)\.{_END}": r"blocks.\1.mlp.fc1.\2",
        rf"(?:\w+\.)?encoder\.layer\.(\d+)\.(?:output\.dense|mlp\.fc2)\.{_END}": r"blocks.\1.mlp.fc2.\2",
        r"(?:\w+\.)?encoder\.layer\.(\d+)\.layer_scale2\.lambda1": r"blocks.\1.mlp_scale.scale",
        rf"(?:\w+\.)?layernorm\.{_END}": r"norm.\1",
        rf"(?:cls_)?classifier\.{_END}": r"head.\1",
        rf"distillation_classifier\.{_END}": r"distillation_head.\1",
    },
    unused=(
        r"(?:\w+\.)?pooler\.dense\.(weight|bias)",  # made for pre-training; classifying reads the class token itself
        r"(?:\w+\.)?embeddings\.mask_token",  # stands for hidden patches in pre-training
    ),
)

TIMM = KeyMap(
    library="timm",
    mark=r"patch_embed\.proj\.weight",
    renames={
        r"cls_token": "class_token",
        r"dist_token": "distillation_token",
        r"(?:reg_token|register_tokens)": "register_tokens",  # timm's name, and that of DINOv2's own files
        r"pos_embed": "position_embedding",
        rf"patch_embed\.proj\.{_END}": r"patch_embedding.projection.\1",
        rf"patch_embed\.backbone\.(?:stem\.)?(conv|norm)\.{_END}": r"patch_embedding.stem.\1.\2",
        rf"patch_embed\.backbone\.stages\.(\d+)\.blocks\.(\d+)\.((?:conv|norm)\d)\.{_END}": (
            r"patch_embedding.stem.stages.\1_\2.\3.\4"
        ),
        r"patch_embed\.backbone\.stages\.(\d+)\.blocks\.(\d+)\.downsample\.conv\.weight": (
            r"patch_embedding.stem.stages.\1_\2.shortcut.0.weight"
        ),
        rf"patch_embed\.backbone\.stages\.(\d+)\.blocks\.(\d+)\.downsample\.norm\.{_END}": (
            r"patch_embedding.stem.stages.\1_\2.shortcut.1.\3"
        ),
        rf"blocks\.(\d+)\.norm1\.{_END}": r"blocks.\1.attention_norm.\2",
        rf"blocks\.(\d+)\.attn\.qkv\.{_END}": r"blocks.\1.attention.qkv.\2",
        rf"blocks\.(\d+)\.attn\.proj\.{_END}": r"blocks.\1.attention.out.\2",
        r"blocks\.(\d+)\.ls1\.gamma": r"blocks.\1.attention_scale.scale",
        rf"blocks\.(\d+)\.norm2\.{_END}": r"blocks.\1.mlp_norm.\2",
        rf"blocks\.(\d+)\.mlp\.(fc1|fc2)\.{_END}": r"blocks.\1.mlp.\2.\3",
        r"blocks\.(\d+)\.ls2\.gamma": r"blocks.\1.mlp_scale.scale",
        rf"(?:fc_)?norm\.{_END}": r"norm.\1",
        rf"head\.{_END}": r"head.\1",
        rf"head_dist\.{_END}": r"distillation_head.\1",
    },
    unused=(r"mask_token",),
)

TORCHVISION = KeyMap(
    library="torchvision",
    mark=r"conv_proj\.weight",
    renames={
        r"class_token": "class_token",
        r"encoder\.pos_embedding": "position_embedding",
        rf"conv_proj\.{_END}": r"patch_embedding.projection.\1",
        rf"encoder\.layers\.encoder_layer_(\d+)\.ln_1\.{_END}": r"blocks.\1.attention_norm.\2",
        rf"encoder\.layers\.encoder_layer_(\d+)\.self_attention\.in_proj_{_END}": r"blocks.\1.attention.qkv.\2",
        rf"encoder\.layers\.encoder_layer_(\d+)\.self_attention\.out_proj\.{_END}": r"blocks.\1.attention.out.\2",
        rf"encoder\.layers\.encoder_layer_(\d+)\.ln_2\.{_END}": r"blocks.\1.mlp_norm.\2",
        # linear_1 and linear_2 are the names in files from before torchvision 0.13.
        rf"encoder\.layers\.encoder_layer_(\d+)\.mlp\.(?:0|linear_1)\.{_END}": r"blocks.\1.mlp.fc1.\2",
        rf"encoder\.layers\.encoder_layer_(\d+)\.mlp\.(?:3|linear_2)\.{_END}": r"blocks.\1.mlp.fc2.\2",
        rf"encoder\.ln\.{_END}": r"norm.\1",
        rf"heads\.(?:head|0)\.{_END}": r"head.\1",
    },
)

OURS = KeyMap(library="vit", mark=r"patch_embedding\.projection\.weight", renames={r"(.*)": r"\1"})

KEY_MAPS = (OURS, TRANSFORMERS, TIMM, TORCHVISION)


def key_map_of(names: Collection[str]) -> KeyMap | None:
    """The table that knows these names, None where no library's plain ViT is named so."""
    return next((m for m in KEY_MAPS if any(re.fullmatch(m.mark, name) for name in names)), None)


def rename(state: State, key_map: KeyMap) -> State:
    """The file's parameters under our names, without the unused ones; q, k and v become one matrix."""
    renamed: State = {}
    for name, tensor in state.items():
        if any(re.fullmatch(pattern, name) for pattern in key_map.unused):
            continue
        ours = _our_name(name, key_map)
        renamed[name if ours in renamed else ours] = tensor
    return _join_qkv(renamed)


def _our_name(name: str, key_map: KeyMap) -> str:
    for pattern, ours in key_map.renames.items():
        if match := re.fullmatch(pattern, name):
            return match.expand(ours)
    return name


def _join_qkv(state: State) -> State:
    for name in [name for name in state if ".attention.query." in name]:
        parts = [name.replace(".query.", f".{part}.") for part in ("query", "key", "value")]
        if all(part in state for part in parts) and len({state[part].shape[1:] for part in parts}) == 1:
            state[name.replace(".query.", ".qkv.")] = torch.cat([state.pop(part) for part in parts])
    return state


def place_tokens(state: State, config: ViTConfig) -> State:
    """Give every token before the patches the position it has in ours.

    In ours the class and the distillation token have a position embedding and registers have none. Where a file
    has none for the class token (DeiT III) it becomes zero; where it has one for registers, it is added to them.
    """
    rows, columns = config.grid
    positions = state.get("position_embedding")
    if positions is None or positions.ndim != 3:
        return state  # to be reported as missing, or of another shape
    extra = positions.shape[1] - rows * columns
    if extra == 0 and config.placed_tokens:
        zeros = positions.new_zeros(1, config.placed_tokens, positions.shape[2])
        state["position_embedding"] = torch.cat([zeros, positions], dim=1)
    elif config.registers and extra == config.prefix_tokens:
        placed, registers, patches = positions.split([config.placed_tokens, config.registers, rows * columns], dim=1)
        state["register_tokens"] = state["register_tokens"] + registers
        state["position_embedding"] = torch.cat([placed, patches], dim=1)
    return state
