"""What fewer bits cost in right answers, beside float32, photo by photo.

    python -m benchmarks.precision

FoodVision 101 on `food101_small`'s 2,766 test photos, or on the examples where these are missing.
"""

from __future__ import annotations

import argparse
import shutil
import tempfile
import zipfile
from dataclasses import replace
from itertools import islice
from pathlib import Path

import torch
from accelerate import Accelerator
from torch import Tensor

import vit
from vit.finetune.data import Photos, known_to, places
from vit.finetune.sources import open_data
from vit.finetune.start import WORKERS
from vit.finetune.views import bar_for, infer
from vit.memory import keep_freed_memory
from vit.photos.examples import example_photos
from vit.precision import FLAGS, has_instructions

from .material import SHARED
from .report import Table, arguments, two_threads

DISHES = SHARED / "data" / "food101_small.zip"


def test_photos(folder: Path, classifier: vit.Classifier, every: int) -> Photos:
    """The test dishes, or every n-th of them; of the examples those whose dish is known count."""
    if DISHES.is_file():
        with zipfile.ZipFile(DISHES) as archive:
            archive.extractall(folder)
    else:
        for photo in example_photos():
            if places(classifier.labels, [photo.stem]) != [None]:
                (folder / "test" / photo.stem).mkdir(parents=True)
                shutil.copy(photo, folder / "test" / photo.stem)
    test = open_data(folder).test
    assert test is not None
    test = known_to(test, classifier.labels)
    return test.take(list(islice(range(len(test)), 0, None, every)))


def measure(model: str = "foodvision-101", every: int = 1) -> list[Table]:
    """How many answers are right in each precision, and how many are those of float32."""
    exact = vit.load(model)
    names = [name for name in FLAGS if has_instructions(name, torch.device("cpu"))]
    ways = [replace(exact, precision=name) for name in names]

    def ask(images: Tensor) -> Tensor:
        return torch.stack([way.logits(images) for way in ways], dim=1)  # B, precisions, classes

    with tempfile.TemporaryDirectory() as folder:
        photos = test_photos(Path(folder), exact, every)
        accelerator = Accelerator(cpu=True)
        with bar_for(accelerator, len(photos), "photos") as bar:
            rows, _ = infer(photos, exact.preprocessing, ask, accelerator, None, WORKERS, bar)
    logits = torch.stack([rows[index] for index in sorted(rows)])  # n, precisions, classes
    targets = torch.tensor([photos.targets[index] for index in sorted(rows)])
    answers, shares = logits.argmax(dim=-1), logits.softmax(dim=-1)
    table = Table(
        f"Fewer bits, {model} on {len(targets):,} test photos",
        ("precision", "right", "answers unchanged", "probability moved"),
    )
    for place, name in enumerate(names):
        right, same = (answers[:, place] == targets).sum().item(), (answers[:, place] == answers[:, 0]).sum().item()
        moved = (shares[:, place] - shares[:, 0]).abs().sum(dim=-1).mean().item() / 2
        table.add(
            name, f"{right:,} ({right / len(targets):.2%})", f"{same:,} ({same / len(targets):.1%})", f"{moved:.2%}"
        )
    return [table]


def main() -> None:
    parser = arguments(__doc__)
    parser.add_argument("--model", default="foodvision-101", help="a checkpoint that knows dishes (%(default)s)")
    parser.add_argument("--every", type=int, default=1, metavar="N", help="every n-th photo (default: all)")
    options: argparse.Namespace = parser.parse_args()
    keep_freed_memory()
    two_threads(options.threads)
    for table in measure(options.model, options.every):
        print(table)


if __name__ == "__main__":
    main()
