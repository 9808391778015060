"""What a step of training makes smaller."""

from __future__ import annotations

from collections.abc import Callable

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from ..model import ViT
from ..registers import sink_penalty
from .data import UNLABELLED
from .recipe import Recipe

Teacher = Callable[[Tensor], Tensor]  # inputs → logits of the classes that it knows


class Objective(nn.Module):
    """A batch's loss, summed over its photos, and the logits.

    Cross-entropy with the classes evened out (logit adjustment: Menon et al., arXiv 2007.07314). Where a ViT has
    registers, a penalty on patches of far too large a norm keeps these from becoming sinks again.

    Labels are smoothed by each class's share of the photos. Spread equally, a class of few photos would be the target
    far more often than it has photos, and evening out would make it the answer to everything.
    """

    def __init__(self, model: nn.Module, targets: Tensor, classes: int, recipe: Recipe):
        super().__init__()
        self.model, self.recipe = model, recipe
        self.prior = recipe.balance * log_prior(targets, classes)
        shown = torch.bincount(targets[targets != UNLABELLED], minlength=classes) > 0
        self.spread = self.prior.masked_fill(~shown, -torch.inf).softmax(dim=0)  # classes

    def forward(self, inputs: Tensor, targets: Tensor) -> tuple[Tensor, Tensor]:
        """`targets` are classes (B,), or each class's share (B, classes)."""
        logits, penalty = self.run(inputs)
        targets = targets if targets.ndim == 2 else shares(targets, logits.shape[1])
        return self.losses(logits, targets, inputs).sum() + penalty * len(inputs), logits

    def losses(self, logits: Tensor, targets: Tensor, inputs: Tensor) -> Tensor:
        """Of each photo (B,)."""
        smoothing, labelled = self.recipe.label_smoothing, targets.sum(dim=1, keepdim=True)
        smooth = (1 - smoothing) * targets + smoothing * labelled * self.spread.to(targets)
        return learning_losses(logits, smooth, self.prior.to(logits))

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


def learning_losses(logits: Tensor, targets: Tensor, prior: Tensor) -> Tensor:
    """Of each photo the cross-entropy of its classes' shares (B, classes) with the prior added to the logits."""
    return -(targets * (logits + prior).log_softmax(dim=1)).sum(dim=1)


def shares(targets: Tensor, classes: int) -> Tensor:
    """Each photo's target as a share of every class (B, classes): nothing at all where it has no label."""
    return F.one_hot(targets.clamp(min=0), classes).float() * (targets != UNLABELLED)[:, None]


def log_prior(targets: Tensor, classes: int) -> Tensor:
    """The logarithm of each class's share of the photos that have a label; a class without any gets the mean."""
    counts = torch.bincount(targets[targets >= 0], minlength=classes)
    logs = (counts.clamp(min=1) / counts.sum()).log()
    return torch.where(counts > 0, logs, logs[counts > 0].mean())


def minimise(loss: Callable[[], Tensor], parameters: list[Tensor], **limits: float) -> None:
    """Make a convex loss as small as it gets, by L-BFGS; the limits are when to end."""
    optimizer = torch.optim.LBFGS(parameters, line_search_fn="strong_wolfe", **limits)  # type: ignore[arg-type]

    def evaluated() -> Tensor:
        optimizer.zero_grad()
        value = loss()
        value.backward()
        return value

    optimizer.step(evaluated)
