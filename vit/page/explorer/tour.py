"""What the mode "How it works" gets: figures of a photo and its model, and the trace of a patch in a layer and head."""

from __future__ import annotations

import inspect
from pathlib import Path
from typing import Any

import torch
from PIL import Image
from torch import Tensor

from ...classifier import Classifier
from ...explain.explanation import Explanation
from ...explain.trace import embedded, trace
from .packing import best, file

LISTED = 4  # tokens beside the patch itself that are written out, those it looks at most
CHANNELS = 6  # feature maps
NEURONS = 6


@torch.no_grad()
def pack_figures(classifier: Classifier, explanation: Explanation) -> bytes:
    """What does not depend on a patch: the filters, the head's terms, how far heads look, and `vit/model.py` itself."""
    model = classifier.model
    z = explanation.tokens[-1:]
    tensors = {
        "distance": explanation.attention_distance(),  # L, H
        "norms": explanation.outliers()[0].flatten(1),  # L, N
        "pooled": model.pool(z)[0],  # what the head reads
    }
    if model.config.stem is None:
        tensors["filters"] = (255 * classifier.filter_components()).round().to(torch.uint8)  # count, 3, P, P
    norms = tensors["norms"]
    about: dict[str, Any] = {
        "patch": int(evidence(explanation).argmax()),
        "source": Path(inspect.getfile(type(model))).read_text(encoding="utf-8"),
        "lengths": list(zip(norms.median(dim=1).values.tolist(), norms.amax(dim=1).tolist())),  # of patches, by layer
    }
    if explanation.labels:
        logits, chosen = model.classify(z)[0].double(), best(explanation)
        terms = logits.exp()
        about |= {  # the predictions' in their order, and what the other classes are of softmax's sum
            "logits": logits[chosen].tolist(),
            "terms": terms[chosen].tolist(),
            "others": (terms.sum() - terms[chosen].sum()).item(),
            "others_share": 1 - explanation.probabilities[chosen].sum().item(),
            "total": terms.sum().item(),
        }
    return file(tensors, about)


def pack_trace(classifier: Classifier, picture: Image.Image, layer: int, head: int, patch: int) -> bytes:
    """A patch from its pixels to what leaves a layer; of keys and values those of the tokens that are written out."""
    image = classifier.image(picture)
    token = classifier.model.config.prefix_tokens + patch
    start, found = embedded(classifier.model, image, patch), trace(classifier.model, image, layer, head, token)
    strongest = found.attention.argsort(descending=True, stable=True).tolist()
    listed = [*[other for other in strongest if other != token][:LISTED], token]
    channels = start.embedding.abs().topk(min(CHANNELS, len(start.embedding))).indices
    neurons = found.written.topk(min(NEURONS, len(found.written))).indices
    P, columns = classifier.model.config.patch_size, image.shape[-1] // classifier.model.config.patch_size
    row, column = divmod(patch, columns)
    seen = classifier.preprocessing.view(picture).crop((column * P, row * P, (column + 1) * P, (row + 1) * P))
    tensors = {
        "seen": torch.frombuffer(bytearray(seen.tobytes()), dtype=torch.uint8).view(P, P, 3),
        "pixels": start.pixels,
        "embedding": start.embedding,
        "position": start.position,
        "start": start.embedding + start.position,
        "similarity": start.similarity.flatten(),
        "features": start.features[channels].flatten(1),
        "keys": found.keys[listed],
        "values": found.values[listed],
        "activations": found.neurons[neurons],
        "written": found.written[neurons],
        "active": (found.neurons > 0).float().mean(),
    }
    for name in (
        *("before", "normed", "query", "products", "scores", "terms", "attention", "weighted"),
        *("msa", "between", "mlp_normed", "mlp", "after"),
    ):
        tensors[name] = getattr(found, name)
    share = found.attention[listed]
    about = {
        "layer": layer,
        "head": head,
        "patch": patch,
        "listed": listed,
        "channels": channels.tolist(),
        "neurons": neurons.tolist(),
        "total": found.terms.sum().item(),
        "others": {  # than those that are written out
            "term": (found.terms.sum() - found.terms[listed].sum()).item(),
            "share": 1 - share.sum().item(),
            "values": (found.weighted - share @ found.values[listed]).tolist(),
        },
        "lengths": {name: getattr(found, name).norm().item() for name in ("before", "msa", "between", "mlp", "after")},
        "turned": found.turned,
    }
    return file(
        {name: tensor.float() if tensor.is_floating_point() else tensor for name, tensor in tensors.items()}, about
    )


def evidence(explanation: Explanation) -> Tensor:
    """What counts most by the model's own account (R, C): relevance for its answer; rollout where it names nothing."""
    found = explanation.relevance() if explanation.labels else explanation.rollout()[-1]
    return found.masked_fill(explanation.outliers()[1][-1], 0.0)
