"""The page's layout, and what happens when a visitor does something. Layout first, then wiring."""

from __future__ import annotations

import io
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import gradio as gr
import numpy as np
import torch

from .. import export
from ..checkpoints import CheckpointError
from ..explanation import CannotTell
from ..hub import HubError
from ..images import PhotoError, open_photo
from .explorer import Explorer, ExplorerFiles
from .explorer.packing import best, pack, pack_patch, pack_relevance, pack_rollout
from .models import Models
from .photo import PhotoBox, digest, digests
from .theme import CSS, THEME

LAUNCH: dict[str, Any] = dict(
    theme=THEME,
    css=CSS,
    footer_links=["api", "settings"],
    max_file_size="20mb",
    show_error=False,
    enable_monitoring=False,
    ssr_mode=False,
    pwa=False,
    run_history=False,
)
# Files of visitors are looked for every ten minutes, and go when they are 50 minutes old: after an hour none is left.
DELETE_CACHE = (600, 3000)
WHOLE_ATTENTION = 64_000_000  # bytes of attention up to which it is handed out whole, as float32
SENTENCES = (PhotoError, CheckpointError, HubError, CannotTell)


def build(models: Models, examples: Sequence[Path] = ()) -> gr.Blocks:
    """The page. Its public endpoints are /predict and /explain."""
    known = digests(examples)
    by_name = {photo.stem: photo for photo in examples}

    def predict(photo: str | None, model: str) -> dict[str, float]:
        """The five likeliest labels of a photo, each with its probability.

        Args:
            photo: the photo, a file of any common format
            model: one of the models that the page offers
        """
        if photo is None:
            raise gr.Error("There is no photo: choose one first.", print_exception=False)
        with _sentences():
            # Some checkpoints have a label twice (ImageNet's crane, a bird and a machine): the likelier one is shown.
            return dict(reversed(models.get(model).predict(photo)))

    def explain(photo: str | None, model: str) -> Iterator[Any]:
        """What the model looks at in a photo: its attention, then rollout, then relevance for the likeliest classes.

        Args:
            photo: the photo, a file of any common format
            model: one of the models that the page offers

        Returns:
            files in the safetensors format: attention = scale × share², by layer, head and token
        """
        if photo is None:
            yield gr.skip()
            return
        with _sentences():
            classifier = models.get(model)
            picture, example = open_photo(photo), known.get(digest(photo))
            explanation = classifier.explain(picture)
            content = pack(picture, Path(photo).stem, example, classifier, explanation)
            files = ExplorerFiles(explanation=explorer.keep(content, "explanation.safetensors"))
            yield files
            files.maps.append(explorer.keep(pack_rollout(explanation), "rollout.safetensors"))
            yield files
            for rank in range(len(best(explanation))):
                files.maps.append(explorer.keep(pack_relevance(explanation, rank), f"relevance-{rank}.safetensors"))
                yield files

    def ask_patch(photo: str | None, model: str, files: ExplorerFiles, event: gr.EventData) -> ExplorerFiles:
        with _sentences():
            content = pack_patch(models.get(model).explain(_still_here(photo)), int(event.patch))
        return files.model_copy(update={"patch": explorer.keep(content, "patch.safetensors")})

    def save_arrays(photo: str | None, model: str, files: ExplorerFiles, event: gr.EventData) -> ExplorerFiles:
        options = export.Options(label=event.label, against=event.against, heads=event.heads, patch=event.patch)
        with _sentences():
            path = _still_here(photo)
            content = _npz(models.get(model).explain(path), options)
        return files.model_copy(update={"arrays": explorer.keep(content, f"{Path(path).stem}.npz")})

    def pick(event: gr.EventData) -> str:
        if event.name not in by_name:
            raise gr.Error("There is no such example: choose one that is shown.", print_exception=False)
        return str(by_name[event.name])

    def choose(wanted: str, current: str, progress: gr.Progress = gr.Progress()) -> tuple[Any, ...]:  # noqa: B008
        """The model that is wanted, or with a sentence the current one."""
        try:
            models.get(wanted, lambda share, text: progress(share, desc=text))
        except SENTENCES as error:
            gr.Warning(f"{error} {current} stays.")
            wanted = current
        return wanted, wanted, gr.Accordion(label=_title(wanted))

    def follow_link(current: str, request: gr.Request, progress: gr.Progress = gr.Progress()) -> tuple[Any, ...]:  # noqa: B008
        """The example and the model that the page's address names; layer, head and map are the explorer's to read."""
        asked = request.query_params
        photo = by_name.get(asked.get("example", ""))
        wanted = asked.get("model", current)
        if photo is None and wanted == current:
            return (gr.skip(),) * 4
        return gr.skip() if photo is None else str(photo), *choose(wanted, current, progress)

    first = models.first.name
    with gr.Blocks(title="ViT Explorer", delete_cache=DELETE_CACHE) as blocks:
        gr.HTML("<h1>ViT Explorer</h1><p>What a Vision Transformer predicts, and what it looks at.</p>")
        current = gr.State(first)
        with gr.Accordion(_title(first), open=False) as accordion:
            if models.any_model:
                chosen: Any = gr.Dropdown(
                    models.choices,
                    value=first,
                    allow_custom_value=True,
                    label="Model",
                    info="One of the list, or any Hub id or folder: type it and press Enter.",
                )
            else:
                chosen = gr.Radio(models.choices, value=first, label="Model", elem_classes="models", show_label=False)
        with gr.Row():
            with gr.Column(scale=1, min_width=240):
                photo = PhotoBox(examples)
            with gr.Column(scale=5, min_width=320):
                explorer = Explorer()
        hidden = gr.Button(visible=False)
        label = gr.Label(visible=False)

        model_runs: dict[str, Any] = dict(concurrency_id="model", show_progress="hidden")
        private: dict[str, Any] = dict(api_visibility="private")
        hidden.click(predict, [photo, chosen], label, api_name="predict", **model_runs)
        shown = photo.change(
            explain, [photo, chosen], explorer, api_name="explain", trigger_mode="always_last", **model_runs
        )
        shown.failure(lambda: None, None, photo, queue=False, **private)
        current.change(explain, [photo, chosen], explorer, **model_runs, **private)
        explorer.ask_patch(ask_patch, [photo, chosen, explorer], explorer, **model_runs, **private)
        explorer.save_arrays(save_arrays, [photo, chosen, explorer], explorer, **model_runs, **private)
        photo.pick(pick, None, photo, queue=False, **private)
        choice = [chosen, current, accordion]
        loads: dict[str, Any] = dict(concurrency_id="load", show_progress_on=chosen, **private)
        chosen.input(choose, [chosen, current], choice, **loads)
        blocks.load(follow_link, current, [photo, *choice], **loads)
    return blocks


def _title(model: str) -> str:
    return f"Model: {model}"


def _still_here(photo: str | None) -> str:
    if photo is None:
        raise PhotoError("The photo is no longer here: choose it again.")
    return photo


@contextmanager
def _sentences() -> Iterator[None]:
    """Let a visitor see what went wrong as one sentence, and nothing of the server."""
    try:
        yield
    except SENTENCES as error:
        raise gr.Error(str(error), print_exception=False) from None
    except Exception as error:
        raise gr.Error("Something went wrong here: try again, or try another photo.") from error


def _npz(explanation: Any, options: export.Options) -> bytes:
    """The maps as arrays, and the attention itself unless it is huge."""
    arrays, _ = export.every_array(explanation, options)
    arrays["probabilities"] = explanation.probabilities
    if explanation.attention.numel() * 4 <= WHOLE_ATTENTION:
        arrays["attention"] = explanation.attention
    content = io.BytesIO()
    np.savez_compressed(content, **{name: torch.as_tensor(array).cpu().numpy() for name, array in arrays.items()})
    return content.getvalue()
