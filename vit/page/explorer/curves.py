"""What the mode "Which map is right?" gets: a file for each curve, as they are ready."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from functools import partial

import torch
from PIL import Image
from torch import Tensor

from ...classifier import Classifier
from ...explain.faithfulness import deletion, insertion, random_map, removal_order
from ...explain.methods import METHODS
from ...turn import Turn
from .packing import file

STEPS = 14
RANDOM = 5  # maps that know nothing, which make the band


class Curves:
    """The curves of a photo, one after the other."""

    def __init__(self, classifier: Classifier, picture: Image.Image) -> None:
        explanation = classifier.explain(picture)
        self.model, self.labels = classifier.model, classifier.labels
        self.image = classifier.image(picture)
        self.index = explanation.class_index(None)
        self.finders: list[tuple[str, str, Callable[[], Tensor]]] = [
            (method.name, method.title, partial(method.last, explanation))
            for method in METHODS.values()
            if not method.missing(explanation)
        ]
        self.finders += [("random", "random", partial(random_map, explanation.grid, seed)) for seed in range(RANDOM)]

    def packs(self, turn: Turn) -> Iterator[bytes]:
        """Deletion and insertion of each map, each pass in a turn of its own."""
        maps = []
        for name, title, find in self.finders:
            with turn():
                maps.append((name, title, find()))
        self.finders.clear()  # and with them the explanation, which is large
        for name, title, map in maps:
            for kind, make in (("deletion", deletion), ("insertion", insertion)):
                curve = make(self.model, self.image, map, self.index, STEPS, batch=1, turn=turn)
                order = removal_order(map)
                tensors = {
                    "shares": curve.shares,
                    "probabilities": curve.probabilities,
                    "order": order.to(torch.uint16),
                }
                yield file(
                    tensors,
                    {
                        "method": name,
                        "title": title,
                        "kind": kind,
                        "area": curve.area,
                        "counts": (curve.shares * len(order)).round().int().tolist(),
                        "answers": [self.labels[index] for index in curve.answers.tolist()],
                        "of": 2 * len(maps),
                    },
                )
