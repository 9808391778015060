"""The model card that goes with a fine-tuned model: what it is, what it was trained on, how good it is."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path

from .evaluation import TOP, Evaluation
from .recipe import NOT_FOR, choices
from .result import Result

HOW = {
    "head": "a new head on the frozen backbone of",
    "all": "all weights, from",
    "scratch": "from scratch, a",
}


def card(result: Result, title: str) -> str:
    """The card in Markdown, with the front matter that the Hub reads. The pictures it shows lie beside it."""
    run, test = result.run, result.test
    recipe, model = run.recipe, result.classifier.model
    parameters = sum(weights.numel() for weights in model.parameters())
    matter = ["library_name: vit-explorer", "pipeline_tag: image-classification", "tags: [vit, image-classification]"]
    if recipe.train != "scratch" and run.base.count("/") == 1 and not Path(run.base).exists():
        matter.append(f"base_model: {json.dumps(run.base)}")
    choices_made = [
        f"| {name.replace('_', ' ')} | {value} | {choices()[name].__metadata__[0]} |"
        for name, value in recipe.to_dict().items()
        if name not in NOT_FOR[recipe.train]
    ]
    counts = result.counts
    lines = [
        "---",
        *matter,
        "---",
        f"# {title}",
        "",
        f"A {model.config.name} of {parameters:,} parameters that tells {len(test.labels)} classes "
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
        *_figures(test, result.floor),
        "",
        "![Confusion matrix](confusion.png)",
        "",
        "## Data",
        "",
        f"{Path(run.data).resolve().name}: {counts['learnt']:,} photos to learn from, {counts['held_out']:,} held "
        f"out to watch the epochs on, {counts['tested']:,} to test, {counts['skipped']:,} skipped as unreadable. "
        "The test photos were looked at once, when training was over.",
        "",
        "## Training",
        "",
        *(
            [
                f"The head was divided by {result.temperature:.2f}, the temperature at which the held-out photos are "
                "likeliest, so that probabilities can be taken at their word.",
                "",
            ]
            if result.temperature != 1
            else []
        ),
        "![Loss and accuracy by epoch](curves.png)",
        "",
        "| choice | value | |",
        "|---|---|---|",
        *choices_made,
        "",
        "## Classes",
        "",
        "| class | right | of |",
        "|---|---|---|",
        *(f"| {label.replace('|', '&#124;')} | {right} | {total} |" for label, right, total in test.per_class if total),
    ]
    return "\n".join(lines) + "\n"


def _kept(result: Result) -> list[str]:
    """Whose classes it keeps, and which of them the photos show, too."""
    run, teacher = result.run, result.teacher
    if teacher is None:
        return []
    beside = f", and on photos without labels ({Path(run.teacher_photos).name})" if run.teacher_photos else ""
    new = len(result.test.labels) - len(teacher.labels)
    shared = ", ".join(result.shared) if result.shared else "none"
    return [
        f"It keeps the {len(teacher.labels):,} classes of {_base(run.teacher or run.base)}, its teacher for them on "
        f"these photos{beside}; {new:,} new ones joined them. Classes that both have: {shared}.",
        "",
    ]


def _base(base: str) -> str:
    return f"`{Path(base).name if Path(base).exists() else base}`"


def _figures(test: Evaluation, floor: Evaluation | None) -> list[str]:
    rows: dict[str, Callable[[Evaluation], str]] = {
        "top-1": lambda e: f"{e.correct:,} of {e.total:,} ({e.correct / e.total:.1%})",
        "top-5": lambda e: f"{e.top(TOP):,} of {e.total:,} ({e.top(TOP) / e.total:.1%})",
        "top-1, the mean of the classes": lambda e: f"{e.balanced_accuracy:.1%}",
        "calibration error": lambda e: f"{e.calibration_error:.3f}",
    }
    if not test.has_top:
        del rows["top-5"]
    both = [test] if floor is None else [test, floor]
    heads = ["this model", "its head alone, on the frozen base"][: len(both)]
    return [
        f"| test photos | {' | '.join(heads)} |",
        "|---" * (1 + len(both)) + "|",
        *(f"| {name} | {' | '.join(row(each) for each in both)} |" for name, row in rows.items()),
    ]
