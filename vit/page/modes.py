"""What the page's modes ask: each question about the photo and the model that are shown, in a turn of its own."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import gradio as gr
from gradio.data_classes import FileData

from ..spaces.zero_gpu import gpu
from .explorer import Answer, ExplorerFiles, keep
from .explorer.curves import Curves
from .explorer.tour import before_registers, pack_figures, pack_trace
from .explorer.what_if import challenge, pack_what_if
from .handlers import Handlers, answers, shown_errors


class ModeHandlers:
    """The handlers of the modes, beside those of the page."""

    def __init__(self, handlers: Handlers) -> None:
        self.opened, self.kept, self.budget = handlers.opened_later, handlers.kept, handlers.budget
        self.crowd = handlers.crowd
        self.figures_on_gpu, self.trace_on_gpu = gpu(self.find_figures), gpu(self.find_trace)
        self.what_if_on_gpu, self.fewest_on_gpu = gpu(self.find_what_if), gpu(self.find_fewest)
        self.curves_on_gpu = gpu(self.find_curves)

    def ask_figures(self, files: ExplorerFiles, event: gr.EventData) -> Iterator[Answer]:
        asked = files.photo.path, files.model
        yield from answers(
            self.crowd, event, lambda: self.kept.files("figures", *asked, lambda: [self.figures_on_gpu(*asked)])
        )

    def ask_trace(self, files: ExplorerFiles, event: gr.EventData) -> Iterator[Answer]:
        where = event.layer, event.head, event.patch
        yield from answers(self.crowd, event, lambda: [self.trace_on_gpu(files.photo.path, files.model, *where)])

    def ask_what_if(self, files: ExplorerFiles, event: gr.EventData) -> Iterator[Answer]:
        yield from answers(
            self.crowd, event, lambda: [self.what_if_on_gpu(files.photo.path, files.model, dict(event._data))]
        )

    def ask_fewest(self, files: ExplorerFiles, event: gr.EventData) -> Iterator[Answer]:
        yield from answers(
            self.crowd, event, lambda: [self.fewest_on_gpu(files.photo.path, files.model, dict(event._data))]
        )

    def ask_curves(self, files: ExplorerFiles, event: gr.EventData) -> Iterator[Answer]:
        yield from answers(self.crowd, event, lambda: self.curves_on_gpu(files.photo.path, files.model))

    def find_figures(self, photo: str, model: str) -> FileData:
        """What the tour shows of the photo and the model, whatever patch is followed."""
        with shown_errors():
            turn = self.budget()
            with self.opened(photo, model, turn) as (classifier, picture):
                explanation = classifier.explain(picture)
            with turn():
                before = before_registers(classifier, picture)
            with turn():
                return keep(pack_figures(classifier, explanation, before), "figures.safetensors")

    def find_trace(self, photo: str, model: str, layer: int, head: int, patch: int) -> FileData:
        """A patch followed through a layer and head."""
        with shown_errors(), self.opened(photo, model) as (classifier, picture):
            return keep(pack_trace(classifier, picture, layer, head, patch), "trace.safetensors")

    def find_what_if(self, photo: str, model: str, asked: dict[str, Any]) -> FileData:
        """The photo with changes, and what becomes of it."""
        with shown_errors(), self.opened(photo, model) as (classifier, picture):
            return keep(pack_what_if(classifier, picture, Path(photo).stem, asked), "what-if.safetensors")

    def find_fewest(self, photo: str, model: str, asked: dict[str, Any]) -> FileData:
        """The greedy answer to a challenge."""
        with shown_errors():
            turn = self.budget()
            with self.opened(photo, model, turn) as (classifier, picture):
                pack = challenge(classifier, picture, asked)
            return keep(pack(turn), "fewest.safetensors")

    def find_curves(self, photo: str, model: str) -> Iterator[FileData]:
        """Deletion and insertion curves of all methods, as they are ready."""
        with shown_errors():
            turn = self.budget()
            with self.opened(photo, model, turn) as (classifier, picture):
                curves = Curves(classifier, picture)
            for content in curves.packs(turn):
                yield keep(content, "curve.safetensors")
