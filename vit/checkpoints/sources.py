"""What names a checkpoint: one that comes with the package, a folder, a file of weights, or a Hub id."""

from __future__ import annotations

import re
from pathlib import Path

from ..config import VARIANTS
from .errors import CheckpointError

# Names of the file that holds the weights, the first that exists counts.
WEIGHTS = ("model.safetensors", "model.safetensors.index.json", "pytorch_model.bin")
PICKLES = (".bin", ".pt", ".pth")
# The checkpoints that come with the package, and need no network; a Space that shows one other model has none.
EMBEDDED = {folder.name: folder for folder in sorted((Path(__file__).parents[1] / "pretrained").glob("*"))}
DEFAULT = "everyday"


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
