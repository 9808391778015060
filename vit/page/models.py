"""The models that the page offers: those that come with it, known good ones on the Hub, and any other on request."""

from __future__ import annotations

import os
from collections import OrderedDict, defaultdict
from collections.abc import Callable
from dataclasses import asdict, dataclass, replace
from functools import partial
from pathlib import Path
from threading import Lock
from typing import Any

from tqdm import tqdm

from ..checkpoints import CheckpointError, load
from ..classifier import Classifier
from .turns import Turns

KEPT = 3  # models in memory at once
PATIENCE = 2.0  # seconds for the Hub to answer at all: a visitor is waiting
OnProgress = Callable[[float, str], Any]  # the share that is done, and of what


NOTHING = "no classes"
REGISTERS = "#registers"  # after a model's source: the same with test-time registers
WEIGHTS = (".safetensors", ".pth", ".pt", ".bin")  # files of weights, which are called without it


@dataclass(frozen=True)
class Known:
    """A model worth looking at."""

    source: str
    name: str
    size: str
    look_for: str
    knows: str = NOTHING
    classes: int = 0


IMAGENET = ("1,000 things", 1000)  # what ImageNet's labels name

KNOWN = (
    Known(
        "everyday", "Everyday", "comes with the page", "things and dishes in one head", "1,097 things and dishes", 1097
    ),
    Known("foodvision-101", "FoodVision 101", "comes with the page", "the last layers settle it", "101 dishes", 101),
    Known("foodvision-mini", "FoodVision Mini", "comes with the page", "three classes only", "pizza, steak, sushi", 3),
    Known(
        "timm/vit_tiny_patch16_224.augreg_in21k_ft_in1k",
        "ViT-Ti/16",
        "23 MB",
        "patches in the corners become sinks from layer 8 on",
        *IMAGENET,
    ),
    Known(
        "google/vit-base-patch16-224",
        "ViT-B/16, the paper's",
        "346 MB",
        "early heads look near or everywhere, late ones at the object",
        *IMAGENET,
    ),
    Known(
        "facebook/deit-small-patch16-224",
        "DeiT-S/16",
        "88 MB",
        "learnt from ImageNet alone; compare what it finds with ViT-B",
        *IMAGENET,
    ),
    Known("facebook/dino-vits16", "DINO S/16", "87 MB", "learnt from photos alone, and its last heads outline objects"),
    Known(
        "facebook/dinov2-small", "DINOv2 S/14", "88 MB", "pin a patch, and it looks at the same part of other things"
    ),
    Known(
        "facebook/dinov2-with-registers-small",
        "DINOv2 S/14 with registers",
        "88 MB",
        "four registers take what sinks carry elsewhere",
    ),
)


def title(classifier: Classifier) -> str:
    """What a model is called on the page."""
    known = {model.source: model.name for model in KNOWN}
    source = classifier.name.removesuffix(REGISTERS)
    file = Path(source)
    name = known.get(source) or (file.stem if file.suffix in WEIGHTS else file.name) or classifier.model.config.name
    return name if source == classifier.name else f"{name} with registers"


def knows(classifier: Classifier) -> str:
    """What it can name, in a few words."""
    known = {model.source: model.knows for model in KNOWN}
    count = len(classifier.labels)
    return known.get(classifier.name.removesuffix(REGISTERS)) or (f"{count:,} classes" if count else NOTHING)


class Models:
    """Loads a model when it is first asked for and keeps the latest few; the one that the page starts with stays."""

    def __init__(self, first: Classifier, any_model: bool = False, only_model: bool = False) -> None:
        self.first = first
        self.any_model = any_model
        self.known = () if only_model else KNOWN  # what is offered beside it
        self.lock = Turns()  # to run a model: one at a time has all cores
        self._kept: OrderedDict[str, Classifier] = OrderedDict()
        self._changing = Lock()
        self._loading: defaultdict[str, Lock] = defaultdict(Lock)  # by source: a download holds up nobody else

    @property
    def rows(self) -> list[dict[str, Any]]:
        """What the page says of each model that it offers, its own first."""
        rows = [asdict(model) for model in KNOWN]
        own = next((row for row in rows if row["source"] == self.first.name), None) or {
            "source": self.first.name,
            "name": title(self.first),
            "size": self.first.model.config.name,
            "look_for": "",
            "knows": knows(self.first),
            "classes": len(self.first.labels),
        }
        others = [asdict(model) for model in self.known if model.source != self.first.name]
        return [{**row, "any": self.any_model} for row in (own, *others)]

    def title(self, source: str) -> str:
        """What a model of the list is called."""
        return next((row["name"] for row in self.rows if row["source"] == source), source)

    def get(self, source: str, on_progress: OnProgress | None = None) -> Classifier:
        """The model, loaded if need be. Raises a sentence for one that is not offered or cannot be had."""
        if source == self.first.name:
            return self.first
        if source.endswith(REGISTERS) and not source.endswith(2 * REGISTERS):
            plain = self.get(source.removesuffix(REGISTERS), on_progress)
            said = "Looking for the neurons that make the sinks"
            return self._once(
                source, lambda: replace(plain.with_registers(turn=self.lock.later), name=source), said, on_progress
            )
        if not self.any_model and source not in [model.source for model in self.known]:
            raise CheckpointError("This page offers the models of its list only: choose one of them.")
        bar = None if on_progress is None else _bar(self.title(source), on_progress)
        loads = partial(load, source, progress=bar, patience=PATIENCE, precision=self.first.precision)
        return self._once(source, loads, f"Loading {self.title(source)}", on_progress)

    def _once(
        self, source: str, make: Callable[[], Classifier], said: str, on_progress: OnProgress | None
    ) -> Classifier:
        """The model that is kept, or made now: once, however many ask for it meanwhile."""
        with self._changing:
            loading = self._loading[source]
        with loading:
            found = self._kept.get(source)
            if found is None:
                if on_progress is not None:
                    on_progress(0, said)
                found = make()
            with self._changing:
                self._kept[source] = found
                self._kept.move_to_end(source)
                while len(self._kept) > KEPT:
                    self._kept.popitem(last=False)
        return found


def _bar(name: str, on_progress: OnProgress) -> type[tqdm]:
    """A progress bar for the Hub's client that reports instead of printing."""

    class Bar(tqdm):  # type: ignore[misc]
        def __init__(self, *arguments: Any, **options: Any) -> None:
            super().__init__(*arguments, **{**options, "file": open(os.devnull, "w"), "disable": False})  # noqa: SIM115
            self.update(0)

        def update(self, n: float | None = 1) -> bool | None:
            shown = super().update(n)
            if self.total:
                on_progress(self.n / self.total, f"{name}: {self.n / 1e6:.0f} of {self.total / 1e6:.0f} MB")
            return shown

    return Bar
