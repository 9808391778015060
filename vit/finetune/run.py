"""A fine-tuning from data and a base model to a folder that `vit.load` takes."""

from __future__ import annotations

import shutil
from dataclasses import dataclass, replace
from pathlib import Path

import torch
from accelerate import Accelerator
from accelerate.utils import broadcast_object_list
from torch import Tensor, nn
from tqdm import tqdm

from .. import checkpoints
from ..classifier import Classifier
from ..familiarity import TrainingFeatures, held_out_distances
from ..model import ViT
from ..processes import on_cpus
from . import report
from .accounts import HELD_OUT, LEARNT, LEFT_OUT, TEST, Account, account
from .accounts import write as write_accounts
from .alike import ALIKE, SIDE, fingerprints, left_out
from .card import card
from .data import DataError, Photos
from .evaluation import Evaluation
from .features import features, features_and_fingerprints
from .head import STRENGTHS, CrossValidation, Problem, cross_validate, deal, heed_means, likeliest
from .keeping import evened_out, repeated, tell_apart
from .recipe import Augmentation, parameter_groups
from .result import Result
from .start import UNFINISHED, WORKERS, Run, Start, prepare_folder, split, start, summary, watched, with_registers
from .training import Augmented, OnRow, Row, Training
from .views import bar_for, infer, name_problems, without

ENOUGH = 100  # held-out photos to tell a temperature from


def finetune(
    run: Run, out: str | Path, resume: bool = False, on_row: OnRow | None = None, title: str | None = None
) -> Result:
    """Train, and write a folder that `vit.load` takes: the model, its card, figures and pictures of how it learnt.

    Nothing is chosen by the test photos. A run that was stopped goes on with `resume` and ends as if it had not been.
    `on_row` is called with the figures of each epoch, or of each strength that is tried for a head. `title` is the
    card's, by default the folder's name.
    """
    out = Path(out)
    accelerator = Accelerator(cpu=on_cpus(), gradient_accumulation_steps=run.accumulate)
    on_row = on_row if accelerator.is_main_process else None
    with accelerator.main_process_first():  # which fetches what the others then find
        begin = start(run)
    if run.recipe.small_epochs:
        begin.classifier.model.config.check_image(run.recipe.small_size, run.recipe.small_size)
    for model in (begin.classifier, begin.teacher):
        if model is not None:
            model.model.to(accelerator.device).eval()
    state = prepare_folder(run, out, resume, begin, accelerator) / "state.pt"
    try:
        result = _train(run, out, begin, state, accelerator, on_row)
    except ValueError:
        if accelerator.is_main_process and not state.exists():
            _clear(out)  # nothing was learnt: what is mended may start anew in the same folder
        raise
    if result.main_process:
        report.write(out, result.history, result.figures, result.photos, result.familiarity, run.data)
        if result.validated is not None:
            report.write_doubts(out, result.validated, result.learnt)
        write_accounts(result.accounts, out)
        (out / "README.md").write_text(card(result, title or out.resolve().name), encoding="utf-8")
        _clear(out)
    return result


def _train(run: Run, out: Path, begin: Start, state: Path, accelerator: Accelerator, on_row: OnRow | None) -> Result:
    """The features, the head, all weights, the temperature, the test; and the model is written."""
    recipe, teacher = run.recipe, begin.teacher
    parts = _parts(run, begin, accelerator)
    train, test = parts.train, parts.test
    unlabelled = None if begin.unlabelled is None else _readable(run, begin, begin.unlabelled, accelerator)[0]
    learnt, held = watched(run, train)
    photos, watched_photos = train.take(learnt), train.take(held)
    classifier = with_registers(run, begin, photos)
    classifier.model.to(accelerator.device).eval()

    lessons = Lessons.of(photos, unlabelled, recipe.teacher_share)
    shift = evened_out(lessons.targets, len(train.labels), recipe.balance)
    history: list[Row] = []
    validated: Evaluation | None = None
    linear_probe: Evaluation | None = None
    if run.solves_head:
        validation = _solve_head(run, classifier, teacher, lessons, accelerator, on_row)
        logits = (validation.logits[: len(photos)] + shift).float()
        validated = Evaluation(logits, torch.tensor(photos.targets), photos.labels)
        history = validation.history
        if recipe.train != "head":
            linear_probe = _measure(run, classifier, test, accelerator)
    if recipe.train != "head":
        classifier, history = _train_all(run, classifier, teacher, lessons, watched_photos, state, accelerator, on_row)
        if run.half:
            classifier.model.half().float()
    watched_rows = _features(run, classifier, watched_photos, accelerator)

    head = classifier.model.head
    assert isinstance(head, nn.Linear)
    if unlabelled is not None and teacher is not None and len(watched_photos) >= ENOUGH:
        others = _features(run, classifier, unlabelled, accelerator)
        opinion = _opinions(teacher, unlabelled, accelerator, run.workers)
        tell_apart(
            head,
            torch.tensor(photos.targets).unique(),
            watched_rows,
            torch.tensor(watched_photos.targets),
            others,
            opinion,
        )
    else:
        with torch.no_grad():
            head.bias.add_(shift.to(head.bias))
    likeness, test_likeness, heed = None, None, 0.0
    if teacher is None:
        rows, targets = _features(run, classifier, photos, accelerator), torch.tensor(photos.targets)
        # A frozen backbone knows none of the photos, so that each can be told by the others.
        apart = held_out_distances(rows, targets) if recipe.train == "head" else None
        known = TrainingFeatures.fit(rows, targets, watched_rows if apart is None else None)
        classifier = replace(classifier, training_features=known)
        if known is not None:
            likeness = None if apart is None else known.rank(apart)
            test_likeness = known.familiarity(_features(run, classifier, test, accelerator)) if len(test) else None
            if recipe.train != "head" and len(watched_photos) >= ENOUGH:
                heed = heed_means(head, known, watched_rows, torch.tensor(watched_photos.targets))
    temperature = calibrate(head, _logits(head, watched_rows), torch.tensor(watched_photos.targets))
    if run.half:
        classifier.model.half().float()  # what is measured is what is written
    measured = _measure(run, classifier, test, accelerator) if len(test) else None
    if accelerator.is_main_process:
        checkpoints.save(classifier, out, half=run.half)
    counts = dict(learnt=len(photos), held_out=len(watched_photos), tested=len(test))
    return Result(
        run=run,
        classifier=classifier,
        history=history,
        temperature=temperature,
        heed=heed,
        counts=counts,
        accounts=[
            *account(photos, LEARNT, run.data, validated, likeness),
            *account(watched_photos, HELD_OUT, run.data),
            *account(test, TEST, run.data, measured, test_likeness),
            *parts.left_out,
        ],
        learnt=photos,
        validated=validated,
        tested=test,
        test=measured,
        familiarity=test_likeness if len(test) else likeness,
        linear_probe=linear_probe,
        main_process=accelerator.is_main_process,
        shared=begin.shared,
        teacher=teacher,
    )


def evaluate(
    classifier: Classifier, photos: Photos, accelerator: Accelerator, workers: int = WORKERS
) -> tuple[Evaluation, Photos, Tensor | None, dict[int, str]]:
    """The model's answers for photos, the photos that could be read, and how familiar each is, where it knows.

    And what is wrong with the others, by index.
    """
    model, known = classifier.model.to(accelerator.device).eval(), classifier.training_features

    def answer(images: Tensor) -> Tensor:
        tokens = model.encode_read(images)
        logits = model.classify(tokens)
        return logits if known is None else torch.cat([logits, known.familiarity(model.pool(tokens))[:, None]], dim=1)

    with bar_for(accelerator, len(photos), "evaluating") as bar:
        rows, problems = infer(photos, classifier.preprocessing, answer, accelerator, None, workers, bar)
    readable = without(photos, problems, accelerator)
    if not len(readable):
        raise DataError("None of the photos can be read.")
    found = torch.stack([rows[index] for index in sorted(rows)])
    logits, likeness = found.tensor_split([len(classifier.labels)], dim=1)
    evaluation = Evaluation(logits, torch.tensor(readable.targets), classifier.labels)
    return evaluation, readable, None if known is None else likeness[:, 0], problems


def _clear(out: Path) -> None:
    """Forget what a resumed run would go on from, and the folder where it holds nothing else."""
    shutil.rmtree(out / UNFINISHED, ignore_errors=True)
    if out.is_dir() and not any(out.iterdir()):
        out.rmdir()


@dataclass(frozen=True)
class Parts:
    """The photos to learn from and those to test on, and of the others why they do not count."""

    train: Photos
    test: Photos
    left_out: list[Account]


def _parts(run: Run, begin: Start, accelerator: Accelerator) -> Parts:
    """What can be read, each photo once, and split where there are no test photos."""
    if accelerator.is_main_process:
        print(summary(run, begin))
    train, prints, left = _readable(run, begin, begin.train, accelerator)
    test, test_prints = None, None
    if begin.test is not None:
        test, test_prints, unread = _readable(run, begin, begin.test, accelerator)
        left += unread
    alike = 0.0 if run.only_copies else ALIKE
    doubles = {each.index: each.why for each in left_out(train, prints, test, test_prints, run.data, alike)}
    name_problems(train, doubles, accelerator, "photos do not count")
    left += account(train, LEFT_OUT, run.data, notes=doubles)
    once = train.take([index for index in range(len(train)) if index not in doubles])
    scarce = [
        f"{label!r} has {'one photo' if count else 'no photo'}"
        for label, count, before in zip(once.labels, once.counts(), train.counts())
        if before and count < 2
    ]
    if scarce:
        raise DataError(f"The class {', '.join(scarce)} only that counts: add some, or remove the class.")
    if test is None:
        kept, tested = split(run, once)
        once, test = once.take(kept), once.take(tested)
    return Parts(once, test, left)


def _readable(run: Run, begin: Start, photos: Photos, accelerator: Accelerator) -> tuple[Photos, Tensor, list[Account]]:
    """The photos that can be read, what tells those that are alike, and an account of the others.

    Where a head is solved on what the base makes of them, that is computed.
    """
    how = begin.classifier.preprocessing
    if run.solves_head and not run.changes_base:
        _, prints, problems = features_and_fingerprints(begin.classifier, photos, accelerator, run.workers)
    else:
        with bar_for(accelerator, len(photos), "reading photos") as bar:
            rows, problems = infer(
                photos, how, lambda images: fingerprints(images, how), accelerator, None, run.workers, bar
            )
        prints = torch.stack([rows.get(index, torch.zeros(3 * SIDE**2)) for index in range(len(photos))])
    readable = _without(photos, problems, accelerator)
    own = [index for index in range(len(photos)) if index not in problems]
    return readable, prints[own], account(photos, LEFT_OUT, run.data, notes=problems)


def _features(run: Run, classifier: Classifier, photos: Photos, accelerator: Accelerator) -> Tensor:
    """What the head reads of photos that can be read (n, D)."""
    rows, problems = features(classifier, photos, accelerator, run.workers)
    if problems:
        raise DataError(f"A photo can no longer be read ({next(iter(problems.values()))}): put it back, and try again.")
    return rows


def _without(photos: Photos, problems: dict[int, str], accelerator: Accelerator) -> Photos:
    """The photos that can be read, of which each class must have some."""
    readable = without(photos, problems, accelerator)
    for label, count, before in zip(readable.labels, readable.counts(), photos.counts()):
        if before and not count:
            raise DataError(f"None of the photos of {label!r} can be read: mend them, or remove the class.")
    return readable


@dataclass(frozen=True)
class Lessons:
    """The photos that are learnt from: those with labels, and those without as often as the recipe says."""

    photos: Photos  # all there are, the ones without labels last
    indexes: list[int]  # of those that an epoch meets

    @classmethod
    def of(cls, train: Photos, unlabelled: Photos | None, share: float) -> Lessons:
        indexes = list(range(len(train)))
        if unlabelled is None:
            return cls(train, indexes)
        photos = replace(train, files=train.files + unlabelled.files, targets=train.targets + unlabelled.targets)
        again = repeated(len(unlabelled), len(train), share)
        return cls(photos, indexes + [len(train) + index for index in again])

    @property
    def targets(self) -> Tensor:
        return torch.tensor([self.photos.targets[index] for index in self.indexes])


def _solve_head(
    run: Run,
    classifier: Classifier,
    teacher: Classifier | None,
    lessons: Lessons,
    accelerator: Accelerator,
    on_row: OnRow | None,
) -> CrossValidation:
    """Give the classifier the best head for the features of the lessons' photos; the main process solves for all."""
    recipe, head = run.recipe, classifier.model.head
    assert isinstance(head, nn.Linear)
    photos, targets = lessons.photos, torch.tensor(lessons.photos.targets)
    rows = _features(run, classifier, photos, accelerator)
    opinion = None if teacher is None else _opinions(teacher, photos, accelerator, run.workers)
    found = None
    if accelerator.is_main_process:
        counts = torch.tensor(lessons.indexes).bincount(minlength=len(photos))
        problem = Problem.of(head, rows, targets, recipe.balance, counts, opinion, recipe.keep)
        with tqdm(desc="head", total=len(STRENGTHS), unit="strength") as bar:

            def tried(row: Row) -> None:
                bar.set_postfix_str(f"cross-validated={row['correct']}/{row['photos']}", refresh=False)
                bar.update()
                if on_row is not None and recipe.train == "head":
                    on_row(row)

            validation = cross_validate(problem, deal(targets, recipe.seed), tried)
            problem.write(problem.solve(validation.strength), head)
        found = validation, head.state_dict()
    [found] = broadcast_object_list([found])
    head.load_state_dict(found[1])
    return found[0]


def _opinions(teacher: Classifier, photos: Photos, accelerator: Accelerator, workers: int) -> Tensor:
    """The teacher's logits for photos that can be read."""
    if teacher.model.distillation_head is None:
        return _logits(teacher.model.head, features(teacher, photos, accelerator, workers)[0])
    return _answers(teacher, photos, accelerator, workers)[0]


def _train_all(
    run: Run,
    classifier: Classifier,
    teacher: Classifier | None,
    lessons: Lessons,
    watched: Photos,
    state: Path,
    accelerator: Accelerator,
    on_row: OnRow | None,
) -> tuple[Classifier, list[Row]]:
    recipe, model = run.recipe, classifier.model
    trained = lessons.photos.take(lessons.indexes)
    start = {name: weights.clone() for name, weights in model.state_dict().items()}
    full = classifier.preprocessing.image_size or model.config.native_size

    def epoch(number: int) -> Augmented:
        size = recipe.image_size(number, full)
        augmentation = Augmentation(recipe.in_epoch(number), classifier.preprocessing, size)
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
        teacher=None if teacher is None else teacher.model.forward,
    )
    history = training.run(on_row)
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
    temperature, _ = likeliest(logits, targets)
    with torch.no_grad():
        for weights in head.parameters():
            weights.div_(temperature)
    return temperature


def _answers(
    classifier: Classifier, photos: Photos, accelerator: Accelerator, workers: int, bar: tqdm | None = None
) -> tuple[Tensor, Photos]:
    """The model's logits, and the photos that they are for: those that can be read."""
    classifier.model.eval()
    rows, problems = infer(photos, classifier.preprocessing, classifier.logits, accelerator, None, workers, bar)
    logits = [rows[index] for index in sorted(rows)]
    nothing = torch.empty(0, len(photos.labels))
    return torch.stack(logits) if logits else nothing, without(photos, problems, accelerator)


def _measure(run: Run, classifier: Classifier, photos: Photos, accelerator: Accelerator) -> Evaluation:
    """How good a classifier is on photos that can be read."""
    logits = _logits(classifier.model.head, _features(run, classifier, photos, accelerator))
    return Evaluation(logits, torch.tensor(photos.targets), photos.labels)


@torch.no_grad()
def _logits(head: nn.Module, rows: Tensor) -> Tensor:
    """What a head makes of features, on the CPU."""
    return head(rows.to(next(head.parameters()).device)).float().cpu()
