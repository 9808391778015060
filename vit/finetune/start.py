"""What a fine-tuning starts from: its data, its base model, and the folder that is its own."""

from __future__ import annotations

import hashlib
import json
import os
from collections.abc import Iterator, Sequence
from contextlib import suppress
from dataclasses import asdict, dataclass, field, replace
from pathlib import Path
from typing import Any

import torch
from accelerate import Accelerator
from accelerate.utils import broadcast_object_list
from torch import Tensor, nn

from .. import checkpoints
from ..classifier import Classifier
from ..config import ViTConfig
from ..familiarity import LEAST
from ..model import ViT
from ..photos.files import PhotoError, size_of
from ..photos.preprocessing import Preprocessing
from ..registers import place_registers
from .data import DataError, Photos, hold_out, known_to, others_in, places
from .features import key_of
from .keeping import join, load_teacher, unlabelled
from .recipe import BASE, Recipe
from .sources import open_data

DIGESTS = {"photos": "other photos", "weights": "other weights in its base"}
UNFINISHED = "unfinished"  # the folder, inside a model's own, of what a run that was stopped goes on from
NAMED = 5  # files that do not count, the others are counted
WORKERS = min(4, (os.cpu_count() or 1) // 2)


@dataclass(frozen=True)
class Run:
    """What a fine-tuning is asked for. The shares are of each class's photos, drawn by the recipe's seed."""

    data: str  # see `open_data`
    base: str = BASE  # a checkpoint; from scratch, a variant such as "Ti/16"
    recipe: Recipe = field(default_factory=lambda: Recipe.of("head"))
    held_out: float | None = None  # share not trained on, to calibrate by; None: a tenth, where that is enough to
    test: float | None = None  # share that data without test photos gives up; None: a fifth, and for a head nothing
    half: bool = False  # write float16
    accumulate: int = 1  # parts in which a batch goes through the model
    workers: int = WORKERS  # processes that read photos
    only_copies: bool = False  # photos count as the same where they are exactly that, not where they are nearly
    size: int | None = None  # side of the images in pixels; None: the base's own
    keep_classes: bool = False  # the teacher's classes stay, and the new ones join them
    teacher: str | None = None  # what to keep the classes of; None: the base
    teacher_photos: str | None = None  # a folder of photos without labels, to ask the teacher about

    def __post_init__(self) -> None:
        if self.keep_classes and self.recipe.train == "scratch":
            raise ValueError("A model from scratch has no classes to keep: leave --keep-classes out.")
        if self.held_out is not None and self.recipe.train == "head":
            raise ValueError("A head is cross-validated, and no photo held out for good: leave --held-out out.")
        for name in ("teacher", "teacher_photos"):
            if getattr(self, name) and not self.keep_classes:
                raise ValueError(f"--{name.replace('_', '-')} is for --keep-classes: add that, or leave it out.")

    @property
    def solves_head(self) -> bool:
        return self.recipe.train == "head" or bool(self.recipe.head_first)

    @property
    def changes_base(self) -> bool:
        """Whether the base is changed before anything is learnt, in a way that depends on the photos."""
        return self.recipe.train != "scratch" and bool(self.recipe.registers or self.recipe.recall)


@dataclass(frozen=True)
class Start:
    """What a fine-tuning starts from."""

    classifier: Classifier  # with a head for all classes
    train: Photos  # as they are found
    test: Photos | None
    teacher: Classifier | None = None  # whose classes are kept; they come first
    unlabelled: Photos | None = None  # photos to ask the teacher about
    shared: tuple[str, ...] = ()  # classes that both the teacher and the data have


def start(run: Run) -> Start:
    """The photos and the models, with the classes joined."""
    data = open_data(run.data)
    if data.train is None:
        raise DataError(f"{run.data} has test photos only: add a folder 'train' with the same classes.")
    train, test = data.train, data.test
    if len(train.labels) < 2:
        raise DataError(f"There is one class only, {train.labels[0]!r}: a classifier needs two or more.")
    labels, teacher, photos = train.labels, None, None
    shared: list[str] = []
    if run.recipe.train == "scratch":
        return Start(_from_scratch(run, labels), train, test)
    old = checkpoints.load(run.base)
    if run.keep_classes:
        teacher = load_teacher(run.teacher or run.base, old)
        labels, shared = join(teacher.labels, train.labels)
        train, test = known_to(train, labels), None if test is None else known_to(test, labels)
        photos = unlabelled(run.teacher_photos, labels) if run.teacher_photos else None
    classifier = with_head(old, labels, run.recipe.stochastic_depth, teacher)
    if run.size:
        classifier = at_size(classifier, run.size)
    _check_registers(run, classifier)
    if teacher is not None and run.recipe.recall:
        _check_shapes(classifier.model, teacher.model, but="register_tokens")
    return Start(classifier, train, test, teacher, photos, tuple(shared))


def summary(run: Run, begin: Start) -> str:
    """The data in a few sentences: what there is to learn from, and what in its folder is not."""
    return f"{_photos(begin)}\n{_others(run, begin)}".rstrip()


def _photos(begin: Start) -> str:
    """Classes, photos, which class has fewest and most, and how large the photos are."""
    labels, counts = begin.train.labels, begin.train.counts()
    shown = sorted((count, label) for label, count in zip(labels, counts) if count)
    (least, fewest), (most, largest) = shown[0], shown[-1]
    uneven = f"{least} of {fewest} to {most} of {largest}" if least < most else f"{most} of each"
    tested = "no test folder" if begin.test is None else f"{len(begin.test):,} to test"
    said = f"{len(shown)} classes, {len(begin.train):,} photos to learn from ({uneven}); {tested}."
    files = begin.train.files + ([] if begin.test is None else begin.test.files)
    sides = sorted(min(size) for size in map(size_of, files) if size is not None)
    if not sides:
        return said
    image = min(begin.classifier.model.config.native_size)
    small = sum(side < image for side in sides)
    smaller = f"{small:,} are smaller than" if small > 1 else "one is smaller than" if small else "none is smaller than"
    return (
        f"{said} Their shorter side has {sides[0]:,} to {sides[-1]:,} pixels, in the middle "
        f"{sides[len(sides) // 2]:,}; {smaller} the model's image, {image} pixels."
    )


def _others(run: Run, begin: Start) -> str:
    folder = Path(run.data).expanduser()
    photos = begin.train.files + ([] if begin.test is None else begin.test.files)
    found = others_in(folder, photos) if folder.is_dir() else []
    if not found:
        return ""
    names = ", ".join(file.relative_to(folder).as_posix() for file in found[:NAMED])
    more = f" and {len(found) - NAMED:,} more" if len(found) > NAMED else ""
    return f"Files that are no photos of a class, and do not count: {names}{more}."


def split(run: Run, train: Photos) -> tuple[list[int], list[int]]:
    """The indexes of the photos to learn from, and of those to test on, of data that has no test photos.

    A head is cross-validated, which tests it on every photo.
    """
    share = (0.0 if run.recipe.train == "head" else 0.2) if run.test is None else run.test
    kept, tested = hold_out(train, share, run.recipe.seed)
    if not tested and run.recipe.train != "head":
        raise DataError("There are no test photos: add a folder 'test', or let a share of the photos be held out.")
    return kept, tested


def watched(run: Run, train: Photos) -> tuple[list[int], list[int]]:
    """The indexes of the photos to learn from, and of those to calibrate by: none where they would be too few."""
    if run.recipe.train == "head":
        return list(range(len(train))), []
    kept, held = hold_out(train, 0.1 if run.held_out is None else run.held_out, run.recipe.seed)
    return (kept, held) if run.held_out is not None or len(held) >= LEAST else (list(range(len(train))), [])


def with_registers(run: Run, begin: Start, photos: Photos) -> Classifier:
    """The model with the registers and the share of its teacher's weights that the recipe asks for."""
    classifier = give_registers(run, begin.classifier, photos)
    if begin.teacher is not None and run.recipe.recall:
        classifier = recall(run, classifier, begin.teacher, photos)
    return classifier


def _from_scratch(run: Run, labels: list[str]) -> Classifier:
    torch.manual_seed(run.recipe.seed)
    drop, registers = run.recipe.stochastic_depth, run.recipe.registers
    size = {"image_size": run.size} if run.size else {}
    config = ViTConfig.of(run.base, classes=len(labels), stochastic_depth=drop, registers=registers, **size)
    height, width = config.native_size
    return Classifier(ViT(config), labels, Preprocessing(resize=height, crop=(height, width)))


def with_head(old: Classifier, labels: list[str], drop: float, teacher: Classifier | None = None) -> Classifier:
    """The base with a head for these labels: the rows of its own head where it knows them all, zero otherwise.

    With a teacher, whose labels come first, every row that the base or else the teacher has.
    """
    config = replace(old.model.config, classes=len(labels), distillation_head=False, stochastic_depth=drop)
    model = ViT(config)
    model.load_state_dict(_backbone(old.model), strict=False)
    known = places(old.labels, labels)
    if teacher is not None or None not in known:
        if teacher is not None and teacher is not old and teacher.model.config.head_width == config.head_width:
            _copy_rows(teacher.model, model, list(range(len(teacher.labels))))
        _copy_rows(old.model, model, known)
    return replace(old, model=model, labels=labels, training_features=None)


@torch.no_grad()
def at_size(classifier: Classifier, side: int) -> Classifier:
    """The model for images of another size, its position embedding resampled: section 3.2 of the paper."""
    old = classifier.model
    config = replace(old.config, image_size=side)
    state = {**old.state_dict(), "position_embedding": torch.cat(old.positions(config.grid), dim=1)}
    model = ViT(config)
    model.load_state_dict(state)
    return replace(classifier, model=model, preprocessing=classifier.preprocessing.at_size(side))


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
    _check_registers(run, classifier)
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(run.recipe.seed)  # for registers that no sink is there for
        return replace(classifier, model=place_registers(model, _views(classifier, photos), count).model)


def recall(run: Run, classifier: Classifier, teacher: Classifier, photos: Photos) -> Classifier:
    """The model on the way back to its teacher, of whose shape it must be (WiSE-FT: Wortsman et al., arXiv 2109.01903).

    A model that was fine-tuned from its teacher has forgotten little half-way, and learnt most of what it knows.
    """
    registers = classifier.model.config.registers if not teacher.model.config.registers else 0
    theirs = give_registers(replace(run, recipe=replace(run.recipe, registers=registers)), teacher, photos).model
    _check_shapes(classifier.model, theirs)
    between = {
        name: own.lerp(_backbone(theirs)[name], run.recipe.recall) for name, own in _backbone(classifier.model).items()
    }
    classifier.model.load_state_dict(between, strict=False)
    return classifier


def _check_registers(run: Run, classifier: Classifier) -> None:
    if run.recipe.registers and classifier.model.config.registers:
        raise ValueError(
            f"{run.base} has {classifier.model.config.registers} registers of its own: leave --registers out."
        )


def _check_shapes(own: ViT, theirs: ViT, but: str = "") -> None:
    shapes = [{name: each.shape for name, each in _backbone(model).items() if name != but} for model in (own, theirs)]
    if shapes[0] != shapes[1]:
        raise ValueError("The teacher's weights are of another shape than the base's: leave --recall out.")


def _backbone(model: ViT) -> dict[str, Tensor]:
    """The weights below the heads."""
    return {
        name: weights
        for name, weights in model.state_dict().items()
        if not name.startswith(("head.", "distillation_head."))
    }


def _views(classifier: Classifier, photos: Photos, most: int = 64) -> Iterator[Tensor]:
    """What the model sees of some of the photos, spread over the classes, in batches of one."""
    step = max(1, len(photos) // most)
    for index in range(0, len(photos), step)[:most]:
        with suppress(PhotoError):
            image = classifier.preprocessing(photos.open(index))[None].to(classifier.model.position_embedding.device)
            if image.shape[-2:] == classifier.model.config.native_size:
                yield image


def prepare_folder(run: Run, out: Path, resume: bool, begin: Start, accelerator: Accelerator) -> Path:
    """The folder of what a resumed run goes on from. A run goes on as it began, and nothing is overwritten.

    The main process decides for all; several machines need a disk that they share for it.
    """
    refusal = None
    if accelerator.is_main_process:
        try:
            _prepare_folder(out, resume, _settings(run, begin, accelerator))
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


def _prepare_folder(out: Path, resume: bool, settings: dict[str, Any]) -> None:
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
