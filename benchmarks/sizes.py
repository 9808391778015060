"""What a larger image costs, and what many photos in one batch save.

    python -m benchmarks.sizes

A forward pass of ViT-Ti/16 with random weights in each precision that the CPU has instructions for.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial

import torch

import vit
from vit.memory import keep_freed_memory
from vit.precision import FLAGS, encode, has_instructions

from .report import Table, arguments, two_threads
from .timing import clock, side_by_side

SIDES = (224, 384, 512)
BATCHES = (1, 2, 4, 8, 16)


def measure(rounds: int = 20, sides: tuple[int, ...] = SIDES, batches: tuple[int, ...] = BATCHES) -> list[Table]:
    model = vit.ViT(vit.ViTConfig.of("Ti/16")).eval()
    names = [name for name in FLAGS if has_instructions(name, torch.device("cpu"))]
    tables = []
    for title, what, cases in (
        ("Cost against image size", "image", [(1, side) for side in sides]),
        ("Cost against photos in a batch", "photos", [(batch, 224) for batch in batches]),
    ):
        table = Table(f"{title}, ViT-Ti/16, a photo", (what, *names))
        for batch, side in cases:
            images = torch.randn(batch, 3, side, side)
            contenders: dict[str, Callable[[], object]] = {name: partial(encode, model, images, name) for name in names}
            times = {
                name: timing.median / batch for name, timing in side_by_side(contenders, rounds, clock=clock()).items()
            }
            table.add(
                f"{side} × {side}" if what == "image" else batch, *(f"{times[name] * 1e3:.1f} ms" for name in names)
            )
        tables.append(table)
    return tables


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
