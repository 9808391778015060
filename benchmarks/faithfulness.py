"""Which map tells best what the model goes by: deletion and insertion areas on test photos.

    python -m benchmarks.faithfulness

Deletes and inserts the patches of each photo, the most relevant first by each method, and watches the probability of
the class that the model predicts. Prints the mean areas with their standard errors, beside those of a random map. Of a
checkpoint with sinks: as it is, with these left out of the maps, and with test-time registers.
"""

from __future__ import annotations

import argparse
import os
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path

import torch
from torch import Tensor

import vit
from vit.explain.faithfulness import deletion, insertion, random_map
from vit.explain.maps import leave_out
from vit.explain.methods import METHODS
from vit.memory import keep_freed_memory

from .material import lay_out, tiny

RANDOM = "random"


def draw(folder: Path, count: int | None, seed: int) -> list[Path]:
    """The test photos of a folder, or `count` of them drawn at random."""
    photos = sorted(folder.glob("test/*/*.jpg"))
    drawn = torch.randperm(len(photos), generator=torch.Generator().manual_seed(seed))[:count]
    return [photos[number] for number in sorted(drawn.tolist())]


def variants(classifier: vit.Classifier) -> dict[str, tuple[vit.Classifier, Callable[[vit.Explanation], Tensor]]]:
    """What to measure, by name: a model, and which patches its maps leave out (R, C)."""
    found: dict[str, tuple[vit.Classifier, Callable[[vit.Explanation], Tensor]]] = {"as it is": (classifier, _none)}
    given = classifier.with_registers(report=print)
    if given is not classifier:
        found["sinks left out of the maps"] = (classifier, lambda e: e.outliers()[1].any(dim=0))
        found["with test-time registers"] = (given, _none)
    return found


def _none(explanation: vit.Explanation) -> Tensor:
    return torch.zeros(explanation.grid, dtype=torch.bool)


def areas(
    classifier: vit.Classifier, left_out: Callable[[vit.Explanation], Tensor], photo: Path, steps: int, seed: int
) -> Tensor:
    """The deletion and insertion area of each method on a photo, the random map's last (methods + 1, 2)."""
    explanation = classifier.explain(photo)
    maps = [leave_out(method.last(explanation), left_out(explanation)) for method in METHODS.values()]
    maps.append(random_map(explanation.grid, seed))
    image, index = classifier.preprocessing(photo), explanation.class_index(None)
    return torch.tensor(
        [[curve(classifier.model, image, map, index, steps).area for curve in (deletion, insertion)] for map in maps]
    )


def measure(
    classifier: vit.Classifier, left_out: Callable[[vit.Explanation], Tensor], photos: list[Path], steps: int, seed: int
) -> Tensor:
    """The areas of all photos (photos, methods + 1, 2), each photo with a random map of its own."""
    found = []
    for number, photo in enumerate(photos):
        found.append(areas(classifier, left_out, photo, steps, seed + number))
        print(f"\r{number + 1} of {len(photos)} photos", end="", file=sys.stderr, flush=True)
    print(file=sys.stderr)
    return torch.stack(found)


def table(found: Tensor) -> str:
    """Markdown, a line for each method, the smallest mean deletion area first."""
    count, names = len(found), [*(method.title for method in METHODS.values()), RANDOM]
    mean = found.mean(dim=0)  # methods + 1, 2
    error = found.std(dim=0) / count**0.5 if count > 1 else torch.full_like(mean, torch.nan)
    better = found - found[:, -1:]
    wins = torch.stack([better[..., 0] < 0, better[..., 1] > 0], dim=-1).sum(dim=0)  # methods + 1, 2
    lines = [
        "| map | deletion area (less is better) | beats random | insertion area (more is better) | beats random |",
        "|---|---|---|---|---|",
    ]
    for row in mean[:, 0].argsort().tolist():
        cells = [names[row]]
        for column in range(2):
            cells.append(f"{mean[row, column]:.3f} ± {error[row, column]:.3f}")
            cells.append("–" if names[row] == RANDOM else f"{wins[row, column]}/{count}")
        lines.append(f"| {' | '.join(cells)} |")
    return "\n".join(lines)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--model", help="a checkpoint with a class token and a head (default: ViT-Ti)")
    parser.add_argument("--photos", type=int, help="how many, drawn by the seed (default: all)")
    parser.add_argument("--steps", type=int, default=14, help="of each curve (default: %(default)s)")
    parser.add_argument("--seed", type=int, default=0, help="of the random maps and the draw (default: %(default)s)")
    options = parser.parse_args()
    for name in ("photos", "steps"):
        if (value := getattr(options, name)) is not None and value < 1:
            parser.error(f"--{name} is {value}, but must be at least 1.")
    keep_freed_memory()
    torch.set_num_threads(min(2, os.cpu_count() or 1))
    classifier = vit.load(options.model) if options.model else tiny()
    with tempfile.TemporaryDirectory() as folder:
        title = lay_out(Path(folder))
        photos = draw(Path(folder), options.photos, options.seed)
        for name, (model, left_out) in variants(classifier).items():
            start = time.perf_counter()
            found = measure(model, left_out, photos, options.steps, options.seed)
            seconds = time.perf_counter() - start
            print(f"\n{classifier.name}, {name}: {title}\n\n{table(found)}")
            print(
                f"\n{classifier.model.config.name}, {len(photos)} photos, {options.steps} steps, seed {options.seed}; "
                f"mean ± standard error. {seconds:.0f} s, {seconds / len(photos):.2f} s for each photo.",
                flush=True,
            )


if __name__ == "__main__":
    main()
