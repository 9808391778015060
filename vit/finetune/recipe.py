"""How a model is trained: every choice in one table, and what follows from it."""

from __future__ import annotations

import math
from dataclasses import asdict, dataclass, replace
from functools import cache
from typing import Annotated, Any, Literal, NamedTuple, get_type_hints

import torch
from PIL import Image
from torch import Tensor, nn

from ..photos.preprocessing import Preprocessing

Train = Literal["head", "all", "scratch"]
BASE = "timm/vit_tiny_patch16_224.augreg_in21k_ft_in1k"  # what to start from, unless told
GROUP = 8  # photos that mixup mixes with one another: a batch's groups are the same for any number of processes


class Limits(NamedTuple):
    least: float
    most: float = math.inf


@dataclass(frozen=True)
class Recipe:
    """Every choice of a training, with what it means and its limits.

    The defaults are those of full fine-tuning; `Recipe.of("head")` and `Recipe.of("scratch")` give others.
    """

    train: Annotated[Train, "the head alone, all weights, or all weights from scratch"] = "all"
    epochs: Annotated[int, "passes over the photos", Limits(1)] = 10
    batch_size: Annotated[int, "photos in one step, over all processes", Limits(1)] = 64
    learning_rate: Annotated[float, "its peak, for the head", Limits(0)] = 3e-4
    layer_decay: Annotated[float, "each layer's learning rate as a share of the next one's", Limits(0, 1)] = 0.8
    weight_decay: Annotated[float, "AdamW's; norms, biases, tokens and positions have none", Limits(0)] = 0.05
    warm_up: Annotated[
        float, "share of the steps in which the learning rate rises; then it falls as a cosine", Limits(0, 1)
    ] = 0.05
    clip: Annotated[float, "largest norm of the gradient, 0 for any", Limits(0)] = 1.0
    label_smoothing: Annotated[float, "share of the target that all classes get, by their photos", Limits(0, 1)] = 0.1
    balance: Annotated[float, "how far rare classes are evened out, 0 to 1 (logit adjustment)", Limits(0, 1)] = 1.0
    mixup: Annotated[float, "alpha of mixup, 0 for none", Limits(0)] = 0.2
    rand_augment: Annotated[int, "magnitude of RandAugment, 0 for none", Limits(0, 30)] = 7
    crop: Annotated[float, "smallest share of a photo that a random crop takes", Limits(0.01, 1)] = 0.3
    stochastic_depth: Annotated[float, "chance that the last block is skipped", Limits(0, 0.99)] = 0.0
    ema: Annotated[float, "decay of the weights' moving average, 0 for none", Limits(0, 1)] = 0.998
    blend: Annotated[float, "share of what was learnt in the end, the rest is where it started", Limits(0, 1)] = 0.6
    small_size: Annotated[int, "pixels of the first epochs' images, which are faster", Limits(1)] = 160
    small_epochs: Annotated[int, "how many epochs have small images", Limits(0)] = 0
    plain_epochs: Annotated[int, "how many last epochs have neither mixup nor RandAugment", Limits(0)] = 0
    head_first: Annotated[int, "1: the head is solved before all weights are trained, 0: it is not", Limits(0, 1)] = 1
    registers: Annotated[int, "register tokens for a base that has none", Limits(0)] = 0
    sink_penalty: Annotated[
        float, "weight of what keeps patches from becoming sinks, where there are registers", Limits(0)
    ] = 0.2
    keep: Annotated[float, "weight of the teacher's opinion on labelled photos", Limits(0)] = 1.0
    teacher_share: Annotated[float, "share of an epoch that --teacher-photos have", Limits(0, 0.9)] = 0.2
    recall: Annotated[float, "share of its teacher's weights that the model gets back at the start", Limits(0, 1)] = 0.0
    seed: Annotated[int, "one seed, one result", Limits(0)] = 0

    @classmethod
    def of(cls, train: Train, **options: Any) -> Recipe:
        """The recipe for one of the three ways to train, with some choices of your own."""
        if wrong := [name for name in options if name in NOT_FOR[train]]:
            way = "the head alone" if train == "head" else "a model from scratch"
            raise ValueError(f"There is no {wrong[0].replace('_', ' ')} in training {way}: leave it out.")
        return cls(**{"train": train, **DEFAULTS[train], **options})

    def __post_init__(self) -> None:
        for name, kind in choices().items():
            value = getattr(self, name)
            for least, most in (limits for limits in kind.__metadata__ if isinstance(limits, Limits)):
                if not least <= value <= most:
                    limits = f"from {least} to {most}" if most < math.inf else f"at least {least}"
                    raise ValueError(f"{name.replace('_', ' ')} is {value}, but must be {limits}.")

    def to_dict(self) -> dict[str, Any]:
        return asdict(self)

    def in_epoch(self, epoch: int) -> Recipe:
        """The recipe of one epoch: the last ones are plain."""
        return replace(self, mixup=0.0, rand_augment=0) if epoch >= self.epochs - self.plain_epochs else self

    def image_size(self, epoch: int, full: tuple[int, int]) -> tuple[int, int]:
        """(height, width) of the images in an epoch: the small ones come first."""
        return (self.small_size, self.small_size) if epoch < self.small_epochs else full


@cache
def choices() -> dict[str, Any]:
    """The recipe's fields by name: Annotated[type, what it means, limits]."""
    return get_type_hints(Recipe, include_extras=True)


DEFAULTS: dict[Train, dict[str, Any]] = {
    "head": dict(),
    "all": dict(),
    "scratch": dict(epochs=40, learning_rate=1e-3, layer_decay=1.0, warm_up=0.1, blend=1.0, head_first=0),
}


WITH_TEACHER = ("keep", "teacher_share", "recall")  # choices where classes are kept

# Choices that a way to train does not have. A head is solved: it is not learnt step by step.
NOT_FOR: dict[Train, tuple[str, ...]] = {
    "head": tuple(name for name in choices() if name not in ("train", "balance", "registers", "seed", *WITH_TEACHER)),
    "all": (),
    "scratch": ("blend", "head_first", *WITH_TEACHER),
}


class Augmentation:
    """A photo as the model meets it in training: cropped, mirrored and changed at random, then normalised."""

    def __init__(self, recipe: Recipe, preprocessing: Preprocessing, size: tuple[int, int]):
        from torchvision.transforms import InterpolationMode  # slow to import: the command line waits for it
        from torchvision.transforms import v2 as transforms

        how = InterpolationMode(preprocessing.interpolation)
        steps: list[nn.Module] = [transforms.RandomResizedCrop(size, scale=(recipe.crop, 1), interpolation=how)]
        steps.append(transforms.RandomHorizontalFlip())
        if recipe.rand_augment:
            grey = [round(255 * value) for value in preprocessing.mean]
            steps.append(transforms.RandAugment(magnitude=recipe.rand_augment, fill=grey))
        steps += [transforms.PILToTensor(), transforms.ToDtype(torch.float32, scale=True)]
        steps.append(transforms.Normalize(preprocessing.mean, preprocessing.std))
        self.steps = transforms.Compose(steps)

    def __call__(self, photo: Image.Image) -> Tensor:
        return self.steps(photo)  # 3, height, width


def parameter_groups(model: nn.Module, recipe: Recipe, layers: int) -> list[dict[str, Any]]:
    """Parameters by depth, each with its learning rate; norms, biases, tokens and positions do not decay."""
    groups: dict[tuple[int, bool], dict[str, Any]] = {}
    for name, parameter in model.named_parameters():
        if name.startswith("blocks."):
            depth = int(name.split(".")[1]) + 1
        else:
            depth = layers + 1 if name.startswith(("norm", "head", "distillation_head")) else 0
        decays = parameter.ndim > 1 and "token" not in name and "position" not in name
        group = groups.setdefault((depth, decays), {"params": []})
        group["params"].append(parameter)
        group["lr"] = recipe.learning_rate * recipe.layer_decay ** (layers + 1 - depth)
        group["weight_decay"] = recipe.weight_decay if decays else 0.0
    return list(groups.values())


def schedule(recipe: Recipe, steps: int, step: int) -> float:
    """The learning rate as a share of its peak: a linear warm-up, then half a cosine down to nothing."""
    warm_up = max(1, round(recipe.warm_up * steps))
    if step < warm_up:
        return (step + 1) / warm_up
    return (1 + math.cos(math.pi * (step - warm_up) / max(1, steps - warm_up))) / 2


def seed_of(*numbers: int) -> int:
    """A seed for one place in a run (the run's seed, an epoch, a photo …), the same on every machine."""
    seed = 0
    for number in numbers:
        seed = (seed * 1_000_003 + number + 1) % (2**63 - 25)
    return seed
