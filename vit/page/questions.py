"""What an explorer asks about the photo that it shows, and the answers."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from typing import Any

import gradio as gr
from gradio.data_classes import FileData

from ..export import Options
from ..zero_gpu import gpu
from . import work
from .explorer import Answer, Answers, Explorer, ExplorerFiles
from .models import Models
from .work import sentences


def answer_questions(explorer: Explorer, models: Models, **runs: Any) -> None:
    """Wire an explorer's questions, with the settings of events that run the model."""

    @gpu
    def find_maps(photo: str, model: str) -> Iterator[FileData]:
        with sentences():
            path, found = work.here(photo), work.ready(models, model)
            with models.turn:
                explanation = found.explain(path)
            yield from work.maps(explanation, explorer.keep, models.turn)

    @gpu
    def look(photo: str, model: str, patch: int) -> FileData:
        with sentences():
            found = work.ready(models, model)
            with models.turn:
                return work.patch(found, work.here(photo), int(patch), explorer.keep)

    @gpu
    def arrays(photo: str, model: str, options: Options) -> FileData:
        with sentences():
            found = work.ready(models, model)
            with models.turn:
                return work.arrays(found, work.here(photo), options, explorer.keep)

    def ask_maps(files: ExplorerFiles, event: gr.EventData) -> Iterator[Answer]:
        yield from _answers(event, lambda: find_maps(files.photo.path, files.model))

    def ask_patch(files: ExplorerFiles, event: gr.EventData) -> Iterator[Answer]:
        yield from _answers(event, lambda: [look(files.photo.path, files.model, event.patch)])

    def save_arrays(files: ExplorerFiles, event: gr.EventData) -> Iterator[Answer]:
        options = Options(label=event.label, against=event.against, heads=event.heads, patch=event.patch)
        yield from _answers(event, lambda: [arrays(files.photo.path, files.model, options)])

    for ask, answer in (
        (explorer.ask_maps, ask_maps),
        (explorer.ask_patch, ask_patch),
        (explorer.save_arrays, save_arrays),
    ):
        # One component for each: of two answers at once, one would replace the other.
        ask(answer, explorer, Answers(explorer.slot), trigger_mode="always_last", api_visibility="private", **runs)


def _answers(event: gr.EventData, find: Callable[[], Iterable[FileData]]) -> Iterator[Answer]:
    """An answer with each file; where one fails, a sentence, and the explorer hears that there are no more."""
    answer = Answer(asked=dict(event._data))
    try:
        for file in find():
            answer.files.append(file)
            yield answer
    except gr.Error as error:
        gr.Warning(error.message)
    answer.done = True
    yield answer
