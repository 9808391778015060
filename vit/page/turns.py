"""Who runs a model next."""

from __future__ import annotations

from collections import deque
from threading import Lock
from typing import Any


class Turns:
    """A lock whose turns come in the order in which they were asked for: nobody is overtaken."""

    def __init__(self) -> None:
        self._changing = Lock()
        self._taken = False
        self._waiting: deque[Lock] = deque()

    def __enter__(self) -> None:
        with self._changing:
            if not self._taken:
                self._taken = True
                return
            turn = Lock()
            turn.acquire()
            self._waiting.append(turn)
        turn.acquire()

    def __exit__(self, *error: Any) -> None:
        with self._changing:
            if self._waiting:
                self._waiting.popleft().release()
            else:
                self._taken = False
