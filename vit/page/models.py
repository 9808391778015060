"""The models that the page offers: those that come with it, known good ones on the Hub, and any other on request."""

from __future__ import annotations

import os
from collections import OrderedDict, defaultdict
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from threading import Lock
from typing import Any

from tqdm import tqdm

from ..checkpoints import CheckpointError, load
from ..classifier import Classifier

KEPT = 3  # models in memory at once
OnProgress = Callable[[float, str], Any]  # the share that is done, and of what


@dataclass(frozen=True)
class Known:
    """A model worth looking at."""

    source: str
    name: str
    size: str
    look_for: str


KNOWN = (
    Known("foodvision-101", "FoodVision 101", "comes with the page", "101 dishes; watch it settle in the last layers"),
    Known("foodvision-mini", "FoodVision Mini", "comes with the page", "pizza, steak or sushi, and nothing else"),
    Known(
        "timm/vit_tiny_patch16_224.augreg_in21k_ft_in1k",
        "ViT-Ti/16",
        "23 MB",
        "ImageNet's 1000 classes; patches in the corners become outliers from layer 7 on",
    ),
    Known(
        "google/vit-base-patch16-224",
        "ViT-B/16, the paper's",
        "346 MB",
        "ImageNet's 1000 classes; early heads look near or everywhere, late ones at the object",
    ),
    Known(
        "facebook/deit-small-patch16-224",
        "DeiT-S/16",
        "88 MB",
        "ImageNet alone, without larger data; compare what it finds with ViT-B",
    ),
    Known(
        "facebook/dino-vits16",
        "DINO S/16",
        "87 MB",
        "no classes: it learnt from photos alone, and its last heads outline objects",
    ),
    Known(
        "facebook/dinov2-small",
        "DINOv2 S/14",
        "88 MB",
        "no classes: pin a patch, and it looks at the same part of other things",
    ),
    Known(
        "facebook/dinov2-with-registers-small",
        "DINOv2 S/14 with registers",
        "88 MB",
        "no classes: four registers take what outlier patches carry elsewhere",
    ),
)


class Models:
    """Loads a model when it is first asked for and keeps the latest few; the one that the page starts with stays."""

    def __init__(self, first: Classifier, any_model: bool = False) -> None:
        self.first = first
        self.any_model = any_model
        self.turn = Lock()  # to run a model: one at a time has all cores
        self._kept: OrderedDict[str, Classifier] = OrderedDict()
        self._changing = Lock()
        self._loading: defaultdict[str, Lock] = defaultdict(Lock)  # by source: a download holds up nobody else

    @property
    def choices(self) -> list[tuple[str, str]]:
        """Text and source of each model, the page's own first."""
        known = [(f"{model.name} · {model.size} · {model.look_for}", model.source) for model in KNOWN]
        own = next((choice for choice in known if choice[1] == self.first.name), None)
        if own is None:
            labels = f"{len(self.first.labels):,} classes" if self.first.labels else "no classes"
            own = (f"{Path(self.first.name).name} · {self.first.model.config.name} · {labels}", self.first.name)
        return [own, *(choice for choice in known if choice != own)]

    def get(self, source: str, on_progress: OnProgress | None = None) -> Classifier:
        """The model, loaded if need be. Raises a sentence for one that is not offered or cannot be had."""
        if source == self.first.name:
            return self.first
        if not self.any_model and source not in [model.source for model in KNOWN]:
            raise CheckpointError("This page offers the models of its list only: choose one of them.")
        with self._changing:
            loading = self._loading[source]
        with loading:
            found = self._kept.get(source)
            if found is None:
                if on_progress is not None:
                    on_progress(0, f"Loading {source}")
                found = load(source, progress=None if on_progress is None else _bar(source, on_progress))
        with self._changing:
            self._kept[source] = found
            self._kept.move_to_end(source)
            while len(self._kept) > KEPT:
                self._kept.popitem(last=False)
        return found


def _bar(source: str, on_progress: OnProgress) -> type[tqdm]:
    """A progress bar for the Hub's client that reports instead of printing."""

    class Bar(tqdm):  # type: ignore[misc]
        def __init__(self, *arguments: Any, **options: Any) -> None:
            super().__init__(*arguments, **{**options, "file": open(os.devnull, "w"), "disable": False})  # noqa: SIM115
            self.update(0)

        def update(self, n: float | None = 1) -> bool | None:
            shown = super().update(n)
            if self.total:
                on_progress(self.n / self.total, f"{source}: {self.n / 1e6:.0f} of {self.total / 1e6:.0f} MB")
            return shown

    return Bar
