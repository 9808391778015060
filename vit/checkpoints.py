"""Where weights come from: the package, a folder, a file, the Hugging Face Hub. Always a `Classifier` comes out."""

from __future__ import annotations

import json
import pickle
import re
from pathlib import Path

import safetensors.torch
import torch
from tqdm import tqdm

from . import hub
from .classifier import Classifier
from .config import VARIANTS
from .familiarity import TrainingFeatures
from .families import Checkpoint, Files, Json, describe
from .key_maps import State, key_map_of, place_tokens, rename
from .model import ViT
from .refusals import OUR_TYPE, NotAPlainViT, refuse_others

# Names of the file that holds the weights, the first that exists counts.
WEIGHTS = ("model.safetensors", "model.safetensors.index.json", "pytorch_model.bin")
PICKLES = (".bin", ".pt", ".pth")
# The checkpoints that come with the package, and need no network.
EMBEDDED = {folder.name: folder for folder in sorted((Path(__file__).parent / "pretrained").iterdir())}
DEFAULT = "foodvision-101"
TRAINING_FEATURES = "training_features."  # what `familiarity` needs lies among the weights under these names


class CheckpointError(ValueError):
    """A checkpoint that cannot be used, in a sentence that says why and what to do."""


def load(
    source: str | Path = DEFAULT,
    revision: str | None = None,
    token: str | None = None,
    progress: type[tqdm] | None = None,
) -> Classifier:
    """The classifier that comes with the package, in a folder, in a file of weights, or on the Hugging Face Hub.

    `source` is "foodvision-101" or "foodvision-mini", a path, or a Hub id such as "google/vit-base-patch16-224".
    `revision` (branch, tag or commit) and `token` are for the Hub, which also knows you by `hf auth login`.
    `progress` is the class of the bar that shows a download, tqdm by default.
    """
    weights = find(source) or hub.fetch(str(source), WEIGHTS, revision, token, progress)
    try:
        model, checkpoint, features = _read(weights)
    except (CheckpointError, NotAPlainViT) as error:
        text = str(error)
        raise CheckpointError(text if text.startswith(Path(source).name) else f"{source}: {text}") from error.__cause__
    return Classifier(model.eval(), checkpoint.labels, checkpoint.preprocessing, str(source), features)


def find(source: str | Path) -> Path | None:
    """The file of weights here that a source names; None where it is a Hub id."""
    path = EMBEDDED.get(str(source)) or Path(source).expanduser()
    if not str(source):
        raise CheckpointError("No model was named: give a folder, a file, or a Hub id.")
    if path.is_dir():
        return _weights_in(path)
    if path.is_file():
        return path
    if re.fullmatch(rf"({'|'.join(VARIANTS)})/\d+", str(source)):
        raise CheckpointError(f"{source} is an architecture without weights: load a folder, a file, or a Hub id.")
    if isinstance(source, Path) or not _may_be_hub_id(source):
        raise CheckpointError(f"There is no file or folder {str(source)!r}: check the path; a Hub id is owner/name.")
    return None


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
        "model_type": OUR_TYPE,
        "architecture": classifier.model.config.to_dict(),
        "labels": classifier.labels,
        "preprocessing": classifier.preprocessing.to_dict(),
    }
    (folder / "config.json").write_text(json.dumps(config, indent=2, ensure_ascii=False) + "\n", encoding="utf-8")


def _may_be_hub_id(source: str) -> bool:
    """Hub ids are "owner/name"; what ends like a file of weights is a path."""
    return re.fullmatch(r"[\w.-]+/[\w.-]+", source) is not None and not re.search(
        r"\.(safetensors|bin|pth?|json)$|^\.", source
    )


def _weights_in(folder: Path) -> Path:
    for name in WEIGHTS:
        if (folder / name).is_file():
            return folder / name
    files = sorted(file for file in folder.iterdir() if file.suffix in (".safetensors", *PICKLES))
    if len(files) == 1:
        return files[0]
    found = f"{len(files)} files of weights of other names" if files else "none"
    raise CheckpointError(f"The folder {str(folder)!r} should hold {WEIGHTS[0]}, but there is {found}.")


def _read(weights: Path) -> tuple[ViT, Checkpoint, TrainingFeatures | None]:
    """Weights and what lies beside them, turned into our shape; every parameter is accounted for."""
    files = Files(
        weights.name, _json(weights.with_name("config.json")), _json(weights.with_name("preprocessor_config.json"))
    )
    refuse_others((), files.config)
    state = _state(weights)
    beside = {name: state.pop(name) for name in list(state) if name.startswith(TRAINING_FEATURES)}
    refuse_others(state, {})
    key_map = key_map_of(state)
    if key_map is None:
        raise NotAPlainViT("None of its parameters is a ViT's patch projection under a name that is known here.")

    names = list(state)
    state = rename(state, key_map)
    try:
        checkpoint = describe(state, names, key_map, files)
    except NotAPlainViT:
        raise
    except (KeyError, TypeError, ValueError, AttributeError) as error:
        reason = f"config.json lacks {error}." if isinstance(error, KeyError) else error
        raise CheckpointError(f"What the checkpoint says of itself cannot be built: {reason}") from error
    state = place_tokens(state, checkpoint.config)
    with torch.device("meta"):  # the shapes alone: the file brings the numbers
        model = ViT(checkpoint.config)
    _account(state, model)
    model.load_state_dict({name: tensor.float() for name, tensor in state.items()}, assign=True)
    return model, checkpoint, _training_features(beside, model)


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


def _json(path: Path) -> Json:
    try:
        content = json.loads(path.read_text(encoding="utf-8"))
    except FileNotFoundError:
        return {}
    except (ValueError, OSError) as error:
        raise CheckpointError(f"{path.name} cannot be read ({error}): fetch or write it again.") from error
    if not isinstance(content, dict):
        raise CheckpointError(f"{path.name} must hold a JSON object.")
    return {key: value for key, value in content.items() if value is not None}


def _state(weights: Path) -> State:
    """The tensors in the file, or in all the parts that an index names."""
    if weights.name.endswith(".index.json"):
        try:
            parts = hub.parts(weights)
        except ValueError as error:
            raise CheckpointError(str(error)) from error
        return {name: tensor for part in parts for name, tensor in _state(weights.with_name(part)).items()}
    try:
        if weights.suffix in PICKLES:
            content = torch.load(weights, map_location="cpu", weights_only=True)
        else:
            content = safetensors.torch.load_file(weights)
    except FileNotFoundError:
        raise CheckpointError(f"{weights.name} is missing: its index names it.") from None
    except Exception as error:  # a damaged file makes both readers raise anything
        damaged = hub.forget_if_damaged(weights)
        if isinstance(error, pickle.UnpicklingError) and not damaged:
            raise CheckpointError(
                f"{weights.name} holds more than plain tensors, and opening it could run code: "
                "ask for a safetensors file."
            ) from error
        reason = f"{weights.name} is not a file of weights, or is damaged ({hub.first_line(error)})."
        raise CheckpointError(reason) from error
    for wrapper in ("model", "state_dict"):
        if isinstance(content, dict) and isinstance(content.get(wrapper), dict):
            content = content[wrapper]
    if not isinstance(content, dict) or not all(isinstance(tensor, torch.Tensor) for tensor in content.values()):
        raise CheckpointError(f"{weights.name} holds something other than a model's parameters.")
    return content
