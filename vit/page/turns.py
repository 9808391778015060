"""Who runs a model next, how many may wait for it, and how long one of them may keep it."""

from __future__ import annotations

import math
import time
from collections import deque
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from threading import Lock
from typing import Any

PATIENCE = 1.0  # seconds after which what can wait has a turn before what cannot
BUDGET = 120.0  # seconds of the model's time for one request


class Turns:
    """A lock whose turns come in the order in which they were asked for: `with turns` at once, `later` after those.

    Whoever wants a turn at once waits for one of the later ones at most; these get one a second, however many come.
    """

    def __init__(self) -> None:
        self._changing = Lock()
        self._taken = self._by_later = False
        self._first: deque[Lock] = deque()
        self._later: deque[tuple[float, Lock]] = deque()  # with when they came

    def __enter__(self) -> None:
        turn = Lock()
        turn.acquire()
        with self._changing:
            if not self._taken:
                self._taken = True
                return
            self._first.append(turn)
        turn.acquire()

    def __exit__(self, *error: Any) -> None:
        with self._changing:
            overdue = self._later and not self._by_later and time.monotonic() - self._later[0][0] > PATIENCE
            self._by_later = bool(self._later) and (overdue or not self._first)
            if self._by_later:
                self._later.popleft()[1].release()
            elif self._first:
                self._first.popleft().release()
            else:
                self._taken = False

    @contextmanager
    def later(self) -> Iterator[None]:
        """A turn for what takes long, or is tried out."""
        turn = Lock()
        turn.acquire()
        with self._changing:
            at_once = not self._taken
            if at_once:
                self._taken = self._by_later = True
            else:
                self._later.append((time.monotonic(), turn))
        if not at_once:
            turn.acquire()
        try:
            yield
        finally:
            self.__exit__()


class TurnError(ValueError):
    """No turn, in a sentence for the visitor who wanted one."""


class Budget:
    """The turns of one long request, each for one pass; when they have taken too long in all, there are no more."""

    def __init__(self, turns: Turns, left: Callable[[], bool], seconds: float = BUDGET) -> None:
        self._turns, self._left, self._seconds = turns, left, seconds

    @contextmanager
    def __call__(self) -> Iterator[None]:
        with self._turns.later():
            if self._left():
                raise TurnError("Nobody waits for this any more.")
            if self._seconds <= 0:
                raise TurnError("This takes too long here, and others are waiting: choose a smaller model.")
            start = time.monotonic()
            try:
                yield
            finally:
                self._seconds -= time.monotonic() - start


class Crowd:
    """All who wait for a model, so many at most: the next are told how many wait and about how long."""

    def __init__(self, most: int) -> None:
        self.most = most
        self._changing = Lock()
        self._count = 0
        self._since = 0.0  # when the last was served, or the first came
        self._pace: float | None = None  # seconds from one to the next, lately

    def __enter__(self) -> None:
        with self._changing:
            if self._count >= self.most:
                about = math.ceil(self._count * (self._pace or 1))
                raise TurnError(
                    f"Busy: {self._count} are waiting, which takes about {about} second{'s' * (about > 1)}. "
                    "Try again then."
                )
            if self._count == 0:
                self._since = time.monotonic()
            self._count += 1

    def __exit__(self, *error: Any) -> None:
        with self._changing:
            self._count -= 1
            now = time.monotonic()
            took, self._since = now - self._since, now
            self._pace = took if self._pace is None else 0.9 * self._pace + 0.1 * took
