"""Every photo accounted for: what was made of it, and what was answered."""

from __future__ import annotations

import csv
import os
from collections.abc import Iterable
from dataclasses import asdict, dataclass, fields
from pathlib import Path

from torch import Tensor

from .data import UNLABELLED, Photos, name_of
from .evaluation import Evaluation
from .features import digest_of

FILE = "photos.csv"
LEARNT, HELD_OUT, TEST, LEFT_OUT = "learnt", "held out", "test", "left out"


@dataclass(frozen=True)
class Account:
    """A line of photos.csv."""

    file: str
    part: str
    label: str
    answer: str = ""
    probability: float | None = None  # of the answer
    label_probability: float | None = None
    familiarity: float | None = None
    note: str = ""
    sha256: str = ""  # its beginning, by which the photo is known again


def account(
    photos: Photos,
    part: str,
    root: str | Path,
    evaluation: Evaluation | None = None,
    familiarity: Tensor | None = None,
    notes: dict[int, str] | None = None,
) -> list[Account]:
    """An account of each photo; files are named from `root` on, where they lie in it. With notes, of those alone."""
    probabilities = None if evaluation is None else evaluation.logits.double().softmax(dim=1)
    accounts = []
    for index in range(len(photos)) if notes is None else sorted(notes):
        file, target = photos.files[index], photos.targets[index]
        label = "" if target == UNLABELLED else photos.labels[target]
        answered: dict[str, str | float] = {}
        if evaluation is not None and probabilities is not None:
            answered = dict(
                answer=evaluation.labels[int(evaluation.answers[index])],
                probability=round(float(evaluation.confidences[index]), 4),
                label_probability=round(float(probabilities[index, target]), 4),
            )
        if familiarity is not None:
            answered["familiarity"] = round(float(familiarity[index]), 4)
        note, digest = (notes or {}).get(index, ""), digest_of(file).hex()[:16]
        accounts.append(Account(name_of(file, root), part, label, note=note, sha256=digest, **answered))  # type: ignore[arg-type]
    return accounts


def write(accounts: Iterable[Account], folder: Path) -> None:
    """As a table, which spreadsheets open."""
    folder.mkdir(parents=True, exist_ok=True)
    with open(folder / FILE, "w", newline="", encoding="utf-8") as file:
        table = csv.DictWriter(file, [field.name for field in fields(Account)])
        table.writeheader()
        table.writerows(asdict(each) for each in accounts)


def learnt_from(model: str | os.PathLike[str], photos: Photos) -> int:
    """How many of the photos the model in a folder has learnt from, as far as it says."""
    known = Path(model) / FILE
    if not known.is_file():
        return 0
    with open(known, newline="", encoding="utf-8") as file:
        digests = {row["sha256"] for row in csv.DictReader(file) if row["part"] == LEARNT}
    return sum(digest_of(file).hex()[:16] in digests for file in photos.files)
