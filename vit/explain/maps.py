"""Where the model looks, as pure functions on tensors: each names the paper it comes from.

Shapes: L layers, H heads, T tokens, N patches, D width, R × C grid. Before the patches come `prefix_tokens` others: the
class token first, where there is one, then registers. Row t of an attention says what token t looks at.
"""

from __future__ import annotations

import math
from typing import Literal

import torch
from torch import Tensor

Heads = Literal["mean", "max"] | int


def to_grid(values: Tensor, prefix_tokens: int, grid: tuple[int, int]) -> Tensor:
    """Of values for all tokens (…, T) those of the patches, in their places (…, R, C)."""
    return values[..., prefix_tokens:].unflatten(-1, grid)


def fuse_heads(attention: Tensor, heads: Heads = "mean") -> Tensor:
    """All heads of an attention (…, H, T, T) in one (…, T, T): their mean, their maximum, or one of them."""
    if heads == "mean":
        return attention.mean(dim=-3)
    if heads == "max":
        return attention.amax(dim=-3)
    count = attention.shape[-3]
    if not isinstance(heads, int) or not -count <= heads < count:
        raise ValueError(f"There is no head {heads!r}: use 'mean', 'max' or a number from 0 to {count - 1}.")
    return attention.select(-3, heads)


def looks_at(attention: Tensor, token: int) -> Tensor:
    """What a token looks at: its row of the attention (…, T, T), which sums to 1."""
    return attention[..., token, :]


def looked_at_by(attention: Tensor, token: int) -> Tensor:
    """Who looks at a token, and how much: its column of the attention (…, T, T)."""
    return attention[..., :, token]


def rollout(attention: Tensor, discard: float = 0.0, start: int = 0, reads: Tensor | None = None) -> Tensor:
    """Attention rollout (Abnar & Zuidema, arXiv 2005.00928): how much of each input token is in each token.

    From one attention for each layer (L, T, T), after each layer from `start` on (L - start, T, T). The residual counts
    as looking at oneself with weight one half. `discard` is the share of the weakest links of each row that is cut, the
    rest being normalised again, so that every row sums to 1 at every step. For `reads`, see `_through`.
    """
    if not 0 <= discard < 1:
        raise ValueError(f"discard is the share of links to cut, from 0 up to but not including 1, not {discard}.")
    attention = _from(attention, start)
    if discard:
        attention = _keep_strongest(attention, discard)
    attention = attention / attention.sum(dim=-1, keepdim=True)  # the maximum of heads sums to more than 1
    return _through((attention + _identity(attention)) / 2, reads)


def _through(layers: Tensor, reads: Tensor | None) -> Tensor:
    """The products of all layers (L, T, T) up to each one, the last layer leftmost.

    With `reads` (T,), which shares a reader's look among the tokens, only what that reader sees (L, T): so no two
    matrices are multiplied, and many tokens stay quick.
    """
    if reads is None:
        products = [layers[0]]
        for layer in layers[1:]:
            products.append(layer @ products[-1])  # T, T
        return torch.stack(products)
    rows = reads.new_empty(0, len(reads))
    for layer in layers.flip(0):  # on the way down a reader joins at each layer
        rows = torch.cat([reads[None], rows]) @ layer
    return rows


def _identity(layers: Tensor) -> Tensor:
    return torch.eye(layers.shape[-1], dtype=layers.dtype, device=layers.device)


def _keep_strongest(attention: Tensor, discard: float) -> Tensor:
    cut = int(attention.shape[-1] * discard)
    weakest = attention.argsort(dim=-1)[..., :cut]
    return attention.scatter(-1, weakest, 0.0)


def _from(layers: Tensor, start: int) -> Tensor:
    if not 0 <= start < len(layers):
        raise ValueError(f"There is no layer {start} to start from: this model has the layers 0 to {len(layers) - 1}.")
    return layers[start:]


def gradient_attention(attention: Tensor, gradients: Tensor) -> Tensor:
    """Gradient × attention in each layer (L, T, T): the links that speak for the class, the mean of the heads.

    `gradients` are the class's logit's, by the attention (L, H, T, T). The step from one layer to the next in Chefer et
    al., arXiv 2103.15679, Eq. 5.
    """
    return (gradients * attention).clamp(min=0).mean(dim=-3)


def relevance(attention: Tensor, gradients: Tensor, start: int = 0, reads: Tensor | None = None) -> Tensor:
    """Relevance of each input token to a class, after each layer (L - start, T, T).

    The gradient-weighted rollout for self-attention of Chefer et al., "Generic Attention-model Explainability", ICCV
    2021, arXiv 2103.15679, Eq. 6, without the identity it starts from: that would show every token as relevant to
    itself. For `reads`, see `_through`.
    """
    weighted = _from(gradient_attention(attention, gradients), start)
    identity = _identity(weighted)
    return _through(weighted + identity, reads) - (identity if reads is None else reads)


def grad_cam(tokens: Tensor, gradients: Tensor) -> Tensor:
    """Grad-CAM (Selvaraju et al., arXiv 1610.02391) on patch tokens (N, D) and the logit's gradients by them: (N,)."""
    weights = gradients.mean(dim=0)  # D
    return (tokens @ weights).clamp(min=0)


def attention_distance(attention: Tensor, prefix_tokens: int, grid: tuple[int, int], patch_size: int) -> Tensor:
    """How far each head looks on average, in pixels of the model's image (L, H): the ViT paper's Figure 7, right.

    From patch to patch, between their middles; looking at other tokens does not count.
    """
    rows, columns = torch.meshgrid(*(torch.arange(float(side)) for side in grid), indexing="ij")
    places = torch.stack([rows.flatten(), columns.flatten()], dim=1) * patch_size  # N, 2
    distances = torch.cdist(places, places).to(attention.device)  # N, N
    patches = attention[..., prefix_tokens:, prefix_tokens:].float()
    patches = patches / patches.sum(dim=-1, keepdim=True).clamp(min=1e-12)  # none where a patch looks at no patch
    return (patches * distances).sum(dim=-1).mean(dim=-1)


def entropy(attention: Tensor) -> Tensor:
    """How widely each head spreads its look, in bits, the mean of all tokens (L, H): 0 for a single token."""
    return torch.special.entr(attention).sum(dim=-1).mean(dim=-1) / math.log(2)


def position_similarity(positions: Tensor, grid: tuple[int, int]) -> Tensor:
    """Cosine of each patch's position embedding (N, D) with all others' (R, C, R, C): the paper's Figure 7, middle."""
    unit = torch.nn.functional.normalize(positions, dim=-1)
    return (unit @ unit.T).unflatten(1, grid).unflatten(0, grid)


def filter_components(filters: Tensor, count: int = 28) -> Tensor:
    """The first principal components of the patch filters (D, 3, P, P), each as a tile (3, P, P) from 0 to 1.

    The paper's Figure 7, left.
    """
    flat = filters.flatten(1).float()
    _, _, components = torch.linalg.svd(flat - flat.mean(dim=0), full_matrices=False)
    tiles = components[:count]
    low, high = tiles.amin(dim=1, keepdim=True), tiles.amax(dim=1, keepdim=True)
    return ((tiles - low) / (high - low)).unflatten(1, filters.shape[1:])


def outliers(tokens: Tensor, prefix_tokens: int, factor: float = 2.0) -> tuple[Tensor, Tensor]:
    """The norm of each patch's token after each layer (L, N), and which are far above the rest.

    Such patches, of little content themselves, serve the model as scratch paper (Darcet et al., "Vision Transformers
    Need Registers", arXiv 2309.16588). Flagged is what has more than `factor` times the median norm of its layer.
    """
    norms = tokens[:, prefix_tokens:].norm(dim=-1)
    return norms, norms > factor * norms.median(dim=-1, keepdim=True).values


def leave_out(values: Tensor, flagged: Tensor) -> Tensor:
    """A map without the flagged patches: nothing there, and the others as they are."""
    return values.masked_fill(flagged, 0.0)
