"""Writing a checkpoint in the form of our own."""

from __future__ import annotations

import json
from pathlib import Path

import safetensors.torch

from ..classifier import Classifier
from .families.vit_explorer import MODEL_TYPE, TRAINING_FEATURES


def save(classifier: Classifier, folder: str | Path, half: bool = False) -> None:
    """Write a folder that `load` takes: model.safetensors (half its size in float16) and config.json."""
    folder = Path(folder)
    folder.mkdir(parents=True, exist_ok=True)
    state = {name: tensor.cpu().contiguous() for name, tensor in classifier.model.state_dict().items()}
    if half:
        state = {name: tensor.half() for name, tensor in state.items()}
    if classifier.training_features is not None:
        state |= {TRAINING_FEATURES + name: tensor for name, tensor in classifier.training_features.to_state().items()}
    # Not save_file, which makes a file that its owner alone can read.
    (folder / "model.safetensors").write_bytes(safetensors.torch.save(state, metadata={"format": "pt"}))
    config = {
        "model_type": MODEL_TYPE,
        "architecture": classifier.model.config.to_dict(),
        "labels": classifier.labels,
        "preprocessing": classifier.preprocessing.to_dict(),
    }
    (folder / "config.json").write_text(json.dumps(config, indent=2, ensure_ascii=False) + "\n", encoding="utf-8")
