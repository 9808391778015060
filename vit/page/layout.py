"""The page: what a visitor's doings set off, the layout, and the wiring of the two."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import gradio as gr

from ..explanation import Explanation
from ..zero_gpu import gpu
from . import work
from .explorer import Explorer, ExplorerFiles
from .models import Models
from .photo import PhotoBox, digest, digests
from .questions import answer_questions
from .safety import never_fetch
from .scripts import ROUTE
from .theme import CSS, THEME
from .work import SENTENCES, sentences

# Files of visitors are looked for every ten minutes, and go when they are 50 minutes old: after an hour none is left.
DELETE_CACHE = (600, 3000)
AT_ONCE = 8  # events that may wait for a model to arrive; its work is done one by one


def launch_options() -> dict[str, Any]:
    """How the page is to be launched; anew for each, as Gradio writes into it."""
    return dict(
        theme=THEME,
        css=CSS,
        footer_links=["api", "settings"],
        max_file_size="20mb",
        show_error=False,
        enable_monitoring=False,
        ssr_mode=False,
        pwa=False,
        run_history=False,
        app_kwargs={"routes": [ROUTE]},
    )


def build(models: Models, examples: Sequence[Path] = ()) -> gr.Blocks:
    """The page. Its public endpoints are /predict and /explain."""
    never_fetch()
    known = digests(examples)
    by_name = {photo.stem: photo for photo in examples}

    @gpu
    def predict(photo: str | None, model: str) -> dict[str, float]:
        """The five likeliest labels of a photo, each with its probability.

        Args:
            photo: the photo, a file of any common format
            model: one of the models that the page offers
        """
        with sentences():
            found = work.ready(models, model)
            with models.turn:
                # Some checkpoints have a label twice (ImageNet's crane, a bird and a machine): the likelier is shown.
                return dict(reversed(found.predict(work.here(photo))))

    @gpu
    def explain(photo: str | None, model: str) -> ExplorerFiles:
        """What the model looks at in a photo: its attention, and the maps of other methods, for the likeliest classes.

        Args:
            photo: the photo, a file of any common format
            model: one of the models that the page offers

        Returns:
            files in the safetensors format: attention = scale × share², by layer, head and token
        """
        with sentences():
            explanation, files = attend(photo, model)
            files.maps.extend(work.maps(explanation, explorer.keep, models.turn))
            return files

    def attend(photo: str | None, model: str) -> tuple[Explanation, ExplorerFiles]:
        path, found = work.here(photo), work.ready(models, model)
        with models.turn:
            return work.attention(found, path, known.get(digest(path)), explorer.keep)

    @gpu
    def show(photo: str | None, model: str) -> Any:
        with sentences():
            return gr.skip() if photo is None else attend(photo, model)[1]

    def put_back(files: ExplorerFiles | None) -> Any:
        """After a photo that could not be explained, the one that is shown."""
        return gr.skip() if files is None else files.photo.path

    def pick(event: gr.EventData) -> str:
        if event.name not in by_name:
            raise gr.Error("There is no such example: choose one that is shown.", print_exception=False)
        return str(by_name[event.name])

    def choose(wanted: str, current: str, progress: gr.Progress = gr.Progress()) -> tuple[Any, ...]:  # noqa: B008
        """The model that is wanted, or with a sentence the current one."""
        try:
            models.get(wanted, lambda share, text: progress(share, desc=text))
        except SENTENCES as error:
            problem, _, _ = str(error).rpartition(": ")  # what to do about it is not the visitor's to do
            gr.Warning(f"{problem or error}. {current} stays.")
            wanted = current
        return wanted, wanted, gr.Accordion(label=_title(wanted))

    def follow_link(current: str, event: gr.EventData, progress: gr.Progress = gr.Progress()) -> tuple[Any, ...]:  # noqa: B008
        """The example and the model that a link names; layer, head and map are the explorer's to read."""
        photo = by_name.get(event.example or "")
        return gr.skip() if photo is None else str(photo), *choose(event.model or current, current, progress)

    with gr.Blocks(title="ViT Explorer", delete_cache=DELETE_CACHE) as blocks:
        current = gr.State(models.first.name)
        with gr.Row():
            with gr.Column(scale=1, min_width=240):
                photo = PhotoBox(examples)
            with gr.Column(scale=5, min_width=680):
                with gr.Accordion(_title(models.first.name), open=False) as accordion:
                    chosen = _choice(models)
                explorer = Explorer()
        label, button = gr.Label(visible=False), gr.Button(visible=False)  # for the endpoints alone

        runs: dict[str, Any] = dict(concurrency_id="model", concurrency_limit=AT_ONCE, show_progress="hidden")
        private: dict[str, Any] = dict(api_visibility="private")
        button.click(predict, [photo, chosen], label, api_name="predict", **runs)
        button.click(explain, [photo, chosen], explorer, api_name="explain", **runs)
        # The model that is there, not one that is still being fetched. One event for both: the last change counts.
        changed: Any = [photo.change, current.change]
        shown = gr.on(changed, show, [photo, current], explorer, trigger_mode="always_last", **runs, **private)
        shown.failure(put_back, explorer, photo, queue=False, **private)
        photo.pick(pick, None, photo, queue=False, **private)
        answer_questions(explorer, models, **runs)
        choice = [chosen, current, accordion]
        loads: dict[str, Any] = dict(concurrency_id="load", show_progress_on=chosen, **private)
        chosen.input(choose, [chosen, current], choice, **loads)
        explorer.follow_link(follow_link, current, [photo, *choice], **loads)
    return blocks


def _choice(models: Models) -> gr.Radio | gr.Dropdown:
    if not models.any_model:
        return gr.Radio(models.choices, value=models.first.name, label="Model", show_label=False, elem_classes="models")
    return gr.Dropdown(
        models.choices,
        value=models.first.name,
        label="Model",
        info="One of the list, or any Hub id or folder: type it and press Enter.",
        allow_custom_value=True,
    )


def _title(model: str) -> str:
    return f"Model: {model}"
