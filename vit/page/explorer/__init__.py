"""The explorer: one canvas in the page that holds the whole attention of a photo, so that looking around is instant."""

from __future__ import annotations

import copy
from collections.abc import Sequence
from functools import cache
from pathlib import Path
from typing import Any
from uuid import uuid4

import gradio as gr
from gradio.data_classes import FileData, GradioModel
from gradio.processing_utils import hash_bytes
from gradio.utils import get_upload_folder
from pydantic import Field

from .. import scripts


class ExplorerFiles(GradioModel):
    """What the explorer shows. Files are in the safetensors format, as `packing` makes them."""

    photo: FileData  # what is explained, and by which model: a pinned patch or the arrays are asked of these
    model: str
    explanation: FileData
    maps: list[FileData] = Field(default_factory=list)  # of the other methods; the page asks for them by and by
    number: str = Field(default_factory=lambda: uuid4().hex)  # another one each time, so that it is seen as new


class Progress(GradioModel):
    """How far a model has come that is on its way."""

    share: float
    text: str


class Answer(GradioModel):
    """What the explorer asked for, none of it where that failed."""

    asked: dict[str, Any]  # the question, so that an answer which comes too late is known
    progress: Progress | None = None
    files: list[FileData] = Field(default_factory=list)  # more of them from one answer to the next
    done: bool = False


@cache
def _schema(model: type[GradioModel]) -> dict[str, Any]:
    """Gradio asks for it for each component and each new visitor, and pydantic takes its time."""
    return model.model_json_schema()


class _Shown(gr.HTML):
    """A component whose value is its data model, as it is."""

    data_model: type[GradioModel]

    def preprocess(self, payload: Any) -> Any:
        return payload

    def postprocess(self, value: Any) -> Any:
        return value

    def api_info(self) -> dict[str, Any]:
        return copy.deepcopy(_schema(self.data_model))


QUESTIONS = ("ask_maps", "ask_attention", "ask_patch", "save_arrays")
EVENTS = ("follow_link", "choose_model", "cancel_load", "nudge", *QUESTIONS)
MODE_EVENTS = ("ask_figures", "ask_trace", "ask_what_if", "ask_fewest", "ask_curves")


class Explorer(_Shown):
    """Shows `ExplorerFiles`. Several on one page have a slot each: "a", "b" …

    `models` are the rows of the list to choose from, none where the model is not to be changed;
    `title` stands above it all.

    Events: `follow_link` (example, model), `choose_model` (model, registers), `cancel_load`, and questions: `ask_maps`,
    `ask_attention`, `ask_patch` (patch), `save_arrays` (label, against, heads, patch), which `Answers` of the same slot
    hand on; and those of the modes: `ask_figures`, `ask_trace` (layer, head, patch), and, with
    changes, `ask_what_if` and `ask_fewest`, and `ask_curves`, which `cancel_curves` ends. `nudge` asks for nothing.
    """

    data_model = ExplorerFiles

    def __init__(
        self, slot: str = "a", models: Sequence[dict[str, Any]] = (), title: str = "ViT Explorer", **options: Any
    ) -> None:
        self.slot = slot
        super().__init__(
            html_template="",
            js_on_load=scripts.start("Explorer", *EVENTS, *MODE_EVENTS, "cancel_curves"),
            slot=slot,
            models=list(models),
            title=title,
            **options,
        )


def keep(content: bytes, name: str) -> FileData:
    """A file for the page, in Gradio's cache, which is emptied by and by.

    It is put in its place whole: somebody may be reading the same file, made for them a moment ago.
    """
    folder = Path(get_upload_folder()) / hash_bytes(content)
    folder.mkdir(exist_ok=True, parents=True)
    unfinished = folder / uuid4().hex
    unfinished.write_bytes(content)
    return FileData(path=str(unfinished.replace(folder / Path(name).name).resolve()), orig_name=name)


class Answers(_Shown):
    """Hands each `Answer` on to the explorer, whose own value it must not replace. One for each kind of question."""

    data_model = Answer

    def __init__(self, slot: str = "a", **options: Any) -> None:
        super().__init__(html_template="", js_on_load=scripts.start("Answers"), visible="hidden", slot=slot, **options)
