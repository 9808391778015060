"""Writing an explanation down: pictures, the arrays they were made of, and how they were made."""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import asdict, dataclass
from functools import partial
from pathlib import Path
from typing import Any, BinaryIO

import numpy as np
import torch
from PIL import Image
from torch import Tensor

from .classifier import Classifier
from .explain import drawing, maps
from .explain.explanation import Explanation, UnsupportedError
from .explain.faithfulness import deletion, insertion, random_map
from .explain.maps import Heads
from .explain.methods import METHODS, Method, Settings
from .photos.files import Photo, open_photo

# What is written, and what to say of it: each where the checkpoint can give it.
SOURCES = {
    **{method.name: f"{method.source} ({method.paper})" for method in METHODS.values()},
    "class_attention_elsewhere": "attention of the class token to itself and the other tokens that are no patches",
    "looks_at": "what the chosen patch looks at, by layer",
    "looked_at_by": "which patches look at the chosen patch, by layer",
    "difference": "relevance to the class less relevance to the other class",
    "lens": "probabilities by the final norm and head after each layer (logit lens)",
    "attention_distance": "mean attention distance of each head in pixels (ViT paper, Figure 7)",
    "entropy": "entropy of each head's attention in bits",
    "norms": "norm of each patch's token after each layer (Darcet et al., arXiv 2309.16588)",
    "outliers": "patches whose norm is more than twice the median of their layer",
}


@dataclass(frozen=True)
class Options:
    """What to write, and how to draw it."""

    methods: tuple[str, ...] = tuple(METHODS)
    label: str | int | None = None  # the class to explain; None: the likeliest
    against: str | int | None = None  # a class to hold it against
    heads: Heads = "mean"  # how heads are fused where one map stands for all
    layer: int = -1  # the layer whose heads get a sheet
    patch: int | None = None  # a patch to ask what it looks at, and what looks at it
    discard: float = 0.0  # share of the weakest links that rollout cuts
    start: int = 0  # the layer that rollout and relevance start from
    smooth: bool = False
    shared: bool = True  # one colour scale for all maps of a sheet, or one each
    curves: bool = False  # deletion and insertion curves of each map
    without_outliers: bool = False  # maps without the patches whose norm is far above the rest
    pictures: bool = True  # or the arrays alone
    size: int | None = None  # the image's side in pixels; None: the checkpoint's own
    fit: bool = False  # the image keeps the photo's shape, and nothing is cut off


def write(classifier: Classifier, photo: Photo, folder: Path, options: Options) -> dict[str, Any]:
    """Explain a photo into a folder: PNGs, maps.npz and maps.json, whose content is returned.

    What the checkpoint cannot give, for want of a class token or a head, is left out, and maps.json says why.
    """
    picture = open_photo(photo)
    explanation = classifier.explain(picture, options.size, options.fit)
    layer = range(classifier.model.config.layers)[options.layer]
    arrays, left_out = every_array(explanation, options)
    if options.without_outliers:
        arrays |= _without_outliers(arrays)

    pictures = _pictures(picture, explanation, arrays, layer, options) if options.pictures else {}
    curves: dict[str, Any] = {}
    if options.curves and explanation.labels:
        curves = _curves(classifier, picture, explanation, arrays, options)
    elif options.curves:
        left_out["curves"] = "A curve follows the probability of a class, and this checkpoint has no classifier."
    if curves and options.pictures:
        for kind in ("deletion", "insertion"):
            series = {name: curve[kind]["probabilities"] for name, curve in curves.items()}
            shares = next(iter(curves.values()))[kind]["shares"]
            pictures[kind] = drawing.curves(
                series, shares, f"{kind.capitalize()} curve", "share of patches", "probability"
            )
    folder.mkdir(parents=True, exist_ok=True)
    for name, drawn in pictures.items():
        drawn.save(folder / f"{name}.png")
    save_arrays(folder / "maps.npz", arrays)

    made = {
        "photo": str(photo) if isinstance(photo, str | Path) else None,
        "photo_size": picture.size,
        "model": classifier.name,
        "architecture": classifier.model.config.to_dict(),
        "preprocessing": classifier.preprocessing_of(picture, options.size, options.fit).to_dict(),
        "torch": torch.__version__,
        "box": explanation.box,
        "grid": explanation.grid,
        "tokens_before_patches": explanation.prefix,
        "label": explanation.labels[explanation.class_index(options.label)] if explanation.labels else None,
        "options": asdict(options),
        "predictions": explanation.decided(5)[-1] if explanation.labels else [],
        "familiarity": explanation.familiarity,
        "after_each_layer": explanation.decided(3) if explanation.labels else [],
        "arrays": {name: {"shape": list(array.shape), "what": SOURCES[name]} for name, array in arrays.items()},
        "left_out": left_out,
        "colours_from_to": {
            name: [found.min().item(), found.max().item()] for name, found in _final_maps(arrays, options.heads).items()
        },
        "curves": curves,
    }
    (folder / "maps.json").write_text(json.dumps(made, indent=2, ensure_ascii=False) + "\n", encoding="utf-8")
    return made


def every_array(explanation: Explanation, options: Options) -> tuple[dict[str, Tensor], dict[str, str]]:
    """Every array that the checkpoint can give, and for the others the sentence that says why not."""
    e, heads = explanation, range(explanation.attention.shape[1])
    makers: dict[str, Callable[[], Tensor]] = {
        **{name: partial(_array, e, METHODS[name], options) for name in options.methods},
        "class_attention_elsewhere": lambda: torch.stack(
            [torch.stack(list(e.class_attention_elsewhere(head).values()), dim=-1) for head in heads], dim=1
        ),  # L, H, tokens before the patches
        "lens": e.logit_lens,
        "attention_distance": e.attention_distance,
        "entropy": e.entropy,
        "norms": lambda: e.outliers()[0],
        "outliers": lambda: e.outliers()[1],
    }
    if (patch := options.patch) is not None:
        makers["looks_at"] = lambda: e.looks_at(patch, options.heads)
        makers["looked_at_by"] = lambda: e.looked_at_by(patch, options.heads)
    if (other := options.against) is not None:
        makers["difference"] = lambda: e.difference(e.class_index(options.label), other, options.start)
    arrays, left_out = {}, {}
    for name, make in makers.items():
        try:
            arrays[name] = make()
        except UnsupportedError as error:
            left_out[name] = str(error)
    return arrays, left_out


def _array(explanation: Explanation, method: Method, options: Options) -> Tensor:
    settings = Settings(options.discard, options.start)
    if method.of_token:  # L, H, R, C
        heads = range(explanation.attention.shape[1])
        return torch.stack([method.map(explanation, head, settings) for head in heads], dim=1)
    column = options.heads if method.columns == "heads" else options.label
    return (method.last if method.last_layer else method.map)(explanation, column, settings)


def _without_outliers(arrays: dict[str, Tensor]) -> dict[str, Tensor]:
    """The maps without the patches flagged in their layer, those of the whole model without the last layer's."""
    flagged = arrays["outliers"]  # L, R, C
    found = {name: arrays[name] for name in (*METHODS, "difference", "looks_at", "looked_at_by") if name in arrays}
    for name, values in found.items():
        if values.ndim == 4:  # L, H, R, C
            found[name] = maps.leave_out(values, flagged[:, None])
        else:  # rollout may start late
            found[name] = maps.leave_out(values, flagged[-len(values) :] if values.ndim == 3 else flagged[-1])
    return found


def _pictures(
    photo: Image.Image, explanation: Explanation, arrays: dict[str, Tensor], layer: int, options: Options
) -> dict[str, Image.Image]:
    box = explanation.box

    def sheet(found: Tensor, titles: list[str]) -> Image.Image:
        return drawing.sheet(photo, found, titles, box, options.shared, smooth=options.smooth, percent=True)

    by_layer = [f"layer {number + 1}" for number in range(len(explanation.attention))]  # people count from 1
    pictures = {"patches": drawing.patch_grid(photo, box, explanation.grid)}
    if "class_attention" in arrays:
        by_head = arrays["class_attention"]  # L, H, R, C
        pictures["layers"] = sheet(maps.fuse_heads(by_head, options.heads), by_layer)
        heads = range(by_head.shape[1])
        pictures["heads"] = sheet(by_head[layer], [f"{by_layer[layer]}, head {number + 1}" for number in heads])
    for name in ("looks_at", "looked_at_by"):
        if name in arrays:
            pictures[name] = sheet(arrays[name], by_layer)
    if "rollout" in arrays:
        pictures["rollout_layers"] = sheet(arrays["rollout"], [f"after {name}" for name in by_layer[options.start :]])
    pictures["norms"] = drawing.sheet(photo, arrays["norms"], by_layer, box, options.shared, smooth=options.smooth)

    final = _final_maps(arrays, options.heads)
    for name, found in final.items():
        pictures[name] = drawing.overlay(photo, found, box, smooth=options.smooth)
    titles = [METHODS[name].title for name in final]  # their units differ, so each has its own scale
    if final:
        pictures["methods"] = drawing.sheet(photo, [*final.values()], titles, box, shared=False, smooth=options.smooth)
    if "difference" in arrays:
        names = [explanation.labels[explanation.class_index(label)] for label in (options.label, options.against)]
        title = f"{names[0]} (red) against {names[1]} (blue)"
        pictures["difference"] = drawing.sheet(
            photo, [arrays["difference"]], [title], box, smooth=options.smooth, signed=True
        )
    return pictures | _plots(explanation, arrays)


def _plots(explanation: Explanation, arrays: dict[str, Tensor]) -> dict[str, Image.Image]:
    distances, entropies = arrays["attention_distance"], arrays["entropy"]  # L, H
    layers = list(range(1, len(distances) + 1))
    of_heads = [number for number in layers for _ in range(distances.shape[1])]
    far, wide, spread = distances.flatten().tolist(), "mean distance in pixels", "entropy in bits"
    plots = {
        "attention_distance": drawing.scatter(of_heads, far, of_heads, "layer", wide, "How far each head looks"),
        "heads_by_distance_and_entropy": drawing.scatter(
            far, entropies.flatten().tolist(), of_heads, wide, spread, "How far and how widely each head looks"
        ),
    }
    if "lens" in arrays:
        best = explanation.probabilities.topk(min(3, len(explanation.labels))).indices.tolist()
        series = {explanation.labels[index]: arrays["lens"][:, index].tolist() for index in best}
        plots["lens"] = drawing.curves(series, layers, "When does it decide?", "after layer", "probability")
    return plots


def write_model(classifier: Classifier, folder: Path, pictures: bool = True) -> None:
    """What the model has learnt of places and patches, whatever the photo: the paper's Figure 7, left and middle."""
    folder.mkdir(parents=True, exist_ok=True)
    arrays = {"position_similarity": classifier.position_similarity()}
    if classifier.model.config.stem is None:
        arrays["filters"] = classifier.filter_components()
    if pictures:
        drawing.similarity(arrays["position_similarity"]).save(folder / "position_similarity.png")
        if "filters" in arrays:
            drawing.grid_of_tiles(arrays["filters"]).save(folder / "filters.png")
    save_arrays(folder / "model.npz", arrays)


def save_arrays(file: Path | BinaryIO, arrays: dict[str, Tensor]) -> None:
    """As an .npz, which is read with `numpy.load`."""
    np.savez_compressed(file, **{name: array.cpu().numpy() for name, array in arrays.items()})  # type: ignore[arg-type]


def _final_maps(arrays: dict[str, Tensor], heads: Heads) -> dict[str, Tensor]:
    """One map (R, C) for each method: the last layer's where a method has several."""
    final = {name: arrays[name] for name in METHODS if name in arrays}
    fused = {name: maps.fuse_heads(found, heads) if found.ndim == 4 else found for name, found in final.items()}
    return {name: found[-1] if found.ndim == 3 else found for name, found in fused.items()}


def _curves(
    classifier: Classifier, photo: Image.Image, explanation: Explanation, arrays: dict[str, Tensor], options: Options
) -> dict[str, Any]:
    image, index = classifier.image(photo, options.size, options.fit), explanation.class_index(options.label)
    curves: dict[str, Any] = {}
    for name, found in {**_final_maps(arrays, options.heads), "random": random_map(explanation.grid, seed=0)}.items():
        curves[name] = {}
        for kind, measure in (("deletion", deletion), ("insertion", insertion)):
            curve = measure(classifier.model, image, found.to(image.device), index)
            curves[name][kind] = {
                "area": float(curve.area),
                "shares": [float(share) for share in curve.shares],
                "probabilities": [float(probability) for probability in curve.probabilities],
            }
    return curves
