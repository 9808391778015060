"""What the mode "What if" gets: a file like the first one of a photo, of the changed pass and what it saw."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import torch
from PIL import Image

from ...classifier import Classifier
from ...explain.what_if import Changes, changed_image, fewest
from ...turn import Turn
from .packing import file, pack
from .tour import evidence

TURNS = {90: Image.Transpose.ROTATE_270, 180: Image.Transpose.ROTATE_180, 270: Image.Transpose.ROTATE_90}
SMALLEST, LARGEST = 0.25, 2.0  # times the model's own size


def pack_what_if(classifier: Classifier, picture: Image.Image, name: str, asked: dict[str, Any]) -> bytes:
    """The changed photo as the model saw it, its predictions, the words of its layers, and the class token's look."""
    classifier, picture = framed(classifier, picture, asked)
    picture = classifier.preprocessing.view(picture)
    how = replace(
        classifier.preprocessing, resize=(picture.height, picture.width), crop=None
    )  # it is seen as it is now
    classifier, changes = replace(classifier, preprocessing=how), read_changes(asked)
    explanation = classifier.what_if(picture, changes)
    image = changed_image(how(picture), changes, classifier.model.config.patch_size)
    mean, std = (torch.tensor(values)[:, None, None] for values in (how.mean, how.std))
    pixels = ((image * std + mean) * 255).round().clamp(0, 255).to(torch.uint8).permute(1, 2, 0)
    seen = Image.fromarray(pixels.numpy())
    watched = [int(index) for index in asked.get("classes") or ()]
    whole = replace(explanation, box=(0, 0, seen.width, seen.height))
    return pack(seen, name, None, classifier, whole, watched=watched)


def challenge(classifier: Classifier, picture: Image.Image, asked: dict[str, Any]) -> Callable[[Turn], bytes]:
    """What packs the greedy answer by relevance: the patches, none where no number does it; each pass in its turn."""
    classifier, picture = framed(classifier, picture, asked)
    explanation = classifier.explain(picture)
    image = classifier.image(picture)
    keep, index = asked.get("goal") == "keep", explanation.class_index(None)

    def answer(turn: Turn) -> bytes:
        with turn():
            map = evidence(explanation)
        return file({}, {"patches": fewest(classifier.model, image, map, index, keep, batch=1, turn=turn)})

    return answer


def framed(classifier: Classifier, picture: Image.Image, asked: dict[str, Any]) -> tuple[Classifier, Image.Image]:
    """The photo turned, or the middle of it alone, and a classifier that sees it at another size."""
    turn, crop, size = int(asked.get("turn") or 0), float(asked.get("crop") or 1), float(asked.get("size") or 1)
    if turn in TURNS:
        picture = picture.transpose(TURNS[turn])
    if 0 < crop < 1:
        across, down = picture.width * (1 - crop) / 2, picture.height * (1 - crop) / 2
        box = round(across), round(down), round(picture.width - across), round(picture.height - down)
        picture = picture.crop(box)
    how, P = classifier.preprocessing, classifier.model.config.patch_size
    if size == 1 or how.image_size is None:
        return classifier, picture
    times = min(LARGEST, max(SMALLEST, size))
    height, width = (max(1, round(side * times / P)) * P for side in how.image_size)
    resize = round(how.resize * height / how.image_size[0]) if isinstance(how.resize, int) else (height, width)
    scaled = replace(how, resize=resize, crop=(height, width) if how.crop else None)
    return replace(classifier, preprocessing=scaled), picture


def read_changes(asked: dict[str, Any]) -> Changes:
    """A visitor's changes; raises ValueError or TypeError for what makes no sense."""

    def patches(name: str) -> tuple[int, ...]:
        return tuple(int(patch) for patch in asked.get(name) or ())

    def pairs(name: str) -> tuple[tuple[int, int], ...]:
        return tuple((int(one), int(other)) for one, other in asked.get(name) or ())

    positions = asked.get("positions") or "kept"
    if positions not in ("kept", "dropped", "shuffled"):
        raise ValueError(f"positions is {positions!r}, but must be kept, dropped or shuffled.")
    shuffled = asked.get("shuffled")
    return Changes(
        grey=patches("grey"),
        blurred=patches("blurred"),
        removed=patches("removed"),
        shuffled=None if shuffled is None else int(shuffled),
        swapped=pairs("swapped"),
        positions=positions,  # type: ignore[arg-type]
        heads_off=pairs("heads"),
        layers_off=patches("layers"),
    )
