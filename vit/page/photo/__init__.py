"""The visitor's photo: dropped, pasted, picked, taken, or one of the examples."""

from __future__ import annotations

import copy
import hashlib
import io
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any

import gradio as gr
from gradio.data_classes import FileData
from gradio.processing_utils import save_file_to_cache
from PIL import Image

from .. import scripts

SCHEMA = FileData.model_json_schema()
SIDE = 144  # pixels of an example's longer side: twice what is shown, for fine screens


class PhotoBox(gr.HTML):
    """Gives the photo's path as it came, for `open_upload` to open. Events: `change`, and `pick` (name of an example).

    Not gr.Image, which decodes any giant, takes as long to load as an empty page, and shows the photo a second time.
    """

    data_model = FileData

    def __init__(self, examples: Sequence[Path] = (), **options: Any) -> None:
        super().__init__(
            html_template="",
            js_on_load=scripts.start("PhotoBox", "pick"),
            examples=[{"name": photo.stem, "src": scripts.offer(_thumbnail(photo))} for photo in examples],
            **options,
        )

    def preprocess(self, payload: Any) -> str | None:
        return None if payload is None else payload.path

    def postprocess(self, value: str | None) -> Any:
        if value is None:
            return None
        kept = save_file_to_cache(value, self.GRADIO_CACHE)  # which the page may read, unlike the folder of examples
        return FileData(path=kept, orig_name=Path(value).name)

    def api_info(self) -> dict[str, Any]:
        return copy.deepcopy(SCHEMA)

    def example_payload(self) -> Any:
        return None


def digests(photos: Iterable[Path]) -> dict[str, str]:
    """The photos' names by their content, to know an example again: visitors' own files may have the same name."""
    return {digest(photo): photo.stem for photo in photos}


def digest(photo: str | Path) -> str:
    return hashlib.sha256(Path(photo).read_bytes()).hexdigest()


def _thumbnail(photo: Path) -> bytes:
    with Image.open(photo) as small:
        small.thumbnail((SIDE, SIDE))
        small.save(content := io.BytesIO(), "JPEG", quality=75)
    return content.getvalue()
