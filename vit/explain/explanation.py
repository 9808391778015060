"""What was recorded when the model looked at one photo, and the maps that can be made of it."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from torch import Tensor

from ..familiarity import unfamiliar
from . import maps
from .maps import Heads


class UnsupportedError(ValueError):
    """A map that a checkpoint cannot give, for want of a class token or a head, in a sentence."""


# What a map may need of a checkpoint, and what to say where it is not there.
NEEDS = {
    "class token": "asks the class token, and this checkpoint has none: use rollout, or looks_at.",
    "classes": "needs a classifier, and this checkpoint has none: use class_attention or rollout.",
    "two layers": "reads the tokens between two blocks, and this checkpoint has a single one: use relevance.",
}


Box = tuple[float, float, float, float]  # left, top, right, bottom


@dataclass(frozen=True)
class Gradients:
    """One backward pass: how the logit of a class changes with what was recorded."""

    attention: Tensor  # L, H, T, T
    tokens: Tensor  # L, T, D


@dataclass(frozen=True, repr=False)
class Explanation:
    """One photo's forward pass. T tokens: `prefix` names those before the patches, then R × C patches row by row.

    The methods give maps in the shape of the grid (R, C), for each layer where a method has one (L, R, C). A class is
    named by its label or its index.
    """

    probabilities: Tensor  # classes; none where the checkpoint has no classifier
    attention: Tensor  # L, H, T, T; row t says what token t looks at, and sums to 1
    tokens: Tensor  # L, T, D: after each layer
    lens: Tensor  # L, classes: the final norm and head applied to the tokens after each layer, as probabilities
    grid: tuple[int, int]  # R, C
    prefix: tuple[str, ...]  # such as ("class", "register 1")
    reads: Tensor  # T: how the head's look at the last layer's tokens is shared among them, 1 for the class token alone
    box: Box  # the part of the photo that the model saw
    labels: list[str]
    patch_size: int
    familiarity: float | None  # how like the training photos it is: see `Classifier.familiarity`
    backward: Callable[[int], Gradients]  # of a class, by its index; run when a method needs it

    def __repr__(self) -> str:
        L, H = self.attention.shape[:2]
        best = f"{self.labels[self.class_index(None)]!r} {self.probabilities.max():.0%}, " if self.labels else ""
        return f"Explanation({best}{self.grid[0]} × {self.grid[1]} patches, {L} layers, {H} heads)"

    @property
    def unfamiliar(self) -> bool:
        """Whether the photo is like nothing the model was trained on, as far as the checkpoint knows."""
        return unfamiliar(self.familiarity)

    def class_attention(self, heads: Heads = "mean") -> Tensor:
        """What the class token looks at, in each layer (L, R, C). See `class_attention_elsewhere` for the rest."""
        self.need("class_attention", "class token")
        return self.to_grid(maps.looks_at(maps.fuse_heads(self.attention, heads), 0))

    def class_attention_elsewhere(self, heads: Heads = "mean") -> dict[str, Tensor]:
        """How much of its look the class token spends on itself and on each other token that is no patch, by layer."""
        self.need("class_attention_elsewhere", "class token")
        row = maps.looks_at(maps.fuse_heads(self.attention, heads), 0)  # L, T
        return {name: row[:, token] for token, name in enumerate(self.prefix)}

    def looks_at(self, patch: int, heads: Heads = "mean") -> Tensor:
        """What a patch looks at, in each layer (L, R, C); patches are counted row by row from 0."""
        return self.to_grid(maps.looks_at(maps.fuse_heads(self.attention, heads), self.token(patch)))

    def looked_at_by(self, patch: int, heads: Heads = "mean") -> Tensor:
        """Which patches look at a patch, and how much, in each layer (L, R, C)."""
        return self.to_grid(maps.looked_at_by(maps.fuse_heads(self.attention, heads), self.token(patch)))

    def rollout(self, heads: Heads = "mean", discard: float = 0.0, start: int = 0) -> Tensor:
        """Attention rollout from what the head reads to the photo, after each layer from `start` on."""
        return self.to_grid(maps.rollout(maps.fuse_heads(self.attention, heads), discard, start, self.reads))

    def relevance(self, label: str | int | None = None, start: int = 0) -> Tensor:
        """What speaks for a class (the likeliest by default), in the last layer's reading (R, C): Chefer et al."""
        return self.relevance_by_layer(label, start)[-1]

    def relevance_by_layer(self, label: str | int | None = None, start: int = 0) -> Tensor:
        """How the relevance of a class builds up, after each layer from `start` on; the last is `relevance`."""
        gradients = self.gradients(label).attention
        return self.to_grid(maps.relevance(self.attention, gradients, start, self.reads))

    def gradient_attention(self, label: str | int | None = None) -> Tensor:
        """Gradient × attention for a class, in each layer (L, R, C)."""
        gradients = self.gradients(label).attention
        return self.to_grid(self.reads @ maps.gradient_attention(self.attention, gradients))

    def grad_cam(self, label: str | int | None = None) -> Tensor:
        """Grad-CAM for a class (R, C), on the tokens that enter the last block; of those that leave it, one is read."""
        self.need("Grad-CAM", "two layers")
        layer, first = len(self.tokens) - 2, len(self.prefix)
        gradients = self.gradients(label).tokens[layer, first:]
        return maps.grad_cam(self.tokens[layer, first:], gradients).unflatten(0, self.grid)

    def difference(self, label: str | int, other: str | int, start: int = 0) -> Tensor:
        """Where the evidence for one class exceeds that for another (positive), and where it falls short (R, C)."""
        return self.relevance(label, start) - self.relevance(other, start)

    def attention_distance(self) -> Tensor:
        """How far each head looks on average, in pixels of what the model sees (L, H)."""
        return maps.attention_distance(self.attention, len(self.prefix), self.grid, self.patch_size)

    def entropy(self) -> Tensor:
        """How widely each head spreads its look, in bits (L, H)."""
        return maps.entropy(self.attention)

    def outliers(self, factor: float = 2.0) -> tuple[Tensor, Tensor]:
        """The norm of each patch after each layer (L, R, C), and which are `factor` times their layer's median."""
        norms, flagged = maps.outliers(self.tokens, len(self.prefix), factor)
        return norms.unflatten(-1, self.grid), flagged.unflatten(-1, self.grid)

    def logit_lens(self) -> Tensor:
        """The probabilities that the final norm and head give the tokens after each layer (L, classes)."""
        self.need("The logit lens", "classes")
        return self.lens

    def decided(self, top_k: int = 3) -> list[list[tuple[str, float]]]:
        """The logit lens: after each layer, the labels the head would give if that layer were the last."""
        best = self.logit_lens().topk(min(top_k, len(self.labels)))
        return [
            [(self.labels[index], value) for value, index in zip(values, indices)]
            for values, indices in zip(best.values.tolist(), best.indices.tolist())
        ]

    def class_index(self, label: str | int | None) -> int:
        """The index of a class by its label or its index; the likeliest where None is given."""
        self.need("A map for a class", "classes")
        if label is None:
            return int(self.probabilities.argmax())
        if label in self.labels:
            return self.labels.index(label)
        # A number of any kind, or one that comes as text from a command line.
        index = int(label) if str(label).isdecimal() else -1
        if 0 <= index < len(self.labels):
            return index
        raise ValueError(
            f"There is no class {label!r}: use one of the labels, or a number up to {len(self.labels) - 1}."
        )

    def gradients(self, label: str | int | None) -> Gradients:
        """How the logit of a class changes with the attention and the tokens."""
        return self.backward(self.class_index(label))

    def to_grid(self, values: Tensor) -> Tensor:
        """Of values for all tokens (…, T) those of the patches (…, R, C)."""
        return maps.to_grid(values, len(self.prefix), self.grid)

    def token(self, patch: int) -> int:
        """The place of a patch among the tokens."""
        count = self.grid[0] * self.grid[1]
        if not 0 <= patch < count:
            raise ValueError(f"There is no patch {patch}: this photo has the patches 0 to {count - 1}.")
        return len(self.prefix) + patch

    def need(self, what: str, *needs: str) -> None:
        """Raise the sentence that says why there is no such map, where the checkpoint lacks something for it."""
        has = {"class token": "class" in self.prefix, "classes": bool(self.labels), "two layers": len(self.tokens) > 1}
        for need in needs:
            if not has[need]:
                raise UnsupportedError(f"{what} {NEEDS[need]}")
