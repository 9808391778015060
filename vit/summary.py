"""A model's layers with the shapes that go in and come out, and their parameters."""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import partial

import torch
from torch import Tensor, nn

from .config import ViTConfig
from .model import ViT


@dataclass(frozen=True)
class LayerRow:
    layer: str
    kind: str
    shape_in: tuple[int, ...] | None  # None for a parameter: nothing goes in
    shape_out: tuple[int, ...]
    parameters: int
    part: bool = False  # of the row above, which counts its parameters already


def rows(config: ViTConfig, batch: int = 1) -> list[LayerRow]:
    """One row for each parameter of the model itself, each layer, and each part of an encoder block."""
    with torch.device("meta"):  # shapes without numbers: the largest model costs nothing
        model = ViT(config).eval()
        images = torch.empty(batch, config.channels, *config.native_size)
    shapes: dict[str, tuple[tuple[int, ...], tuple[int, ...]]] = {}

    def watch(name: str, module: nn.Module, given: tuple[Tensor], result: Tensor | tuple[Tensor, None]) -> None:
        result = result[0] if isinstance(result, tuple) else result
        shapes[name] = tuple(given[0].shape), tuple(result.shape)

    named = {name: module for name, module in model.named_modules() if name and _shown(name, module)}
    for name, module in named.items():
        module.register_forward_hook(partial(watch, name))
    model(images)

    table = [
        LayerRow(name, "Parameter", None, tuple(parameter.shape), parameter.numel())
        for name, parameter in model.named_parameters(recurse=False)
    ]
    for name, module in named.items():
        count = sum(parameter.numel() for parameter in module.parameters())
        table.append(LayerRow(name, type(module).__name__, *shapes[name], count, part=name.count(".") > 1))
    return table


def _shown(name: str, module: nn.Module) -> bool:
    """The model's own layers, and for each encoder block its parts."""
    if isinstance(module, nn.ModuleList) or not any(True for _ in module.parameters()):
        return False
    return "." not in name or (name.startswith("blocks.") and name.count(".") <= 2)


def table(config: ViTConfig, batch: int = 1) -> str:
    """The rows as text, with a line on the model above and the sum of the parameters below."""
    found = rows(config, batch)
    height, width = config.native_size
    tokens = config.prefix_tokens + math.prod(config.grid)
    cells = [("layer", "kind", "in", "out", "parameters")]
    cells += [
        (
            ("  " if row.part else "") + (row.layer.split(".", 2)[2] if row.part else row.layer),
            row.kind,
            _text(row.shape_in),
            _text(row.shape_out),
            f"{row.parameters:,}",
        )
        for row in found
    ]
    cells.append(("total", "", "", "", f"{sum(row.parameters for row in found if not row.part):,}"))
    widths = [max(len(line[column]) for line in cells) for column in range(5)]
    lines = [
        "  ".join([*(cell.ljust(width) for cell, width in zip(line[:4], widths)), line[4].rjust(widths[4])])
        for line in cells
    ]
    head = (
        f"{config.name}: {height} × {width} pixels, {config.grid[0]} × {config.grid[1]} patches, {tokens} tokens, "
        f"{config.classes or 'no'} classes"
    )
    return "\n".join([head, "", *lines])


def _text(shape: tuple[int, ...] | None) -> str:
    return "" if shape is None else " × ".join(map(str, shape))
