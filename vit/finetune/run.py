"""A fine-tuning from data and a base model to a folder that `vit.load` takes."""

from __future__ import annotations

import json
import os
import shutil
from collections import OrderedDict
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Any

import torch
import torch.nn.functional as F
from accelerate import Accelerator
from torch import Tensor, nn

from .. import checkpoints
from ..classifier import Classifier
from ..config import ViTConfig
from ..images import Preprocessing
from ..model import ViT
from .data import DataError, Photos, hold_out, open_data
from .evaluation import Evaluation
from .features import features, key_of
from .recipe import Augmentation, Recipe, parameter_groups
from .training import Augmented, Features, OnEpoch, Row, Training
from .views import over, without

UNFINISHED = "unfinished"  # the folder, inside the run's own, of what a resumed run goes on from
ENOUGH = 100  # held-out photos to tell a temperature from
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


@dataclass(frozen=True)
class Result:
    run: Run
    classifier: Classifier
    history: list[Row]
    temperature: float  # by which the logits were divided so that the held-out photos' probabilities are right
    counts: dict[str, int]  # photos: learnt, held out, tested, skipped
    photos: Photos  # the test photos
    test: Evaluation
    floor: Evaluation | None  # of the head alone on the frozen base, where all weights were trained from there
    main_process: bool  # the one of several that writes and speaks


def finetune(run: Run, out: Path, resume: bool = False, on_epoch: OnEpoch | None = None) -> Result:
    """Train, and write the model to the folder `out`. Nothing is chosen by the test photos.

    A run that was stopped goes on with `resume` and ends as if it had not been.
    """
    accelerator = Accelerator(gradient_accumulation_steps=run.accumulate)
    recipe = run.recipe
    on_epoch = on_epoch if accelerator.is_main_process else None
    train, test = _split(run)
    classifier = _start(run, train.labels)
    classifier.model.to(accelerator.device)
    unfinished = _claim(run, out, resume, dict(photos=len(train), weights=key_of(classifier)), accelerator)

    everything = len(train) + len(test)
    train, rows = _readable(run, classifier, train, accelerator)
    test, test_rows = _readable(run, classifier, test, accelerator)
    learnt, held = hold_out(train, run.held_out, recipe.seed)

    history, floor = [], None
    if rows is not None and test_rows is not None:
        stage, watch = (recipe, on_epoch) if recipe.train == "head" else (recipe.head, None)
        history = _train_head(stage, classifier, train, rows, learnt, held, accelerator, watch)
        floor = Evaluation(_logits(classifier, test_rows), torch.tensor(test.targets), test.labels)
    if recipe.train != "head":
        state = unfinished / "state.pt"
        classifier, history = _train_all(run, classifier, train, learnt, held, state, accelerator, on_epoch)
    temperature = _calibrate(run, classifier, train.take(held), accelerator)
    if run.half:
        classifier.model.half().float()  # what is measured is what is written
    if recipe.train == "head":
        floor = None
    measured, _ = evaluate(classifier, test, accelerator, run.workers)
    if accelerator.is_main_process:
        checkpoints.save(classifier, out, half=run.half)
    counts = dict(learnt=len(learnt), held_out=len(held), tested=len(test))
    counts["skipped"] = everything - sum(counts.values())
    return Result(run, classifier, history, temperature, counts, test, measured, floor, accelerator.is_main_process)


def evaluate(
    classifier: Classifier, photos: Photos, accelerator: Accelerator, workers: int = WORKERS
) -> tuple[Evaluation, Photos]:
    """The model's answers for photos, and the photos that could be read."""
    classifier.model.to(accelerator.device).eval()
    rows, problems = over(photos, classifier.preprocessing, classifier.model, accelerator, None, workers, "evaluating")
    photos = without(photos, problems, accelerator)
    if not rows:
        raise DataError("None of the photos can be read.")
    logits = torch.stack([rows[index] for index in sorted(rows)])
    return Evaluation(logits, torch.tensor(photos.targets), classifier.labels), photos


def clear(out: Path) -> None:
    """Forget what a resumed run would go on from: it has ended."""
    shutil.rmtree(out / UNFINISHED, ignore_errors=True)


def _split(run: Run) -> tuple[Photos, Photos]:
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


def _start(run: Run, labels: list[str]) -> Classifier:
    """The base with a head for these labels: the rows of its own head where it knows them all, zero otherwise."""
    drop = run.recipe.stochastic_depth
    if run.recipe.train == "scratch":
        torch.manual_seed(run.recipe.seed)
        config = ViTConfig.of(run.base, classes=len(labels), stochastic_depth=drop)
        height, width = config.image_size  # type: ignore[misc]
        return Classifier(ViT(config), labels, Preprocessing(resize=height, crop=(height, width)))
    base = checkpoints.load(run.base)
    config = replace(base.model.config, classes=len(labels), distillation_head=False, stochastic_depth=drop)
    model = ViT(config)
    state = base.model.state_dict()
    for name in [name for name in state if name.startswith(("head.", "distillation_head."))]:
        known = name.startswith("head.") and set(labels) <= set(base.labels)
        old = state.pop(name)
        if known:
            state[name] = old[[base.labels.index(label) for label in labels]]
    model.load_state_dict(state, strict=False)
    return replace(base, model=model, labels=labels)


def _claim(run: Run, out: Path, resume: bool, facts: dict[str, Any], accelerator: Accelerator) -> Path:
    """The folder of what a resumed run goes on from. A run goes on as it began, and nothing is overwritten."""
    folder = out / UNFINISHED
    settings = {**asdict(run), **facts, "processes": accelerator.num_processes}
    settings |= settings.pop("recipe")
    for free in ("workers", "processes", "accumulate"):  # they change the speed, and not the result
        settings.pop(free)
    settings = json.loads(json.dumps(settings))
    known = folder / "settings.json"
    if resume:
        if not known.exists():
            raise ValueError(f"There is no unfinished run in {str(out)!r}: start one without --resume.")
        before = json.loads(known.read_text(encoding="utf-8"))
        for name in settings:
            if settings[name] != before.get(name):
                raise ValueError(
                    f"The run in {str(out)!r} began with another {name.replace('_', ' ')} ({before.get(name)}, now "
                    f"{settings[name]}): go on as it began, or choose another folder."
                )
    elif known.exists():
        raise ValueError(f"{str(out)!r} holds an unfinished run: go on with --resume, or choose another folder.")
    elif out.exists() and any(out.iterdir()):
        raise ValueError(f"The folder {str(out)!r} is not empty: choose another, so that nothing is overwritten.")
    accelerator.wait_for_everyone()
    if accelerator.is_main_process and not resume:
        folder.mkdir(parents=True, exist_ok=True)
        known.write_text(json.dumps(settings, indent=2) + "\n", encoding="utf-8")
    accelerator.wait_for_everyone()
    return folder


def _readable(
    run: Run, classifier: Classifier, photos: Photos, accelerator: Accelerator
) -> tuple[Photos, Tensor | None]:
    """The photos that can be read, with what the frozen base makes of them where a head is trained on that."""
    rows = None
    if run.recipe.train == "head" or run.recipe.head_epochs:
        rows, problems = features(classifier, photos, accelerator, run.workers)
        rows = rows[[index for index in range(len(photos)) if index not in problems]]
    else:
        _, problems = over(photos, classifier.preprocessing, _nothing, accelerator, None, run.workers, "reading photos")
    photos = without(photos, problems, accelerator)
    for label, count in zip(photos.labels, photos.counts()):
        if not count:
            raise DataError(f"None of the photos of {label!r} can be read: mend them, or remove the class.")
    return photos, rows


def _nothing(images: Tensor) -> Tensor:
    return images[:, 0, 0, 0]


def _train_head(
    recipe: Recipe,
    classifier: Classifier,
    photos: Photos,
    rows: Tensor,
    learnt: list[int],
    held: list[int],
    accelerator: Accelerator,
    on_epoch: OnEpoch | None,
) -> list[Row]:
    targets = torch.tensor(photos.targets)
    head = nn.Sequential(OrderedDict(head=classifier.model.head))
    training = Training(
        head,
        parameter_groups(head, recipe, layers=0),
        lambda epoch: Features(rows[learnt], targets[learnt]),
        targets[learnt],
        len(photos.labels),
        recipe,
        accelerator,
        held_out=(lambda head: (_logits(classifier, rows[held]), targets[held])) if held else None,
    )
    history = training.run(on_epoch)
    classifier.model.head.load_state_dict(training.best.head.state_dict())
    return history


def _train_all(
    run: Run,
    classifier: Classifier,
    photos: Photos,
    learnt: list[int],
    held: list[int],
    state: Path,
    accelerator: Accelerator,
    on_epoch: OnEpoch | None,
) -> tuple[Classifier, list[Row]]:
    recipe, model = run.recipe, classifier.model
    trained, watched = photos.take(learnt), photos.take(held)
    full = classifier.preprocessing.image_size or model.config.image_size

    def epoch(number: int) -> Augmented:
        size = recipe.image_size(number, full)
        augmentation = Augmentation(recipe.at(number), classifier.preprocessing, size)
        return Augmented(trained, augmentation, recipe.seed, number)

    def held_out(model: nn.Module) -> tuple[Tensor, Tensor]:
        return _answers(run, replace(classifier, model=model), watched, accelerator)  # type: ignore[type-var]

    training = Training(
        model,
        parameter_groups(model, recipe, model.config.layers),
        epoch,
        torch.tensor(trained.targets),
        len(photos.labels),
        recipe,
        accelerator,
        held_out=held_out if held else None,
        workers=run.workers,
        state=state,
    )
    history = training.run(on_epoch)
    return replace(classifier, model=training.best), history


def _calibrate(run: Run, classifier: Classifier, photos: Photos, accelerator: Accelerator) -> float:
    """Divide the head by the temperature at which the held-out photos are likeliest (Guo et al., 2017).

    That changes no answer, only how sure it is. Too few photos tell too little, and it is left at 1.
    """
    if len(photos) < ENOUGH:
        return 1.0
    logits, targets = _answers(run, classifier, photos, accelerator)
    choices = torch.logspace(-1, 1, 201)
    losses = torch.stack([F.cross_entropy(logits / choice, targets) for choice in choices])
    temperature = choices[losses.argmin()].item()
    with torch.no_grad():
        classifier.model.head.weight.div_(temperature)
        classifier.model.head.bias.div_(temperature)
    return temperature


def _answers(run: Run, classifier: Classifier, photos: Photos, accelerator: Accelerator) -> tuple[Tensor, Tensor]:
    """The logits for photos that can be read, and their targets."""
    model = classifier.model.eval()
    rows, _ = over(photos, classifier.preprocessing, model, accelerator, None, run.workers)
    return torch.stack([rows[index] for index in sorted(rows)]), torch.tensor(photos.targets)


@torch.no_grad()
def _logits(classifier: Classifier, rows: Tensor) -> Tensor:
    head = classifier.model.head
    return head(rows.to(head.weight.device)).float().cpu()
