"""Which map is right: patches are taken away in the order of a map, and the class's probability is watched.

Deletion and insertion curves of Petsiuk et al., "RISE", arXiv 1806.07421, patch by patch; most and least relevant
first are the positive and the negative perturbation test of Chefer et al., arXiv 2012.09838. What is taken away is
replaced by 0 in normalised space: the mean colour that the preprocessing subtracts. Shapes: N patches, P patch size,
R × C grid, K points of a curve.
"""

from __future__ import annotations

from contextlib import nullcontext
from dataclasses import dataclass

import torch
from torch import Tensor

from ..kernels import fast_linear
from ..model import ViT
from ..turn import Turn


@dataclass(frozen=True)
class Curve:
    """The probability of a class as patches go (deletion) or come (insertion)."""

    shares: Tensor  # steps + 1: of the patches that went or came, from 0 to 1
    probabilities: Tensor  # steps + 1
    answers: Tensor  # steps + 1: the likeliest class

    @property
    def area(self) -> float:
        """The area under the curve by the trapezoid rule: the mean probability, from 0 to 1."""
        return torch.trapezoid(self.probabilities, self.shares).item()


def deletion(
    model: ViT,
    image: Tensor,
    map: Tensor,
    index: int,
    steps: int = 14,
    least_first: bool = False,
    batch: int = 8,
    turn: Turn = nullcontext,
) -> Curve:
    """The probability of class `index` as the patches of a normalised image (channels, height, width) are deleted.

    `map` has a value for each patch (R, C). The most relevant go first, where a faithful map has a small area, or with
    `least_first` the least relevant, where it has a large one. The `steps` are as even as whole patches allow; `batch`
    images go through the model at once, each time in a `turn` of their own.
    """
    weight = model.patch_embedding.projection.weight
    _check(model, image, map, index, steps, batch)
    image = image.to(weight.device, weight.dtype)
    order = removal_order(map, least_first).to(weight.device)
    counts = even_counts(len(order), steps)
    found = []
    for part in counts.split(batch):
        images = masked(image, order, part, model.config.patch_size)
        with turn():
            found.append(_probabilities(model, images))
    probabilities = torch.cat(found)  # steps + 1, classes
    return Curve(counts / len(order), probabilities[:, index], probabilities.argmax(dim=1))


def insertion(
    model: ViT,
    image: Tensor,
    map: Tensor,
    index: int,
    steps: int = 14,
    least_first: bool = False,
    batch: int = 8,
    turn: Turn = nullcontext,
) -> Curve:
    """The same as the patches are inserted into an image of the mean colour; a faithful map has a large area.

    What is left when the least relevant were deleted is what came when the most relevant are inserted, so this is
    deletion in the reverse order, read backwards. (RISE inserts into a blurred photo, which shows shapes already.)
    """
    mirrored = deletion(model, image, map, index, steps, not least_first, batch, turn)
    return Curve(1 - mirrored.shares.flip(0), mirrored.probabilities.flip(0), mirrored.answers.flip(0))


def random_map(grid: tuple[int, int], seed: int = 0) -> Tensor:
    """A map that knows nothing (R, C): the baseline that a method must beat."""
    return torch.rand(grid, generator=torch.Generator().manual_seed(seed))


def removal_order(map: Tensor, least_first: bool = False) -> Tensor:
    """The patches of a map (R, C) from the most relevant on (N,); of equal ones the first in reading order.

    The least relevant first is exactly the reverse, equal ones too.
    """
    order = map.flatten().argsort(descending=True, stable=True)
    return order.flip(0) if least_first else order


def even_counts(patches: int, steps: int) -> Tensor:
    """How many patches go at each point of a curve (steps + 1): from none to all, rounded to whole patches."""
    return (2 * patches * torch.arange(steps + 1) + steps) // (2 * steps)


def masked(image: Tensor, order: Tensor, counts: Tensor, patch_size: int) -> Tensor:
    """The image once for each of the counts, with that many patches, the first of the order, replaced by 0."""
    rank = order.argsort()  # N: the turn of each patch
    gone = rank < counts.to(rank.device)[:, None]  # K, N
    gone = gone.unflatten(1, (-1, image.shape[-1] // patch_size))  # K, R, C
    gone = gone.repeat_interleave(patch_size, dim=1).repeat_interleave(patch_size, dim=2)
    return torch.where(gone[:, None], torch.zeros_like(image), image)  # K, channels, height, width


@torch.inference_mode()
def _probabilities(model: ViT, images: Tensor) -> Tensor:
    with fast_linear():
        return model(images).float().softmax(dim=-1).cpu()


def _check(model: ViT, image: Tensor, map: Tensor, index: int, steps: int, batch: int) -> None:
    """A sentence for whatever no curve can be made of."""
    classes, P = model.config.classes, model.config.patch_size
    if not classes:
        raise ValueError("A curve follows the probability of a class, and this checkpoint has no classifier.")
    if not 0 <= index < classes:
        raise ValueError(f"There is no class {index}: this model has the classes 0 to {classes - 1}.")
    for name, value in (("steps", steps), ("batch", batch)):
        if value < 1:
            raise ValueError(f"{name} is {value}, but must be at least 1.")
    if image.ndim != 3:
        raise ValueError(
            f"The image must have the shape (channels, height, width), not {tuple(image.shape)}: "
            "take one of a batch with images[0]."
        )
    model.check_images(image[None])
    grid = image.shape[-2] // P, image.shape[-1] // P
    if tuple(map.shape) != grid:
        raise ValueError(
            f"The map has the shape {tuple(map.shape)}, but this image has {grid[0]} × {grid[1]} patches (rows × "
            "columns): give one value for each, of a single layer."
        )
    if map.isnan().any():
        raise ValueError("The map has values that are not numbers (NaN), so its patches have no order.")
