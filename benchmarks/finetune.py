"""Training a head on a frozen backbone: ours, the course's way, and transformers' Trainer, to the same accuracy.

    python -m benchmarks.finetune

FoodVision Mini, the 20 % split: 450 photos to train on, 150 to test; or the examples where it is
missing, which are too few for figures that mean much. ViT-Ti/16 with the same weights, ten epochs. The course runs the
backbone over every photo in every epoch, and so does the Trainer; ours runs it once, and solves the head. Prints the
seconds of training (testing is not counted) to the accuracy that all three reach, and as ratios to ours.
"""

from __future__ import annotations

import os
import tempfile
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path

import torch
import torch.nn.functional as F
import transformers
from accelerate import Accelerator
from timm.models import VisionTransformer
from torch import Tensor, nn
from torch.utils.data import DataLoader
from torchvision.datasets import ImageFolder

import vit
from vit.finetune.data import Photos
from vit.finetune.features import features
from vit.finetune.head import Problem, cross_validate, deal
from vit.finetune.sources import open_data
from vit.finetune.start import WORKERS
from vit.finetune.views import infer
from vit.memory import keep_freed_memory

from .material import in_timm, lay_out, tiny
from .report import Table, arguments

BATCH = 32  # the course's


@dataclass
class Watch:
    """The seconds of training at the end of each epoch, and how many test photos were right then."""

    name: str
    test: Callable[[], int]
    seconds: float = 0.0
    epochs: list[tuple[float, int]] = field(default_factory=list)

    def start(self) -> None:
        self.began = time.perf_counter()

    def epoch(self, *_: object) -> None:
        self.seconds += time.perf_counter() - self.began
        self.epochs.append((self.seconds, self.test()))
        print(f"{self.name}: epoch {len(self.epochs)}, {self.seconds:.1f} s, {self.epochs[-1][1]} right", flush=True)
        self.began = time.perf_counter()

    def to(self, correct: int) -> float:
        return next(seconds for seconds, right in self.epochs if right >= correct)


def ours(base: vit.Classifier, train: Photos, test: Photos, test_rows: Tensor) -> Watch:
    """As `python -m vit finetune` does it, with an empty cache."""
    accelerator = Accelerator(cpu=True)
    head = nn.Linear(base.model.config.width, len(train.labels))
    nn.init.zeros_(head.weight)
    nn.init.zeros_(head.bias)
    answers = torch.tensor(test.targets)
    watch = Watch("ours", lambda: int((head(test_rows).argmax(1) == answers).sum()))
    watch.start()
    rows, _ = features(base, train, accelerator, WORKERS)
    targets = torch.tensor(train.targets)
    problem = Problem.of(head, rows, targets, balance=1.0)
    problem.write(problem.solve(cross_validate(problem, deal(targets, seed=0)).strength), head)
    watch.epoch()
    return watch


def peer(base: vit.Classifier, classes: int) -> VisionTransformer:
    """timm's model with the same weights, the backbone frozen, a new head."""
    model = in_timm(base.model)
    model.requires_grad_(False).reset_classifier(classes)
    return model


def course(model: VisionTransformer, sets: dict[str, ImageFolder], epochs: int) -> Watch:
    """The course's loop: every photo through the backbone in every epoch, Adam at 0.001."""
    watch = Watch("the course's way", lambda: count(model, sets["test"]))
    watch.start()
    loader = DataLoader(sets["train"], BATCH, shuffle=True, num_workers=WORKERS)
    optimizer = torch.optim.Adam(model.head.parameters(), lr=1e-3)
    for _ in range(epochs):
        model.train()
        for images, targets in loader:
            loss = F.cross_entropy(model(images), targets)
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
        watch.epoch()
    return watch


def trainer(peer: VisionTransformer, sets: dict[str, ImageFolder], epochs: int, folder: Path) -> Watch:
    """transformers' Trainer with its own optimizer and schedule, at the same learning rate."""

    class WithLoss(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.model = peer

        def forward(self, pixel_values: Tensor, labels: Tensor) -> dict[str, Tensor]:
            logits = self.model(pixel_values)
            return {"loss": F.cross_entropy(logits, labels), "logits": logits}

    class EachEpoch(transformers.TrainerCallback):
        def on_epoch_end(self, *_: object, **__: object) -> None:
            watch.epoch()

    def collate(items: list[tuple[Tensor, int]]) -> dict[str, Tensor]:
        images, targets = zip(*items)
        return {"pixel_values": torch.stack(images), "labels": torch.tensor(targets)}

    model = WithLoss()
    watch = Watch("transformers' Trainer", lambda: count(peer, sets["test"]))
    arguments = transformers.TrainingArguments(
        str(folder),
        num_train_epochs=epochs,
        per_device_train_batch_size=BATCH,
        learning_rate=1e-3,
        dataloader_num_workers=WORKERS,
        remove_unused_columns=False,
        save_strategy="no",
        report_to="none",
        disable_tqdm=True,
        use_cpu=True,
    )
    watch.start()
    transformers.Trainer(
        model, arguments, data_collator=collate, train_dataset=sets["train"], callbacks=[EachEpoch()]
    ).train()
    return watch


@torch.inference_mode()
def count(model: nn.Module, data: ImageFolder) -> int:
    model.eval()
    return sum(int((model(images).argmax(1) == targets).sum()) for images, targets in DataLoader(data, BATCH))


def measure(epochs: int = 10) -> list[Table]:
    transformers.utils.logging.set_verbosity_error()
    torch.manual_seed(0)
    base = tiny()
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        os.environ["XDG_CACHE_HOME"] = str(folder / "cache")
        title = lay_out(folder / "photos")
        data = open_data(folder / "photos")
        train, test = data.train, data.test
        assert train is not None and test is not None
        sets = {part: ImageFolder(str(folder / "photos" / part), base.preprocessing) for part in ("train", "test")}

        test_rows, _ = features(base, test, Accelerator(cpu=True), WORKERS)  # and all is warm
        began = time.perf_counter()
        infer(train, base.preprocessing, base.model, Accelerator(cpu=True), None, WORKERS)
        one_pass = time.perf_counter() - began
        watches = [
            ours(base, train, test, test_rows),
            course(peer(base, len(train.labels)), sets, epochs),
            trainer(peer(base, len(train.labels)), sets, epochs, folder / "trainer"),
        ]

    same = min(max(right for _, right in watch.epochs) for watch in watches)
    table = Table(
        f"{title}, ViT-Ti/16, {epochs} epochs; all reach {same} of {len(test)} test photos",
        ("", "best", f"seconds to {same}", "÷ ours", "seconds in all", "÷ ours"),
    )
    for watch in watches:
        best, total = max(right for _, right in watch.epochs), watch.epochs[-1][0]
        ratios = watch.to(same) / watches[0].to(same), total / watches[0].epochs[-1][0]
        table.add(watch.name, best, f"{watch.to(same):.1f}", f"{ratios[0]:.1f}", f"{total:.1f}", f"{ratios[1]:.1f}")
    ratio = watches[0].epochs[-1][0] / one_pass
    table.note = f"One pass of the backbone over {len(train)} photos: {one_pass:.1f} s; ours ÷ one pass: {ratio:.2f}"
    return [table]


def main() -> None:
    parser = arguments(__doc__)
    parser.add_argument("--epochs", type=int, default=10)
    options = parser.parse_args()
    keep_freed_memory()
    for table in measure(options.epochs):
        print(table)


if __name__ == "__main__":
    main()
