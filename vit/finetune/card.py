"""The model card that goes with a fine-tuned model: what it is, what it was trained on, how good it is."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path

from .accounts import LEFT_OUT
from .alike import COPIES, RULE
from .data import name_of
from .evaluation import TOP, Evaluation
from .recipe import NOT_FOR, WITH_TEACHER, choices
from .result import Result

PAIRS, NAMED = 10, 5  # of classes that are confused, and of photos of each
HOW = {
    "head": "a new head on the frozen backbone of",
    "all": "all weights, from",
    "scratch": "from scratch, a",
}


def card(result: Result, title: str) -> str:
    """The card in Markdown, with the front matter that the Hub reads. The pictures it shows lie beside it."""
    run, figures = result.run, result.figures
    recipe, model = run.recipe, result.classifier.model
    parameters = sum(weights.numel() for weights in model.parameters())
    matter = ["library_name: vit-explorer", "pipeline_tag: image-classification", "tags: [vit, image-classification]"]
    if recipe.train != "scratch" and run.base.count("/") == 1 and not Path(run.base).exists():
        matter.append(f"base_model: {json.dumps(run.base)}")
    choices_made = [
        f"| {name.replace('_', ' ')} | {value} | {choices()[name].__metadata__[0]} |"
        for name, value in recipe.to_dict().items()
        if name not in NOT_FOR[recipe.train] and (result.teacher is not None or name not in WITH_TEACHER)
    ]
    counts, left = result.counts, [each for each in result.accounts if each.part == LEFT_OUT]
    lines = [
        "---",
        *matter,
        "---",
        f"# {title}",
        "",
        f"A {model.config.name} of {parameters:,} parameters that tells {len(figures.labels)} classes "
        f"apart. Trained: {HOW[recipe.train]} {_base(run.base)}.",
        "",
        *_kept(result),
        "```python",
        "import vit",
        "",
        f'vit.load("{title}").predict("photo.jpg")',
        "```",
        "",
        "## How good it is",
        "",
        *_figures(result),
        "",
        "![Confusion matrix](confusion.png)",
        "",
        *_confusions(result),
        "## Data",
        "",
        f"{Path(run.data).resolve().name}: {counts['learnt']:,} photos to learn from, {counts['held_out']:,} held "
        f"out, {counts['tested']:,} to test, {len(left):,} left out: unreadable, or there already."
        + " The test photos were looked at once, when training was over."
        * bool(counts["tested"]),
        "",
        f"{COPIES if run.only_copies else RULE} `photos.csv` has every photo: its part, its class, what was answered "
        "and how surely, or why it was left out.",
        "",
        "## Training",
        "",
        *(
            [
                f"The head heeds the classes' means, too: {result.heed:g} of their linear discriminant was added, "
                "which makes the held-out photos likeliest.",
                "",
            ]
            if result.heed
            else []
        ),
        *(
            [
                f"The head was divided by {result.temperature:.2f}, the temperature at which the held-out photos are "
                "likeliest, so that probabilities can be taken at their word.",
                "",
            ]
            if result.temperature != 1
            else []
        ),
        "![Loss and accuracy by the strength of the penalty](curves.png)"
        if recipe.train == "head"
        else "![Loss and accuracy by epoch](curves.png)",
        "",
        "| choice | value | |",
        "|---|---|---|",
        *choices_made,
        "",
        "## Classes",
        "",
        "| class | right | of |",
        "|---|---|---|",
        *(f"| {_cell(label)} | {right} | {total} |" for label, right, total in figures.per_class if total),
    ]
    return "\n".join(lines) + "\n"


def _confusions(result: Result) -> list[str]:
    """The pairs of classes that are confused most, with the photos to look at."""
    labels, files = result.figures.labels, result.photos.files
    rows = []
    for pair in result.figures.confusions()[:PAIRS]:
        names = [f"`{_cell(name_of(files[each.index], result.run.data))}`" for each in pair[:NAMED]]
        more = [f"and {len(pair) - NAMED} more"] * (len(pair) > NAMED)
        true, answer = _cell(labels[pair[0].target]), _cell(labels[pair[0].answer])
        rows.append(f"| {true} | {answer} | {len(pair)} | {', '.join([*names, *more])} |")
    head = ["Confused most, with the surest mistakes first (all are in `evaluation.json`):", ""]
    table = ["| true class | answer | photos | |", "|---|---|---|---|"]
    return [*head, *table, *rows, ""] if rows else []


def _cell(text: str) -> str:
    """A text that does not end its cell of a table."""
    return " ".join(text.replace("|", r"\|").split())


def _kept(result: Result) -> list[str]:
    """Whose classes it keeps, and which of them the photos show, too."""
    run, teacher = result.run, result.teacher
    if teacher is None:
        return []
    beside = f", and on photos without labels ({Path(run.teacher_photos).name})" if run.teacher_photos else ""
    new = len(result.figures.labels) - len(teacher.labels)
    shared = ", ".join(result.shared) if result.shared else "none"
    return [
        f"It keeps the {len(teacher.labels):,} classes of {_base(run.teacher or run.base)}, its teacher for them on "
        f"these photos{beside}; {new:,} new ones joined them. Classes that both have: {shared}.",
        "",
    ]


def _base(base: str) -> str:
    return f"`{Path(base).name if Path(base).exists() else base}`"


def _figures(result: Result) -> list[str]:
    columns = {
        "test photos": result.test,
        "its head alone, on the frozen base": result.linear_probe,
        "cross-validated": result.validated if result.run.recipe.train == "head" else None,
    }
    found = {name: evaluation for name, evaluation in columns.items() if evaluation is not None}
    rows: dict[str, Callable[[Evaluation], str]] = {
        "top-1": lambda e: f"{e.correct:,} of {e.total:,} ({e.correct / e.total:.1%})",
        "top-1, 95 % sure": lambda e: f"{e.interval[0]:.1%} to {e.interval[1]:.1%}",
        "top-5": lambda e: f"{e.top(TOP):,} of {e.total:,} ({e.top(TOP) / e.total:.1%})",
        "top-1, the mean of the classes": lambda e: f"{e.balanced_accuracy:.1%}",
        "calibration error": lambda e: f"{e.calibration_error:.3f}",
    }
    if not result.figures.has_top:
        del rows["top-5"]
    notes = [
        "Cross-validated: in five parts, each answered by a head that had learnt from the other four. The model has "
        "learnt from all of them.",
        "",
    ]
    return [
        *notes * ("cross-validated" in found),
        f"| | {' | '.join(found)} |",
        "|---" * (1 + len(found)) + "|",
        *(f"| {name} | {' | '.join(row(each) for each in found.values())} |" for name, row in rows.items()),
    ]
