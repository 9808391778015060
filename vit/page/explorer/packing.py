"""What the explorer gets of a photo: files in the safetensors format, which the page and anyone else can read.

Attention goes as whole numbers with a scale for each row: attention = scale × share², so that shares keep their digits
when a single token draws most of a row. 16 bits each where all of it fits into MOST_BYTES, 8 bits where only that fits.
What is larger stays here: the class token's looks go, as they are, and those of a patch when it is asked for.
"""

from __future__ import annotations

import io
import json
from dataclasses import fields
from typing import Any

import torch
from PIL import Image
from safetensors.torch import save
from torch import Tensor

from ... import drawing
from ...classifier import Classifier
from ...explanation import Explanation
from ...maps import Heads
from ...methods import METHODS, Method

MOST_BYTES = 16_000_000  # of one file
LONGEST_SIDE = 1024  # of the photo as it is shown, in pixels
TOP = 5  # predictions


def pack(photo: Image.Image, name: str, example: str | None, classifier: Classifier, explanation: Explanation) -> bytes:
    """The photo as it is shown, its predictions, and the attention of every layer and head."""
    layers, heads, tokens, _ = explanation.attention.shape
    shown = _jpeg(photo)
    tensors = {
        "photo": torch.frombuffer(bytearray(shown), dtype=torch.uint8),
        "colours": torch.from_numpy(drawing.colour_tables()),  # 2, 256, 3: low to high, and signed
        "outliers": explanation.outliers()[1].flatten(1).to(torch.uint8),  # L, N
    }
    # 4 KB for the header, 4 bytes of scale a row
    room = MOST_BYTES - sum(tensor.numel() for tensor in tensors.values()) - 4096 - 4 * layers * heads * tokens
    bits = next((bits for bits in (16, 8) if explanation.attention.numel() * bits // 8 <= room), None)
    if bits is not None:
        tensors |= _whole(explanation.attention, bits)
    elif "class" in explanation.prefix:
        tensors |= _looks(explanation, 0)
    left, top, right, bottom = explanation.box
    about = {
        "name": name,  # the photo's
        "example": example,
        "model": classifier.name,
        "size": photo.size,
        "box": explanation.box,  # the part that the model saw
        "cropped": left > 0.5 or top > 0.5 or right < photo.width - 0.5 or bottom < photo.height - 0.5,
        "grid": explanation.grid,
        "prefix": explanation.prefix,
        "layers": layers,
        "heads": heads,
        "whole": bits is not None,
        "predictions": [
            {"label": explanation.labels[index], "index": index, "probability": explanation.probabilities[index].item()}
            for index in best(explanation)
        ],
        "unfamiliar": explanation.unfamiliar,
        "decided": explanation.decided(3) if explanation.labels else [],
        "lens": explanation.lens[:, best(explanation)[:1]].flatten().tolist(),  # of the likeliest class
        "methods": [_row(method, explanation) for method in METHODS.values()],
    }
    return _file(tensors, about)


def pack_heads(explanation: Explanation, method: Method) -> bytes:
    """A method's maps of the heads' mean, of their maximum, and of each head (H + 2, L, N)."""
    every: list[Heads] = ["mean", "max", *range(explanation.attention.shape[1])]
    return _file({method.name: torch.stack([method.map(explanation, heads).flatten(1) for heads in every])})


def pack_class(explanation: Explanation, rank: int) -> bytes:
    """All methods' maps for one of the likeliest classes, (1, L, N), or (1, 1, N) where they are of the whole model."""
    index, patches = best(explanation)[rank], explanation.grid[0] * explanation.grid[1]
    return _file(
        {
            f"{method.name} {rank}": method.map(explanation, index).reshape(1, -1, patches)
            for method in given(explanation)
            if method.columns == "classes"
        }
    )


def given(explanation: Explanation) -> list[Method]:
    """The methods that the checkpoint can give, without what the page makes of the attention itself."""
    return [method for method in METHODS.values() if not method.of_token and not method.missing(explanation)]


def pack_patch(explanation: Explanation, patch: int) -> bytes:
    """What a patch looks at and what looks at it, for explanations whose attention did not go whole."""
    return _file(_looks(explanation, explanation.token(patch)))


def best(explanation: Explanation) -> list[int]:
    """The likeliest classes, none where the checkpoint has no classifier."""
    return explanation.probabilities.topk(min(TOP, len(explanation.labels))).indices.tolist()


def _row(method: Method, explanation: Explanation) -> dict[str, Any]:
    """What the page has to know of a method to offer it, or why it cannot."""
    row = {field.name: getattr(method, field.name) for field in fields(method) if field.name not in ("make", "needs")}
    missing = method.missing(explanation)
    if method.of_token and missing:  # there is no class token to ask, but every patch
        return {**row, "title": "Attention", "missing": None}
    return {**row, "missing": missing}


def _whole(attention: Tensor, bits: int) -> dict[str, Tensor]:
    highest = 2**bits - 1
    scale = attention.amax(dim=-1, keepdim=True) / highest**2
    shares = (attention / scale).sqrt_().round_()
    kind = torch.uint16 if bits == 16 else torch.uint8
    return {"attention": shares.to(torch.int32).to(kind), "scale": scale[..., 0]}


def _looks(explanation: Explanation, token: int) -> dict[str, Tensor]:
    attention = explanation.attention
    return {"looks_at": attention[:, :, token], "looked_at_by": attention[..., token]}  # each L, H, T


def _jpeg(photo: Image.Image) -> bytes:
    scale = min(1, LONGEST_SIDE / max(photo.size))
    shown = photo.resize([max(1, round(side * scale)) for side in photo.size], reducing_gap=2)
    content = io.BytesIO()
    shown.save(content, "JPEG", quality=90)
    return content.getvalue()


def _file(tensors: dict[str, Tensor], about: dict[str, Any] | None = None) -> bytes:
    placed = {name: tensor.detach().cpu().contiguous() for name, tensor in tensors.items()}
    return save(placed, {"about": json.dumps(about or {}, ensure_ascii=False)})
