"""Timing side by side: every contender once a round, so that a slow moment of the machine falls on all of them."""

from __future__ import annotations

import random
import statistics
import time
from collections.abc import Callable
from dataclasses import dataclass

import torch


@dataclass(frozen=True)
class Timing:
    """Seconds of one call, over the rounds."""

    median: float
    quarter: float  # a quarter of the rounds was faster
    three_quarters: float

    def __str__(self) -> str:
        return f"{self.median * 1e3:7.1f} ms ({self.quarter * 1e3:.1f}–{self.three_quarters * 1e3:.1f})"


def side_by_side(
    contenders: dict[str, Callable[[], object]],
    rounds: int,
    warm_up: int = 2,
    before: dict[str, Callable[[], object]] | None = None,
    clock: Callable[[], float] = time.perf_counter,
) -> dict[str, Timing]:
    """The time of each contender, called in turns, in another order every round: none always follows the same one.

    What a contender needs `before` each of its calls is not timed. `clock` may be time.process_time, which other work
    on the machine disturbs little, where all of ours happens in one thread at a time.
    """
    before = before or {}
    for name in list(contenders) * warm_up:
        before.get(name, _nothing)()
        contenders[name]()
    seconds: dict[str, list[float]] = {name: [] for name in contenders}
    order, chance = list(contenders), random.Random(0)
    for _ in range(rounds):
        chance.shuffle(order)
        for name in order:
            before.get(name, _nothing)()
            start = clock()
            contenders[name]()
            seconds[name].append(clock() - start)
    timings = {}
    for name, measured in seconds.items():
        quarter, median, three_quarters = statistics.quantiles(measured * 2 if rounds == 1 else measured, n=4)
        timings[name] = Timing(median, quarter, three_quarters)
    return timings


def clock() -> Callable[[], float]:
    """What to time torch by: with one thread processor time."""
    return time.process_time if torch.get_num_threads() == 1 else time.perf_counter


def _nothing() -> None:
    pass
