"""A head on features that stay as they are: a convex problem, which is solved and not trained.

The cross-entropy of all photos, with the classes evened out, and an L2 penalty on how far the weights go from where
they start; biases are free. Penalised, the problem has one solution, whatever the order of the photos; how strong the
penalty is, cross-validation says.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from ..familiarity import TrainingFeatures
from .keeping import keeping_losses
from .objective import learning_losses, log_prior, minimise, shares

FOLDS = 5
STRENGTHS = (1000.0, 100.0, 10.0, 1.0, 0.1)  # the solution for one is near the next one's
HEED = (0.0, 0.01, 0.02, 0.05, 0.1, 0.2, 0.5)  # shares of what classes' means say, to choose from
SMALL = 100_000_000  # products in a step, up to which threads wait for one another longer than they work


@dataclass(frozen=True)
class Problem:
    """Photos and what is known of them. Features are centred, and scaled by one number to a deviation of 1."""

    rows: Tensor  # n, D + 1: the features, and 1 for the bias
    targets: Tensor  # n, classes: each photo's class, or nothing at all
    counts: Tensor  # n: how often each photo counts
    start: Tensor  # classes, D + 1: the head that the penalty pulls to
    prior: Tensor  # classes
    mean: Tensor  # D: of the features
    scale: Tensor  # of the features
    opinion: Tensor | None = None  # n, K: a teacher's log-probabilities of the first classes
    keep: float = 0.0  # weight of that opinion for photos with a label

    @classmethod
    def of(
        cls,
        head: nn.Linear,
        features: Tensor,
        targets: Tensor,
        balance: float,
        counts: Tensor | None = None,
        opinion: Tensor | None = None,
        keep: float = 0.0,
    ) -> Problem:
        """`head` is where to start; `opinion` are a teacher's logits."""
        features = features.double()
        mean = features.mean(dim=0)
        scale = (features - mean).square().mean().sqrt().clamp(min=1e-12)
        weight, bias = (values.detach().to(features) for values in (head.weight, head.bias))
        return cls(
            rows=torch.cat([(features - mean) / scale, torch.ones_like(features[:, :1])], dim=1),
            targets=shares(targets, len(bias)).to(features),
            counts=(torch.ones(len(targets)) if counts is None else counts).to(features),
            start=torch.cat([weight * scale, (bias + weight @ mean)[:, None]], dim=1),
            prior=balance * log_prior(targets, len(bias)).to(features),
            mean=mean,
            scale=scale,
            opinion=None if opinion is None else opinion.to(features).log_softmax(dim=1),
            keep=keep,
        )

    def losses(self, logits: Tensor) -> Tensor:
        """Of each photo (n,), as often as it counts."""
        losses = learning_losses(logits, self.targets, self.prior)
        if self.opinion is not None:
            losses = losses + keeping_losses(logits, self.opinion, self.targets.sum(dim=1), self.keep)
        return losses * self.counts

    def solve(self, strength: float, learnt: Tensor | None = None, guess: Tensor | None = None) -> Tensor:
        """The head (classes, D + 1) for the photos that are `learnt` (n,), by default all. A good guess saves time."""
        learnt = torch.ones_like(self.counts) if learnt is None else learnt.to(self.counts)
        head = (self.start if guess is None else guess).clone().requires_grad_()
        photos = (self.counts * learnt).sum()

        def loss() -> Tensor:
            penalty = strength / 2 * (head - self.start)[:, :-1].square().sum()
            return ((self.losses(self.rows @ head.T) * learnt).sum() + penalty) / photos

        with _one_thread(self.rows.numel() * len(self.prior) < SMALL):
            minimise(loss, [head], max_iter=300, tolerance_grad=1e-6, tolerance_change=1e-10)
        solution = head.detach()
        solution[:, -1] -= (solution - self.start)[:, -1].mean()  # which changes no answer: the solution is one
        return solution

    def write(self, solution: Tensor, head: nn.Linear) -> None:
        """A solution as a head for features as they are."""
        weight = solution[:, :-1] / self.scale
        with torch.no_grad():
            head.weight.copy_(weight)
            head.bias.copy_(solution[:, -1] - weight @ self.mean)


@dataclass(frozen=True)
class CrossValidation:
    """What heads answered that had not learnt from the photo, for each strength that was tried."""

    history: list[dict[str, Any]]  # a row for each strength
    strength: float  # the best
    logits: Tensor  # n, classes: of each photo by a head that it had no part in, of the strength best for others


def cross_validate(
    problem: Problem, folds: Tensor, on_row: Callable[[dict[str, Any]], None] | None = None
) -> CrossValidation:
    """Each fold in turn is left out, for one strength after the other, until they are too weak."""
    parts = [folds == fold for fold in folds.unique()]
    labelled = problem.targets.sum(dim=1) > 0
    heads = [problem.start] * len(parts)
    history: list[dict[str, Any]] = []
    answers, losses = [], []  # for each strength: n, classes; folds
    for strength in STRENGTHS:
        heads = [problem.solve(strength, ~part, head) for part, head in zip(parts, heads)]
        logits = torch.empty(len(folds), len(problem.prior)).to(problem.rows)
        for part, head in zip(parts, heads):
            logits[part] = problem.rows[part] @ head.T
        each = problem.losses(logits)
        answers.append(logits)
        losses.append(torch.stack([each[part].sum() for part in parts]))
        correct = int((logits.argmax(dim=1) == problem.targets.argmax(dim=1))[labelled].sum())
        loss = (losses[-1].sum() / problem.counts.sum()).item()
        history.append(dict(strength=strength, loss=loss, correct=correct, photos=int(labelled.sum())))
        if on_row is not None:
            on_row(history[-1])
        if len(history) > 1 and loss > history[-2]["loss"]:
            break
    table = torch.stack(losses)  # strengths, folds
    logits = torch.empty_like(answers[0])
    for number, part in enumerate(parts):
        others = table.sum(dim=1) - table[:, number]
        logits[part] = answers[int(others.argmin())][part]
    best = min(history, key=lambda row: row["loss"])
    return CrossValidation(history, best["strength"], logits)


def heed_means(head: nn.Linear, known: TrainingFeatures, rows: Tensor, targets: Tensor) -> float:
    """Add to a head what the classes' means say, as far as photos that it has not learnt from are likelier so.

    A head that is trained with its backbone tells its own photos apart by whatever does; the means, with the covariance
    that they share, say what most photos of a class are like (linear discriminant analysis). `rows` are the features of
    the held-out photos. Returns how far: 0 where it does not help, or a class has no photos.
    """
    weight, bias = known.discriminant()
    if len(bias) != head.out_features:
        return 0.0
    with torch.no_grad():
        logits, said = head(rows.to(head.weight)).float().cpu(), rows.float() @ weight.T + bias
        best = min(HEED, key=lambda share: likeliest(logits + share * said, targets)[1])
        head.weight.add_(best * weight.to(head.weight))
        head.bias.add_(best * bias.to(head.bias))
    return best


def likeliest(logits: Tensor, targets: Tensor) -> tuple[float, float]:
    """The temperature at which answers are likeliest (Guo et al., 2017), and their cross-entropy there."""
    choices = torch.logspace(-1, 1, 201)
    losses = torch.stack([F.cross_entropy(logits / choice, targets) for choice in choices])
    return choices[losses.argmin()].item(), losses.min().item()


def deal(targets: Tensor, seed: int, folds: int = FOLDS) -> Tensor:
    """A fold for each photo (n,), drawn by the seed: the photos of a class are spread evenly."""
    generator = torch.Generator().manual_seed(seed)
    order = torch.randperm(len(targets), generator=generator)
    order = order[targets[order].sort(stable=True).indices]  # class by class
    dealt = torch.empty(len(targets), dtype=torch.long)
    dealt[order] = torch.arange(len(targets)) % folds
    return dealt


@contextmanager
def _one_thread(wanted: bool) -> Iterator[None]:
    """On a busy machine, two that wait for each other in every step take ten times as long as one."""
    before = torch.get_num_threads()
    torch.set_num_threads(1 if wanted else before)
    try:
        yield
    finally:
        torch.set_num_threads(before)
