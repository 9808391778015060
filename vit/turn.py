"""What a pass through a model waits for, where several want the model at once."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import AbstractContextManager

Turn = Callable[[], AbstractContextManager[None]]
