"""The training loop: one for a head on cached features and for all weights on photos.

Everything random is drawn from the run's seed and the place in the run (epoch, step, photo), and never from what went
before. So a run that is resumed, or is shared among processes, goes the way an unbroken one in a single process goes.
"""

from __future__ import annotations

import os
import time
from collections.abc import Callable
from contextlib import nullcontext
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import torch
import torch.nn.functional as F
from accelerate import Accelerator
from torch import Tensor, nn
from torch.optim.swa_utils import AveragedModel
from torch.utils.data import DataLoader, Dataset
from torchvision.transforms.v2 import MixUp
from tqdm import tqdm

from .data import Photos
from .recipe import GROUP, Augmentation, Recipe, schedule, seed_of

Row = dict[str, Any]  # the figures of an epoch
OnEpoch = Callable[[Row], None]
SAVE_EVERY = 60  # seconds; more where saving is slow


class Features(Dataset):
    """Rows of a table with their classes."""

    def __init__(self, rows: Tensor, targets: Tensor):
        self.rows, self.targets = rows, targets

    def __len__(self) -> int:
        return len(self.rows)

    def __getitems__(self, indexes: list[int]) -> tuple[Tensor, Tensor]:
        return self.rows[indexes], self.targets[indexes]


class Augmented(Dataset):
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
    seconds: float = 0.0
    history: list[Row] = field(default_factory=list)


class Training:
    """Trains a model on `epoch_of(epoch)`, a data set with the same targets in every epoch.

    `held_out` gives a model's logits for other photos, and their targets. With a `state` file training goes on from
    what it holds, and may be killed at any moment.
    """

    def __init__(
        self,
        model: nn.Module,
        groups: list[dict[str, Any]],
        epoch_of: Callable[[int], Dataset],
        targets: Tensor,
        classes: int,
        recipe: Recipe,
        accelerator: Accelerator,
        held_out: Callable[[nn.Module], tuple[Tensor, Tensor]] | None = None,
        workers: int = 0,
        state: Path | None = None,
    ):
        self.recipe, self.accelerator, self.state = recipe, accelerator, state
        self.epoch_of, self.held_out, self.workers = epoch_of, held_out, workers
        self.classes, self.count = classes, len(targets)
        self.accumulate = accelerator.gradient_accumulation_steps
        processes = accelerator.num_processes
        self.batch_size = min(recipe.batch_size, self.count) // processes * processes
        self.steps = self.count // self.batch_size  # of an epoch; what is left over is another photo each time
        shares = torch.bincount(targets, minlength=classes).clamp(min=1) / self.count
        self.prior = recipe.balance * shares.log().to(accelerator.device)

        for group in groups:
            group["peak"] = group["lr"]
        self.model = model.to(accelerator.device)
        self.average = AveragedModel(self.model, avg_fn=_moving(recipe.ema)) if recipe.ema else None
        self.wrapped, self.optimizer = accelerator.prepare(self.model, torch.optim.AdamW(groups))
        self.at = Progress()
        if state is not None and state.exists():
            self._restore()
        self.saved, self.saving = time.monotonic(), 0.0

    @property
    def best(self) -> nn.Module:
        """The weights to use: their moving average, where the recipe has one."""
        return self.model if self.average is None else self.average.module

    def run(self, on_epoch: OnEpoch | None = None) -> list[Row]:
        """A row of figures for each epoch."""
        while self.at.epoch < self.recipe.epochs:
            self._epoch()
            if on_epoch is not None:
                on_epoch(self.at.history[-1])
        return self.at.history

    def _epoch(self) -> None:
        at = self.at
        data = self.epoch_of(at.epoch)
        whole = hasattr(data, "__getitems__")  # it gives batches already put together, and needs no help in that
        parts = DataLoader(
            data,
            batch_sampler=self._parts(),
            num_workers=0 if whole else self.workers,
            collate_fn=_as_it_is if whole else None,
        )
        bar = tqdm(
            desc=f"epoch {at.epoch + 1}/{self.recipe.epochs}",
            total=self.steps,
            initial=at.step,
            unit="step",
            disable=not self.accelerator.is_main_process,
        )
        self.wrapped.train()
        began = time.monotonic() - at.seconds
        for number, (inputs, targets) in enumerate(parts):
            last = (number + 1) % self.accumulate == 0
            try:
                self._part(inputs, targets, number % self.accumulate, last)
            except (RuntimeError, MemoryError) as error:
                if not _out_of_memory(error) or len(inputs) == 1:
                    raise
                raise ValueError(
                    f"The memory does not hold {len(inputs)} photos at a time: try --batch-size "
                    f"{self.batch_size // 2}, or --accumulate {2 * self.accumulate} for the same result."
                ) from error
            if not last:
                continue
            at.seconds = time.monotonic() - began
            bar.set_postfix(loss=f"{at.loss / at.photos:.3f}", accuracy=f"{at.correct / at.photos:.1%}", refresh=False)
            bar.update()
            if time.monotonic() - self.saved > max(SAVE_EVERY, 50 * self.saving):
                self._save()

        row = dict(epoch=at.epoch + 1, loss=at.loss / at.photos, correct=at.correct, photos=at.photos)
        row["learning_rate"] = self.recipe.learning_rate * self._share(at.step - 1)
        row["seconds"] = at.seconds
        if self.held_out is not None:
            logits, targets = self.held_out(self.best.eval())
            correct = int((logits.argmax(1) == targets).sum())
            row["held_out"] = dict(loss=F.cross_entropy(logits, targets).item(), correct=correct, photos=len(targets))
            bar.set_postfix_str(f"{bar.postfix}, held out={correct}/{len(targets)}")
        bar.close()
        self.at = Progress(epoch=at.epoch + 1, history=[*at.history, row])
        self._save()

    def _parts(self) -> list[list[int]]:
        """The photos of this process for each pass of the rest of the epoch: a batch is `accumulate` passes."""
        generator = torch.Generator().manual_seed(seed_of(self.recipe.seed, self.at.epoch))
        order = torch.randperm(self.count, generator=generator).tolist()
        own = self.batch_size // self.accelerator.num_processes
        parts = []
        for step in range(self.at.step, self.steps):
            first = step * self.batch_size + self.accelerator.process_index * own
            batch = torch.tensor(order[first : first + own])
            parts += [part.tolist() for part in batch.tensor_split(self.accumulate)]
        return parts

    def _part(self, inputs: Tensor, targets: Tensor, part: int, last: bool) -> None:
        """One pass forward and back; after the last one of a batch, a step."""
        at, recipe, accelerator = self.at, self.recipe, self.accelerator
        own = self.batch_size // accelerator.num_processes
        place = accelerator.process_index * own + part * own // self.accumulate
        inputs, targets = inputs.to(accelerator.device), targets.to(accelerator.device)
        if recipe.at(at.epoch).mixup:
            inputs, targets = self._mix(inputs, targets, place)
        torch.manual_seed(seed_of(recipe.seed, at.epoch, at.step, place))  # for dropout and stochastic depth
        with nullcontext() if last else accelerator.no_sync(self.wrapped):
            logits = self.wrapped(inputs).float()
            adjusted = logits + self.prior
            loss = F.cross_entropy(adjusted, targets, label_smoothing=recipe.label_smoothing, reduction="sum")
            accelerator.backward(loss / own * accelerator.gradient_accumulation_steps)  # which it divides by
        answers = targets if targets.ndim == 1 else targets.argmax(1)
        sums = torch.stack([loss.detach(), (logits.argmax(1) == answers).sum(), logits.new_tensor(len(answers))])
        loss, correct, photos = accelerator.reduce(sums, "sum").tolist()
        at.loss, at.correct, at.photos = at.loss + loss, at.correct + round(correct), at.photos + round(photos)
        if not last:
            return
        for group in self.optimizer.param_groups:
            group["lr"] = group["peak"] * self._share(at.step)
        if recipe.clip:
            accelerator.clip_grad_norm_(self.model.parameters(), recipe.clip)
        self.optimizer.step()
        self.optimizer.zero_grad()
        if self.average is not None:
            self.average.update_parameters(self.model)
        at.step += 1

    def _mix(self, inputs: Tensor, targets: Tensor, place: int) -> tuple[Tensor, Tensor]:
        """Mixup within each group of eight, drawn by the group's place in the batch."""
        mixup = MixUp(alpha=self.recipe.mixup, num_classes=self.classes)
        mixed = []
        with torch.random.fork_rng(devices=[]):
            for start in range(0, len(inputs), GROUP):
                torch.manual_seed(seed_of(self.recipe.seed, self.at.epoch, self.at.step, place + start, 1))
                mixed.append(mixup(inputs[start : start + GROUP], targets[start : start + GROUP]))
        return torch.cat([images for images, _ in mixed]), torch.cat([shares for _, shares in mixed])

    def _share(self, step: int) -> float:
        return schedule(self.recipe, self.steps * self.recipe.epochs, self.at.epoch * self.steps + step)

    def _save(self) -> None:
        if self.state is not None and self.accelerator.is_main_process:
            self.saved = time.monotonic()
            content = {name: part.state_dict() for name, part in self._kept().items()}
            new = self.state.with_suffix(".new")
            torch.save({**content, "progress": vars(self.at)}, new)
            os.replace(new, self.state)  # whole, or not at all
            self.saving = time.monotonic() - self.saved
            self.saved = time.monotonic()

    def _restore(self) -> None:
        content = torch.load(self.state, map_location="cpu", weights_only=True)
        for name, part in self._kept().items():
            part.load_state_dict(content[name])
        self.at = Progress(**content["progress"])

    def _kept(self) -> dict[str, Any]:
        """The parts of a run that hold what it has learnt."""
        parts = {"model": self.model, "optimizer": self.optimizer, "average": self.average}
        return {name: part for name, part in {**parts, "scaler": self.accelerator.scaler}.items() if part is not None}


def _out_of_memory(error: Exception) -> bool:
    return isinstance(error, (MemoryError, torch.OutOfMemoryError)) or "allocate memory" in str(error)


def _as_it_is(batch: Any) -> Any:
    return batch


def _moving(decay: float) -> Callable[[Tensor, Tensor, Tensor | int], Tensor]:
    """A moving average that follows closely at first, for the first weights are the worst."""

    def average(mean: Tensor, new: Tensor, number: Tensor | int) -> Tensor:
        number = int(number)
        return mean.lerp(new, 1 - min(decay, (1 + number) / (10 + number)))

    return average
