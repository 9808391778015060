"""What a fine-tuning starts from: its data, its base model, and the folder that is its own."""

from __future__ import annotations

import hashlib
import json
import os
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Any

import torch
from accelerate import Accelerator
from accelerate.utils import broadcast_object_list

from .. import checkpoints
from ..classifier import Classifier
from ..config import ViTConfig
from ..hub_upload import UNFINISHED
from ..images import Preprocessing
from ..model import ViT
from .data import DataError, Photos, hold_out, open_data
from .features import key_of
from .recipe import Recipe

DIGESTS = {"photos": "other photos", "weights": "other weights in its base"}
WORKERS = min(4, (os.cpu_count() or 1) // 2)


@dataclass(frozen=True)
class Run:
    """What a fine-tuning is asked for. The shares are of each class's photos, drawn by the recipe's seed."""

    data: str  # see `open_data`
    base: str  # a checkpoint; from scratch, a variant such as "Ti/16"
    recipe: Recipe
    held_out: float = 0.1  # share of the training photos that the epochs are watched on
    test: float = 0.2  # share that data without test photos gives up for them
    half: bool = False  # write float16
    accumulate: int = 1  # parts in which a batch goes through the model
    workers: int = WORKERS  # processes that read photos


def split(run: Run) -> tuple[Photos, Photos]:
    """The photos to learn from, and those to test on."""
    data = open_data(run.data)
    if data.train is None:
        raise DataError(f"{run.data} has test photos only: add a folder 'train' with the same classes.")
    train, test = data.train, data.test
    if len(train.labels) < 2:
        raise DataError(f"There is one class only, {train.labels[0]!r}: a classifier needs two or more.")
    if few := [label for label, count in zip(train.labels, train.counts()) if count < 2]:
        raise DataError(f"The class {few[0]!r} has one photo only: add some, or remove the class.")
    if test is None:
        kept, held = hold_out(train, run.test, run.recipe.seed)
        if not held:
            raise DataError("There are no test photos: add a folder 'test', or let a share of the photos be held out.")
        train, test = train.take(kept), train.take(held)
    return train, test


def base(run: Run, labels: list[str]) -> Classifier:
    """The base with a head for these labels: the rows of its own head where it knows them all, zero otherwise."""
    drop = run.recipe.stochastic_depth
    if run.recipe.train == "scratch":
        torch.manual_seed(run.recipe.seed)
        config = ViTConfig.of(run.base, classes=len(labels), stochastic_depth=drop)
        height, width = config.native_size
        return Classifier(ViT(config), labels, Preprocessing(resize=height, crop=(height, width)))
    old = checkpoints.load(run.base)
    config = replace(old.model.config, classes=len(labels), distillation_head=False, stochastic_depth=drop)
    model = ViT(config)
    state = old.model.state_dict()
    places = {label.casefold(): index for index, label in enumerate(old.labels)}
    known = [places.get(label.casefold()) for label in labels]
    for name in [name for name in state if name.startswith(("head.", "distillation_head."))]:
        weights = state.pop(name)
        if name.startswith("head.") and None not in known:
            state[name] = weights[known]
    model.load_state_dict(state, strict=False)
    return replace(old, model=model, labels=labels)


def claim(run: Run, out: Path, resume: bool, classifier: Classifier, photos: Photos, accelerator: Accelerator) -> Path:
    """The folder of what a resumed run goes on from. A run goes on as it began, and nothing is overwritten.

    The main process decides for all; several machines need a disk that they share for it.
    """
    refusal = None
    if accelerator.is_main_process:
        try:
            _claim(out, resume, _settings(run, classifier, photos, accelerator))
        except (ValueError, OSError) as error:
            refusal = error
    [refusal] = broadcast_object_list([refusal])
    if refusal is not None:
        raise refusal
    return out / UNFINISHED


def _settings(run: Run, classifier: Classifier, photos: Photos, accelerator: Accelerator) -> dict[str, Any]:
    """All that the result depends on. How the work is shared is left out."""
    settings = asdict(run) | dict(weights=key_of(classifier), precision=accelerator.mixed_precision)
    settings |= settings.pop("recipe")
    for free in ("workers", "accumulate"):
        settings.pop(free)
    names = [[file.parent.name, file.name, target] for file, target in zip(photos.files, photos.targets)]
    settings["photos"] = hashlib.sha256(json.dumps([names, photos.labels]).encode()).hexdigest()
    return json.loads(json.dumps(settings))


def _claim(out: Path, resume: bool, settings: dict[str, Any]) -> None:
    known = out / UNFINISHED / "settings.json"
    if resume:
        if not known.exists():
            raise ValueError(f"There is no unfinished run in {str(out)!r}: start one without --resume.")
        before = json.loads(known.read_text(encoding="utf-8"))
        for name in settings:
            if settings[name] != before.get(name):
                change = f" ({before.get(name)}, now {settings[name]})" if name not in DIGESTS else ""
                raise ValueError(
                    f"The run in {str(out)!r} began with {DIGESTS.get(name) or f'another {name}'.replace('_', ' ')}"
                    f"{change}: go on as it began, or choose another folder."
                )
    elif known.exists():
        raise ValueError(f"{str(out)!r} holds an unfinished run: go on with --resume, or choose another folder.")
    elif out.exists() and any(path.name != UNFINISHED for path in out.iterdir()):
        raise ValueError(f"The folder {str(out)!r} is not empty: choose another, so that nothing is overwritten.")
    else:
        known.parent.mkdir(parents=True, exist_ok=True)
        new = known.with_suffix(".new")
        new.write_text(json.dumps(settings, indent=2) + "\n", encoding="utf-8")
        os.replace(new, known)  # whole, or not at all
