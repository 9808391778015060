"""How well Everyday names things and dishes, choosing among all it knows, beside the models that it comes from.

    python -m benchmarks.everyday
    python -m benchmarks.everyday --lay-out FOLDER

Dishes are `food101_small`'s test photos; things are 150 of `imagenet_750`'s, which it was not trained on. With
`--lay-out` the photos to train on are put into a folder instead: food101_small, and imagenet_600 without labels.
"""

from __future__ import annotations

import argparse
import random
import sys
import tempfile
import zipfile
from collections import Counter
from pathlib import Path

from accelerate import Accelerator

import vit
from vit.checkpoints.defaults import imagenet_labels
from vit.finetune.data import Photos, known_to
from vit.finetune.evaluation import Evaluation
from vit.finetune.run import evaluate
from vit.finetune.sources import open_data

from .material import SHARED, WEIGHTS

DISHES, THINGS = SHARED / "data" / "food101_small.zip", SHARED / "data" / "imagenet_750.zip"
HELD_OUT = 150
NAMED = 12  # confusions that are named


def held_out(numbers: list[int]) -> set[int]:
    """Of the classes that have a photo, those whose photo is only tested on: each has a name of its own."""
    labels = imagenet_labels()
    once = [number for number in sorted(numbers) if labels.count(labels[number]) == 1 and "/" not in labels[number]]
    return set(random.Random(0).sample(once, HELD_OUT))


def lay_out(folder: Path) -> tuple[Path, Path, Path]:
    """The folders of dishes, of things to test on by their class, and of things without labels."""
    dishes, things, unlabelled = folder / "food101_small", folder / "imagenet_held_out", folder / "imagenet_600"
    with zipfile.ZipFile(DISHES) as archive:
        archive.extractall(dishes)
    with zipfile.ZipFile(THINGS) as archive:
        files = {int(Path(name).stem): name for name in archive.namelist() if name.endswith(".webp")}
        held = held_out(list(files))
        for number, name in files.items():
            place = things / "test" / imagenet_labels()[number] if number in held else unlabelled
            place.mkdir(parents=True, exist_ok=True)
            (place / Path(name).name).write_bytes(archive.read(name))
    return dishes, things, unlabelled


def test_photos(folder: Path) -> Photos:
    test = open_data(str(folder)).test
    assert test is not None
    return test


def every(photos: Photos, number: int) -> Photos:
    return photos.take(list(range(0, len(photos), number)))


def measure(classifier: vit.Classifier, photos: Photos) -> Evaluation:
    return evaluate(classifier, known_to(photos, classifier.labels), Accelerator(cpu=True))[0]


def row(name: str, found: Evaluation) -> str:
    return (
        f"| {name} | {found.correct:,} of {found.total:,} | {found.balanced_accuracy:.1%} | {found.top(5):,} "
        f"| {found.calibration_error:.3f} |"
    )


def across(found: Evaluation, others: set[int]) -> tuple[int, str]:
    """How many photos were taken for one of the other set, and the commonest cases."""
    pairs = [(t, a) for t, a in zip(found.targets.tolist(), found.answers.tolist()) if t != a and a in others]
    named = [f"{found.labels[t]} → {found.labels[a]} ({n})" for (t, a), n in Counter(pairs).most_common(NAMED)]
    return len(pairs), ", ".join(named)


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.everyday", description=__doc__.splitlines()[0])
    parser.add_argument("--lay-out", type=Path, metavar="FOLDER", help="put the photos to train on there, and end")
    parser.add_argument("--model", default="everyday", help="what to measure (default: %(default)s)")
    parser.add_argument("--every", type=int, default=1, metavar="N", help="every n-th photo (default: all)")
    arguments = parser.parse_args()
    for needed in (DISHES, THINGS, WEIGHTS):
        if not needed.is_file():
            sys.exit(f"{needed} is missing: this measures with photos and weights that do not come with the project.")
    if arguments.lay_out is not None:
        print(*lay_out(arguments.lay_out), sep="\n")
        return
    everyday = vit.load(arguments.model)
    with tempfile.TemporaryDirectory() as folder:
        dishes, things = (every(test_photos(path), arguments.every) for path in lay_out(Path(folder))[:2])
        of_dishes, of_things = measure(everyday, dishes), measure(everyday, things)
        base = measure(vit.load(WEIGHTS), things)
        food = measure(vit.load("foodvision-101"), dishes)
    print("| photos, model | right | mean of the classes | top 5 | calibration error |\n|---|---|---|---|---|")
    print(row("dishes, everyday", of_dishes))
    print(row("dishes, foodvision-101, which knows nothing else", food))
    print(row("things, everyday", of_things))
    print(row("things, the base, which knows no dishes", base))
    new = {everyday.labels.index(label) for label in dishes.labels if label in everyday.labels}
    kept = set(range(len(everyday.labels))) - new
    for name, found, others in (("dishes", of_dishes, kept), ("things", of_things, new)):
        count, cases = across(found, others)
        print(f"\n{name} taken for one of the others: {count} of {found.total}. {cases}")


if __name__ == "__main__":
    main()
