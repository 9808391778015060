"""Figures of a training as they come, for those who watch it elsewhere: TensorBoard, trackio, Weights & Biases."""

from __future__ import annotations

import math
from collections.abc import Iterator
from contextlib import contextmanager
from importlib import import_module
from pathlib import Path
from typing import Any

from .training import OnRow, Row

MODULES = {"tensorboard": "torch.utils.tensorboard", "trackio": "trackio", "wandb": "wandb"}
PROJECT = "vit-explorer"  # in trackio and Weights & Biases; a run there has the name of the model's folder


@contextmanager
def tracking(name: str | None, out: Path) -> Iterator[OnRow | None]:
    """What to call with each row of figures; nothing where nobody watches."""
    if name is None:
        yield None
        return
    try:
        module: Any = import_module(MODULES[name])
    except ImportError:
        raise ValueError(f"{name} is not installed: pip install {name}, or leave --log-to out.") from None
    if name == "tensorboard":
        module = TensorBoard(module, out / name)
    run: Any = None

    def log(row: Row) -> None:
        nonlocal run
        run = run or module.init(project=PROJECT, name=out.resolve().name)  # the main process's alone
        values, step = figures(row)
        module.log(values, step=step)

    try:
        yield log
    finally:
        if run is not None:
            module.finish()


def figures(row: Row) -> tuple[dict[str, float], int]:
    """A row's numbers by their names, and its place: the epoch, or for a head how many powers of ten below 1,000."""
    if "strength" in row:
        values = {"loss/cross-validated": row["loss"], "accuracy/cross-validated": row["correct"] / row["photos"]}
        return values, 3 - round(math.log10(row["strength"]))
    values = {"learning rate": row["learning_rate"]}
    for part, found in (("train", row), ("held out", row.get("held_out"))):
        if found:
            values[f"loss/{part}"] = found["loss"]
            values[f"accuracy/{part}"] = found["correct"] / found["photos"]
    return values, row["epoch"]


class TensorBoard:
    """TensorBoard with the calls of the other two: a file of figures, readable as they come."""

    def __init__(self, module: Any, folder: Path) -> None:
        self.module, self.folder = module, folder

    def init(self, **names: str) -> Any:
        self.writer = self.module.SummaryWriter(str(self.folder))
        return self.writer

    def log(self, values: dict[str, float], step: int) -> None:
        for name, value in values.items():
            self.writer.add_scalar(name, value, step)
        self.writer.flush()

    def finish(self) -> None:
        self.writer.close()
