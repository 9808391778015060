"""Learning without forgetting (Li & Hoiem, arXiv 1606.09282): new classes beside those that a teacher knows."""

from __future__ import annotations

import math
from pathlib import Path

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from .. import checkpoints
from ..classifier import Classifier
from ..photos.finding import photos_in
from .data import UNLABELLED, DataError, Photos, places
from .objective import Objective, Teacher, minimise
from .recipe import Recipe

STIFFNESS = 0.01  # of the direction that tells photos with labels from others


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
    files = photos_in(Path(folder).expanduser())
    if not files:
        raise DataError(f"There are no photos in {folder!r}: --teacher-photos is a folder of photos without labels.")
    return Photos(files, [UNLABELLED] * len(files), labels)


def repeated(count: int, labelled: int, share: float) -> list[int]:
    """The indexes of photos without labels, as often as it takes to make them a share of an epoch."""
    wanted = max(count, round(labelled * share / (1 - share)))
    return [index % count for index in range(wanted)] if count else []


class Keeping(Objective):
    """The loss that also keeps what the teacher knows of the first K classes.

    A photo with a label learns it among all classes, and the teacher's opinion among the kept ones. A photo without a
    label (or that share of a mixed one) learns the teacher's opinion among all classes: it is none of the new ones.
    Labels are smoothed over the classes that the photos show: spread over all, each kept class would learn that every
    photo is a little of it.
    """

    def __init__(self, model: nn.Module, targets: Tensor, classes: int, recipe: Recipe, teacher: Teacher):
        super().__init__(model, targets, classes, recipe)
        self.teacher = teacher

    def losses(self, logits: Tensor, targets: Tensor, inputs: Tensor) -> Tensor:
        with torch.no_grad():
            opinion = self.teacher(inputs).float().log_softmax(dim=1)  # B, K
        learnt = super().losses(logits, targets, inputs)
        return learnt + keeping_losses(logits, opinion, targets.sum(dim=1), self.recipe.keep)


def keeping_losses(logits: Tensor, opinion: Tensor, labelled: Tensor, keep: float) -> Tensor:
    """Of each photo, how far it is from the teacher's log-probabilities (B, K); `labelled` is 1 with a label."""
    kept = opinion.shape[1]
    among_kept = _divergence(opinion, logits[:, :kept].log_softmax(dim=1))
    among_all = _divergence(opinion, logits.log_softmax(dim=1)[:, :kept])
    return keep * labelled * among_kept + (1 - labelled) * among_all


def _divergence(opinion: Tensor, answer: Tensor) -> Tensor:
    """The Kullback-Leibler divergence of log-probabilities from the teacher's (B, K): one number a photo."""
    return F.kl_div(answer, opinion, reduction="none", log_target=True).sum(dim=1)


def evened_out(targets: Tensor, classes: int, balance: float) -> Tensor:
    """What to add to the logits (classes,), as the photos with labels were more often met than the others, or less.

    What `balance` does among classes, after the training (logit adjustment, its second form: arXiv 2007.07314).
    """
    labelled = targets[targets != UNLABELLED]
    unlabelled = len(targets) - len(labelled)
    shift = torch.zeros(classes)
    if unlabelled and len(labelled):
        shift[labelled.unique()] = -balance * math.log(len(labelled) / unlabelled)
    return shift


def tell_apart(head: nn.Linear, shown: Tensor, rows: Tensor, targets: Tensor, others: Tensor, opinion: Tensor) -> None:
    """Make the classes of photos with labels (`shown`), all alike, likelier for such photos, less likely for others.

    One direction and one bias are added to all their rows of the head: those at which held-out photos (`rows` and
    `targets`) and photos without a label (`others`, with the teacher's logits as `opinion`) are likeliest.
    """
    new = torch.zeros(head.out_features).index_fill(0, shown, 1.0)  # classes
    with torch.no_grad():
        logits, other_logits = (head(features.to(head.weight)).cpu() for features in (rows, others))
    opinion = opinion.log_softmax(dim=1)
    direction, bias = torch.zeros(head.in_features, requires_grad=True), torch.zeros(1, requires_grad=True)

    def loss() -> Tensor:
        learnt = F.cross_entropy(logits + (rows @ direction + bias)[:, None] * new, targets)
        answers = (other_logits + (others @ direction + bias)[:, None] * new).log_softmax(dim=1)
        kept = _divergence(opinion, answers[:, : opinion.shape[1]]).mean()
        return (learnt + kept) / 2 + STIFFNESS * direction.square().sum()

    minimise(loss, [direction, bias], max_iter=100)
    with torch.no_grad():
        head.weight.add_((new[:, None] * direction).to(head.weight))
        head.bias.add_((new * bias).to(head.bias))
