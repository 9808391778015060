"""Predicting a folder of photos, beside bare forward passes.

    python -m benchmarks.predict

1,000 photos of FoodVision Mini, or the examples, as often as it takes; ViT-Ti/16. Ours is all that `vit predict --out`
does once the model is loaded. Bare is the same decoding in torch's DataLoader, in as many workers as do best, and the
model's forward pass of each batch. Prints photos a second, and the ratio of ours to the best bare rate.
"""

from __future__ import annotations

import argparse
import os
import tempfile
from collections.abc import Callable
from functools import partial
from itertools import cycle, islice
from pathlib import Path

import torch
from torch import Tensor
from torch.utils.data import DataLoader, Dataset

import vit
from vit import many
from vit.memory import keep_freed_memory
from vit.photos.finding import find_photos

from .material import lay_out, tiny
from .report import Table
from .timing import side_by_side


class Views(Dataset[Tensor]):
    """What the model sees of each photo."""

    def __init__(self, classifier: vit.Classifier, photos: list[str]):
        self.preprocessing, self.photos = classifier.preprocessing, photos

    def __len__(self) -> int:
        return len(self.photos)

    def __getitem__(self, index: int) -> Tensor:
        return self.preprocessing(self.photos[index])


def ours(classifier: vit.Classifier, photos: list[str], out: Path) -> None:
    with many.writer(out, top_k=5) as write:
        for photo, answer in many.answers(classifier, photos):
            write(photo, answer)


@torch.inference_mode()
def bare(classifier: vit.Classifier, photos: list[str], workers: int) -> None:
    for images in DataLoader(Views(classifier, photos), many.BATCH, num_workers=workers):
        classifier.model(images)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--photos", type=int, default=1000, help="how many (default: %(default)s)")
    parser.add_argument("--rounds", type=int, default=3, help="how often each is timed (default: %(default)s)")
    options = parser.parse_args()
    keep_freed_memory()
    torch.set_num_threads(min(2, os.cpu_count() or 1))
    classifier = tiny()
    with tempfile.TemporaryDirectory() as folder:
        what = lay_out(Path(folder))
        photos = list(islice(cycle(find_photos([folder])), options.photos))
        contenders: dict[str, Callable[[], object]] = {
            "ours": partial(ours, classifier, photos, Path(folder) / "answers.csv")
        }
        for workers in (0, 1, 2):
            contenders[f"bare, {workers} workers"] = partial(bare, classifier, photos, workers)
        timings = side_by_side(contenders, options.rounds, warm_up=0)
    rates = {name: len(photos) / timing.median for name, timing in timings.items()}
    table = Table(f"A folder of photos, {what}, {len(photos)} photos", ("", "photos a second"))
    for name, rate in rates.items():
        table.add(name, f"{rate:.1f}")
    table.note = f"{torch.get_num_threads()} threads; ours ÷ bare: {rates.pop('ours') / max(rates.values()):.2f}"
    print(table)


if __name__ == "__main__":
    main()
