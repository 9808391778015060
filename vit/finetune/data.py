"""Photos with their classes, and folders of them."""

from __future__ import annotations

import os
import re
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path

import torch
from PIL import Image

from ..photos.files import open_photo
from ..photos.finding import photos_in

TRAIN = ("train", "training")
TEST = ("test", "testing", "val", "valid", "validation")
UNLABELLED = -1  # the target of a photo whose class nobody knows


def cache() -> Path:
    """Where features and fetched data are kept between runs."""
    return Path(os.environ.get("XDG_CACHE_HOME") or "~/.cache").expanduser() / "vit-explorer"


class DataError(ValueError):
    """Data that cannot be trained on, in a sentence that says what to change."""


@dataclass(frozen=True)
class Photos:
    """Files of photos, the class of each, and the names of all classes."""

    files: list[Path]
    targets: list[int]
    labels: list[str]

    def __len__(self) -> int:
        return len(self.files)

    def open(self, index: int) -> Image.Image:
        """The photo, upright and in RGB."""
        return open_photo(self.files[index])

    def take(self, indexes: Sequence[int]) -> Photos:
        return replace(self, files=[self.files[i] for i in indexes], targets=[self.targets[i] for i in indexes])

    def counts(self) -> list[int]:
        """How many photos each class has."""
        labelled = [target for target in self.targets if target != UNLABELLED]
        return torch.bincount(torch.tensor(labelled, dtype=torch.long), minlength=len(self.labels)).tolist()


@dataclass(frozen=True)
class Data:
    """What a run learns from, and what it is measured on at its end. Either may be missing."""

    train: Photos | None
    test: Photos | None


def name_of(file: Path, root: str | Path) -> str:
    """A file's name as it is found in the data; with its last two folders where it lies elsewhere."""
    folder = Path(root).expanduser()
    return file.relative_to(folder).as_posix() if file.is_relative_to(folder) else "/".join(file.parts[-3:])


def hold_out(photos: Photos, share: float, seed: int) -> tuple[list[int], list[int]]:
    """The indexes of most photos, and of `share` of each class drawn by the seed: at least one, never a whole class.

    The same photos are drawn however the classes are numbered, and whatever classes without photos stand beside them:
    a run on from another's model holds out what that one did.
    """
    generator = torch.Generator().manual_seed(seed)
    kept, held = [], []
    for target in sorted(set(photos.targets), key=lambda target: (photos.labels[target], target)):
        own = [index for index, other in enumerate(photos.targets) if other == target]
        order = torch.randperm(len(own), generator=generator).tolist()
        count = min(len(own) - 1, max(1, round(share * len(own)))) if share else 0
        held += [own[i] for i in order[:count]]
        kept += [own[i] for i in order[count:]]
    return sorted(kept), sorted(held)


def known_to(photos: Photos, labels: list[str]) -> Photos:
    """The same photos with the classes numbered as in a model's labels, which must have them all."""
    found = places(labels, photos.labels)
    if strange := [label for label, place in zip(photos.labels, found) if place is None]:
        raise DataError(
            f"The model does not know the class {strange[0]!r}"
            + (f" and {len(strange) - 1} others" if len(strange) > 1 else "")
            + ": evaluate one that was trained on these classes."
        )
    targets = [place for place in (found[target] for target in photos.targets) if place is not None]
    return Photos(photos.files, targets, labels)


def places(known: list[str], labels: list[str]) -> list[int | None]:
    """Where each label stands among the known ones: in the same place, as it is written, or else in another spelling.

    A model may have a label twice (ImageNet's crane, a bird and a machine), or two that differ in a capital.
    """
    written = {label: place for place, label in reversed(list(enumerate(known)))}
    spelt = {key(label): place for place, label in reversed(list(enumerate(known)))}
    same = [place if place < len(known) and known[place] == label else None for place, label in enumerate(labels)]
    return [written.get(label, spelt.get(key(label))) if place is None else place for label, place in zip(labels, same)]


def read_folders(folder: Path) -> Data:
    """The photos of a folder that holds a folder for each class, or a `train` and a `test` folder that do."""
    inside = {path.name.lower(): path for path in sorted(folder.iterdir()) if path.is_dir() and _classes(path)}
    train = next((inside[name] for name in TRAIN if name in inside), None)
    test = next((inside[name] for name in TEST if name in inside), None)
    if train is None and test is None:
        return Data(_class_folders(folder), None)
    data = Data(_class_folders(train) if train else None, _class_folders(test) if test else None)
    if data.train and data.test and data.train.labels != data.test.labels:
        apart = [
            f"{', '.join(only)} only in {path.name}"
            for path, only in (
                (train, sorted(set(data.train.labels) - set(data.test.labels))),
                (test, sorted(set(data.test.labels) - set(data.train.labels))),
            )
            if path and only
        ]
        raise DataError(f"The classes of the two parts differ: {'; '.join(apart)}.")
    return data


def others_in(folder: Path, photos: Sequence[Path]) -> list[Path]:
    """The files of a folder that are none of these photos, sorted; what is hidden is left out."""
    known = set(photos)
    files = [file for file in sorted(folder.rglob("*")) if file not in known and file.is_file()]
    return [file for file in files if not any(part.startswith(".") for part in file.relative_to(folder).parts)]


def _classes(folder: Path) -> dict[str, Path]:
    """The folders of the classes by their labels, sorted by these."""
    folders = [path for path in folder.iterdir() if path.is_dir() and not path.name.startswith(".")]
    return dict(sorted((label_of(path.name), path) for path in folders))


def _class_folders(folder: Path) -> Photos:
    classes = _classes(folder)
    if not classes:
        raise DataError(f"{str(folder)!r} should hold a folder of photos for each class, but holds no folder.")
    files, targets = [], []
    for target, path in enumerate(classes.values()):
        own = photos_in(path)
        if not own:
            raise DataError(f"The class {path.name!r} has no photos in {str(path)!r}: add some, or remove the folder.")
        files += own
        targets += [target] * len(own)
    return Photos(files, targets, list(classes))


def key(label: str) -> str:
    """What the spellings of one class share: "hot dog", "hotdog" and "Hot_Dog" are one."""
    return re.sub(r"[\W_]+", "", label.casefold()) or label


def label_of(folder: str) -> str:
    """A class's name as people write it: apple_pie is an apple pie."""
    return folder.replace("_", " ").strip()
