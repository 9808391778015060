"""What a fine-tuning starts from: its data, its base model, and the folder that is its own."""

from __future__ import annotations

import hashlib
import json
import os
from collections.abc import Iterator, Sequence
from contextlib import suppress
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Any

import torch
from accelerate import Accelerator
from accelerate.utils import broadcast_object_list
from torch import Tensor, nn

from .. import checkpoints
from ..classifier import Classifier
from ..config import ViTConfig
from ..hub_upload import UNFINISHED
from ..images import Preprocessing
from ..model import ViT
from ..photo_files import PhotoError
from ..registers import place_registers
from .data import DataError, Photos, hold_out, known_to, open_data, places
from .features import key_of
from .keeping import join, load_teacher, unlabelled
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
    keep_classes: bool = False  # the teacher's classes stay, and the new ones join them
    teacher: str | None = None  # what to keep the classes of; None: the base
    teacher_photos: str | None = None  # a folder of photos without labels, to ask the teacher about

    def __post_init__(self) -> None:
        if self.keep_classes and self.recipe.train == "scratch":
            raise ValueError("A model from scratch has no classes to keep: leave --keep-classes out.")
        for name in ("teacher", "teacher_photos"):
            if getattr(self, name) and not self.keep_classes:
                raise ValueError(f"--{name.replace('_', '-')} is for --keep-classes: add that, or leave it out.")


@dataclass(frozen=True)
class Start:
    """What a fine-tuning starts from."""

    classifier: Classifier  # with a head for all classes
    train: Photos
    test: Photos
    teacher: Classifier | None = None  # whose classes are kept; they come first
    unlabelled: Photos | None = None  # photos to ask the teacher about
    shared: tuple[str, ...] = ()  # classes that both the teacher and the data have


def start(run: Run) -> Start:
    """The photos and the models, with the classes joined and the registers placed."""
    train, test = split(run)
    labels, teacher, photos = train.labels, None, None
    shared: list[str] = []
    if run.recipe.train == "scratch":
        return Start(_from_scratch(run, labels), train, test)
    old = checkpoints.load(run.base)
    if run.keep_classes:
        teacher = load_teacher(run.teacher or run.base, old)
        labels, shared = join(teacher.labels, train.labels)
        train, test = known_to(train, labels), known_to(test, labels)
        photos = unlabelled(run.teacher_photos, labels) if run.teacher_photos else None
    classifier = give_registers(run, with_head(old, labels, run.recipe.stochastic_depth, teacher), train)
    return Start(classifier, train, test, teacher, photos, tuple(shared))


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


def _from_scratch(run: Run, labels: list[str]) -> Classifier:
    torch.manual_seed(run.recipe.seed)
    drop, registers = run.recipe.stochastic_depth, run.recipe.registers
    config = ViTConfig.of(run.base, classes=len(labels), stochastic_depth=drop, registers=registers)
    height, width = config.native_size
    return Classifier(ViT(config), labels, Preprocessing(resize=height, crop=(height, width)))


def with_head(old: Classifier, labels: list[str], drop: float, teacher: Classifier | None = None) -> Classifier:
    """The base with a head for these labels: the rows of its own head where it knows them all, zero otherwise.

    With a teacher, whose labels come first, every row that the base or else the teacher has.
    """
    config = replace(old.model.config, classes=len(labels), distillation_head=False, stochastic_depth=drop)
    model = ViT(config)
    heads = ("head.", "distillation_head.")
    state = {name: weights for name, weights in old.model.state_dict().items() if not name.startswith(heads)}
    model.load_state_dict(state, strict=False)
    known = places(old.labels, labels)
    if teacher is not None or None not in known:
        if teacher is not None and teacher is not old and teacher.model.config.head_width == config.head_width:
            _copy_rows(teacher.model, model, list(range(len(teacher.labels))))
        _copy_rows(old.model, model, known)
    return replace(old, model=model, labels=labels, training_features=None)


@torch.no_grad()
def _copy_rows(old: ViT, new: ViT, places: Sequence[int | None]) -> None:
    """Rows of one head into another's, where there is one for a class."""
    rows = [row for row, place in enumerate(places) if place is not None]
    old_rows = [place for place in places if place is not None]
    if rows and isinstance(old.head, nn.Linear) and isinstance(new.head, nn.Linear):
        new.head.weight[rows] = old.head.weight[old_rows]
        new.head.bias[rows] = old.head.bias[old_rows]


def give_registers(run: Run, classifier: Classifier, photos: Photos) -> Classifier:
    """The base with the registers that the recipe asks for, which start from the sinks that it makes of the photos."""
    count, model = run.recipe.registers, classifier.model
    if not count or run.recipe.train == "scratch":
        return classifier
    if model.config.registers:
        raise ValueError(f"{run.base} has {model.config.registers} registers of its own: leave --registers out.")
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(run.recipe.seed)  # for registers that no sink is there for
        return replace(classifier, model=place_registers(model, _views(classifier, photos), count).model)


def _views(classifier: Classifier, photos: Photos, most: int = 64) -> Iterator[Tensor]:
    """What the model sees of some of the photos, spread over the classes, in batches of one."""
    step = max(1, len(photos) // most)
    for index in range(0, len(photos), step)[:most]:
        with suppress(PhotoError):
            image = classifier.preprocessing(photos.open(index))[None].to(classifier.model.position_embedding.device)
            if image.shape[-2:] == classifier.model.config.native_size:
                yield image


def claim(run: Run, out: Path, resume: bool, begin: Start, accelerator: Accelerator) -> Path:
    """The folder of what a resumed run goes on from. A run goes on as it began, and nothing is overwritten.

    The main process decides for all; several machines need a disk that they share for it.
    """
    refusal = None
    if accelerator.is_main_process:
        try:
            _claim(out, resume, _settings(run, begin, accelerator))
        except (ValueError, OSError) as error:
            refusal = error
    [refusal] = broadcast_object_list([refusal])
    if refusal is not None:
        raise refusal
    return out / UNFINISHED


def _settings(run: Run, begin: Start, accelerator: Accelerator) -> dict[str, Any]:
    """All that the result depends on. How the work is shared is left out."""
    weights = "-".join(key_of(model) for model in (begin.classifier, begin.teacher) if model is not None)
    settings = asdict(run) | dict(weights=weights, precision=accelerator.mixed_precision)
    settings |= settings.pop("recipe")
    for free in ("workers", "accumulate"):
        settings.pop(free)
    files = begin.train.files + (begin.unlabelled.files if begin.unlabelled is not None else [])
    targets = begin.train.targets + (begin.unlabelled.targets if begin.unlabelled is not None else [])
    names = [[file.parent.name, file.name, target] for file, target in zip(files, targets)]
    settings["photos"] = hashlib.sha256(json.dumps([names, begin.train.labels]).encode()).hexdigest()
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
