"""What is not a plain ViT, and what to call it when it is refused."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from typing import NoReturn

from .errors import NotAPlainViT
from .family import Family, Json

OTHER_TYPES = {
    "swin": "a Swin Transformer",
    "swinv2": "a Swin Transformer V2",
    "beit": "a BEiT",
    "data2vec-vision": "a Data2Vec model",
    "clip": "a CLIP model",
    "clip_vision_model": "a CLIP model",
    "siglip": "a SigLIP model",
    "siglip_vision_model": "a SigLIP model",
    "dinov3_vit": "a DINOv3 model, with rotary positions",
    "vit_mae": "a masked autoencoder (ViT-MAE), with a decoder",
    "vit_msn": "a ViT-MSN",
    "vit-hybrid": "a hybrid as transformers stores it (timm's load)",
    "convnext": "a ConvNeXt",
    "resnet": "a ResNet",
}
# Patterns in timm's architecture names, for those whose parameters are named as a plain ViT's.
OTHER_ARCHITECTURES = {
    r"swin": "a Swin Transformer",
    r"beit": "a BEiT",
    r"^eva": "an EVA",
    r"convnext": "a ConvNeXt",
    r"_rpn_": "a ViT with norms after the blocks",
    r"siglip": "a SigLIP model",
    r"clip": "a CLIP model, with a norm before the blocks",
    r"rope|_pe_|dinov3": "a ViT with rotary positions",
    r"relpos": "a ViT with relative positions",
    r"_resnet\d|_mci_": "a hybrid other than the paper's",
}
SWIGLU = "a ViT with SwiGLU in place of the MLP, such as DINOv2-giant"
# Parameters that a plain ViT does not have.
OTHER_PARAMETERS = {
    r"relative_position|rel_pos": "a model with relative positions, such as Swin or BEiT",
    r"mlp\.(weights_in|w12|w1|fc1_g|gate_proj)\.": SWIGLU,
    r"norm_pre|pre_layrnorm|ln_pre": "a CLIP model, with a norm before the blocks",
    r"attn_pool|attention_pool": "a SigLIP model, with attention pooling",
    r"[qk]_norm": "a ViT with norms on queries and keys",
    r"attns\.\d": "a ViT with parallel blocks",
    r"^(layers|stages|features)\.\d.*(blocks|downsample|block)": "a model built in stages, such as Swin or ConvNeXt",
    r"^(text_model|vision_model|visual|model\.decoder|decoder_blocks)\.": "more than an image encoder, such as CLIP",
    r"^layer\d\.\d": "a ResNet",
}


def refuse_others(names: Iterable[str], config: Json, families: Sequence[Family]) -> None:
    """Raise `NotAPlainViT`, naming what it is, unless config and parameter names are those of a plain ViT."""
    kind = None
    model_type, architecture = config.get("model_type"), config.get("architecture")
    if model_type is not None and str(model_type) not in {name for family in families for name in family.model_types}:
        kind = OTHER_TYPES.get(str(model_type), "another kind of model") + f" (model_type {model_type!r})"
    elif config.get("use_swiglu_ffn"):
        kind = SWIGLU
    elif isinstance(architecture, str):
        found = [name for pattern, name in OTHER_ARCHITECTURES.items() if re.search(pattern, architecture)]
        if found or not any(re.fullmatch(family.architectures, architecture) for family in families):
            kind = (found or ["another kind of model"])[0] + f" (architecture {architecture!r})"
    activation = config.get("hidden_act", "gelu")
    if kind is None and activation != "gelu":
        kind = f"a ViT with {activation!r} in place of GELU"
    for pattern, name in OTHER_PARAMETERS.items():
        if kind is None and any(re.search(pattern, parameter) for parameter in names):
            kind = name
    if kind is not None:
        refuse(kind)


def refuse(kind: str) -> NoReturn:
    raise NotAPlainViT(f"This is {kind}, not a plain ViT: choose a ViT, DeiT, DINO or DINOv2 checkpoint.")
