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
from matplotlib.font_manager import FontProperties
from matplotlib.ticker import MaxNLocator, PercentFormatter
from PIL import Image
from torch import Tensor

from ..explain.figures import DPI, LINES, STYLES, THUMBNAIL, axes_at, figure_of, render, thumbnail
from .data import Photos, name_of
from .evaluation import Evaluation

History = Sequence[dict[str, Any]]  # a row for each epoch, as training makes them

MARKED = 30  # epochs at most for which each has a marker
NUMBERED = 20  # classes at most for which each cell of the confusion has its number
MATRIX = 1500  # pixels of a large confusion's side
LABEL = 13  # pixels that a small label needs
GUIDE = 5  # labels between two lines across a large confusion
TICKS = (0, 0.01, 0.05, 0.1, 0.25, 0.5, 0.75, 1)  # of its colours
COLUMNS, CELL = 6, THUMBNAIL  # of the mistakes


def curves(history: History) -> Image.Image:
    """Loss and accuracy of each epoch, on the photos that are trained on and on those held out.

    Those trained on are counted while the model learns, as the epoch meets them, so held-out photos can do better. Of a
    head that was solved: of each strength of the penalty, cross-validated.
    """
    if not history:
        raise ValueError("There is no epoch to draw: train for at least one.")
    figure = figure_of(1100, 420, layout="constrained")
    loss, accuracy = figure.subplots(1, 2)
    if "strength" in history[0]:
        series = {"cross-validated": [{**row, "epoch": row["strength"]} for row in history]}
    else:
        held_out = [{"epoch": row["epoch"], **row["held_out"]} for row in history if row.get("held_out")]
        series = {"training photos": list(history), "held-out photos": held_out}
    for index, (name, rows) in enumerate(series.items()):
        if rows:
            _line(loss, rows, [row["loss"] for row in rows], name, index)
            _line(accuracy, rows, [row["correct"] / row["photos"] for row in rows], name, index)
    for axes, title in ((loss, "Loss"), (accuracy, "Accuracy")):
        if "strength" in history[0]:
            axes.set(title=title, xlabel="strength of the penalty", xscale="log")
            axes.invert_xaxis()
        else:
            edge = max(0.5, len(history) / 101)
            axes.set(title=title, xlabel="epoch")
            axes.set_xlim(history[0]["epoch"] - edge, history[-1]["epoch"] + edge)
            axes.xaxis.set_major_locator(MaxNLocator(integer=True, min_n_ticks=1, steps=(1, 2, 5, 10)))
        axes.grid(alpha=0.3)
        axes.spines[["top", "right"]].set_visible(False)
        axes.legend(frameon=False)
    accuracy.yaxis.set_major_formatter(PercentFormatter(1))
    return render(figure)


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
    figure = figure_of(left + side + 120, below + side + 40)
    axes = axes_at(figure, left, below, side, side)
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
    bar = axes_at(figure, left + side + 24, below + side - tall, 16, tall, hide=False)
    figure.colorbar(shown, cax=bar, label="share of the true class", ticks=TICKS, format=PercentFormatter(1, 0))
    return render(figure)


def most_wrong(evaluation: Evaluation, photos: Photos, count: int = 24) -> Image.Image | None:
    """The photos of the mistakes that the model was surest of, with the true class, the answer and its probability.

    None where there are no mistakes.
    """
    mistakes = evaluation.most_wrong(count)
    if not mistakes:
        return None
    texts = {
        mistake.index: f"{_cut(evaluation.labels[mistake.target], 9.5, CELL - 45)} →\n"
        f"{_cut(evaluation.labels[mistake.answer], 9.5, CELL - 45)} {mistake.probability:.0%}"
        for mistake in mistakes
    }
    return _sheet(photos, texts, "true class → answer")


def doubts(evaluation: Evaluation, photos: Photos, count: int = 24) -> Image.Image | None:
    """The photos whose class a model that had not learnt from them doubts most: labels to check.

    None where each is the likeliest answer to its photo.
    """
    own = evaluation.logits.double().softmax(dim=1)[range(evaluation.total), evaluation.targets]
    wrong = (evaluation.answers != evaluation.targets).nonzero()[:, 0]
    order = wrong[own[wrong].argsort(stable=True)][:count].tolist()
    texts = {
        index: f"{_cut(evaluation.labels[int(evaluation.targets[index])], 9.5, CELL - 45)} {own[index]:.0%}?\n"
        f"rather {_cut(evaluation.labels[int(evaluation.answers[index])], 9.5, CELL - 60)}"
        for index in order
    }
    return _sheet(photos, texts, "labels to check: class and its probability, likelier answer") if texts else None


def _sheet(photos: Photos, texts: dict[int, str], title: str) -> Image.Image:
    """Photos by their index, each with its text and the name of its file below."""
    columns = min(COLUMNS, len(texts))
    rows = math.ceil(len(texts) / columns)
    gap, above, below = 12, 34, 66
    width, height = columns * (CELL + gap) + gap, above + rows * (CELL + below)
    figure = figure_of(width, height)
    size = 12 if columns > 2 else 6 + 2 * columns
    figure.text(0.5, 1 - above / 2 / height, title, ha="center", va="center", fontsize=size)
    for place, (index, text) in enumerate(texts.items()):
        x, y = gap + place % columns * (CELL + gap), height - above - CELL - place // columns * (CELL + below)
        axes = axes_at(figure, x, y, CELL, CELL)
        axes.imshow(_square(photos.open(index)), aspect="auto")
        name = _cut(photos.files[index].name, 8, CELL)
        axes.set_xlabel(f"{text}\n{name}", fontsize=9, labelpad=3, parse_math=False)
    return render(figure)


def write_doubts(folder: Path, evaluation: Evaluation, photos: Photos) -> None:
    """The sheet of labels to check, where there are any."""
    sheet = doubts(evaluation, photos)
    if sheet is not None:
        sheet.save(folder / "labels_to_check.png")


def write(
    folder: Path,
    history: History,
    evaluation: Evaluation | None,
    photos: Photos | None,
    familiarity: Tensor | None = None,
    root: str | Path = "",
) -> None:
    """Pictures and figures of a run, in a folder. Without epochs those of the training are left as they are.

    Photos are named from `root` on, where they lie in it.
    """
    if evaluation is not None and (photos is None or photos.targets != evaluation.targets.tolist()):
        raise ValueError("The photos are not those of the evaluation: give the photos that the model answered for.")
    folder.mkdir(parents=True, exist_ok=True)
    if history:
        curves(history).save(folder / "curves.png")
        _write_json(folder / "history.json", list(history))
    if evaluation is None or photos is None:
        return
    confusion(evaluation).save(folder / "confusion.png")
    labels = evaluation.labels
    names = [name_of(file, root) for file in photos.files]
    answers = zip(names, evaluation.targets.tolist(), evaluation.answers.tolist(), evaluation.confidences)
    named: list[dict[str, Any]] = [
        dict(file=name, label=labels[target], answer=labels[answer], probability=round(float(p), 4))
        for name, target, answer, p in answers
    ]
    confused = [
        dict(label=labels[pair[0].target], answer=labels[pair[0].answer], files=[names[each.index] for each in pair])
        for pair in evaluation.confusions()
    ]
    if familiarity is not None:
        named = [{**row, "familiarity": round(float(share), 4)} for row, share in zip(named, familiarity)]
    _write_json(folder / "evaluation.json", {**evaluation.to_dict(), "confusions": confused, "photos": named})
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
    small = thumbnail(photo)
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
