"""What was recorded when the model looked at one photo."""

from __future__ import annotations

from dataclasses import dataclass

from torch import Tensor


@dataclass(frozen=True)
class Explanation:
    """One photo's forward pass. T tokens: `prefix` names those before the patches, then R × C patches row by row."""

    probabilities: Tensor  # classes; none where the checkpoint has no classifier
    attention: Tensor  # L, H, T, T; row t says what token t looks at, and sums to 1
    tokens: Tensor  # L, T, D: after each layer
    grid: tuple[int, int]  # R, C
    prefix: tuple[str, ...]  # such as ("class", "register 1")
    box: tuple[float, float, float, float]  # the part of the photo that the model saw: left, top, right, bottom
    labels: list[str]
