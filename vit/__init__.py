"""A Vision Transformer written from the paper, with the checkpoints people use and a view into its attention."""

from .checkpoints import CheckpointError, NotAPlainViT, load, save
from .classifier import Classifier
from .config import ViTConfig
from .explain.explanation import Explanation
from .hub import HubError
from .model import Recording, ViT
from .photos.files import PhotoError
from .photos.preprocessing import Preprocessing

__all__ = [
    "CheckpointError",
    "Classifier",
    "Explanation",
    "HubError",
    "NotAPlainViT",
    "PhotoError",
    "Preprocessing",
    "Recording",
    "ViT",
    "ViTConfig",
    "load",
    "save",
]
