"""The explorer: one canvas in the page that holds the whole attention of a photo, so that looking around is instant."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import gradio as gr
from gradio.data_classes import FileData, GradioModel
from gradio.processing_utils import save_bytes_to_cache
from pydantic import Field

HERE = Path(__file__).parent
# One after another, in one function.
SCRIPTS = ("file", "explained", "draw", "main", "words", "sheet", "controls", "away", "link", "load")


class ExplorerFiles(GradioModel):
    """What the explorer shows. Files are in the safetensors format, as `packing` makes them."""

    photo: FileData  # what is explained, and by which model: a pinned patch or the arrays are asked of these
    model: str
    explanation: FileData
    maps: list[FileData] = Field(default_factory=list)  # rollout and relevances; the page asks for them by and by


class Answer(GradioModel):
    """What the explorer asked for; nothing where that failed."""

    asked: dict[str, Any]  # the question, so that an answer which comes too late is known
    maps: list[FileData] = Field(default_factory=list)
    patch: FileData | None = None  # the looks of a patch
    arrays: FileData | None = None  # an .npz to hand to the visitor


class _Shown(gr.HTML):
    """A component whose value is its data model, as it is."""

    data_model: type[GradioModel]

    def preprocess(self, payload: Any) -> Any:
        return payload

    def postprocess(self, value: Any) -> Any:
        return value

    def api_info(self) -> dict[str, Any]:
        return self.data_model.model_json_schema()


class Explorer(_Shown):
    """Shows `ExplorerFiles`.

    Events: `follow_link` (example, model), `ask_maps`, `ask_patch` (patch), `save_arrays` (label, against, heads,
    patch).
    """

    data_model = ExplorerFiles

    def __init__(self, **options: Any) -> None:
        super().__init__(
            html_template=(HERE / "explorer.html").read_text(encoding="utf-8"),
            css_template=(HERE / "explorer.css").read_text(encoding="utf-8"),
            js_on_load="\n".join((HERE / f"{name}.js").read_text(encoding="utf-8") for name in SCRIPTS),
            **options,
        )

    def keep(self, content: bytes, name: str) -> FileData:
        """A file for the page, in Gradio's cache, which is emptied by and by."""
        return FileData(path=save_bytes_to_cache(content, name, self.GRADIO_CACHE), orig_name=name)


class Answers(_Shown):
    """Hands each `Answer` on to the explorer, whose own value it must not replace."""

    data_model = Answer

    def __init__(self, **options: Any) -> None:
        super().__init__(
            html_template="",
            js_on_load="""
watch("value", () => window.dispatchEvent(new CustomEvent("vit-answer", { detail: props.value })));
""",
            **options,
        )
