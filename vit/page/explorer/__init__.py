"""The explorer: one canvas in the page that holds the whole attention of a photo, so that looking around is instant."""

from __future__ import annotations

from typing import Any

import gradio as gr
from gradio.data_classes import FileData, GradioModel
from gradio.processing_utils import save_bytes_to_cache
from pydantic import Field

from .. import scripts


class ExplorerFiles(GradioModel):
    """What the explorer shows. Files are in the safetensors format, as `packing` makes them."""

    photo: FileData  # what is explained, and by which model: a pinned patch or the arrays are asked of these
    model: str
    explanation: FileData
    maps: list[FileData] = Field(default_factory=list)  # of the other methods; the page asks for them by and by


class Answer(GradioModel):
    """What the explorer asked for, none of it where that failed."""

    asked: dict[str, Any]  # the question, so that an answer which comes too late is known
    files: list[FileData] = Field(default_factory=list)  # more of them from one answer to the next
    done: bool = False


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
    """Shows `ExplorerFiles`. Several on one page have a slot each: "a", "b" …

    Events: `follow_link` (example, model), `ask_maps`, `ask_patch` (patch), `save_arrays` (label, against, heads,
    patch). Each question but the first is answered by `Answers` of the same slot.
    """

    data_model = ExplorerFiles

    def __init__(self, slot: str = "a", **options: Any) -> None:
        self.slot = slot
        events = ("follow_link", "ask_maps", "ask_patch", "save_arrays")
        super().__init__(html_template="", js_on_load=scripts.start("main.js", *events), slot=slot, **options)

    def keep(self, content: bytes, name: str) -> FileData:
        """A file for the page, in Gradio's cache, which is emptied by and by."""
        return FileData(path=save_bytes_to_cache(content, name, self.GRADIO_CACHE), orig_name=name)


class Answers(_Shown):
    """Hands each `Answer` on to the explorer, whose own value it must not replace. One for each kind of question."""

    data_model = Answer

    def __init__(self, slot: str = "a", **options: Any) -> None:
        super().__init__(
            html_template="", js_on_load=scripts.start("answers.js"), visible="hidden", slot=slot, **options
        )
