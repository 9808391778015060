"""One token followed through one layer, number by number: what `ViT.record` leaves out, for a single token and head.

Shapes: T tokens, N patches, D width, H heads, Dh = D / H, M the MLP's width, P patch size, R × C grid.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import cast

import torch
import torch.nn.functional as F
from torch import Tensor

from ..model import TransformerEncoderBlock, ViT
from . import maps


@dataclass(frozen=True)
class Embedded:
    """A patch on its way into the first layer (Eq. 1)."""

    pixels: Tensor  # channels, P, P: normalised, as the model sees them
    embedding: Tensor  # D: the pixels times E
    position: Tensor  # D
    features: Tensor  # D, R, C: the embedding of every patch, as a feature map for each channel
    similarity: Tensor  # R, C: the cosine of its position with all others'


@dataclass(frozen=True)
class Trace:
    """A token in one layer: Eq. 2 and 3, and Eq. 5 to 8 for one head. In the order of computation."""

    before: Tensor  # D: the token as it enters the layer
    normed: Tensor  # D: LN of it
    query: Tensor  # Dh
    keys: Tensor  # T, Dh
    values: Tensor  # T, Dh
    products: Tensor  # T: the query times each key
    scores: Tensor  # T: over √Dh
    attention: Tensor  # T: their softmax
    weighted: Tensor  # Dh: the values' sum, each times its attention
    heads: Tensor  # H, T: the attention of the token in every head
    msa: Tensor  # D: what all heads write together
    steps: Tensor  # T: how long that is for every token, over the token's own length
    between: Tensor  # D: after the first residual
    mlp_normed: Tensor  # D
    neurons: Tensor  # M: after the GELU
    activations: Tensor  # T, M: the same of every token
    written: Tensor  # M: how long what each neuron writes is, its activation times the norm of its weights
    mlp: Tensor  # D: what the MLP writes
    after: Tensor  # D: after the second residual

    @property
    def terms(self) -> Tensor:
        """Softmax's terms (T): e to the power of each score. The attention is each over their sum."""
        return self.scores.double().exp()

    @property
    def turned(self) -> float:
        """By how many degrees the heads turned the token."""
        cosine = F.cosine_similarity(self.before.double(), self.between.double(), dim=0)
        return math.degrees(math.acos(min(1.0, cosine.item())))


@torch.inference_mode()
def embedded(model: ViT, image: Tensor, patch: int) -> Embedded:
    """A patch of a normalised image (channels, height, width), by its number row by row."""
    P = model.config.patch_size
    grid = image.shape[-2] // P, image.shape[-1] // P
    if not 0 <= patch < grid[0] * grid[1]:
        raise ValueError(f"There is no patch {patch}: this image has the patches 0 to {grid[0] * grid[1] - 1}.")
    row, column = divmod(patch, grid[1])
    patches = model.patch_embedding(image[None])[0]  # N, D
    positions = model.positions(grid)[1][0]  # N, D
    return Embedded(
        pixels=image[:, row * P : (row + 1) * P, column * P : (column + 1) * P],
        embedding=patches[patch],
        position=positions[patch],
        features=patches.T.unflatten(1, grid),
        similarity=maps.position_similarity(positions, grid)[row, column],
    )


@torch.inference_mode()
def trace(model: ViT, image: Tensor, layer: int, head: int, token: int) -> Trace:
    """A token of a normalised image (channels, height, width) in a layer and head, all counted from 0."""
    config = model.config
    z = model.embed(image[None])
    for name, value, count in (
        ("layer", layer, config.layers),
        ("head", head, config.heads),
        ("token", token, z.shape[1]),
    ):
        if not 0 <= value < count:
            raise ValueError(f"There is no {name} {value}: there are {count}, counted from 0.")
    for block in model.blocks[:layer]:
        z = block(z)
    z = z[0]  # T, D
    block = cast(TransformerEncoderBlock, model.blocks[layer])

    normed = block.attention_norm(z)
    qkv = block.attention.qkv(normed).view(len(z), 3, config.heads, -1)  # T, 3, H, Dh
    query, keys, values = qkv[token, 0], qkv[:, 1], qkv[:, 2]  # H, Dh and T, H, Dh
    products = torch.einsum("hd,thd->ht", query, keys)
    scores = products / query.shape[-1] ** 0.5
    heads = scores.softmax(dim=-1)  # H, T
    weighted = torch.einsum("ht,thd->hd", heads, values)
    msa = block.attention_scale(block.attention.out(weighted.flatten()))

    # Registers take from all tokens, so that the MLP is asked for all of them.
    all_msa = block.attention_scale(block.attention(normed[None])[0])
    activations = block.mlp.to_registers(F.gelu(block.mlp.fc1(block.mlp_norm(z + all_msa)))[None])[0]
    neurons = activations[token]
    mlp = block.mlp_scale(block.mlp.fc2(neurons))
    between = z[token] + msa
    return Trace(
        before=z[token],
        normed=normed[token],
        query=query[head],
        keys=keys[:, head],
        values=values[:, head],
        products=products[head],
        scores=scores[head],
        attention=heads[head],
        weighted=weighted[head],
        heads=heads,
        msa=msa,
        steps=all_msa.norm(dim=1) / z.norm(dim=1),
        between=between,
        mlp_normed=block.mlp_norm(between),
        neurons=neurons,
        activations=activations,
        written=neurons.abs() * block.mlp_scale(block.mlp.fc2.weight.T).norm(dim=1),
        mlp=mlp,
        after=between + mlp,
    )
