"""What was made of a photo, for whoever asks the same again: of examples for good, of others for a while."""

from __future__ import annotations

import time
from collections import OrderedDict
from collections.abc import Callable, Hashable, Iterable, Iterator, Mapping
from pathlib import Path
from threading import Lock, Timer
from typing import Generic, TypeVar

from gradio.data_classes import FileData

from .explorer import keep
from .photo import digest

MAX_KEPT_BYTES = 100_000_000  # of all files of examples together
MAX_LATELY_BYTES = 50_000_000  # of all others
LATELY_KINDS = ("first",)  # of other photos; the rest is large, and seldom asked for again
Files = Iterable[FileData]
Thing = TypeVar("Thing")


class Lately(Generic[Thing]):
    """Things by what was asked: the latest used, up to a total size, and each for so many seconds at most."""

    def __init__(self, most: int, seconds: float = float("inf")) -> None:
        self.most, self.seconds = most, seconds
        self._kept: OrderedDict[Hashable, tuple[Thing, int, float]] = OrderedDict()  # with their size and time
        self._size = 0
        self._changing = Lock()
        self._cleaning: Timer | None = None

    def __len__(self) -> int:
        return len(self._kept)

    def get(self, asked: Hashable) -> Thing | None:
        with self._changing:
            found = self._kept.get(asked)
            if found is None or time.monotonic() - found[2] > self.seconds:
                return None
            self._kept.move_to_end(asked)
            return found[0]

    def put(self, asked: Hashable, thing: Thing, size: int) -> None:
        with self._changing:
            self._drop(asked)
            self._kept[asked] = thing, size, time.monotonic()
            self._size += size
            while self._size > self.most:
                self._drop(next(iter(self._kept)))
            if self._cleaning is None and self._kept and self.seconds != float("inf"):
                self._clean_later()

    def _drop(self, asked: Hashable) -> None:
        if asked in self._kept:
            self._size -= self._kept.pop(asked)[1]

    def _clean(self) -> None:
        """Old things go even where nobody asks any more."""
        with self._changing:
            self._cleaning = None
            now = time.monotonic()
            for asked in [asked for asked, (_, _, since) in self._kept.items() if now - since > self.seconds]:
                self._drop(asked)
            if self._kept:
                self._clean_later()

    def _clean_later(self) -> None:
        self._cleaning = Timer(self.seconds / 10, self._clean)
        self._cleaning.daemon = True
        self._cleaning.start()


class Kept:
    """The files that were made of photos: of examples, all; of others the first ones, for so many seconds."""

    def __init__(self, examples: Mapping[str, str], model: str, seconds: float = 0) -> None:
        self.examples = examples  # their names by their content's digest
        self.model = model  # the one that stays, whose files of examples are kept
        self._of_examples: Lately[list[tuple[str, bytes]]] = Lately(MAX_KEPT_BYTES)
        self._of_others: Lately[list[tuple[str, bytes]]] = Lately(MAX_LATELY_BYTES, seconds)

    def files(self, kind: str, photo: str, model: str, make: Callable[[], Files]) -> Iterator[FileData]:
        """What `make` gives, made the first time only."""
        content = digest(photo) if Path(photo).exists() else None
        is_example = model == self.model and content in self.examples
        if content is None or not (is_example or kind in LATELY_KINDS):
            yield from make()
            return
        # The name is in the file: somebody else's may be another.
        asked = (kind, content) if is_example else (kind, content, Path(photo).name, model)
        kept = self._of_examples if is_example else self._of_others
        if (found := kept.get(asked)) is not None:
            yield from (keep(content, name) for name, content in found)
            return
        made = []
        for file in make():
            made.append((file.orig_name or "", Path(file.path).read_bytes()))
            yield file
        kept.put(asked, made, sum(len(content) for _, content in made))
