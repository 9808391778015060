"""A fine-tuning from data and a base model to a folder that `vit.load` takes."""

from __future__ import annotations

import shutil
from dataclasses import dataclass, replace
from pathlib import Path

import torch
import torch.nn.functional as F
from accelerate import Accelerator
from torch import Tensor, nn
from tqdm import tqdm

from .. import checkpoints
from ..classifier import Classifier
from ..familiarity import TrainingFeatures
from ..hub_upload import UNFINISHED
from ..model import ViT
from . import report
from .card import card
from .data import DataError, Photos, hold_out
from .evaluation import Evaluation
from .features import features
from .keeping import repeated
from .recipe import Augmentation, Recipe, parameter_groups
from .result import Result
from .start import WORKERS, Run, Start, claim, start
from .training import Augmented, Features, OnEpoch, Row, Training
from .views import bar_for, over, without

ENOUGH = 100  # held-out photos to tell a temperature from


def finetune(
    run: Run, out: Path, resume: bool = False, on_epoch: OnEpoch | None = None, title: str | None = None
) -> Result:
    """Train, and write a folder that `vit.load` takes: the model, its card, figures and pictures of how it learnt.

    Nothing is chosen by the test photos. A run that was stopped goes on with `resume` and ends as if it had not been.
    `title` is the card's, by default the folder's name.
    """
    accelerator = Accelerator(gradient_accumulation_steps=run.accumulate)
    on_epoch = on_epoch if accelerator.is_main_process else None
    with accelerator.main_process_first():  # which fetches what the others then find
        begin = start(run)
    if run.recipe.small_epochs:
        begin.classifier.model.config.check_image(run.recipe.small_size, run.recipe.small_size)
    for model in (begin.classifier, begin.teacher):
        if model is not None:
            model.model.to(accelerator.device).eval()
    state = claim(run, out, resume, begin, accelerator) / "state.pt"
    try:
        result = _train(run, out, begin, state, accelerator, on_epoch)
    except ValueError:
        if accelerator.is_main_process and not state.exists():
            _clear(out)  # nothing was learnt: what is mended may start anew in the same folder
        raise
    if result.main_process:
        report.write(out, result.history, result.test, result.photos)
        (out / "README.md").write_text(card(result, title or out.resolve().name), encoding="utf-8")
        _clear(out)
    return result


def _train(
    run: Run, out: Path, begin: Start, state: Path, accelerator: Accelerator, on_epoch: OnEpoch | None
) -> Result:
    """The features, the head, all weights, the temperature, the test; and the model is written."""
    recipe, classifier = run.recipe, begin.classifier
    everything = len(begin.train) + len(begin.test)
    train, rows = _readable(run, classifier, begin.train, accelerator)
    test, test_rows = _readable(run, classifier, begin.test, accelerator)
    learnt, held = hold_out(train, run.held_out, recipe.seed)
    unlabelled, unlabelled_rows = None, None
    if begin.unlabelled is not None:
        unlabelled, unlabelled_rows = _readable(run, classifier, begin.unlabelled, accelerator)

    lessons = Lessons.of(train, learnt, unlabelled, recipe.teacher_share)
    history: list[Row] = []
    floor = None
    if rows is not None:
        stage, watch = (recipe, on_epoch) if recipe.train == "head" else (recipe.head, None)
        table = rows if unlabelled_rows is None else torch.cat([rows, unlabelled_rows])
        history = _train_head(stage, begin, lessons, table, held, accelerator, run.workers, watch)
        floor = None if test_rows is None or recipe.train == "head" else _measure(classifier, test_rows, test)
    trained, watched = train.take(learnt), train.take(held)
    if recipe.train != "head":
        classifier, history = _train_all(run, begin, lessons, watched, state, accelerator, on_epoch)
        if run.half:
            classifier.model.half().float()
        trained, rows = _features(run, classifier, trained, accelerator)
        watched, watched_rows = _features(run, classifier, watched, accelerator)
    else:
        assert rows is not None
        rows, watched_rows = rows[learnt], rows[held]

    head = classifier.model.head
    temperature = calibrate(head, _logits(head, watched_rows), torch.tensor(watched.targets))
    if run.half:
        classifier.model.half().float()  # what is measured is what is written
    if test_rows is None or run.half or recipe.train != "head":
        test, test_rows = _features(run, classifier, test, accelerator)
    measured = _measure(classifier, test_rows, test)
    if begin.teacher is None:
        classifier = replace(
            classifier, training_features=_training_features(run, trained, rows, watched, watched_rows)
        )
    if accelerator.is_main_process:
        checkpoints.save(classifier, out, half=run.half)
    counts = dict(learnt=len(learnt), held_out=len(held), tested=len(test))
    return Result(
        run=run,
        classifier=classifier,
        history=history,
        temperature=temperature,
        counts={**counts, "skipped": everything - sum(counts.values())},
        photos=test,
        test=measured,
        floor=floor,
        main_process=accelerator.is_main_process,
        shared=begin.shared,
        teacher=begin.teacher,
    )


def evaluate(
    classifier: Classifier, photos: Photos, accelerator: Accelerator, workers: int = WORKERS
) -> tuple[Evaluation, Photos]:
    """The model's answers for photos, and the photos that could be read."""
    classifier.model.to(accelerator.device)
    with bar_for(accelerator, len(photos), "evaluating") as bar:
        logits, readable = _answers(classifier, photos, accelerator, workers, bar)
    if not len(readable):
        raise DataError("None of the photos can be read.")
    return Evaluation(logits, torch.tensor(readable.targets), classifier.labels), readable


def _clear(out: Path) -> None:
    """Forget what a resumed run would go on from, and the folder where it holds nothing else."""
    shutil.rmtree(out / UNFINISHED, ignore_errors=True)
    if out.is_dir() and not any(out.iterdir()):
        out.rmdir()


def _readable(
    run: Run, classifier: Classifier, photos: Photos, accelerator: Accelerator
) -> tuple[Photos, Tensor | None]:
    """The photos that can be read, with what the frozen base makes of them where a head is trained on that."""
    if run.recipe.train == "head" or run.recipe.head_epochs:
        return _features(run, classifier, photos, accelerator)
    with bar_for(accelerator, len(photos), "reading photos") as bar:
        _, problems = over(photos, classifier.preprocessing, _nothing, accelerator, None, run.workers, bar)
    return _without(photos, problems, accelerator), None


def _features(run: Run, classifier: Classifier, photos: Photos, accelerator: Accelerator) -> tuple[Photos, Tensor]:
    """The photos that can be read, with what the head reads of them."""
    rows, problems = features(classifier, photos, accelerator, run.workers)
    rows = rows[[index for index in range(len(photos)) if index not in problems]]
    return _without(photos, problems, accelerator), rows


def _without(photos: Photos, problems: dict[int, str], accelerator: Accelerator) -> Photos:
    """The photos that can be read, of which each class must have some."""
    readable = without(photos, problems, accelerator)
    for label, count, before in zip(readable.labels, readable.counts(), photos.counts()):
        if before and not count:
            raise DataError(f"None of the photos of {label!r} can be read: mend them, or remove the class.")
    return readable


def _training_features(
    run: Run, trained: Photos, rows: Tensor, watched: Photos, watched_rows: Tensor
) -> TrainingFeatures | None:
    """What the photos are like that the model learnt from."""
    targets = torch.tensor(trained.targets)
    if len(watched) >= ENOUGH or run.recipe.train != "head":
        return TrainingFeatures.fit(rows, targets, watched_rows)
    # A frozen backbone knows none of the photos, so all of them may be held out in turn.
    return TrainingFeatures.fit(torch.cat([rows, watched_rows]), torch.cat([targets, torch.tensor(watched.targets)]))


def _nothing(images: Tensor) -> Tensor:
    return images[:, 0, 0, 0]


@dataclass(frozen=True)
class Lessons:
    """The photos that are learnt from: those with labels, and those without as often as the recipe says."""

    photos: Photos  # all there are, the ones without labels last
    indexes: list[int]  # of those that an epoch meets

    @classmethod
    def of(cls, train: Photos, learnt: list[int], unlabelled: Photos | None, share: float) -> Lessons:
        if unlabelled is None:
            return cls(train, learnt)
        photos = replace(train, files=train.files + unlabelled.files, targets=train.targets + unlabelled.targets)
        again = repeated(len(unlabelled), len(learnt), share)
        return cls(photos, learnt + [len(train) + index for index in again])

    @property
    def targets(self) -> Tensor:
        return torch.tensor([self.photos.targets[index] for index in self.indexes])


class Head(nn.Module):
    """A head that reads the first of a row's numbers, the features; a teacher's logits may stand after them."""

    def __init__(self, head: nn.Linear):
        super().__init__()
        self.head = head

    def forward(self, rows: Tensor) -> Tensor:
        return self.head(rows[:, : self.head.in_features])


def _train_head(
    recipe: Recipe,
    begin: Start,
    lessons: Lessons,
    rows: Tensor,
    held: list[int],
    accelerator: Accelerator,
    workers: int,
    on_epoch: OnEpoch | None,
) -> list[Row]:
    """`rows` are the features of all lessons' photos; `held` are those of them that the epochs are watched on."""
    model, targets = begin.classifier.model, torch.tensor(lessons.photos.targets)
    assert isinstance(model.head, nn.Linear)
    head, teacher = Head(model.head), None
    if begin.teacher is not None:
        width = rows.shape[1]
        rows = torch.cat([rows, _opinions(begin.teacher, lessons.photos, accelerator, workers)], dim=1)

        def teacher(rows: Tensor) -> Tensor:
            return rows[:, width:]

    training = Training(
        head,
        parameter_groups(head, recipe, layers=0),
        lambda epoch: Features(rows[lessons.indexes], lessons.targets),
        lessons.targets,
        len(lessons.photos.labels),
        recipe,
        accelerator,
        held_out=(lambda head: (_logits(head, rows[held]), targets[held])) if held else None,
        teacher=teacher,
    )
    history = training.run(on_epoch)
    model.head.load_state_dict(training.best.get_submodule("head").state_dict())
    accelerator.free_memory()  # Accelerate would go on to scale this head's gradients
    return history


def _opinions(teacher: Classifier, photos: Photos, accelerator: Accelerator, workers: int) -> Tensor:
    """The teacher's logits for photos that can be read."""
    if teacher.model.distillation_head is None:
        return _logits(teacher.model.head, features(teacher, photos, accelerator, workers)[0])
    return _answers(teacher, photos, accelerator, workers)[0]


def _train_all(
    run: Run,
    begin: Start,
    lessons: Lessons,
    watched: Photos,
    state: Path,
    accelerator: Accelerator,
    on_epoch: OnEpoch | None,
) -> tuple[Classifier, list[Row]]:
    recipe, classifier, model = run.recipe, begin.classifier, begin.classifier.model
    trained = lessons.photos.take(lessons.indexes)
    start = {name: weights.clone() for name, weights in model.state_dict().items()}
    full = classifier.preprocessing.image_size or model.config.native_size

    def epoch(number: int) -> Augmented:
        size = recipe.image_size(number, full)
        augmentation = Augmentation(recipe.at(number), classifier.preprocessing, size)
        return Augmented(trained, augmentation, recipe.seed, number)

    def held_out(model: ViT) -> tuple[Tensor, Tensor]:
        logits, readable = _answers(replace(classifier, model=model), watched, accelerator, run.workers)
        return logits, torch.tensor(readable.targets)

    training = Training(
        model,
        parameter_groups(model, recipe, model.config.layers),
        epoch,
        torch.tensor(trained.targets),
        len(trained.labels),
        recipe,
        accelerator,
        held_out=held_out if len(watched) else None,
        workers=run.workers,
        state=state,
        teacher=None if begin.teacher is None else begin.teacher.model.forward,
    )
    history = training.run(on_epoch)
    end = training.best.state_dict()
    blended = {name: weights.to(end[name].device).lerp(end[name], recipe.blend) for name, weights in start.items()}
    training.best.load_state_dict(blended)  # WiSE-FT: Wortsman et al., 2022
    return replace(classifier, model=training.best), history


def calibrate(head: nn.Module, logits: Tensor, targets: Tensor) -> float:
    """Divide the head by the temperature at which these answers are likeliest (Guo et al., 2017), and return it.

    That changes no answer, only how sure it is. Too few photos tell too little, and it is left at 1.
    """
    if len(targets) < ENOUGH:
        return 1.0
    choices = torch.logspace(-1, 1, 201)
    losses = torch.stack([F.cross_entropy(logits / choice, targets) for choice in choices])
    temperature = choices[losses.argmin()].item()
    with torch.no_grad():
        for weights in head.parameters():
            weights.div_(temperature)
    return temperature


def _answers(
    classifier: Classifier, photos: Photos, accelerator: Accelerator, workers: int, bar: tqdm | None = None
) -> tuple[Tensor, Photos]:
    """The model's logits, and the photos that they are for: those that can be read."""
    model = classifier.model.eval()
    rows, problems = over(photos, classifier.preprocessing, model, accelerator, None, workers, bar)
    logits = [rows[index] for index in sorted(rows)]
    nothing = torch.empty(0, len(photos.labels))
    return torch.stack(logits) if logits else nothing, without(photos, problems, accelerator)


def _measure(classifier: Classifier, rows: Tensor, photos: Photos) -> Evaluation:
    """How good a classifier is on photos whose features are known."""
    return Evaluation(_logits(classifier.model.head, rows), torch.tensor(photos.targets), photos.labels)


@torch.no_grad()
def _logits(head: nn.Module, rows: Tensor) -> Tensor:
    """What a head makes of features, on the CPU."""
    return head(rows.to(next(head.parameters()).device)).float().cpu()
