"""Visitors who wait are served together: their photos go through the model as one batch, whoever sent them."""

from __future__ import annotations

import asyncio
import os
import sys
import time
from collections.abc import Callable
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import suppress
from dataclasses import dataclass, field
from threading import Barrier, Lock
from weakref import WeakKeyDictionary

import torch
from torch import Tensor

from ..classifier import Answer, Classifier
from ..model import ViT
from ..photos.uploads import open_upload
from .turns import Turns

BATCH = 32  # photos at most
TURN = 0.6  # seconds that a batch is to take: others want the model, too
PART = 8  # photos that a core takes at a time
NICE = 6  # on Linux, what runs batches lets those go first who talk to visitors: meanwhile the next one fills


@dataclass(eq=False)
class Waiting:
    """A visitor's photo, as the model sees it, and the answer that is to come."""

    classifier: Classifier
    image: Tensor
    left: Callable[[], bool]  # whether the visitor has
    answer: Future[Answer] = field(default_factory=Future)

    def goes_with(self, other: Waiting) -> bool:
        """Whether both can go through the model at once."""
        ours, theirs = self.classifier, other.classifier
        same = ours.model is theirs.model and ours.precision == theirs.precision
        return same and self.image.shape == other.image.shape


class Together:
    """Answers in the order of arrival. Photos are opened beside the model; it takes all along that wait by then.

    A batch is shared among threads that use one core each: where cores are shared with others, passes that wait for
    all cores at every step take a multiple of the time. One photo alone has all cores.
    """

    def __init__(self, turns: Turns) -> None:
        self._turns = turns
        self._opening = one_core_each(1)  # strangers' photos one by one: each may be large
        self._cores = torch.get_num_threads()
        self._parts = one_core_each(self._cores, NICE)
        self._runner = ThreadPoolExecutor(1)
        self._changing = Lock()
        self._waiting: list[Waiting] = []
        self._paces: WeakKeyDictionary[ViT, float] = WeakKeyDictionary()  # seconds for a photo in the last batch

    async def answer(self, classifier: Classifier, photo: str, left: Callable[[], bool]) -> Answer:
        """What a classifier says of a stranger's photo."""
        loop = asyncio.get_running_loop()
        own = await loop.run_in_executor(self._opening, _open, classifier, photo, left)
        with self._changing:
            self._waiting.append(own)
        self._runner.submit(self._next)
        return await asyncio.wrap_future(own.answer)

    def _next(self) -> None:
        """Serve whoever has waited longest, and who goes with them; somebody else may have taken them along."""
        if not self._waiting:
            return
        with self._turns:
            if batch := self._take():
                self._run(batch)

    def _take(self) -> list[Waiting]:
        with self._changing:
            for one in self._waiting:
                if one.left():
                    one.answer.cancel()
            here = [one for one in self._waiting if not one.answer.cancelled()]
            batch = [one for one in here if one.goes_with(here[0])]
            batch = batch[: self._most(batch[0].classifier.model)] if batch else []
            self._waiting = [one for one in here if one not in batch]
        # From here on none can be cancelled: a visitor who leaves now would take the others' answers along.
        return [one for one in batch if one.answer.set_running_or_notify_cancel()]

    def _most(self, model: ViT) -> int:
        """How many photos can go through a model in a turn; as many as there are cores before it has been timed."""
        return min(BATCH, max(self._cores, int(TURN / self._paces.get(model, TURN))))

    def _run(self, batch: list[Waiting]) -> None:
        start = time.perf_counter()
        if len(batch) == 1:
            _answer(batch)
        else:
            size = min(PART, -(-len(batch) // self._cores))
            list(self._parts.map(_answer, [batch[first : first + size] for first in range(0, len(batch), size)]))
        if not any(one.answer.exception() for one in batch):
            self._paces[batch[0].classifier.model] = max(1e-6, (time.perf_counter() - start) / len(batch))


def _answer(part: list[Waiting]) -> None:
    """Each hears at once, whatever the others of the batch wait for."""
    try:
        answers = part[0].classifier.answers([one.image for one in part])
    except BaseException as error:
        for one in part:
            one.answer.set_exception(error)
        return
    for one, answer in zip(part, answers):
        one.answer.set_result(answer)


def _open(classifier: Classifier, photo: str, left: Callable[[], bool]) -> Waiting:
    return Waiting(classifier, classifier.image(open_upload(photo)), left)


def one_core_each(count: int, nice: int = 0) -> ThreadPoolExecutor:
    """Threads in which torch uses one core; in others, those to come too, as many as before."""
    cores, started = torch.get_num_threads(), Barrier(count)
    pool = ThreadPoolExecutor(count, initializer=_use_one_core, initargs=(nice,))
    for _ in pool.map(lambda _: started.wait(), range(count)):
        pass
    torch.set_num_threads(cores)
    return pool


def _use_one_core(nice: int) -> None:
    torch.get_num_threads()  # a thread's first call gives it the others' number: so not after this
    torch.set_num_threads(1)
    if sys.platform == "linux":  # where this is the thread's own, not the whole process's
        with suppress(OSError):  # of hosts that forbid it
            os.nice(nice)
