"""What the model does for a visitor: a photo's path comes in, files for the explorer go out."""

from __future__ import annotations

import io
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from threading import Lock

import gradio as gr
from gradio.data_classes import FileData

from .. import export
from ..checkpoints import CheckpointError
from ..classifier import Classifier
from ..explanation import CannotTell, Explanation
from ..hub import HubError
from ..photo_files import PhotoError, Upload, open_photo
from ..zero_gpu import device
from .explorer import ExplorerFiles
from .explorer.packing import best, given, pack, pack_class, pack_heads, pack_patch
from .models import Models

WHOLE_ATTENTION = 64_000_000  # bytes of attention up to which it is handed out whole, as float32
SENTENCES = (PhotoError, CheckpointError, HubError, CannotTell)
Keep = Callable[[bytes, str], FileData]  # a file's content and name, to where the page finds it


@contextmanager
def sentences() -> Iterator[None]:
    """Let a visitor see what went wrong as one sentence, and nothing of the server."""
    try:
        yield
    except SENTENCES as error:
        raise gr.Error(str(error), print_exception=False) from None
    except Exception as error:
        raise gr.Error("Something went wrong here: try again, or try another photo.") from error


def here(photo: str | None) -> Upload:
    """The photo, if it is still kept."""
    if photo is None:
        raise PhotoError("There is no photo: choose one first.")
    if not Path(photo).exists():
        raise PhotoError("The photo is no longer kept here: choose it again.")
    return Upload(photo)


def ready(models: Models, name: str) -> Classifier:
    """The model, where it runs."""
    found = models.get(name)
    found.model.to(device())
    return found


def attention(classifier: Classifier, photo: str, example: str | None, keep: Keep) -> tuple[Explanation, ExplorerFiles]:
    """What is looked at first: predictions and attention."""
    picture = open_photo(photo)
    explanation = classifier.explain(picture)
    content = pack(picture, Path(photo).stem, example, classifier, explanation)
    files = ExplorerFiles(
        photo=FileData(path=photo), model=classifier.name, explanation=keep(content, "explanation.safetensors")
    )
    return explanation, files


def maps(explanation: Explanation, keep: Keep, turn: Lock) -> Iterator[FileData]:
    """What other methods than attention show: first by head, then for one likely class after another.

    The turn is given up in between: the next visitor need not wait for all of it.
    """
    methods = given(explanation)
    packs = [(m.name, partial(pack_heads, explanation, m)) for m in methods if m.columns == "heads"]
    packs += [(f"class-{rank}", partial(pack_class, explanation, rank)) for rank in range(len(best(explanation)))]
    for name, make in packs:
        with turn:
            content = make()
        yield keep(content, f"{name}.safetensors")


def patch(classifier: Classifier, photo: str, patch: int, keep: Keep) -> FileData:
    """What a patch looks at, and what looks at it."""
    return keep(pack_patch(classifier.explain(photo), patch), "patch.safetensors")


def arrays(classifier: Classifier, photo: str, options: export.Options, keep: Keep) -> FileData:
    """The maps as an .npz, and the attention itself unless it is huge."""
    explanation = classifier.explain(photo)
    found, _ = export.every_array(explanation, options)
    found["probabilities"] = explanation.probabilities
    if explanation.attention.numel() * 4 <= WHOLE_ATTENTION:
        found["attention"] = explanation.attention
    content = io.BytesIO()
    export.save_arrays(content, found)
    return keep(content.getvalue(), f"{Path(photo).stem}.npz")
