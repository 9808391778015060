"""What is left of a run to look at: pictures of how it learnt and where it errs, and the figures as JSON."""

from __future__ import annotations

import json
import math
from collections.abc import Sequence
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
from matplotlib.axes import Axes
from matplotlib.backends.backend_agg import RendererAgg
from matplotlib.colors import PowerNorm
from matplotlib.figure import Figure
from matplotlib.font_manager import FontProperties
from matplotlib.ticker import MaxNLocator, PercentFormatter
from PIL import Image

from .. import drawing
from ..drawing import CELL, DPI, LINES, STYLES
from .data import Photos
from .evaluation import Evaluation

History = Sequence[dict[str, Any]]  # a row for each epoch, as training makes them

MARKED = 30  # epochs at most for which each has a marker
NUMBERED = 20  # classes at most for which each cell of the confusion has its number
MATRIX = 1500  # pixels of a large confusion's side
LABEL = 13  # pixels that a small label needs
GUIDE = 5  # labels between two lines across a large confusion
TICKS = (0, 0.01, 0.05, 0.1, 0.25, 0.5, 0.75, 1)  # of its colours
COLUMNS = 6  # of the mistakes


def curves(history: History) -> Image.Image:
    """Loss and accuracy of each epoch, on the photos that are trained on and on those held out.

    Those trained on are counted while the model learns, as the epoch meets them, so held-out photos can do better.
    """
    if not history:
        raise ValueError("There is no epoch to draw: train for at least one.")
    figure = Figure((11, 4.2), dpi=DPI, layout="constrained")
    loss, accuracy = figure.subplots(1, 2)
    edge = max(0.5, len(history) / 101)
    held_out = [{"epoch": row["epoch"], **row["held_out"]} for row in history if row.get("held_out")]
    for index, (name, rows) in enumerate({"training photos": history, "held-out photos": held_out}.items()):
        if rows:
            _line(loss, rows, [row["loss"] for row in rows], name, index)
            _line(accuracy, rows, [row["correct"] / row["photos"] for row in rows], name, index)
    for axes, title in ((loss, "Loss"), (accuracy, "Accuracy")):
        axes.set(title=title, xlabel="epoch")
        axes.set_xlim(history[0]["epoch"] - edge, history[-1]["epoch"] + edge)
        axes.xaxis.set_major_locator(MaxNLocator(integer=True, min_n_ticks=1, steps=(1, 2, 5, 10)))
        axes.grid(alpha=0.3)
        axes.spines[["top", "right"]].set_visible(False)
        axes.legend(frameon=False)
    accuracy.yaxis.set_major_formatter(PercentFormatter(1))
    return drawing._render(figure)


def confusion(evaluation: Evaluation) -> Image.Image:
    """How many photos of each class (rows) got which answer (columns).

    The colour is the share of the row, so that classes of any size compare, and rises steeply at first: a few mistakes
    are to be seen. A class without photos has an empty row, and none where it is nobody's answer either.
    """
    occurring = evaluation.occurring
    counts = evaluation.confusion[occurring][:, occurring].numpy()
    classes = len(counts)
    shares = np.divide(counts, counts.sum(axis=1, keepdims=True), out=np.zeros(counts.shape), where=counts > 0)
    cell = max(2, min(96, max(44, 720 // classes), MATRIX // classes))
    side, size = classes * cell, 9.5 if classes <= NUMBERED else 7
    labels = [_cut(evaluation.labels[index], size, 220) for index in occurring]
    longest = max(_width(label, size) for label in labels)
    upright, tall = longest > cell, min(side, 400)
    left, below = 50 + longest, 50 + (longest if upright else 12)
    figure = Figure(((left + side + 120) / DPI, (below + side + 40) / DPI), dpi=DPI)
    axes = drawing._axes(figure, left, below, side, side)
    shown = axes.imshow(shares, cmap="Blues", norm=PowerNorm(0.5, 0, 1), aspect="auto", interpolation="nearest")
    axes.spines[:].set(visible=True, color="#b0b0b0")
    chosen = np.arange(0, classes, math.ceil(LABEL / cell))
    names = [labels[index] for index in chosen]
    axes.set_xticks(chosen, names, rotation=90 if upright else 0, fontsize=size, parse_math=False)
    axes.set_yticks(chosen, names, fontsize=size, parse_math=False)
    axes.set(xlabel="answer", ylabel="true class", title=f"{evaluation.correct} of {evaluation.total} correct")
    if classes <= NUMBERED:
        for row, column in np.argwhere(counts):
            colour = "white" if shares[row, column] > 0.4 else "black"
            axes.text(column, row, counts[row, column], ha="center", va="center", color=colour, fontsize=size)
    else:
        axes.set_xticks(chosen[GUIDE::GUIDE] - 0.5, minor=True)
        axes.set_yticks(chosen[GUIDE::GUIDE] - 0.5, minor=True)
        axes.grid(which="minor", color="#b0b0b0", linewidth=0.5)
        axes.tick_params(which="minor", length=0)
    bar = drawing._axes(figure, left + side + 24, below + side - tall, 16, tall, hide=False)
    figure.colorbar(shown, cax=bar, label="share of the true class", ticks=TICKS, format=PercentFormatter(1, 0))
    return drawing._render(figure)


def most_wrong(evaluation: Evaluation, photos: Photos, count: int = 24) -> Image.Image | None:
    """The photos of the mistakes that the model was surest of, with the true class, the answer and its probability.

    None where there are no mistakes.
    """
    mistakes = evaluation.most_wrong(count)
    if not mistakes:
        return None
    columns = min(COLUMNS, len(mistakes))
    rows = math.ceil(len(mistakes) / columns)
    gap, above, below = 12, 34, 50
    width, height = columns * (CELL + gap) + gap, above + rows * (CELL + below)
    figure = Figure((width / DPI, height / DPI), dpi=DPI)
    figure.text(0.5, 1 - above / 2 / height, "true class → answer", ha="center", va="center", fontsize=12)
    for index, mistake in enumerate(mistakes):
        x, y = gap + index % columns * (CELL + gap), height - above - CELL - index // columns * (CELL + below)
        axes = drawing._axes(figure, x, y, CELL, CELL)
        axes.imshow(_square(photos.open(mistake.index)), aspect="auto")
        target, answer = (_cut(evaluation.labels[each], 9.5, CELL - 45) for each in (mistake.target, mistake.answer))
        text = f"{target} →\n{answer} {mistake.probability:.0%}"
        axes.set_xlabel(text, fontsize=9.5, labelpad=3, parse_math=False)
    return drawing._render(figure)


def write(folder: Path, history: History, evaluation: Evaluation | None, photos: Photos | None) -> None:
    """Pictures and figures of a run, in a folder. Without epochs those of the training are left as they are."""
    if evaluation is not None and (photos is None or photos.targets != evaluation.targets.tolist()):
        raise ValueError("The photos are not those of the evaluation: give the photos that the model answered for.")
    folder.mkdir(parents=True, exist_ok=True)
    if history:
        curves(history).save(folder / "curves.png")
        _write_json(folder / "history.json", list(history))
    if evaluation is None or photos is None:
        return
    confusion(evaluation).save(folder / "confusion.png")
    _write_json(folder / "evaluation.json", evaluation.to_dict())
    mistakes = most_wrong(evaluation, photos)
    if mistakes is None:
        (folder / "most_wrong.png").unlink(missing_ok=True)
    else:
        mistakes.save(folder / "most_wrong.png")


def _line(axes: Axes, rows: History, values: list[float], name: str, index: int) -> None:
    marker = "o" if len(rows) <= MARKED else None
    epochs = [row["epoch"] for row in rows]
    axes.plot(epochs, values, STYLES[index], marker=marker, markersize=5, color=LINES[index], linewidth=2, label=name)


def _cut(label: str, size: float, most: int) -> str:
    """As much of a label as has room in so many pixels."""
    cut = label
    while _width(cut, size) > most:
        cut = cut[:-2].rstrip() + "…"
    return cut


def _width(text: str, size: float) -> int:
    """The pixels that a text of this font size takes."""
    return math.ceil(RendererAgg(1, 1, DPI).get_text_width_height_descent(text, FontProperties(size=size), False)[0])


def _square(photo: Image.Image) -> Image.Image:
    """The whole photo in the middle of a grey square."""
    small, _ = drawing._small(photo, (0, 0, *photo.size))
    square = Image.new("RGB", (CELL, CELL), "#e8e8e8")
    square.paste(small, ((CELL - small.width) // 2, (CELL - small.height) // 2))
    return square


def _write_json(path: Path, content: dict[str, Any] | list[Any]) -> None:
    """With a line for each entry, and not for each number of a confusion."""
    dump = partial(json.dumps, ensure_ascii=False)
    if isinstance(content, dict):
        lines, (first, last) = [f"{dump(name)}: {dump(value)}" for name, value in content.items()], "{}"
    else:
        lines, (first, last) = [dump(value) for value in content], "[]"
    path.write_text(f"{first}\n" + ",\n".join(lines) + f"\n{last}\n", encoding="utf-8")
