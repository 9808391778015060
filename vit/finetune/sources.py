"""Where photos to train on come from: a folder, torchvision's Food101, a Hub data set."""

from __future__ import annotations

import re
import shutil
from pathlib import Path

from torchvision.datasets import Food101

from ..hub.errors import HubError, first_line
from .data import Data, DataError, Photos, cache, label_of, read_folders
from .hub_data import as_folder

FOOD101 = "food101"


def open_data(source: str | Path) -> Data:
    """The photos in a folder, of torchvision's "food101", or of a Hub data set such as "ethz/food101".

    A folder holds a folder for each class, or a `train` and a `test` folder that do. A folder that exists comes first.
    """
    folder = Path(source).expanduser()
    try:
        if folder.is_dir():
            return read_folders(folder)
        if str(source) == FOOD101:
            return _food101()
    except PermissionError as error:
        raise DataError(f"{error.filename} cannot be read: {error.strerror}.") from error
    missing = f"There is no folder {str(source)!r}"
    if not re.fullmatch(r"[\w-][\w.-]*/[\w.-]+", str(source)):
        raise DataError(f"{missing}: give a folder of class folders, food101, or a Hub data set such as ethz/food101.")
    try:
        return read_folders(as_folder(str(source)))
    except (HubError, DataError) as error:
        raise type(error)(f"{missing}, and as a data set: {error}") from error


def _food101() -> Data:
    """torchvision's Food101, fetched once; its meta files tell the official split."""
    root = cache() / "food-101"
    if not root.is_dir():
        unfinished = cache() / "food-101.unfinished"
        unfinished.mkdir(parents=True, exist_ok=True)
        try:
            Food101(str(unfinished), download=True)
        except (OSError, RuntimeError) as error:
            shutil.rmtree(unfinished / "food-101", ignore_errors=True)  # half unpacked, it would count as whole
            raise DataError(f"Food-101 could not be fetched ({first_line(error)}): try again.") from error
        (unfinished / "food-101").rename(root)
        shutil.rmtree(unfinished)
    labels = sorted((root / "meta" / "classes.txt").read_text(encoding="utf-8").split())
    parts = []
    for split in ("train", "test"):
        names = (root / "meta" / f"{split}.txt").read_text(encoding="utf-8").split()
        files = [root / "images" / f"{name}.jpg" for name in names]
        targets = [labels.index(name.partition("/")[0]) for name in names]
        parts.append(Photos(files, targets, [label_of(label) for label in labels]))
    return Data(*parts)
