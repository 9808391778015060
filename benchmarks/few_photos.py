"""Heads from few and from uneven photos: ours, scikit-learn's LogisticRegression, and transformers' Trainer.

    python -m benchmarks.few_photos
    python -m benchmarks.few_photos --quick   # two splits of eight dishes

Two times eight dishes of Food-101, drawn by a seed as often as there are splits: tiny, 5 photos of each dish, or
uneven, 4 to 40 of them. The test photos are all those of the official split, about as many of each dish; or, uneven
too, a fifth of the uneven photos, which are then not learnt from. The backbone, ViT-Ti/16, sees each photo once, in
ours and in timm's model, and all learn from that: scikit-learn and the Trainer from timm's features. So the seconds
are those of the heads alone. Prints how many test photos are right, over all splits, and the seconds as ratios to ours.
"""

from __future__ import annotations

import os
import sys
import tempfile
import time
import zipfile
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import torch
import torch.nn.functional as F
import transformers
from accelerate import Accelerator
from sklearn.linear_model import LogisticRegression
from torch import Tensor, nn
from torch.utils.data import TensorDataset

import vit
from vit.finetune.data import Photos
from vit.finetune.features import features
from vit.finetune.head import Problem, cross_validate, deal
from vit.finetune.sources import open_data
from vit.finetune.start import WORKERS
from vit.finetune.views import infer
from vit.memory import keep_freed_memory

from .material import SHARED, in_timm, tiny
from .report import Table, arguments, two_threads

FOOD = SHARED / "data" / "food101_small.zip"
DISHES = (
    ("churros", "edamame", "hot_dog", "oysters", "pho", "ramen", "tacos", "waffles"),
    ("bibimbap", "cannoli", "donuts", "french_fries", "gyoza", "lasagna", "nachos", "spring_rolls"),
)
UNEVEN, TINY = (40, 28, 22, 18, 14, 10, 7, 4), (5,) * 8  # photos of each dish
SPLITS = 16
EPOCHS, BATCH = 100, 32  # the Trainer's: after ten epochs of so few photos it has hardly begun; the course's batch

Answers = Callable[[Tensor], Tensor]  # features → classes


@dataclass(frozen=True)
class Part:
    """Photos as the backbone makes them out: in ours, and in timm's model."""

    ours: Tensor  # n, D
    timms: Tensor  # n, D
    targets: Tensor  # n

    def take(self, indexes: Tensor) -> Part:
        return Part(self.ours[indexes], self.timms[indexes], self.targets[indexes])


def ours(rows: Tensor, targets: Tensor) -> Answers:
    """As `python -m vit finetune` does it."""
    head = nn.Linear(rows.shape[1], int(targets.max()) + 1)
    nn.init.zeros_(head.weight)
    nn.init.zeros_(head.bias)
    problem = Problem.of(head, rows, targets, balance=1.0)
    problem.write(problem.solve(cross_validate(problem, deal(targets, seed=0)).strength), head)
    return lambda others: head(others).argmax(1)


def logistic_regression(rows: Tensor, targets: Tensor, weight: str | None = None) -> Answers:
    model = LogisticRegression(max_iter=2000, class_weight=weight).fit(rows.numpy(), targets.numpy())
    return lambda others: torch.from_numpy(model.predict(others.numpy()))


class Head(nn.Linear):
    """A linear layer that tells its loss, as the Trainer wants it."""

    def forward(self, rows: Tensor, labels: Tensor | None = None) -> dict[str, Tensor]:  # type: ignore[override]
        logits = super().forward(rows)
        return {"logits": logits} if labels is None else {"loss": F.cross_entropy(logits, labels), "logits": logits}


def trainer(rows: Tensor, targets: Tensor) -> Answers:
    """transformers' Trainer with its own optimizer and schedule; a batch of 32 and the course's learning rate."""
    head = Head(rows.shape[1], int(targets.max()) + 1)
    with tempfile.TemporaryDirectory() as folder:
        arguments = transformers.TrainingArguments(
            folder,
            num_train_epochs=EPOCHS,
            per_device_train_batch_size=BATCH,
            learning_rate=1e-3,
            remove_unused_columns=False,
            save_strategy="no",
            logging_strategy="no",
            report_to="none",
            disable_tqdm=True,
            use_cpu=True,
        )

        def collate(items: list[tuple[Tensor, Tensor]]) -> dict[str, Tensor]:
            return dict(zip(("rows", "labels"), map(torch.stack, zip(*items))))

        peer = transformers.Trainer(head, arguments, data_collator=collate, train_dataset=TensorDataset(rows, targets))
        peer.remove_callback(transformers.PrinterCallback)
        peer.train()
    return lambda others: head(others)["logits"].argmax(1)


WAYS: dict[str, tuple[str, Callable[[Tensor, Tensor], Answers]]] = {
    "ours": ("ours", ours),
    "LogisticRegression": ("timms", logistic_regression),
    "LogisticRegression, balanced": ("timms", lambda rows, targets: logistic_regression(rows, targets, "balanced")),
    "transformers' Trainer": ("timms", trainer),
}


def seen(base: vit.Classifier, photos: Photos) -> Part:
    accelerator = Accelerator(cpu=True)
    rows, _ = features(base, photos, accelerator, WORKERS)
    model = in_timm(base.model)
    found, _ = infer(
        photos,
        base.preprocessing,
        lambda images: model.forward_head(model.forward_features(images), pre_logits=True),
        accelerator,
        None,
        WORKERS,
    )
    return Part(rows, torch.stack([found[index] for index in range(len(photos))]), torch.tensor(photos.targets))


def dishes(base: vit.Classifier, names: tuple[str, ...], folder: Path) -> tuple[Part, Part]:
    """The photos to draw from, and those to test on."""
    with zipfile.ZipFile(FOOD) as archive:
        chosen = [name for name in archive.namelist() if name.split("/")[-2:-1] and name.split("/")[-2] in names]
        archive.extractall(folder, [name for name in chosen if not name.endswith("/")])
    root = next(path.parent for path in folder.rglob("train") if path.is_dir())
    data = open_data(root)
    assert data.train is not None and data.test is not None
    return seen(base, data.train), seen(base, data.test)


def draw(targets: Tensor, sizes: tuple[int, ...], seed: int) -> Tensor:
    """The indexes of so many photos of each class."""
    generator = torch.Generator().manual_seed(seed)
    drawn = []
    for target, size in enumerate(sizes):
        own = (targets == target).nonzero()[:, 0]
        drawn.append(own[torch.randperm(len(own), generator=generator)[:size]])
    return torch.cat(drawn)


def halves(pool: Part, seed: int) -> tuple[Part, Part]:
    """An uneven set without a fifth of its photos, and that fifth, which is as uneven."""
    drawn = pool.take(draw(pool.targets, UNEVEN, seed))
    fifth = deal(drawn.targets, seed) == 0
    return drawn.take(~fifth), drawn.take(fifth)


DESIGNS: dict[str, Callable[[Part, Part, int], tuple[Part, Part]]] = {
    "tiny": lambda pool, test, seed: (pool.take(draw(pool.targets, TINY, seed)), test),
    "uneven": lambda pool, test, seed: (pool.take(draw(pool.targets, UNEVEN, seed)), test),
    "uneven, and so the test": lambda pool, _, seed: halves(pool, seed),
}


def measure(splits: int = SPLITS, sets: int = len(DISHES)) -> Table:
    """A row for each design and way."""
    transformers.utils.logging.set_verbosity_error()
    base = tiny()
    right = {(design, way): [0, 0] for design in DESIGNS for way in WAYS}
    seconds = dict.fromkeys(right, 0.0)
    with tempfile.TemporaryDirectory() as name:
        before = os.environ.get("XDG_CACHE_HOME")
        os.environ["XDG_CACHE_HOME"] = str(Path(name) / "cache")
        try:
            pools = [dishes(base, names, Path(name) / str(number)) for number, names in enumerate(DISHES[:sets])]
        finally:
            os.environ.pop("XDG_CACHE_HOME")
            if before is not None:
                os.environ["XDG_CACHE_HOME"] = before
    for pool, official in pools:
        for design, split in DESIGNS.items():
            for seed in range(splits):
                train, test = split(pool, official, seed)
                for way, (kind, solve) in WAYS.items():
                    torch.manual_seed(seed)
                    began = time.perf_counter()
                    answers = solve(getattr(train, kind), train.targets)
                    seconds[design, way] += time.perf_counter() - began
                    with torch.inference_mode():
                        found = answers(getattr(test, kind)) == test.targets
                    right[design, way][0] += int(found.sum())
                    right[design, way][1] += len(found)
    table = Table(
        f"ViT-Ti/16, {splits} splits of {sets} times eight dishes", ("photos", "head", "right", "", "seconds", "÷ ours")
    )
    for (design, way), (correct, total) in right.items():
        took = seconds[design, way]
        share, ratio = correct / total, took / seconds[design, "ours"]
        table.add(design, way, f"{correct:,} of {total:,}", f"{share:.1%}", f"{took:.1f}", f"{ratio:.2f}")
    return table


def main() -> None:
    parser = arguments(__doc__)
    parser.add_argument("--splits", type=int, default=SPLITS, help="of each set of dishes (default: %(default)s)")
    parser.add_argument("--quick", action="store_true", help="two splits of one set: to see that all runs")
    options = parser.parse_args()
    if not FOOD.is_file():
        sys.exit(f"{FOOD} is missing: the photos of Food-101 are not ours to hand out, and too few others are here.")
    keep_freed_memory()
    two_threads(options.threads)
    print(measure(2, 1) if options.quick else measure(options.splits))


if __name__ == "__main__":
    main()
