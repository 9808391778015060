"""Reading what a checkpoint is made of: tensors by name, and JSON."""

from __future__ import annotations

import json
import pickle
from pathlib import Path

import safetensors.torch
import torch

from ..hub.download import forget_if_damaged, parts
from ..hub.errors import first_line
from .errors import CheckpointError
from .family import Json, State
from .sources import PICKLES


def read_json(path: Path) -> Json:
    """The object in the file without what is null, empty where there is no such file."""
    try:
        content = json.loads(path.read_text(encoding="utf-8"))
    except FileNotFoundError:
        return {}
    except (ValueError, OSError) as error:
        raise CheckpointError(f"{path.name} cannot be read ({error}): fetch or write it again.") from error
    if not isinstance(content, dict):
        raise CheckpointError(f"{path.name} must hold a JSON object.")
    return {key: value for key, value in content.items() if value is not None}


def read_tensors(weights: Path) -> State:
    """The tensors in the file, or in all the parts that an index names."""
    if weights.name.endswith(".index.json"):
        try:
            names = parts(weights)
        except ValueError as error:
            raise CheckpointError(str(error)) from error
        return {name: tensor for part in names for name, tensor in read_tensors(weights.with_name(part)).items()}
    try:
        if weights.suffix in PICKLES:
            content = torch.load(weights, map_location="cpu", weights_only=True)
        else:
            content = safetensors.torch.load_file(weights)
    except FileNotFoundError:
        raise CheckpointError(f"{weights.name} is missing: its index names it.") from None
    except Exception as error:  # a damaged file makes both readers raise anything
        damaged = forget_if_damaged(weights)
        if isinstance(error, pickle.UnpicklingError) and not damaged:
            raise CheckpointError(
                f"{weights.name} holds more than plain tensors, and opening it could run code: "
                "ask for a safetensors file."
            ) from error
        reason = f"{weights.name} is not a file of weights, or is damaged ({first_line(error)})."
        raise CheckpointError(reason) from error
    for wrapper in ("model", "state_dict"):
        if isinstance(content, dict) and isinstance(content.get(wrapper), dict):
            content = content[wrapper]
    if not isinstance(content, dict) or not all(isinstance(tensor, torch.Tensor) for tensor in content.values()):
        raise CheckpointError(f"{weights.name} holds something other than a model's parameters.")
    return content
