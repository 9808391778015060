"""Other people's ViTs with random weights, saved as their files stand on the Hub, and what they compute."""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import timm
import torch
import torchvision
import transformers
from conftest import randomise
from timm.models import save_for_hf
from torch import Tensor, nn

Answer = tuple[Tensor, list[Tensor]]  # logits or features, attention of each layer (B, H, T, T)


@dataclass
class Peer:
    """A peer's model: how to save it, and its own answer to a batch of images."""

    save: Callable[[Path], Path]  # writes into a folder; returns what to load
    answer: Callable[[Tensor], Answer]
    native: tuple[int, int]
    larger: tuple[int, int]
    dtype: torch.dtype = torch.float32  # to compute in


SIZES = dict(hidden_size=64, num_hidden_layers=3, num_attention_heads=2, image_size=32, patch_size=8)
LABELS = dict(id2label={0: "pizza", 1: "steak", 2: "sushi"}, label2id={"pizza": 0, "steak": 1, "sushi": 2})

# preprocessor_config.json as the Hub has them: some from before sizes had names.
VIT_PROCESSOR = {
    "do_normalize": True,
    "do_resize": True,
    "image_mean": [0.5, 0.5, 0.5],
    "image_std": [0.5, 0.5, 0.5],
    "size": 32,
}
IMAGENET = {"image_mean": [0.485, 0.456, 0.406], "image_std": [0.229, 0.224, 0.225]}
DEIT_PROCESSOR = {
    "crop_size": 32,
    "do_center_crop": True,
    "do_normalize": True,
    "do_resize": True,
    "feature_extractor_type": "DeiTFeatureExtractor",
    "resample": 3,
    "size": 40,
    **IMAGENET,
}
DINO_PROCESSOR = {
    "do_normalize": True,
    "do_resize": True,
    "feature_extractor_type": "ViTFeatureExtractor",
    "resample": 2,
    "size": 32,
    **IMAGENET,
}
DINOV2_PROCESSOR = {
    "crop_size": {"height": 32, "width": 32},
    "do_center_crop": True,
    "do_convert_rgb": True,
    "do_normalize": True,
    "do_rescale": True,
    "do_resize": True,
    "image_processor_type": "BitImageProcessor",
    "resample": 3,
    "rescale_factor": 0.00392156862745098,
    "size": {"shortest_edge": 40},
    **IMAGENET,
}


def from_transformers(config, architecture: str, processor: dict, **made) -> Peer:
    config._attn_implementation = "eager"
    model = randomise(getattr(transformers, architecture)(config, **made))

    def save(folder: Path) -> Path:
        model.save_pretrained(folder)
        (folder / "preprocessor_config.json").write_text(json.dumps(processor))
        return folder

    def answer(images: Tensor) -> Answer:
        more = {} if "Dinov2" in architecture else {"interpolate_pos_encoding": True}
        out = model(images, output_attentions=True, **more)
        return (out.logits if hasattr(out, "logits") else out.last_hidden_state[:, 0]), list(out.attentions)

    return Peer(save, answer, native=(32, 32), larger=(48, 72))


def from_timm(name: str, larger: tuple[int, int], labels: list[str] | None = None, bare: str = "", **made) -> Peer:
    model = randomise(timm.create_model(name, dynamic_img_size=True, depth=2, **made))
    attentions: list[Tensor] = []
    for block in model.blocks:
        block.attn.fused_attn = False  # so that the softmax passes through its dropout, where it can be seen
        block.attn.attn_drop.register_forward_hook(lambda *called: attentions.append(called[2]))

    def save(folder: Path) -> Path:
        save_for_hf(model, folder, {"label_names": labels} if labels else None, safe_serialization=True)
        if bare:
            (folder / "config.json").unlink()
            return (folder / "model.safetensors").rename(folder / bare)
        return folder

    def answer(images: Tensor) -> Answer:
        attentions.clear()
        return model.to(images.dtype)(images), list(attentions)

    # Through a whole ResNet the rounding of float32 alone comes near 1e-5.
    dtype = torch.float64 if "_r50_" in name else torch.float32
    return Peer(save, answer, native=model.patch_embed.img_size, larger=larger, dtype=dtype)


def from_torchvision(pickled_name: str, old_names: bool = False, **made) -> Peer:
    model = randomise(torchvision.models.VisionTransformer(**{"num_layers": 2, **made}))
    attentions: list[Tensor] = []
    for layer in model.encoder.layers:
        layer.self_attention.register_forward_pre_hook(
            lambda module, called, named: (called, {"need_weights": True, "average_attn_weights": False}),
            with_kwargs=True,
        )
        layer.self_attention.register_forward_hook(lambda *called: attentions.append(called[2][1]))

    def save(folder: Path) -> Path:
        state = model.state_dict()
        if old_names:
            state = {
                name.replace(".mlp.0.", ".mlp.linear_1.").replace(".mlp.3.", ".mlp.linear_2."): tensor
                for name, tensor in state.items()
            }
        torch.save(state, folder / pickled_name)
        return folder / pickled_name

    def answer(images: Tensor) -> Answer:
        attentions.clear()
        side, native = model.conv_proj.kernel_size[0], model.encoder.pos_embedding
        patches = model.conv_proj(images)
        grid = patches.shape[-2:]
        # torchvision resamples its positions for squares only, so its own call is written out here for any shape.
        placed, positions = native[:, :1], native[:, 1:].transpose(1, 2).unflatten(2, (model.image_size // side,) * 2)
        if grid != positions.shape[-2:]:
            positions = nn.functional.interpolate(positions, size=grid, mode="bicubic", align_corners=True)
        z = torch.cat([model.class_token.expand(len(images), -1, -1), patches.flatten(2).transpose(1, 2)], dim=1)
        z = z + torch.cat([placed, positions.flatten(2).transpose(1, 2)], dim=1)
        logits = model.heads(model.encoder.ln(model.encoder.layers(z))[:, 0])
        return logits, list(attentions)

    side = made["image_size"]
    return Peer(
        save, answer, native=(side, side), larger=(side + 2 * made["patch_size"], side + 4 * made["patch_size"])
    )


def vit_config(**made):
    return transformers.ViTConfig(intermediate_size=128, **SIZES, **made)


def deit_config(**made):
    return transformers.DeiTConfig(intermediate_size=128, **SIZES, **made)


def dinov2_config(**made):
    return transformers.Dinov2Config(**SIZES, **made)


def registers_config(**made):
    return transformers.Dinov2WithRegistersConfig(num_register_tokens=4, **SIZES, **made)


PEERS: dict[str, Callable[[], Peer]] = {
    "google/vit": lambda: from_transformers(vit_config(**LABELS), "ViTForImageClassification", VIT_PROCESSOR),
    "google/vit-in21k": lambda: from_transformers(vit_config(), "ViTModel", VIT_PROCESSOR),
    "vit without qkv bias": lambda: from_transformers(
        vit_config(qkv_bias=False, **LABELS), "ViTForImageClassification", VIT_PROCESSOR
    ),
    "facebook/deit": lambda: from_transformers(vit_config(**LABELS), "ViTForImageClassification", DEIT_PROCESSOR),
    "facebook/deit-distilled": lambda: from_transformers(
        deit_config(**LABELS), "DeiTForImageClassificationWithTeacher", DEIT_PROCESSOR
    ),
    "deit-distilled, fine-tuned": lambda: from_transformers(
        deit_config(**LABELS), "DeiTForImageClassification", DEIT_PROCESSOR
    ),
    "deit-distilled, no head": lambda: from_transformers(deit_config(), "DeiTModel", DEIT_PROCESSOR),
    "facebook/dino": lambda: from_transformers(vit_config(), "ViTModel", DINO_PROCESSOR, add_pooling_layer=False),
    "facebook/dinov2": lambda: from_transformers(dinov2_config(), "Dinov2Model", DINOV2_PROCESSOR),
    "facebook/dinov2-imagenet1k-1-layer": lambda: from_transformers(
        dinov2_config(**LABELS), "Dinov2ForImageClassification", DINOV2_PROCESSOR
    ),
    "facebook/dinov2-with-registers": lambda: from_transformers(
        registers_config(), "Dinov2WithRegistersModel", DINOV2_PROCESSOR
    ),
    "facebook/dinov2-with-registers-imagenet1k-1-layer": lambda: from_transformers(
        registers_config(**LABELS), "Dinov2WithRegistersForImageClassification", DINOV2_PROCESSOR
    ),
    "timm/vit_tiny": lambda: from_timm("vit_tiny_patch16_224", larger=(256, 320)),
    "timm/vit_tiny, bare": lambda: from_timm("vit_tiny_patch16_224", larger=(256, 320), bare="some_vit.safetensors"),
    "timm/vit_small_patch32, three classes": lambda: from_timm(
        "vit_small_patch32_224", larger=(256, 320), num_classes=3, labels=["pizza", "steak", "sushi"]
    ),
    "timm/vit_base_miil": lambda: from_timm("vit_base_patch16_224_miil", larger=(256, 320)),
    "timm/deit_tiny": lambda: from_timm("deit_tiny_patch16_224", larger=(256, 320)),
    "timm/deit_tiny_distilled": lambda: from_timm("deit_tiny_distilled_patch16_224", larger=(256, 320)),
    "timm/deit3_small": lambda: from_timm("deit3_small_patch16_224", larger=(256, 320)),
    "timm/vit_small_dinov2": lambda: from_timm("vit_small_patch14_dinov2", larger=(252, 336), img_size=224),
    "timm/vit_small_reg4_dinov2": lambda: from_timm("vit_small_patch14_reg4_dinov2", larger=(252, 336), img_size=224),
    "timm/vit_medium_gap": lambda: from_timm("vit_medium_patch16_gap_240", larger=(256, 320)),
    "timm/vit_betwixt_reg4_gap": lambda: from_timm("vit_betwixt_patch16_reg4_gap_256", larger=(288, 320)),
    "timm/vit_tiny_r_s16": lambda: from_timm("vit_tiny_r_s16_p8_224", larger=(256, 320)),
    "timm/vit_small_r26_s32": lambda: from_timm("vit_small_r26_s32_224", larger=(256, 320)),
    "timm/vit_base_r50_s16": lambda: from_timm("vit_base_r50_s16_224", larger=(256, 320)),
    "torchvision": lambda: from_torchvision(
        "vit.pth", image_size=32, patch_size=8, num_heads=2, hidden_dim=128, mlp_dim=256, num_classes=3
    ),
    "torchvision, old names": lambda: from_torchvision(
        "vit_b_16-c867db91.pth", True, image_size=224, patch_size=16, num_heads=12, hidden_dim=768, mlp_dim=3072
    ),
}
