"""What was made for an example is made once, and kept: the page opens with one, and visitors try the others."""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Callable, Iterable, Iterator, Mapping
from pathlib import Path
from threading import Lock

from gradio.data_classes import FileData

from .explorer import keep
from .photo import digest

MAX_KEPT_BYTES = 100_000_000  # of all files together
Files = Iterable[FileData]


class Kept:
    """The files that were made of examples, the latest used ones; of other photos nothing is kept."""

    def __init__(self, examples: Mapping[str, str], model: str) -> None:
        self.examples = examples  # their names by their content's digest
        self.model = model  # the one that stays, whose files are kept
        self._kept: OrderedDict[tuple[str, str], list[tuple[str, bytes]]] = OrderedDict()
        self._changing = Lock()

    def files(self, kind: str, photo: str, model: str, make: Callable[[], Files]) -> Iterator[FileData]:
        """What `make` gives, made the first time only."""
        example = self.examples.get(digest(photo)) if model == self.model and Path(photo).exists() else None
        if example is None:
            yield from make()
            return
        with self._changing:
            found = self._kept.get((kind, example))
            if found is not None:
                self._kept.move_to_end((kind, example))
        if found is not None:
            yield from (keep(content, name) for name, content in found)
            return
        made = []
        for file in make():
            made.append((file.orig_name or "", Path(file.path).read_bytes()))
            yield file
        with self._changing:
            self._kept[kind, example] = made
            while sum(len(content) for files in self._kept.values() for _, content in files) > MAX_KEPT_BYTES:
                self._kept.popitem(last=False)
