"""Which component stands where, and how the page is launched."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import gradio as gr

from ..photos.uploads import MAX_UPLOAD_BYTES
from .delivery import MIDDLEWARE
from .explorer import Explorer
from .models import Models
from .photo import PhotoBox
from .scripts import ROUTE
from .theme import CSS, THEME

MAX_THREADS = 128  # more than visitors who may wait at once, and loads


def launch_options() -> dict[str, Any]:
    """How the page is to be launched; anew for each, as Gradio writes into it."""
    return dict(
        theme=THEME,
        css=CSS,
        footer_links=["api", "settings"],
        max_file_size=MAX_UPLOAD_BYTES,
        show_error=False,
        enable_monitoring=False,
        max_threads=MAX_THREADS,
        ssr_mode=False,
        pwa=False,
        run_history=False,
        app_kwargs={"routes": [ROUTE], "middleware": [*MIDDLEWARE]},
    )


@dataclass(frozen=True)
class Components:
    """What the page is made of."""

    explorer: Explorer
    photo: PhotoBox
    current: gr.State  # the model that is there
    chosen: gr.Dropdown  # this and what follows are for the endpoints alone
    label: gr.Label
    familiarity: gr.Number
    button: gr.Button


def arrange(models: Models, examples: Sequence[Path], title: str) -> Components:
    """The components in their places, inside the Blocks that are open."""
    current = gr.State(models.first.name)
    choice = len(models.rows) > 1 or models.any_model
    explorer = Explorer(models=models.rows if choice else [], title=title)
    photo = PhotoBox(examples)
    sources = [row["source"] for row in models.rows]
    chosen = gr.Dropdown(sources, value=models.first.name, label="Model", visible=False)
    chosen.allow_custom_value = models.any_model
    hidden = gr.Label(visible=False), gr.Number(visible=False), gr.Button(visible=False)
    return Components(explorer, photo, current, chosen, *hidden)
