"""The explorer: one canvas in the page that holds the whole attention of a photo, so that looking around is instant."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import gradio as gr
from gradio.data_classes import FileData, GradioModel
from gradio.processing_utils import save_bytes_to_cache
from pydantic import Field

HERE = Path(__file__).parent
SCRIPTS = ("file", "explained", "draw", "main", "controls", "away", "load")  # one after another in one function


class ExplorerFiles(GradioModel):
    """What the explorer shows. Files are in the safetensors format, as `packing` makes them."""

    explanation: FileData
    maps: list[FileData] = Field(default_factory=list)  # rollout and relevances, as they are worked out
    patch: FileData | None = None  # the looks of a patch that was asked for
    arrays: FileData | None = None  # an .npz to hand to the visitor


class Explorer(gr.HTML):
    """Shows `ExplorerFiles`. Events: `ask_patch` (patch), `save_arrays` (label, against, heads, patch)."""

    data_model = ExplorerFiles

    def __init__(self, **options: Any) -> None:
        super().__init__(
            html_template=(HERE / "explorer.html").read_text(encoding="utf-8"),
            css_template=(HERE / "explorer.css").read_text(encoding="utf-8"),
            js_on_load="\n".join((HERE / f"{name}.js").read_text(encoding="utf-8") for name in SCRIPTS),
            **options,
        )

    def preprocess(self, payload: Any) -> Any:
        return payload

    def postprocess(self, value: Any) -> Any:
        return value

    def api_info(self) -> dict[str, Any]:
        return ExplorerFiles.model_json_schema()

    def keep(self, content: bytes, name: str) -> FileData:
        """A file for the page, in Gradio's cache, which is emptied by and by."""
        return FileData(path=save_bytes_to_cache(content, name, self.GRADIO_CACHE), orig_name=name)
