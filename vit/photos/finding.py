"""Finding photos: in folders, and by patterns that no shell has expanded."""

from __future__ import annotations

import glob
from collections.abc import Iterable
from pathlib import Path

SUFFIXES = {
    ".jpg",
    ".jpeg",
    ".png",
    ".webp",
    ".bmp",
    ".gif",
    ".tif",
    ".tiff",
    ".avif",
    ".heic",
    ".heif",
    ".ppm",
    ".pgm",
}


def photos_in(folder: Path) -> list[Path]:
    """All photos in a folder, at any depth, sorted; what is hidden is left out."""
    files = [file for file in sorted(folder.rglob("*")) if file.suffix.lower() in SUFFIXES and file.is_file()]
    return [file for file in files if not any(part.startswith(".") for part in file.relative_to(folder).parts)]


def find_photos(given: Iterable[str]) -> list[str]:
    """The photos that a command was given: files as they are, those in folders, and those that match a pattern."""
    photos: list[str] = []
    for name in given:
        path = Path(name)
        if path.is_dir():
            found = photos_in(path)
        elif glob.has_magic(name) and not path.exists():
            matches = [Path(match) for match in glob.glob(name, recursive=True)]
            inside = [photo for folder in matches if folder.is_dir() for photo in photos_in(folder)]
            files = [match for match in matches if match.suffix.lower() in SUFFIXES and match.is_file()]
            found = sorted({*files, *inside})
        else:
            photos.append(name)  # a missing file gets its sentence where it is opened
            continue
        if not found:
            raise ValueError(f"There are no photos in {name!r}: name photos, or folders that hold some.")
        photos += map(str, found)
    return photos
