"""Sink patches, and registers that take their place.

A few patches of many ViTs grow a norm tens of times the others' and draw the attention of all tokens, whatever they
show: sinks. Register tokens take that over where a model is trained with them (Darcet et al., arXiv 2309.16588). Two
ways to add registers to a checkpoint that has none; each gives a new model and leaves the old one as it is:

- `test_time_registers` (Jiang et al., arXiv 2506.08010): the few MLP neurons that make the sinks write to added tokens
  instead. Nothing is trained.
- `place_registers`: a start for training. Where sinks are made by place, registers take over the position of each.
"""

from __future__ import annotations

from collections.abc import Iterable
from contextlib import nullcontext
from dataclasses import dataclass, replace
from typing import cast

import torch
import torch.nn.functional as F
from torch import Tensor

from .config import ViTConfig
from .model import Recording, TransformerEncoderBlock, ViT
from .turn import Turn

SINK = 4.0  # a sink's norm is at least so many times the median of its photo's patches
FEW = 0.2  # sinks a photo that are as good as none
ADDED = 4  # registers
MOST_NEURONS = 8  # that are tried: more do harm


def find_sinks(model: ViT, images: Tensor) -> Tensor:
    """Which patches are sinks after any layer (B, N)."""
    return is_sink(model.record(images, layers=()).tokens, model.config.prefix_tokens)


def is_sink(tokens: Iterable[Tensor], prefix_tokens: int) -> Tensor:
    """Of the tokens after each layer (each B, T, D), which patches are sinks after any of them (B, N)."""
    return torch.stack([norm_ratios(z, prefix_tokens) > SINK for z in tokens]).any(dim=0)


def norm_ratios(tokens: Tensor, prefix_tokens: int) -> Tensor:
    """The norm of each patch's token (B, T, D) as a multiple of its photo's median (B, N)."""
    norms = tokens[:, prefix_tokens:].norm(dim=-1)
    return norms / norms.median(dim=1, keepdim=True).values


@dataclass(frozen=True)
class TestTimeRegisters:
    """What test-time registers do to a model, measured on the photos that they were found with."""

    model: ViT  # the plain one itself where there is nothing to mend
    neurons: tuple[tuple[int, int], ...]  # (layer, neuron), those that pull most first
    sinks: tuple[float, float]  # a photo, before and after
    look: tuple[float, float]  # the share of the last layer's look at the sinks' places, before and after
    change: float  # of the probabilities: the mean share that moved from one class to another

    def __str__(self) -> str:
        before, after = self.sinks
        if self.neurons:
            named = ", ".join(f"layer {layer + 1} neuron {neuron}" for layer, neuron in self.neurons)
            what = "the probability" if self.model.config.classes else "the features' direction"
            return (
                f"Sinks a photo: {before:.1f}, with registers {after:.1f}; look at their places: {self.look[0]:.1%}, "
                f"with registers {self.look[1]:.1%}; {self.change:.1%} of {what} moved. Made by {named}."
            )
        if self.model.config.registers:
            return "This checkpoint has registers already: it is left as it is."
        if before <= FEW:
            return f"This checkpoint has no sinks ({before:.1f} a photo): it is left as it is."
        return f"The sinks of this checkpoint ({before:.1f} a photo) are not made by a few neurons: it is left alone."


@torch.no_grad()
def test_time_registers(model: ViT, images: Tensor, turn: Turn = nullcontext) -> TestTimeRegisters:
    """The model with registers that its sinks' neurons write to, found from a handful of photos (B, 3, H, W).

    Of the neurons that pull most at sinks the first few are taken. How many is chosen by what it costs: the share of
    the probabilities that moves, and the share of the look that stays at the sinks' places. Each photo's pass is run in
    a `turn` of its own.
    """
    config = model.config
    plain = _record(model, images, turn)
    sinks = is_sink(plain.tokens, config.prefix_tokens)
    before, look = sinks.sum().item() / len(images), _look(plain, config, sinks)
    nothing = TestTimeRegisters(model, (), (before, before), (look, look), 0.0)
    if config.registers or before <= FEW:
        return nothing
    ranked = _by_pull(model, images, plain.tokens, sinks, turn)
    found = []
    for count in range(1, MOST_NEURONS + 1):
        given = add_register_neurons(model, ranked[:count])
        recording = _record(given, images, turn)
        after = is_sink(recording.tokens, given.config.prefix_tokens).sum().item() / len(images)
        change = (_moved if config.classes else _turned)(plain.logits, recording.logits)
        left = _look(recording, given.config, sinks)
        found.append(TestTimeRegisters(given, ranked[:count], (before, after), (look, left), change))
    gone = [one for one in found if one.sinks[1] <= FEW]
    return min(gone, key=lambda one: one.change + one.look[1], default=nothing)


def add_register_neurons(model: ViT, neurons: tuple[tuple[int, int], ...], registers: int = ADDED) -> ViT:
    """The same model with registers, zero at first and without a position, that these neurons write to.

    It shares the weights' memory: to train it, copy it first.
    """
    config = replace(model.config, registers=registers, register_neurons=neurons)
    with torch.device("meta"):
        given = ViT(config)
    weights = model.position_embedding
    zero = torch.zeros(1, registers, config.width, dtype=weights.dtype, device=weights.device)
    given.load_state_dict({**model.state_dict(), "register_tokens": zero}, assign=True)
    return given.train(model.training)


def without_registers(model: ViT) -> ViT:
    """The same model with its registers taken out of the sequence: what it did before, where they were added to it.

    It shares the weights' memory.
    """
    with torch.device("meta"):
        given = ViT(replace(model.config, registers=0, register_neurons=()))
    state = {name: value for name, value in model.state_dict().items() if name != "register_tokens"}
    given.load_state_dict(state, assign=True)
    return given.train(model.training)


def _record(model: ViT, images: Tensor, turn: Turn) -> Recording:
    """The passes of all photos, with the last layer's attention."""
    passes = []
    for image in images:
        with turn():
            passes.append(model.record(image[None], layers=[-1]))
    attention, tokens = zip(*(one.attention for one in passes)), zip(*(one.tokens for one in passes))
    logits = torch.cat([one.logits for one in passes])
    return Recording(logits, passes[0].layers, tuple(map(torch.cat, attention)), tuple(map(torch.cat, tokens)))


def _by_pull(
    model: ViT, images: Tensor, tokens: tuple[Tensor, ...], sinks: Tensor, turn: Turn
) -> tuple[tuple[int, int], ...]:
    """MLP neurons (layer, neuron), those first that write most to sinks and not to other patches.

    Asked are the layers up to the one after which most sinks are there.
    """
    prefix_tokens = model.config.prefix_tokens
    there = [((norm_ratios(z, prefix_tokens) > SINK) & sinks).sum().item() for z in tokens]
    onset = next(layer for layer, count in enumerate(there) if 2 * count >= max(there))
    pulls: list[tuple[float, tuple[int, int]]] = []
    for layer, z in enumerate([model.embed(images), *tokens[:onset]]):
        block = cast(TransformerEncoderBlock, model.blocks[layer])
        with turn():
            z = z + block.attention_scale(block.attention(block.attention_norm(z)))  # Eq. 2
            activation = F.gelu(block.mlp.fc1(block.mlp_norm(z)))[:, prefix_tokens:]  # B, N, MLP width
        written = block.mlp_scale(block.mlp.fc2.weight.T).norm(dim=1)  # MLP width
        pull = (activation[sinks].mean(dim=0) - activation[~sinks].mean(dim=0)) * written
        best = pull.topk(min(MOST_NEURONS, len(pull)))
        pulls += [(value, (layer, neuron)) for value, neuron in zip(best.values.tolist(), best.indices.tolist())]
    return tuple(place for _, place in sorted(pulls, reverse=True)[:MOST_NEURONS])


def _look(recording: Recording, config: ViTConfig, sinks: Tensor) -> float:
    """The share of the last layer's look that goes to sinks (B, N): the class token's, or else all tokens'."""
    attention = recording.attention[-1].mean(dim=1)[..., config.prefix_tokens :]  # B, T, N
    rows = attention[:, 0] if config.class_token else attention.mean(dim=1)
    return (rows * sinks).sum(dim=-1).mean().item()


def _moved(before: Tensor, after: Tensor) -> float:
    """The share of probability that moved, the mean of the photos: 0 for the same answers, 1 for quite others."""
    return ((before.softmax(dim=1) - after.softmax(dim=1)).abs().sum(dim=1) / 2).mean().item()


def _turned(before: Tensor, after: Tensor) -> float:
    """How far features turned, the mean of the photos: 0 for the same direction, 1 for a right angle."""
    return (1 - F.cosine_similarity(before, after, dim=1)).mean().item()


@dataclass(frozen=True)
class Placed:
    """A model with registers, and how many of them took over the place of a sink."""

    model: ViT
    from_sinks: int


@torch.no_grad()
def place_registers(model: ViT, batches: Iterable[Tensor], count: int) -> Placed:
    """The same model with `count` registers that start from its sinks, as far as those are made by place.

    A place counts where at least half of the photos have a sink. Its register starts as its position embedding and the
    mean content of its patches, and the place itself gets the mean of its neighbours' positions: what made the sink is
    moved, and no weight is trained. Registers for which no place is left start at random.
    """
    config = model.config
    rows, columns = config.grid
    photos, sinks, content = 0, torch.zeros(rows * columns), torch.zeros(rows * columns, config.width)
    for images in batches:
        found = model.record(images, layers=()).tokens
        sinks += is_sink(found, config.prefix_tokens).sum(dim=0).cpu()
        content += model.patch_embedding(images).sum(dim=0).cpu()
        photos += len(images)
    often = sinks.argsort(descending=True, stable=True)[:count]
    places = sorted(int(place) for place in often if 2 * sinks[place] >= max(1, photos))  # one order for any model

    given = ViT(replace(config, registers=count)).to(model.position_embedding.device)
    assert given.register_tokens is not None
    state = {name: weights.clone() for name, weights in model.state_dict().items()}
    positions = state["position_embedding"][0, config.placed_tokens :].view(rows, columns, -1)
    before, registers = positions.clone(), given.register_tokens[0].clone()
    for register, place in enumerate(places):
        row, column = divmod(place, columns)
        registers[register] = before[row, column] + (content[place] / photos).to(before.device)
        around = [(row - 1, column), (row + 1, column), (row, column - 1), (row, column + 1)]
        inside = [(r, c) for r, c in around if 0 <= r < rows and 0 <= c < columns and r * columns + c not in places]
        if inside:
            positions[row, column] = torch.stack([before[r, c] for r, c in inside]).mean(dim=0)
    given.load_state_dict({**state, "register_tokens": registers[None]})
    return Placed(given.train(model.training), len(places))


def sink_penalty(tokens: Iterable[Tensor], prefix_tokens: int, margin: float = 1.5) -> Tensor:
    """How far patches (B, T, D after each layer) exceed `margin` times the median norm: the mean of the squares."""
    return torch.stack([F.relu(norm_ratios(z.float(), prefix_tokens) - margin).square().mean() for z in tokens]).mean()
