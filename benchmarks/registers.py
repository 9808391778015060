"""What registers and familiarity do for the checkpoints that ship: sinks, and photos like nothing that was learnt.

    python -m benchmarks.registers
    python -m benchmarks.registers --model MODEL

Over FoodVision 101's test photos: how many sinks a photo has, and what share of its look the class token gives them in
each of the last four layers. And how well its familiarity, and its largest probability, tell dishes from ImageNet's
photos: the area under the ROC curve, and how many of both are called unfamiliar.
"""

from __future__ import annotations

import argparse
import sys
import tempfile
import zipfile
from pathlib import Path

import torch
from accelerate import Accelerator
from torch import Tensor

import vit
from vit.familiarity import UNFAMILIAR
from vit.finetune.data import Photos
from vit.finetune.start import WORKERS
from vit.finetune.views import infer
from vit.memory import keep_freed_memory
from vit.registers import is_sink

from .everyday import DISHES, THINGS, every, test_photos
from .report import Table, two_threads

LAST = 4  # layers


def rows_of(classifier: vit.Classifier, photos: Photos) -> Tensor:
    """For each photo: sinks, their share of the look in the last layers, familiarity, the largest probability."""
    model, known = classifier.model.eval(), classifier.training_features
    prefix, layers = model.config.prefix_tokens, range(-LAST, 0)

    def look(images: Tensor) -> Tensor:
        recording = model.record(images, layers=list(layers))
        sinks = is_sink(recording.tokens, prefix).float()  # B, N
        shares = [(each.mean(dim=1)[:, 0, prefix:] * sinks).sum(dim=1) for each in recording.attention]
        last = recording.tokens[-1]
        likeness = torch.full((len(images),), torch.nan) if known is None else known.familiarity(model.pool(last))
        return torch.stack([sinks.sum(dim=1), *shares, likeness, recording.logits.softmax(dim=1).amax(dim=1)], dim=1)

    rows, problems = infer(photos, classifier.preprocessing, look, Accelerator(cpu=True), None, WORKERS)
    assert not problems, problems
    return torch.stack([rows[index] for index in sorted(rows)])


def area(higher: Tensor, lower: Tensor) -> float:
    """Under the ROC curve: how often one of the first is above one of the second; a tie counts half."""
    both = torch.cat([higher, lower]).double()
    _, places, counts = both.unique(return_inverse=True, return_counts=True)
    ranks = (counts.cumsum(dim=0) - (counts - 1) / 2)[places[: len(higher)]]
    return float((ranks.sum() - len(higher) * (len(higher) + 1) / 2) / (len(higher) * len(lower)))


def measure(classifier: vit.Classifier, dishes: Photos, things: Photos) -> list[Table]:
    known, strange = rows_of(classifier, dishes), rows_of(classifier, things)
    looks = Table(
        f"Sinks, {classifier.name}", ("photos", "sinks a photo", *(f"layer {n} from last" for n in (4, 3, 2, 1)))
    )
    looks.add(
        len(known), f"{known[:, 0].mean():.2f}", *(f"{share:.2%}" for share in known[:, 1 : 1 + LAST].mean(dim=0))
    )
    told = Table(
        f"Dishes and things told apart, {classifier.name}", ("by", "area", "dishes called unfamiliar", "things")
    )
    if classifier.training_features is not None:
        counts = ((rows[:, -2] < UNFAMILIAR).sum().item() for rows in (known, strange))
        told.add("familiarity", f"{area(known[:, -2], strange[:, -2]):.3f}", *counts)
    told.add("largest probability", f"{area(known[:, -1], strange[:, -1]):.3f}", "–", "–")
    told.note = f"{len(known):,} dishes, {len(strange):,} things"
    return [looks, told]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--model", default="foodvision-101", help="what to measure (default: %(default)s)")
    parser.add_argument("--every", type=int, default=1, metavar="N", help="every n-th photo (default: all)")
    options = parser.parse_args()
    for needed in (DISHES, THINGS):
        if not needed.is_file():
            sys.exit(f"{needed} is missing: this measures with photos that do not come with the project.")
    keep_freed_memory()
    two_threads()
    with tempfile.TemporaryDirectory() as folder:
        for archive, name in ((DISHES, "dishes"), (THINGS, "things")):
            with zipfile.ZipFile(archive) as photos:
                photos.extractall(Path(folder) / name)
        files = sorted((Path(folder) / "things").glob("*.webp"))
        things = Photos(files, [0] * len(files), ["thing"])
        dishes = test_photos(Path(folder) / "dishes")
        for table in measure(vit.load(options.model), every(dishes, options.every), every(things, options.every)):
            print(table)


if __name__ == "__main__":
    main()
