"""Files for the explorer, made of explanations and kept where the page finds them."""

from __future__ import annotations

import io
from collections.abc import Iterator
from functools import partial

from gradio.data_classes import FileData
from PIL import Image

from .. import export
from ..classifier import Classifier
from ..explain.explanation import Explanation
from ..turn import Turn
from .explorer import keep
from .explorer.packing import best, given, pack, pack_attention, pack_class, pack_heads, pack_patch

WHOLE_ATTENTION = 64_000_000  # bytes of attention up to which it is handed out whole, as float32


def first_file(
    name: str,
    example: str | None,
    picture: Image.Image,
    classifier: Classifier,
    explanation: Explanation,
    whole: bool = False,
) -> FileData:
    """What is looked at first: predictions and what the class token looks at, with `whole` what every token does."""
    return keep(pack(picture, name, example, classifier, explanation, whole), "explanation.safetensors")


def attention_file(explanation: Explanation) -> FileData:
    """What every token looks at."""
    return keep(pack_attention(explanation), "attention.safetensors")


def map_files(explanation: Explanation, turn: Turn) -> Iterator[FileData]:
    """What other methods than attention show: first by head, then for one likely class after another.

    Each in a turn of its own: the next visitor need not wait for all of it.
    """
    methods = given(explanation)
    packs = [(m.name, partial(pack_heads, explanation, m)) for m in methods if m.columns == "heads"]
    packs += [(f"class-{rank}", partial(pack_class, explanation, rank)) for rank in range(len(best(explanation)))]
    for name, make in packs:
        with turn():
            content = make()
        yield keep(content, f"{name}.safetensors")


def patch_file(explanation: Explanation, patch: int | None) -> FileData:
    """What a patch looks at, and what looks at it; None: the class token."""
    return keep(pack_patch(explanation, patch), "patch.safetensors")


def arrays_file(explanation: Explanation, name: str, options: export.Options, turn: Turn) -> FileData:
    """The maps as an .npz, and the attention itself unless it is huge. It is compressed in nobody's turn."""
    with turn():
        found, _ = export.every_array(explanation, options)
    found["probabilities"] = explanation.probabilities
    if explanation.attention.numel() * 4 <= WHOLE_ATTENTION:
        found["attention"] = explanation.attention
    content = io.BytesIO()
    export.save_arrays(content, found)
    return keep(content.getvalue(), f"{name}.npz")
