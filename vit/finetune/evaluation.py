"""How well a model answers: counts over photos whose classes are known, never a mean of the means of batches."""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import torch
from torch import Tensor

BINS = 15  # of the calibration error, as in Guo et al., arXiv 1706.04599
TOP = 5


@dataclass(frozen=True)
class Mistake:
    """A photo that was taken for another class, and the probability that this class was given."""

    index: int
    target: int
    answer: int
    probability: float


@dataclass(frozen=True)
class Evaluation:
    """What a model answered for photos whose classes are known. The answer is the class with the largest logit."""

    logits: Tensor  # n, classes
    targets: Tensor  # n
    labels: list[str]

    def __post_init__(self) -> None:
        """A sentence for whatever cannot be counted."""
        photos, classes = len(self.targets), len(self.labels)
        if not photos:
            raise ValueError("There are no photos to evaluate: give at least one.")
        if tuple(self.logits.shape) != (photos, classes):
            raise ValueError(
                f"The logits have the shape {tuple(self.logits.shape)}, but {photos} targets and {classes} labels "
                f"need ({photos}, {classes}): give a row for each photo and a column for each class."
            )
        if not 0 <= int(self.targets.min()) <= int(self.targets.max()) < classes:
            raise ValueError(f"Some targets are not among the classes 0 to {classes - 1}: give a label for each.")
        if not self.logits.isfinite().all():
            raise ValueError(
                "The model answered with numbers that are infinite or not a number: its training went astray, so "
                "train it again with a lower learning rate."
            )

    @property
    def total(self) -> int:
        return len(self.targets)

    @property
    def correct(self) -> int:
        return int((self.answers == self.targets).sum())

    @cached_property
    def answers(self) -> Tensor:
        """The class of the largest logit (n,); of equal ones the first."""
        return self.logits.argmax(dim=1)

    @cached_property
    def confidences(self) -> Tensor:
        """The probability of each answer (n,)."""
        return self.logits.double().softmax(dim=1).amax(dim=1)

    @cached_property
    def confusion(self) -> Tensor:
        """How many photos of each class got each answer (classes, classes): rows are true, columns answered."""
        classes = len(self.labels)
        pairs = self.targets * classes + self.answers
        return torch.bincount(pairs, minlength=classes**2).view(classes, classes)

    @cached_property
    def occurring(self) -> list[int]:
        """The classes that photos have or got as an answer: of a model that knows many, the data may show few."""
        return (self.confusion.sum(dim=0) + self.confusion.sum(dim=1)).nonzero()[:, 0].tolist()

    @property
    def per_class(self) -> list[tuple[str, int, int]]:
        """Of each class the label, how many photos were answered correctly, and how many there are."""
        return list(zip(self.labels, self.confusion.diag().tolist(), self.confusion.sum(dim=1).tolist()))

    @property
    def balanced_accuracy(self) -> float:
        """The mean of the classes' accuracies, which a large class cannot carry. A class without photos has none."""
        shares = [correct / total for _, correct, total in self.per_class if total]
        return sum(shares) / len(shares)

    @property
    def interval(self) -> tuple[float, float]:
        """Between what the share of correct answers lies, as far as so few photos tell: 95 % sure (Wilson, 1927)."""
        share, margin = self.correct / self.total, 1.96**2 / self.total
        middle = (share + margin / 2) / (1 + margin)
        half = math.sqrt(margin * share * (1 - share) + margin**2 / 4) / (1 + margin)
        return max(0.0, middle - half), min(1.0, middle + half)

    @property
    def calibration_error(self) -> float:
        """How far confidence is from accuracy, on average over photos: 0 where 80% sure is right 4 times of 5.

        Photos are put in bins by the probability of the answer; a bin is wrong by the difference of its mean
        probability and its share of correct answers, and counts as often as it has photos.
        """
        bins = (self.confidences * BINS).ceil().long().clamp(1, BINS) - 1  # n: a bin has its upper end
        excess = self.confidences - (self.answers == self.targets).double()
        return float(torch.zeros(BINS).double().index_add(0, bins, excess).abs().sum() / self.total)

    def top(self, k: int) -> int:
        """For how many photos the true class is among the k likeliest; of equal ones the first are."""
        likeliest = self.logits.argsort(dim=1, descending=True, stable=True)[:, :k]  # n, k
        return int((likeliest == self.targets[:, None]).sum())

    def most_wrong(self, count: int) -> list[Mistake]:
        """The mistakes that the model was surest of, the surest first."""
        wrong = (self.answers != self.targets).nonzero()[:, 0]
        order = wrong[self.confidences[wrong].argsort(descending=True, stable=True)][:count].tolist()
        return [Mistake(i, int(self.targets[i]), int(self.answers[i]), float(self.confidences[i])) for i in order]

    def confusions(self) -> list[list[Mistake]]:
        """The mistakes by true class and answer, the most frequent pair first; in each, the surest mistake first."""
        pairs: dict[tuple[int, int], list[Mistake]] = {}
        for mistake in self.most_wrong(self.total):
            pairs.setdefault((mistake.target, mistake.answer), []).append(mistake)
        return sorted(pairs.values(), key=len, reverse=True)

    def summary(self) -> str:
        """The figures as text, and a table of the classes with the worst first."""
        low, high = self.interval
        figures = [("correct", f"{_count(self.correct, self.total)} (95 % sure: {low:.1%} to {high:.1%})")]
        if self.has_top:
            figures.append((f"among the top {TOP}", _count(self.top(TOP), self.total)))
        figures.append(("class-balanced", f"{self.balanced_accuracy:.1%}"))
        figures.append(("calibration error", f"{self.calibration_error:.1%}"))
        order = sorted((row for row in self.per_class if row[2]), key=lambda row: row[1] / row[2])
        classes = [(label, _count(correct, total)) for label, correct, total in order]
        absent = len(self.labels) - len(classes)
        return "\n".join(
            [*_table(figures), "", *_table(classes), *[f"classes without photos: {absent}"] * bool(absent)]
        )

    def to_dict(self) -> dict[str, Any]:
        """Everything but the logits, for JSON; classes that do not occur are left out."""
        occurring = self.occurring
        return {
            "labels": [self.labels[index] for index in occurring],
            "total": self.total,
            "correct": self.correct,
            "interval": list(self.interval),
            **({f"top{TOP}": self.top(TOP)} if self.has_top else {}),
            "balanced_accuracy": self.balanced_accuracy,
            "calibration_error": self.calibration_error,
            "per_class": [
                dict(zip(("label", "correct", "total"), row, strict=True))
                for row in (self.per_class[index] for index in occurring)
            ],
            "confusion": self.confusion[occurring][:, occurring].tolist(),
        }

    @property
    def has_top(self) -> bool:
        """Of five classes or fewer, each is among the top five."""
        return len(self.labels) > TOP


def _count(correct: int, total: int) -> str:
    return f"{correct}/{total} = {correct / total:.1%}"


def _table(rows: list[tuple[str, str]]) -> list[str]:
    width = max(len(name) for name, _ in rows)
    return [f"{name:<{width}}  {figure}" for name, figure in rows]
