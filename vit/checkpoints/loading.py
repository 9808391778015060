"""Loading: whatever the weights come from and are called there, a `Classifier` comes out."""

from __future__ import annotations

import re
from pathlib import Path

import torch
from tqdm import tqdm

from ..classifier import Classifier
from ..familiarity import TrainingFeatures
from ..hub.download import fetch
from ..model import ViT
from ..precision import check
from .errors import CheckpointError, NotAPlainViT
from .families import FAMILIES
from .families.vit_explorer import TRAINING_FEATURES
from .family import Description, Files, State
from .files import read_json, read_tensors
from .refusals import refuse_others
from .renaming import place_tokens, rename
from .sources import DEFAULT, WEIGHTS, find


def load(
    source: str | Path = DEFAULT,
    revision: str | None = None,
    token: str | None = None,
    progress: type[tqdm] | None = None,
    patience: float | None = None,
    precision: str = "float32",
) -> Classifier:
    """The classifier that comes with the package, in a folder, in a file of weights, or on the Hugging Face Hub.

    `source` is "everyday", "foodvision-101", "foodvision-mini", a path, or a Hub id ("google/vit-base-patch16-224").
    `revision` (branch, tag or commit) and `token` are for the Hub, which also knows you by `hf auth login`.
    `progress` is the class of the bar that shows a download, tqdm by default. Where the Hub says nothing at all within
    `patience` seconds, what its cache has is taken; by default its client waits as long as it does.
    `precision` is that of `predict`, of "float32", "bfloat16", "int8" and "auto", the fastest here that says the same.
    """
    check(precision)
    weights = find(source) or fetch(str(source), WEIGHTS, revision, token, progress, patience)
    try:
        model, described, features = _read(weights)
    except (CheckpointError, NotAPlainViT) as error:
        text = str(error)
        raise CheckpointError(text if text.startswith(Path(source).name) else f"{source}: {text}") from error.__cause__
    return Classifier(model.eval(), described.labels, described.preprocessing, str(source), features, precision)


def _read(weights: Path) -> tuple[ViT, Description, TrainingFeatures | None]:
    """Weights and what lies beside them, turned into our shape; every parameter is accounted for."""
    config = read_json(weights.with_name("config.json"))
    processor = read_json(weights.with_name("preprocessor_config.json"))
    refuse_others((), config, FAMILIES)
    state = read_tensors(weights)
    beside = {name: state.pop(name) for name in list(state) if name.startswith(TRAINING_FEATURES)}
    refuse_others(state, {}, FAMILIES)
    family = next((each for each in FAMILIES if any(re.fullmatch(each.patch_projection, name) for name in state)), None)
    if family is None:
        raise NotAPlainViT("None of its parameters is a ViT's patch projection under a name that is known here.")

    files = Files(weights.name, tuple(state), config, processor)
    state = rename(state, family)
    try:
        described = family.describe(state, files)
    except NotAPlainViT:
        raise
    except (KeyError, TypeError, ValueError, AttributeError) as error:
        reason = f"config.json lacks {error}." if isinstance(error, KeyError) else error
        raise CheckpointError(f"What the checkpoint says of itself cannot be built: {reason}") from error
    state = place_tokens(state, described.config)
    with torch.device("meta"):  # the shapes alone: the file brings the numbers
        model = ViT(described.config)
    _account(state, model)
    model.load_state_dict({name: tensor.float() for name, tensor in state.items()}, assign=True)
    return model, described, _training_features(beside, model)


def _training_features(state: State, model: ViT) -> TrainingFeatures | None:
    if not state:
        return None
    try:
        features = TrainingFeatures(
            **{name.removeprefix(TRAINING_FEATURES): tensor.float() for name, tensor in state.items()}
        )
    except TypeError:
        features = None
    if features is None or not features.fits(model.config.head_width):
        raise CheckpointError(f"Its {TRAINING_FEATURES}… are of another model: save the checkpoint again.")
    return features


def _account(state: State, model: ViT) -> None:
    """Raise an error that lists what is missing, left over or of another shape, unless nothing is."""
    expected = {name: tuple(tensor.shape) for name, tensor in model.state_dict().items()}
    found = {name: tuple(tensor.shape) for name, tensor in state.items()}
    problems = {
        "missing": [f"{name} {shape}" for name, shape in expected.items() if name not in found],
        "left over": [f"{name} {shape}" for name, shape in found.items() if name not in expected],
        "of another shape": [
            f"{name} {found[name]} instead of {shape}"
            for name, shape in expected.items()
            if found.get(name, shape) != shape
        ],
    }
    listed = "; ".join(f"{what}: {', '.join(names)}" for what, names in problems.items() if names)
    if listed:
        raise CheckpointError(f"The parameters do not fit a {model.config.name}. {listed[0].upper()}{listed[1:]}.")
