"""What the model does for a visitor: a photo's path comes in, files for the explorer go out."""

from __future__ import annotations

import io
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from threading import Lock

import gradio as gr
from gradio.data_classes import FileData

from .. import export
from ..checkpoints import CheckpointError
from ..classifier import Classifier
from ..explanation import CannotTell, Explanation
from ..hub import HubError
from ..photo_files import PhotoError, open_photo
from .explorer import ExplorerFiles
from .explorer.packing import best, pack, pack_patch, pack_relevance, pack_rollout

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
    """Rollout, then the relevance of one likely class after another.

    The turn is given up in between: the next visitor need not wait for all of it.
    """
    with turn:
        content = pack_rollout(explanation)
    yield keep(content, "rollout.safetensors")
    for rank in range(len(best(explanation))):
        with turn:
            content = pack_relevance(explanation, rank)
        yield keep(content, f"relevance-{rank}.safetensors")


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
