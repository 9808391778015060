"""What if: the same pass with something changed, in the photo's patches, their places, or the model itself.

Nothing of the model is changed: a switched-off head is a zero in a copy of one matrix, and a switched-off layer is left
out. Shapes: T tokens, N patches, D width, H heads, L layers, P patch size, R × C grid.
"""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import nullcontext
from dataclasses import dataclass
from typing import Literal, cast

import torch
from torch import Tensor
from torch.func import functional_call

from ..kernels import fast_linear
from ..model import Recording, TransformerEncoderBlock, ViT
from ..turn import Turn
from .faithfulness import removal_order

BLUR = 1.0  # the blur's standard deviation, in patches


@dataclass(frozen=True)
class Changes:
    """What is to be different. Patches, layers and heads are counted from 0."""

    grey: tuple[int, ...] = ()  # patches of the mean colour
    blurred: tuple[int, ...] = ()
    removed: tuple[int, ...] = ()  # taken out of the sequence: no token is left of them
    shuffled: int | None = None  # a seed: all patches change places
    swapped: tuple[tuple[int, int], ...] = ()  # pairs of patches that change places
    positions: Literal["kept", "dropped", "shuffled"] = "kept"  # of the patches
    heads_off: tuple[tuple[int, int], ...] = ()  # (layer, head)
    layers_off: tuple[int, ...] = ()


def changed_image(image: Tensor, changes: Changes, patch_size: int) -> Tensor:
    """A normalised image (channels, height, width) with its patches greyed, blurred and in other places.

    Patches are named by where they were: they are greyed and blurred first, and then change places.
    """
    C = image.shape[-1] // patch_size
    patches = _cut(image, patch_size)  # N, channels, P, P
    _check(changes, len(patches))
    if changes.blurred:
        from torchvision.transforms.v2 import functional as transforms  # slow to import, and seldom needed

        kernel = 2 * patch_size + 1
        blurred = transforms.gaussian_blur(image, [kernel, kernel], [BLUR * patch_size] * 2)
        patches[list(changes.blurred)] = _cut(blurred, patch_size)[list(changes.blurred)]
    patches[list(changes.grey)] = 0
    patches = patches[order(len(patches), changes)]
    rows = patches.unflatten(0, (-1, C)).permute(2, 0, 3, 1, 4)  # channels, R, P, C, P
    return rows.reshape(image.shape)


def order(count: int, changes: Changes) -> Tensor:
    """Which patch stands at each place (N,)."""
    found = torch.arange(count)
    if changes.shuffled is not None:
        found = torch.randperm(count, generator=torch.Generator().manual_seed(changes.shuffled))
    for one, other in changes.swapped:
        found[[one, other]] = found[[other, one]]
    return found


@torch.inference_mode()
def run(model: ViT, image: Tensor, changes: Changes) -> Recording:
    """The recorded pass of a normalised image (channels, height, width) with the changes.

    Of removed patches there is neither attention nor token: T is smaller by their number. The layers that are off have
    no attention, and leave the tokens as they are.
    """
    config = model.config
    changed = changed_image(image, changes, config.patch_size)
    grid = image.shape[-2] // config.patch_size, image.shape[-1] // config.patch_size
    N, prefix = grid[0] * grid[1], config.prefix_tokens
    z = model.embed(changed[None])  # 1, T, D
    _, positions = model.positions(grid)
    if changes.positions == "dropped":
        z[:, prefix:] -= positions
    elif changes.positions == "shuffled":
        z[:, prefix:] += positions[:, torch.randperm(N, generator=torch.Generator().manual_seed(0))] - positions
    z = z[:, kept_tokens(model, N, changes)]

    off = {layer: [head for at, head in changes.heads_off if at == layer] for layer, _ in changes.heads_off}
    _check_layers(model, changes)
    attention: list[Tensor] = []
    tokens, layers = [], []
    for layer, block in enumerate(model.blocks):
        if layer not in changes.layers_off:
            block = cast(TransformerEncoderBlock, block)
            heads = off.get(layer)
            z = functional_call(block, _without(block, heads), (z, attention)) if heads else block(z, attention)
            layers.append(layer)
        tokens.append(z)
    return Recording(model.classify(z), tuple(layers), tuple(attention), tuple(tokens))


def kept_tokens(model: ViT, patches: int, changes: Changes) -> list[int]:
    """The places of the tokens that are left among all T."""
    prefix, gone = model.config.prefix_tokens, set(changes.removed)
    return [*range(prefix), *(prefix + patch for patch in range(patches) if patch not in gone)]


def _without(block: TransformerEncoderBlock, heads: Sequence[int]) -> dict[str, Tensor]:
    """The matrix that joins the heads, blind to some of them."""
    weight = block.attention.out.weight.detach().clone()  # D, D: its columns are the heads side by side
    width = weight.shape[1] // block.attention.heads
    for head in heads:
        weight[:, head * width : (head + 1) * width] = 0
    return {"attention.out.weight": weight}


@torch.inference_mode()
def fewest(
    model: ViT,
    image: Tensor,
    map: Tensor,
    index: int,
    keep: bool = False,
    batch: int = 8,
    turn: Turn = nullcontext,
) -> tuple[int, ...] | None:
    """The greedy answer by a map (R, C): how few patches, the most relevant first, change the answer `index` if grey.

    With `keep` all others are grey, and so few are enough for the answer to be `index`. None where no number does it.
    Each pass is run in a `turn` of its own.
    """
    ranked = removal_order(map)
    patches = _cut(image, model.config.patch_size)
    for counts in torch.arange(1, len(ranked) + 1).split(batch):
        images = []
        for count in counts.tolist():
            first = set(ranked[:count].tolist())
            grey = tuple(patch for patch in range(len(patches)) if (patch in first) != keep)
            images.append(changed_image(image, Changes(grey=grey), model.config.patch_size))
        with turn(), fast_linear():
            right = model(torch.stack(images)).argmax(dim=-1) == index
        reached = (right if keep else ~right).nonzero()
        if len(reached):
            return tuple(ranked[: int(counts[reached[0, 0]])].tolist())
    return None


def _cut(image: Tensor, P: int) -> Tensor:
    """The patches (N, channels, P, P), row by row."""
    rows = image.unflatten(2, (-1, P)).unflatten(1, (-1, P))  # channels, R, P, C, P
    return rows.permute(1, 3, 0, 2, 4).flatten(0, 1).clone()


def _check(changes: Changes, count: int) -> None:
    named = [*changes.grey, *changes.blurred, *changes.removed, *(each for pair in changes.swapped for each in pair)]
    if wrong := [patch for patch in named if not 0 <= patch < count]:
        raise ValueError(f"There is no patch {wrong[0]}: this image has the patches 0 to {count - 1}.")
    if len(set(changes.removed)) == count:
        raise ValueError("All patches are taken out: leave at least one.")


def _check_layers(model: ViT, changes: Changes) -> None:
    L, H = model.config.layers, model.config.heads
    for layer in (*changes.layers_off, *(layer for layer, _ in changes.heads_off)):
        if not 0 <= layer < L:
            raise ValueError(f"There is no layer {layer}: this model has the layers 0 to {L - 1}.")
    for _, head in changes.heads_off:
        if not 0 <= head < H:
            raise ValueError(f"There is no head {head}: this model has the heads 0 to {H - 1}.")
