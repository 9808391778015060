"""The training loop.

Everything random is drawn from the run's seed and the place in the run (epoch, step, photo), and never from what went
before. So a run that is resumed goes the way an unbroken one goes; and so does one that is shared among processes or
takes its batches in parts, where no dropout is drawn and the shares are whole groups of mixup.
"""

from __future__ import annotations

import errno
import math
import os
import signal
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, nullcontext
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Generic, TypeVar

import torch
import torch.nn.functional as F
from accelerate import Accelerator
from torch import Tensor, nn
from torch.optim.swa_utils import AveragedModel
from torch.utils.data import DataLoader, Dataset
from torchvision.transforms.v2 import MixUp
from tqdm import tqdm

from ..photos.files import PhotoError
from .data import Photos
from .keeping import Keeping
from .objective import Objective, Teacher, shares
from .recipe import GROUP, Augmentation, Recipe, schedule, seed_of

Row = dict[str, Any]  # the figures of an epoch
OnRow = Callable[[Row], None]
Model = TypeVar("Model", bound=nn.Module)
SAVE_EVERY = 60  # seconds; more where saving is slow
# What torch, its allocators and oneDNN say.
OUT_OF_MEMORY = ("out of memory", "allocate memory", "not enough memory", "could not create a primitive")


class Augmented(Dataset[tuple[Tensor, int]]):
    """Photos as an epoch meets them: each changed in a way that its place and the epoch decide."""

    def __init__(self, photos: Photos, augmentation: Augmentation, *seeds: int):
        self.photos, self.augmentation, self.seeds = photos, augmentation, seeds

    def __len__(self) -> int:
        return len(self.photos)

    def __getitem__(self, index: int) -> tuple[Tensor, int]:
        photo = self.photos.open(index)
        with torch.random.fork_rng(devices=[]):
            torch.manual_seed(seed_of(*self.seeds, index))
            return self.augmentation(photo), self.photos.targets[index]


@dataclass
class Progress:
    """How far a training has come, and what was counted in its epoch so far."""

    epoch: int = 0
    step: int = 0
    loss: float = 0.0  # summed over photos
    correct: int = 0
    photos: int = 0
    labelled: int = 0  # of them
    seconds: float = 0.0
    history: list[Row] = field(default_factory=list)


class Training(Generic[Model]):
    """Trains a model on `epoch_of(epoch)`, a data set with the same targets in every epoch.

    `held_out` gives a model's logits for other photos, and their targets. With a `state` file training goes on from
    what it holds, and may be killed at any moment. With a `teacher` photos may be without a label.
    """

    def __init__(
        self,
        model: Model,
        groups: list[dict[str, Any]],
        epoch_of: Callable[[int], Dataset[tuple[Tensor, Tensor | int]]],
        targets: Tensor,
        classes: int,
        recipe: Recipe,
        accelerator: Accelerator,
        held_out: Callable[[Model], tuple[Tensor, Tensor]] | None = None,
        workers: int = 0,
        state: Path | None = None,
        teacher: Teacher | None = None,
    ):
        self.recipe, self.accelerator, self.state = recipe, accelerator, state
        self.epoch_of, self.held_out, self.workers = epoch_of, held_out, workers
        self.classes, self.count = classes, len(targets)
        self.accumulate = accelerator.gradient_accumulation_steps
        self.steps, self.batch_size = _divide(self.count, recipe.batch_size, accelerator.num_processes)
        if self.accumulate > self.batch_size // accelerator.num_processes:
            raise ValueError(f"A batch of {self.batch_size} photos has no {self.accumulate} parts: --accumulate less.")
        for group in groups:
            group["peak"] = group["lr"]
        self.model = model.to(accelerator.device)
        self.average = AveragedModel(self.model, avg_fn=_moving(recipe.ema)) if recipe.ema else None
        self.teacher = teacher
        objective = Objective(self.model, targets, classes, recipe)
        if teacher is not None:
            objective = Keeping(self.model, targets, classes, recipe, teacher)
        self.wrapped, self.optimizer = accelerator.prepare(objective, torch.optim.AdamW(groups))
        self.progress = Progress()
        if state is not None and state.exists():
            self._restore(state)
        self.saved, self.saving, self.asked_to_stop = time.monotonic(), 0.0, False

    @property
    def best(self) -> Model:
        """The weights to use: their moving average, where the recipe has one."""
        return self.model if self.average is None else self.average.module  # type: ignore[return-value]

    def run(self, on_row: OnRow | None = None) -> list[Row]:
        """A row of figures for each epoch. Ctrl-C is heard after a step, and what was learnt is saved."""
        with _heard(self._ask):
            while self.progress.epoch < self.recipe.epochs:
                self._epoch()
                if on_row is not None:
                    on_row(self.progress.history[-1])
        return self.progress.history

    def _ask(self) -> None:
        self.asked_to_stop = True

    def _epoch(self) -> None:
        progress = self.progress
        data = self.epoch_of(progress.epoch)
        parts = DataLoader(data, batch_sampler=self._parts(), num_workers=self.workers, worker_init_fn=ignore_interrupt)
        with tqdm(
            desc=f"epoch {progress.epoch + 1}/{self.recipe.epochs}",
            total=self.steps,
            initial=progress.step,
            unit="step",
            disable=not self.accelerator.is_main_process,
        ) as bar:
            try:
                self._train(parts, bar)
            except (RuntimeError, MemoryError) as error:
                if not out_of_memory(error):
                    raise
                raise ValueError(self._smaller()) from error
            row = self._row(bar)
        self.progress = Progress(epoch=progress.epoch + 1, history=[*progress.history, row])
        self._save()

    def _train(self, parts: DataLoader[tuple[Tensor, Tensor | int]], bar: tqdm) -> None:
        """The rest of the epoch's steps."""
        progress = self.progress
        began = time.monotonic() - progress.seconds
        self.wrapped.train()
        for number, (inputs, targets) in enumerate(_batches(parts)):
            last = (number + 1) % self.accumulate == 0
            self._micro_batch(inputs, targets, number % self.accumulate, last)
            if not last:
                continue
            progress.seconds = time.monotonic() - began
            bar.set_postfix_str(self._figures(), refresh=False)
            bar.update()
            if self.asked_to_stop or time.monotonic() - self.saved > max(SAVE_EVERY, 50 * self.saving):
                self._save()
            if self.asked_to_stop:
                raise KeyboardInterrupt

    def _figures(self) -> str:
        progress = self.progress
        accuracy = progress.correct / max(1, progress.labelled)
        return f"loss={progress.loss / progress.photos:.3f}, accuracy={accuracy:.1%}"

    def _row(self, bar: tqdm) -> Row:
        """The figures of an epoch that is over, with those of the photos held out."""
        progress = self.progress
        row: Row = dict(
            epoch=progress.epoch + 1,
            loss=progress.loss / progress.photos,
            correct=progress.correct,
            photos=progress.labelled,
        )
        row["learning_rate"] = self.recipe.learning_rate * self._share(progress.step - 1)
        row["seconds"] = progress.seconds
        if self.held_out is not None:
            logits, targets = self.held_out(self.best.eval())
            correct = int((logits.argmax(1) == targets).sum())
            row["held_out"] = dict(loss=F.cross_entropy(logits, targets).item(), correct=correct, photos=len(targets))
            bar.set_postfix_str(f"{self._figures()}, held out={correct}/{len(targets)}")
        return row

    def _parts(self) -> list[list[int]]:
        """The photos of this process for each pass of the rest of the epoch: a batch is `accumulate` passes."""
        generator = torch.Generator().manual_seed(seed_of(self.recipe.seed, self.progress.epoch))
        order = torch.randperm(self.count, generator=generator).tolist()
        own = self.batch_size // self.accelerator.num_processes
        parts = []
        for step in range(self.progress.step, self.steps):
            first = step * self.batch_size + self.accelerator.process_index * own
            batch = torch.tensor(order[first : first + own])
            parts += [part.tolist() for part in batch.tensor_split(self.accumulate)]
        return parts

    def _micro_batch(self, inputs: Tensor, targets: Tensor, part: int, last: bool) -> None:
        """One pass forward and back; after the last one of a batch, a step."""
        progress, recipe, accelerator = self.progress, self.recipe, self.accelerator
        own = self.batch_size // accelerator.num_processes
        before = sum(len(earlier) for earlier in torch.empty(own).tensor_split(self.accumulate)[:part])
        place = accelerator.process_index * own + before  # of the first photo in the batch
        inputs, targets = inputs.to(accelerator.device), targets.to(accelerator.device)
        if self.teacher is not None:
            targets = shares(targets, self.classes)
        if recipe.in_epoch(progress.epoch).mixup:
            inputs, targets = self._mix(inputs, targets, place)
        # For dropout and stochastic depth.
        torch.manual_seed(seed_of(recipe.seed, progress.epoch, progress.step, place))
        with nullcontext() if last else accelerator.no_sync(self.wrapped):
            loss, logits = self.wrapped(inputs, targets)
            accelerator.backward(loss / own * accelerator.gradient_accumulation_steps)  # which it divides by
        answers = targets if targets.ndim == 1 else targets.argmax(1)
        labelled = torch.ones_like(answers) if targets.ndim == 1 else (targets.amax(1) > 0).long()
        correct = ((logits.argmax(1) == answers) * labelled).sum()
        sums = torch.stack([loss.detach(), correct, labelled.sum(), labelled.new_tensor(len(labelled))])
        loss, *counts = accelerator.reduce(sums, "sum").tolist()
        right, known, photos = map(round, counts)
        progress.loss, progress.photos = progress.loss + loss, progress.photos + photos
        progress.correct, progress.labelled = progress.correct + right, progress.labelled + known
        if not last:
            return
        for group in self.optimizer.param_groups:
            group["lr"] = group["peak"] * self._share(progress.step)
        if recipe.clip:
            accelerator.clip_grad_norm_(self.model.parameters(), recipe.clip)
        self.optimizer.step()
        self.optimizer.zero_grad()
        if self.average is not None:
            self.average.update_parameters(self.model)
        progress.step += 1

    def _mix(self, inputs: Tensor, targets: Tensor, place: int) -> tuple[Tensor, Tensor]:
        """Mixup within each group of eight, drawn by the group's place in the batch."""
        mixup = MixUp(alpha=self.recipe.mixup, num_classes=self.classes)
        mixed = []
        with torch.random.fork_rng(devices=[]):
            for start in range(0, len(inputs), GROUP):
                torch.manual_seed(seed_of(self.recipe.seed, self.progress.epoch, self.progress.step, place + start, 1))
                mixed.append(mixup(inputs[start : start + GROUP], targets[start : start + GROUP]))
        return torch.cat([images for images, _ in mixed]), torch.cat([shares for _, shares in mixed])

    def _smaller(self) -> str:
        photos = -(-self.batch_size // self.accelerator.num_processes // self.accumulate)
        if photos == 1:
            return "The memory does not hold one photo: choose a smaller model, or train its head alone (--train head)."
        return (
            f"The memory does not hold {photos} photos at a time: try --batch-size {self.batch_size // 2}, "
            f"or --accumulate {2 * self.accumulate} for the same steps in smaller parts."
        )

    def _share(self, step: int) -> float:
        return schedule(self.recipe, self.steps * self.recipe.epochs, self.progress.epoch * self.steps + step)

    def _save(self) -> None:
        if self.state is not None and self.accelerator.is_main_process:
            self.saved = time.monotonic()
            content = {name: part.state_dict() for name, part in self._kept().items()}
            new = self.state.with_suffix(".new")
            try:
                torch.save({**content, "progress": vars(self.progress)}, new)
            except RuntimeError as error:  # which is what torch makes of a full disk
                new.unlink(missing_ok=True)
                raise OSError(errno.ENOSPC, "the disk may be full", str(new)) from error
            os.replace(new, self.state)  # whole, or not at all
            self.saving = time.monotonic() - self.saved
            self.saved = time.monotonic()

    def _restore(self, state: Path) -> None:
        try:
            content = torch.load(state, map_location="cpu", weights_only=True)
        except Exception as error:  # a damaged file makes torch raise anything
            raise ValueError(f"{str(state)!r} is damaged: start the run anew, in another folder.") from error
        for name, part in self._kept().items():
            part.load_state_dict(content[name])
        self.progress = Progress(**content["progress"])

    def _kept(self) -> dict[str, Any]:
        """The parts of a run that hold what it has learnt."""
        parts = {"model": self.model, "optimizer": self.optimizer, "average": self.average}
        return {name: part for name, part in {**parts, "scaler": self.accelerator.scaler}.items() if part is not None}


def out_of_memory(error: Exception) -> bool:
    """Whether that is what the error says: each device has its own words."""
    words = str(error).lower()
    return isinstance(error, (MemoryError, torch.OutOfMemoryError)) or any(said in words for said in OUT_OF_MEMORY)


def _divide(photos: int, batch_size: int, processes: int) -> tuple[int, int]:
    """The steps of an epoch and the photos in each, so that few are left over: others in each epoch."""
    if batch_size % processes or photos < processes:
        raise ValueError(
            f"{processes} processes cannot share a batch of {min(batch_size, photos)} photos equally: "
            f"make --batch-size a multiple of {processes}."
        )
    if photos <= batch_size:
        return 1, photos // processes * processes
    unit = math.lcm(GROUP, processes)
    fewer, more = photos // batch_size, -(-photos // batch_size)
    smaller = photos // more // unit * unit  # equal batches, of whole groups
    return max([(fewer, batch_size), (more, smaller)], key=math.prod)  # the first where both leave as many over


def _batches(parts: DataLoader[tuple[Tensor, Tensor | int]]) -> Iterator[tuple[Tensor, Tensor]]:
    """The same, unless a photo is gone that could be read when the run began."""
    try:
        yield from parts
    except PhotoError as error:
        reason = str(error).strip().splitlines()[-1].rpartition(f"{PhotoError.__name__}: ")[2]
        raise ValueError(f"A photo can no longer be read ({reason}): put it back, and go on with --resume.") from error


@contextmanager
def _heard(ask: Callable[[], None]) -> Iterator[None]:
    """Ctrl-C asks to stop, where Python would raise an error in the middle of anything; a second one insists."""
    if threading.current_thread() is not threading.main_thread():
        yield
        return

    def hear(*_: object) -> None:
        ask()
        signal.signal(signal.SIGINT, before)

    before = signal.signal(signal.SIGINT, hear)
    try:
        yield
    finally:
        signal.signal(signal.SIGINT, before)


def ignore_interrupt(worker: int) -> None:
    """Ctrl-C is for the process that trains, which then ends this one."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)


def _moving(decay: float) -> Callable[[Tensor, Tensor, Tensor | int], Tensor]:
    """A moving average that follows closely at first, for the first weights are the worst."""

    def average(mean: Tensor, new: Tensor, number: Tensor | int) -> Tensor:
        number = int(number)
        return mean.lerp(new, 1 - min(decay, (1 + number) / (10 + number)))

    return average
