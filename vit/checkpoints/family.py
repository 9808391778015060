"""What a family of checkpoints is: how a library names the parameters of a ViT, and what its files say of one."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

from torch import Tensor

from ..config import ViTConfig
from ..photos.preprocessing import Preprocessing

State = dict[str, Tensor]
Json = dict[str, Any]
END = r"(weight|bias)"  # of most parameters' names


@dataclass(frozen=True)
class Files:
    """What lies beside the weights, empty where there is nothing, and how the weights' file names things.

    The file's own name is the only hint at the preprocessing of a bare file.
    """

    name: str
    parameters: tuple[str, ...]  # as the file calls them
    config: Json = field(default_factory=dict)  # config.json
    processor: Json = field(default_factory=dict)  # preprocessor_config.json


@dataclass(frozen=True)
class Description:
    """What a checkpoint says of itself, in our words: all that a `Classifier` is made of but the weights."""

    config: ViTConfig
    labels: list[str]
    preprocessing: Preprocessing

    def __post_init__(self) -> None:
        if len(self.labels) != self.config.classes:
            raise ValueError(f"it has {len(self.labels)} labels for {self.config.classes} classes.")
        if self.config.channels != 3:
            raise ValueError(f"it takes images of {self.config.channels} channels, and photos have three.")
        if self.preprocessing.image_size is None:
            raise ValueError("its preprocessing neither crops nor squashes, so that patches would not divide a photo.")
        self.config.check_image(*self.preprocessing.image_size)


@dataclass(frozen=True)
class Family:
    """How one library writes a ViT down. A parameter that no rule knows keeps its name and is reported as left over."""

    patch_projection: str  # a pattern that finds this library's patch projection, and nobody else's
    renames: dict[str, str]  # pattern → a name in `ViT.state_dict()`; the first that matches the whole name counts
    describe: Callable[[State, Files], Description]  # of parameters under our names
    unused: tuple[str, ...] = ()  # patterns of parameters without effect on the model's output
    model_types: tuple[str, ...] = ()  # what `model_type` in config.json may be
    architectures: str = ""  # a pattern of what `architecture` in config.json may be
