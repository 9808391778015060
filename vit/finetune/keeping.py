"""Learning without forgetting (Li & Hoiem, arXiv 1606.09282): new classes beside those that a teacher knows."""

from __future__ import annotations

from pathlib import Path

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from .. import checkpoints
from ..classifier import Classifier
from .data import SUFFIXES, UNLABELLED, DataError, Photos, places
from .objective import Objective, Teacher
from .recipe import Recipe


def load_teacher(name: str, base: Classifier) -> Classifier:
    """The model whose classes are kept: one that sees photos as the base does, and knows classes."""
    teacher = checkpoints.load(name)
    if not teacher.labels:
        raise ValueError(f"{name} knows no classes that could be kept: leave --keep-classes out.")
    theirs, ours = teacher.preprocessing, base.preprocessing
    if (theirs.mean, theirs.std) != (
        ours.mean,
        ours.std,
    ) or teacher.model.config.channels != base.model.config.channels:
        raise ValueError(
            f"{name} sees photos in another way than the base (mean {theirs.mean}, deviation {theirs.std}; the base "
            f"{ours.mean}, {ours.std}): choose a teacher of the base's kind."
        )
    teacher.model.requires_grad_(False)
    return teacher


def join(kept: list[str], new: list[str]) -> tuple[list[str], list[str]]:
    """All classes, the kept ones first and in their order, and those of the new ones that were among them."""
    labels, shared = list(kept), []
    for label, place in zip(new, places(kept, new)):
        if place is None:
            labels.append(label)
        else:
            labels[place] = label  # as it is written now
            shared.append(label)
    return labels, shared


def unlabelled(folder: str, labels: list[str]) -> Photos:
    """All photos in a folder, at any depth; what its folders are called does not matter."""
    if not Path(folder).expanduser().is_dir():
        raise DataError(f"There is no folder {folder!r}: --teacher-photos is a folder of photos without labels.")
    files = [file for file in sorted(Path(folder).expanduser().rglob("*")) if file.suffix.lower() in SUFFIXES]
    if not files:
        raise DataError(f"There are no photos in {folder!r}: --teacher-photos is a folder of photos without labels.")
    return Photos(files, [UNLABELLED] * len(files), labels)


def repeated(count: int, labelled: int, share: float) -> list[int]:
    """The indexes of photos without labels, as often as it takes to make them a share of an epoch."""
    wanted = max(count, round(labelled * share / (1 - share)))
    return [index % count for index in range(wanted)] if count else []


def shares(targets: Tensor, classes: int) -> Tensor:
    """Each photo's target as a share of every class (B, classes): nothing at all where it has no label."""
    return F.one_hot(targets.clamp(min=0), classes).float() * (targets != UNLABELLED)[:, None]


class Keeping(Objective):
    """The loss that also keeps what the teacher knows of the first K classes.

    A photo with a label learns it among all classes, and the teacher's opinion among the kept ones. A photo without a
    label (or that share of a mixed one) learns the teacher's opinion among all classes: it is none of the new ones.
    """

    def __init__(self, model: nn.Module, prior: Tensor, recipe: Recipe, teacher: Teacher):
        super().__init__(model, prior, recipe)
        self.teacher = teacher

    def forward(self, inputs: Tensor, targets: Tensor) -> tuple[Tensor, Tensor]:
        logits, penalty = self.run(inputs)
        with torch.no_grad():
            opinion = self.teacher(inputs).float().log_softmax(dim=1)  # B, K
        labelled = targets.sum(dim=1)  # B
        smoothing = self.recipe.label_smoothing
        smooth = (1 - smoothing) * targets + smoothing * labelled[:, None] / logits.shape[1]
        learnt = -(smooth * (logits + self.prior).log_softmax(dim=1)).sum(dim=1)
        kept = opinion.shape[1]
        among_kept = _divergence(opinion, logits[:, :kept].log_softmax(dim=1))
        among_all = _divergence(opinion, logits.log_softmax(dim=1)[:, :kept])
        losses = learnt + self.recipe.keep * labelled * among_kept + (1 - labelled) * among_all
        return losses.sum() + penalty * len(inputs), logits


def _divergence(opinion: Tensor, answer: Tensor) -> Tensor:
    """The Kullback-Leibler divergence of log-probabilities from the teacher's (B, K): one number a photo."""
    return F.kl_div(answer, opinion, reduction="none", log_target=True).sum(dim=1)
