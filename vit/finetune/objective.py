"""What a step of training makes smaller."""

from __future__ import annotations

from collections.abc import Callable

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from ..model import ViT
from ..registers import sink_penalty
from .recipe import Recipe

Teacher = Callable[[Tensor], Tensor]  # inputs → logits of the classes that it knows


class Objective(nn.Module):
    """A batch's loss, summed over its photos, and the logits.

    Cross-entropy with the classes evened out (logit adjustment: Menon et al., arXiv 2007.07314). Where a ViT has
    registers, a penalty on patches of far too large a norm keeps these from becoming sinks again.
    """

    def __init__(self, model: nn.Module, prior: Tensor, recipe: Recipe):
        super().__init__()
        self.model, self.prior, self.recipe = model, prior, recipe

    def forward(self, inputs: Tensor, targets: Tensor) -> tuple[Tensor, Tensor]:
        """`targets` are classes (B,), or each class's share (B, classes)."""
        logits, penalty = self.run(inputs)
        smoothing = self.recipe.label_smoothing
        loss = F.cross_entropy(logits + self.prior, targets, label_smoothing=smoothing, reduction="sum")
        return loss + penalty * len(inputs), logits

    def run(self, inputs: Tensor) -> tuple[Tensor, Tensor]:
        """The logits, and the penalty on sinks."""
        model = self.model
        if not (isinstance(model, ViT) and model.config.registers and self.recipe.sink_penalty):
            logits = model(inputs).float()
            return logits, logits.new_zeros(())
        recording = model.record(inputs, layers=())  # the fast path, and the tokens after each layer
        later = recording.tokens[model.config.layers // 2 :]  # sinks are made in the middle layers
        penalty = self.recipe.sink_penalty * sink_penalty(later, model.config.prefix_tokens)
        return recording.logits.float(), penalty


def log_prior(targets: Tensor, classes: int) -> Tensor:
    """The logarithm of each class's share of the photos that have a label; a class without any gets the mean."""
    counts = torch.bincount(targets[targets >= 0], minlength=classes)
    logs = (counts.clamp(min=1) / counts.sum()).log()
    return torch.where(counts > 0, logs, logs[counts > 0].mean())
