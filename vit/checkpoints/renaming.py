"""Other people's parameter names → ours, by a family's table."""

from __future__ import annotations

import re

import torch

from ..config import ViTConfig
from .family import Family, State


def rename(state: State, family: Family) -> State:
    """The file's parameters under our names, without the unused ones; q, k and v become one matrix."""
    renamed: State = {}
    for name, tensor in state.items():
        if any(re.fullmatch(pattern, name) for pattern in family.unused):
            continue
        ours = _our_name(name, family)
        renamed[name if ours in renamed else ours] = tensor
    return _join_qkv(renamed)


def _our_name(name: str, family: Family) -> str:
    for pattern, ours in family.renames.items():
        if match := re.fullmatch(pattern, name):
            return match.expand(ours)
    return name


def _join_qkv(state: State) -> State:
    for name in [name for name in state if ".attention.query." in name]:
        parts = [name.replace(".query.", f".{part}.") for part in ("query", "key", "value")]
        if all(part in state for part in parts) and len({state[part].shape[1:] for part in parts}) == 1:
            state[name.replace(".query.", ".qkv.")] = torch.cat([state.pop(part) for part in parts])
    return state


def place_tokens(state: State, config: ViTConfig) -> State:
    """Give every token before the patches the position it has in ours.

    In ours the class and the distillation token have a position embedding and registers have none. Where a file
    has none for the class token (DeiT III) it becomes zero; where it has one for registers, it is added to them.
    """
    rows, columns = config.grid
    positions = state.get("position_embedding")
    if positions is None or positions.ndim != 3:
        return state  # to be reported as missing, or of another shape
    extra = positions.shape[1] - rows * columns
    if extra == 0 and config.placed_tokens:
        zeros = positions.new_zeros(1, config.placed_tokens, positions.shape[2])
        state["position_embedding"] = torch.cat([zeros, positions], dim=1)
    elif config.registers and extra == config.prefix_tokens:
        placed, registers, patches = positions.split([config.placed_tokens, config.registers, rows * columns], dim=1)
        state["register_tokens"] = state["register_tokens"] + registers
        state["position_embedding"] = torch.cat([placed, patches], dim=1)
    return state
