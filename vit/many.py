"""Asking about many photos: in batches, decoded beside the model, and the answers as a file."""

from __future__ import annotations

import csv
import json
import os
from collections import deque
from collections.abc import Callable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from typing import Any

from torch import Tensor

from .classifier import Answer, Classifier
from .processes import Processes

BATCH = 16
AHEAD = 2  # batches that are decoded while the model works on one
THREADS = min(4, os.cpu_count() or 1)
ENDINGS = (".csv", ".jsonl")


def answers(
    classifier: Classifier,
    photos: list[str],
    top_k: int = 5,
    processes: Processes | None = None,
    size: int | None = None,
    fit: bool = False,
) -> Iterator[tuple[str, Answer | str]]:
    """Each photo with its answer, or with a sentence on why there is none, in the order given.

    Processes share each round of batches, and all get the whole.
    """
    processes = processes or Processes()
    rounds = list(_rounds(len(photos), processes.count))
    own = [photos[batches[processes.index]] for batches in rounds]
    for batches, views in zip(rounds, _decoded(partial(_view, classifier, size, fit), own)):
        found = processes.gather(_batch(classifier, views, top_k))
        yield from zip(photos[batches[0].start : batches[-1].stop], found)


def _rounds(photos: int, processes: int) -> Iterator[list[slice]]:
    """A batch for each process, until no photo is left. Batches grow, so that the first answer comes at once."""
    start, size = 0, 1
    while start < photos:
        yield [slice(start + number * size, start + (number + 1) * size) for number in range(processes)]
        start, size = start + processes * size, min(2 * size, BATCH)


def _view(classifier: Classifier, size: int | None, fit: bool, photo: str) -> Tensor | str:
    try:
        view = classifier.image(photo, size, fit)
        classifier.model.check_images(view[None])
        return view
    except ValueError as error:  # PhotoError, or a shape that patches do not divide
        return str(error)


def _decoded(view: Callable[[str], Tensor | str], batches: list[list[str]]) -> Iterator[list[Tensor | str]]:
    """The views of each batch, made by threads that keep a few batches ahead."""
    pool = ThreadPoolExecutor(THREADS)
    ahead: deque[list[Future[Tensor | str]]] = deque()
    try:
        for batch in batches:
            ahead.append([pool.submit(view, photo) for photo in batch])
            if len(ahead) > AHEAD:
                yield [future.result() for future in ahead.popleft()]
        while ahead:
            yield [future.result() for future in ahead.popleft()]
    finally:
        pool.shutdown(cancel_futures=True)


def _batch(classifier: Classifier, views: list[Tensor | str], top_k: int) -> list[Answer | str]:
    """In one forward pass for each shape: without a crop, photos differ in theirs."""
    found: list[Answer | str] = [view if isinstance(view, str) else "" for view in views]
    shapes: dict[tuple[int, ...], list[int]] = {}
    for place, view in enumerate(views):
        if isinstance(view, Tensor):
            shapes.setdefault(tuple(view.shape), []).append(place)
    for places in shapes.values():
        seen = [view for view in (views[place] for place in places) if isinstance(view, Tensor)]
        for place, answer in zip(places, classifier.answers(seen, top_k)):
            found[place] = answer
    return found


def check_ending(out: Path) -> None:
    """Raise a sentence unless the file's name says how to write it."""
    if out.suffix.lower() not in ENDINGS:
        raise ValueError(f"{str(out)!r} should end in .csv or .jsonl: the ending says how answers are written.")


@contextmanager
def writer(out: Path, top_k: int, *more: str) -> Iterator[Callable[..., None]]:
    """What writes a photo's row: CSV, or JSON Lines with the same names, as the file's ending says.

    It takes a photo, its answer or a sentence on why there is none, and what stands in `more` columns.
    """
    numbers = ["", *(f"_{number}" for number in range(2, top_k + 1))]
    names = [(f"label{number}", f"probability{number}") for number in numbers]
    columns = ["photo", *more, *(name for pair in names for name in pair), "familiarity", "error"]
    out.parent.mkdir(parents=True, exist_ok=True)
    # Names of files need not be UTF-8: they are written as they are.
    with out.open("w", encoding="utf-8", errors="surrogateescape", newline="") as file:
        table = csv.writer(file)
        if out.suffix.lower() == ".csv":
            table.writerow(columns)

        def write(photo: str, answer: Answer | str, *values: object) -> None:
            row: dict[str, Any] = dict.fromkeys(columns) | {"photo": photo} | dict(zip(more, values))
            if isinstance(answer, str):
                row["error"] = answer
            else:
                row["familiarity"] = answer.familiarity
                for pair, prediction in zip(names, answer.predictions):
                    row |= zip(pair, prediction)
            if out.suffix.lower() == ".csv":
                table.writerow(row.values())
            else:
                file.write(json.dumps(row, ensure_ascii=False) + "\n")

        yield write
