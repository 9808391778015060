"""What the explorer gets of a photo: files in the safetensors format, which the page and anyone else can read.

The first file is small: the photo, its predictions, and what the class token looks at. The attention of all tokens is
asked for later, where it fits into MOST_BYTES; until then, or where it does not, the looks of a patch go when they are
asked for. Attention goes as whole numbers with a scale for each row, attention = scale × share², so that shares keep
their digits when a single token draws most of a row.
"""

from __future__ import annotations

import io
import json
from collections.abc import Sequence
from dataclasses import fields
from typing import Any

import torch
from PIL import Image
from safetensors.torch import save
from torch import Tensor

from ...classifier import Classifier
from ...explain import drawing
from ...explain.explanation import Explanation
from ...explain.maps import Heads
from ...explain.methods import METHODS, Method
from ...photos.files import remarks
from ..models import knows, title

MOST_BYTES = 16_000_000  # of one file
FIRST_BYTES = 24_000  # of the class token's look, up to which it goes in 16 bits, else in 8
SEEN = 0.5  # share of a photo: of less, a word is said
LONGEST_SIDE = 1024  # of the photo as it is shown, in pixels
PANORAMA = 512, 4096  # the same of its shorter side, where that would be less, and up to which longer side
TOP = 5  # predictions


def pack(
    photo: Image.Image,
    name: str,
    example: str | None,
    classifier: Classifier,
    explanation: Explanation,
    all_tokens: bool = False,
    watched: Sequence[int] = (),
) -> bytes:
    """What is seen first: the photo as it is shown, its predictions, and what the class token looks at.

    With `all_tokens` also the attention of every layer and head, where it is not too large. Of the classes that are
    `watched` the probabilities are in it, however small.
    """
    layers, heads, tokens, _ = explanation.attention.shape
    tensors = {
        "photo": torch.frombuffer(bytearray(_jpeg(photo)), dtype=torch.uint8),
        "colours": torch.from_numpy(drawing.colour_tables()),  # 2, 256, 3: low to high, and signed
        "outliers": explanation.outliers()[1].flatten(1).to(torch.uint8),  # L, N
    }
    whole = fits(explanation)
    if "class" in explanation.prefix:
        bits = 16 if 2 * layers * heads * tokens <= FIRST_BYTES else 8
        looks = _looks(explanation, 0)
        for direction in ("looks_at",) if whole else ("looks_at", "looked_at_by"):
            tensors[direction], tensors[f"{direction}_scale"] = _rounded(looks[direction], bits)
    if all_tokens and whole:
        tensors["attention"], tensors["scale"] = _rounded(explanation.attention, _bits(explanation) or 8)
    left, top, right, bottom = explanation.box
    about = {
        "name": name,  # the photo's
        "example": example,
        "model": classifier.name,
        "title": title(classifier),
        "knows": knows(classifier),
        "sizes": _sizes(classifier),
        "size": photo.size,
        "box": explanation.box,  # the part that the model saw
        "remarks": [*remarks(photo), *_size_remark(photo, explanation, classifier)],
        "cropped": left > 0.5 or top > 0.5 or right < photo.width - 0.5 or bottom < photo.height - 0.5,
        "grid": explanation.grid,
        "prefix": explanation.prefix,
        "layers": layers,
        "heads": heads,
        "whole": whole,  # the attention of all tokens can be asked for
        "predictions": [
            {"label": explanation.labels[index], "index": index, "probability": explanation.probabilities[index].item()}
            for index in best(explanation)
        ],
        "watched": explanation.probabilities[list(watched)].tolist() if watched else [],
        "unfamiliar": explanation.unfamiliar,
        "decided": explanation.decided(3) if explanation.labels else [],
        "lens": explanation.lens[:, best(explanation)[:1]].flatten().tolist(),  # of the likeliest class
        "methods": [_row(method, explanation) for method in METHODS.values()],
    }
    return file(tensors, about)


def pack_attention(explanation: Explanation) -> bytes:
    """The attention of every layer and head, where it is not too large."""
    bits = _bits(explanation)
    if bits is None:
        raise ValueError("The attention is too large for one file: ask for the looks of single patches.")
    attention, scale = _rounded(explanation.attention, bits)
    return file({"attention": attention, "scale": scale})


def pack_heads(explanation: Explanation, method: Method) -> bytes:
    """A method's maps of the heads' mean, of their maximum, and of each head (H + 2, L, N)."""
    every: list[Heads] = ["mean", "max", *range(explanation.attention.shape[1])]
    return file({method.name: torch.stack([method.map(explanation, heads).flatten(1) for heads in every])})


def pack_class(explanation: Explanation, rank: int) -> bytes:
    """All methods' maps for one of the likeliest classes, (1, L, N), or (1, 1, N) where they are of the whole model."""
    index, patches = best(explanation)[rank], explanation.grid[0] * explanation.grid[1]
    return file(
        {
            f"{method.name} {rank}": method.map(explanation, index).reshape(1, -1, patches)
            for method in given(explanation)
            if method.columns == "classes"
        }
    )


def given(explanation: Explanation) -> list[Method]:
    """The methods that the checkpoint can give, without what the page makes of the attention itself."""
    return [method for method in METHODS.values() if not method.of_token and not method.missing(explanation)]


def pack_patch(explanation: Explanation, patch: int | None) -> bytes:
    """What a patch looks at and what looks at it, while the attention is not there; None: the class token."""
    return file(_looks(explanation, 0 if patch is None else explanation.token(patch)))


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


def _sizes(classifier: Classifier) -> dict[str, Any]:
    """The numbers of the paper's pipeline."""
    config = classifier.model.config
    return {
        "image": classifier.preprocessing.image_size or config.native_size,
        "patch": config.patch_size,
        "width": config.width,
        "mlp": config.mlp_width,
    }


def _size_remark(photo: Image.Image, explanation: Explanation, classifier: Classifier) -> list[str]:
    """A word for a photo of which the model sees each pixel at least twice as large, or less than half."""
    left, top, right, bottom = explanation.box
    height, width = _sizes(classifier)["image"]
    remarks = []
    if width >= 2 * (right - left) or height >= 2 * (bottom - top):
        remarks.append(f"A very small photo, {photo.width} × {photo.height} pixels: it is enlarged.")
    seen = (right - left) * (bottom - top) / (photo.width * photo.height)
    if seen < SEEN:
        remarks.append(f"The model saw the middle {seen:.0%} of this photo: the rest was cut off.".replace("%", " %"))
    return remarks


def fits(explanation: Explanation) -> bool:
    """Whether the attention of all tokens goes into one file."""
    return _bits(explanation) is not None


def _bits(explanation: Explanation) -> int | None:
    """How many bits a share of the attention has: 16 where all of it fits, or 8; None where nothing does."""
    numbers, rows = explanation.attention.numel(), explanation.attention[..., 0].numel()
    room = MOST_BYTES - 4096 - 4 * rows  # for the header, and a scale for each row
    return next((bits for bits in (16, 8) if numbers * bits // 8 <= room), None)


def _rounded(attention: Tensor, bits: int) -> tuple[Tensor, Tensor]:
    """Whole numbers (…, T), and the scale of each row (…)."""
    highest = 2**bits - 1
    scale = attention.amax(dim=-1, keepdim=True) / highest**2
    shares = (attention / scale.clamp(min=1e-30)).sqrt_().round_()
    kind = torch.uint16 if bits == 16 else torch.uint8
    return shares.to(torch.int32).to(kind), scale[..., 0]


def _looks(explanation: Explanation, token: int) -> dict[str, Tensor]:
    attention = explanation.attention
    return {"looks_at": attention[:, :, token], "looked_at_by": attention[..., token]}  # each L, H, T


def _jpeg(photo: Image.Image) -> bytes:
    shorter, longer = sorted(photo.size)
    scale = min(1, max(LONGEST_SIDE / longer, min(PANORAMA[0] / shorter, PANORAMA[1] / longer)))
    shown = photo.resize([max(1, round(side * scale)) for side in photo.size], reducing_gap=2)
    content = io.BytesIO()
    shown.save(content, "JPEG", quality=80, optimize=True)
    return content.getvalue()


def file(tensors: dict[str, Tensor], about: dict[str, Any] | None = None) -> bytes:
    placed = {name: tensor.detach().cpu().contiguous() for name, tensor in tensors.items()}
    return save(placed, {"about": json.dumps(about or {}, ensure_ascii=False)})
