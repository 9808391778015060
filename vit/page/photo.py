"""The visitor's photo: the upload box, and which of the examples it is."""

from __future__ import annotations

import hashlib
from collections.abc import Iterable
from pathlib import Path
from typing import Any

import gradio as gr


class PhotoInput(gr.Image):
    """An image input that hands over the file as it came, for `open_photo` to open: Gradio would decode any giant."""

    is_template = True  # drawn in the page as gr.Image itself

    def preprocess(self, payload: Any) -> str | None:
        return None if payload is None else payload.path


def digests(photos: Iterable[Path]) -> dict[str, str]:
    """The photos' names by their content, to know an example again: visitors' own files may have the same name."""
    return {digest(photo): photo.stem for photo in photos}


def digest(photo: str | Path) -> str:
    return hashlib.sha256(Path(photo).read_bytes()).hexdigest()
