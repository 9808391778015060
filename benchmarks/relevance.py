"""What relevance costs beside a forward pass: for one class after attention, and for five.

    python -m benchmarks.relevance

Each photo is explained anew, which is not timed for "one more class": the pass with attention is there by then.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial

import torch
from PIL import Image

import vit
from vit.memory import keep_freed_memory
from vit.photos.examples import example_photos

from .report import Table, arguments, two_threads
from .timing import clock, side_by_side

VARIANTS = ("Ti/16", "B/16")
CLASSES = 5


def classifier(variant: str) -> vit.Classifier:
    """Random weights: the time does not depend on them."""
    config = vit.ViTConfig.of(variant, classes=1000)
    labels = [f"class {number}" for number in range(1000)]
    return vit.Classifier(vit.ViT(config).eval(), labels, vit.Preprocessing(224, (224, 224)))


def measure(rounds: int = 20, variants: tuple[str, ...] = VARIANTS) -> list[Table]:
    table = Table(
        "Relevance, as multiples of a forward pass",
        ("model", "forward pass", "photo to attention", "then one class", "photo to five classes"),
    )
    for variant in variants:
        asked = classifier(variant)
        with Image.open(example_photos()[0]) as photo:
            image = asked.image(photo)
            seen = asked.preprocessing.view(photo)  # so that decoding and resizing are not measured
        explained: list[vit.Explanation] = []

        def forward(asked: vit.Classifier = asked, image: torch.Tensor = image) -> None:
            with torch.inference_mode():
                asked.model(image[None])

        def explain(
            asked: vit.Classifier = asked, seen: Image.Image = seen, explained: list[vit.Explanation] = explained
        ) -> None:
            explained[:] = [asked.explain(seen)]

        def relevances(count: int, explained: list[vit.Explanation] = explained) -> None:
            for index in range(count):
                explained[0].relevance(index)

        def both(explain: Callable[[], None] = explain, relevances: Callable[[int], None] = relevances) -> None:
            explain()
            relevances(CLASSES)

        contenders: dict[str, Callable[[], object]] = {
            "forward": forward,
            "attention": explain,
            "one": partial(relevances, 1),
            "five": both,
        }
        times = side_by_side(contenders, rounds, before={"one": explain}, clock=clock())
        base = times["forward"].median
        table.add(
            f"ViT-{variant}",
            f"{base * 1e3:.1f} ms",
            *(f"{times[name].median / base:.2f}" for name in ("attention", "one", "five")),
        )
    return [table]


def main() -> None:
    parser = arguments(__doc__)
    parser.add_argument("--rounds", type=int, default=20, help="how often each is timed (default: %(default)s)")
    options = parser.parse_args()
    keep_freed_memory()
    two_threads(options.threads)
    for table in measure(options.rounds):
        print(table)


if __name__ == "__main__":
    main()
