"""What to believe of a checkpoint that does not say: labels and preprocessing."""

from __future__ import annotations

import math
from functools import cache

from ..config import ViTConfig
from ..photos.preprocessing import Preprocessing

IMAGENET_MEAN, IMAGENET_STD = (0.485, 0.456, 0.406), (0.229, 0.224, 0.225)
HALF = (0.5, 0.5, 0.5)


def default_preprocessing(architecture: ViTConfig, mean: tuple[float, ...], std: tuple[float, ...]) -> Preprocessing:
    """What timm does with a ViT of which nothing else is known: the middle 90 %, bicubic."""
    height, width = architecture.native_size
    if height != width:
        return Preprocessing((height, width), None, "bicubic", mean, std)
    return Preprocessing(math.floor(height / 0.9), (height, width), "bicubic", mean, std)


def all_labels(labels: dict[int, str], classes: int) -> list[str]:
    """One label for each class: the checkpoint's own, ImageNet's where there are 1000, else a number."""
    if not labels and classes == 1000:
        return list(imagenet_labels())
    return [labels.get(index, f"class {index}") for index in range(classes)]


@cache
def imagenet_labels() -> tuple[str, ...]:
    import torchvision  # slow to import, and most checkpoints bring their labels

    return tuple(torchvision.models.ViT_B_16_Weights.DEFAULT.meta["categories"])
