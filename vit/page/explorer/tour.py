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
from ...explain.trace import Trace, embedded, trace
from .packing import best, file

LISTED = 4  # patches beside the followed one that are written out, those it looks at most
TERMS = 3  # of a long sum that are written out
CHANNELS = 6  # feature maps
NEURONS = 6


@torch.no_grad()
def pack_figures(classifier: Classifier, explanation: Explanation, before: Explanation | None = None) -> bytes:
    """What does not depend on a patch: the filters, the head's terms, how far heads look, and `vit/model.py` itself.

    `before` is what `before_registers` gives.
    """
    model = classifier.model
    z = explanation.tokens[-1:]
    distance = explanation.attention_distance()  # L, H
    tensors = {
        "distance": distance,
        "norms": explanation.outliers()[0].flatten(1),  # L, N
        "pooled": model.pool(z)[0],  # what the head reads
    }
    if before is not None:
        tensors["norms_before"] = before.outliers()[0].flatten(1)
    if model.config.stem is None:
        tensors["filters"] = (255 * classifier.filter_components()).round().to(torch.uint8)  # count, 3, P, P
    about: dict[str, Any] = {
        "patch": int(evidence(explanation).argmax()),
        "source": Path(inspect.getfile(type(model))).read_text(encoding="utf-8"),
        "lengths": _lengths(explanation),
        "lengths_before": None if before is None else _lengths(before),
        "nearest": distance.amin(dim=1).tolist(),
        "farthest": distance.amax(dim=1).tolist(),
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
            "logit": _logit(classifier, tensors["pooled"], chosen[0]),
        }
    return file(tensors, about)


def before_registers(classifier: Classifier, picture: Image.Image) -> Explanation | None:
    """The photo seen by the same model without its registers, where it has any."""
    if not classifier.model.config.registers:
        return None
    return classifier.without_registers().explain(picture)


def _lengths(explanation: Explanation) -> list[dict[str, float]]:
    """Of the vectors after each layer: of the patch in the middle and the longest one, and of the registers' mean."""
    norms = explanation.outliers()[0].flatten(1)  # L, N
    found = [
        {"middle": middle, "longest": longest}
        for middle, longest in zip(norms.median(dim=1).values.tolist(), norms.amax(dim=1).tolist())
    ]
    registers = [place for place, name in enumerate(explanation.prefix) if name.startswith("register")]
    if registers:
        lengths = explanation.tokens[:, registers].norm(dim=-1).mean(dim=1)
        found = [{**row, "register": length} for row, length in zip(found, lengths.tolist())]
    return found


def _logit(classifier: Classifier, pooled: Tensor, index: int) -> dict[str, Any] | None:
    """The largest terms of a class's logit, what is read times the weights; None where two heads are averaged."""
    model = classifier.model
    if model.distillation_head is not None or not isinstance(model.head, torch.nn.Linear):
        return None
    products = pooled.double() * model.head.weight[index].double()
    numbers = products.abs().topk(min(TERMS, len(products))).indices
    return {
        "numbers": numbers.tolist(),
        "read": pooled[numbers].tolist(),
        "weights": model.head.weight[index][numbers].tolist(),
        "terms": products[numbers].tolist(),
        "count": len(products),
        "others": (products.sum() - products[numbers].sum()).item(),
        "bias": model.head.bias[index].item(),
    }


def pack_trace(classifier: Classifier, picture: Image.Image, layer: int, head: int, patch: int) -> bytes:
    """A patch from its pixels to what leaves a layer; of keys and values those of the tokens that are written out."""
    image = classifier.image(picture)
    prefix = classifier.model.config.prefix_tokens
    token = prefix + patch
    start, found = embedded(classifier.model, image, patch), trace(classifier.model, image, layer, head, token)
    strongest = (prefix + found.attention[prefix:].argsort(descending=True, stable=True)).tolist()
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
        "heads": found.heads[:, prefix:],
        "steps": found.steps[prefix:],
        "neuron": found.activations[prefix:, neurons[0]],  # the one that writes most, in every patch
        "activations": found.neurons[neurons],
        "written": found.written[neurons],
        "active": (found.neurons > 0).float().mean(),
    }
    for name in (
        *("before", "normed", "query", "products", "scores", "terms", "attention", "weighted"),
        *("msa", "between", "mlp_normed", "mlp", "after"),
    ):
        tensors[name] = getattr(found, name)
    products = found.query * found.keys[listed[0]]
    about = {
        "layer": layer,
        "head": head,
        "patch": patch,
        "listed": listed,
        "channels": channels.tolist(),
        "neurons": neurons.tolist(),
        "others": products[TERMS:].sum().item(),  # of the first listed
        "total": found.terms.sum().item(),
        "groups": _groups(classifier, found, listed),
        "lengths": {name: getattr(found, name).norm().item() for name in ("before", "msa", "between", "mlp", "after")},
        "turned": found.turned,
    }
    return file(
        {name: tensor.float() if tensor.is_floating_point() else tensor for name, tensor in tensors.items()}, about
    )


def _groups(classifier: Classifier, found: Trace, listed: list[int]) -> list[dict[str, Any]]:
    """What the tokens that are not written out one by one are together, of softmax's sum and of the values'."""
    config, T = classifier.model.config, len(found.attention)
    first = config.placed_tokens
    registers = range(first, config.prefix_tokens)
    groups = {
        "class token" if first == 1 else f"{first} class tokens": range(first),
        f"{len(registers)} registers": registers,
        "other patches": [token for token in range(config.prefix_tokens, T) if token not in listed],
    }
    return [
        {
            "name": name,
            "term": found.terms[list(tokens)].sum().item(),
            "share": found.attention[list(tokens)].sum().item(),
            "values": (found.attention[list(tokens)] @ found.values[list(tokens)])[:TERMS].tolist(),
        }
        for name, tokens in groups.items()
        if tokens
    ]


def evidence(explanation: Explanation) -> Tensor:
    """What counts most by the model's own account (R, C): relevance for its answer; rollout where it names nothing."""
    found = explanation.relevance() if explanation.labels else explanation.rollout()[-1]
    return found.masked_fill(explanation.outliers()[1][-1], 0.0)
