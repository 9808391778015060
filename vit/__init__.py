"""A Vision Transformer written from the paper, with the checkpoints people use and a view into its attention."""

from .checkpoints import CheckpointError, load, save
from .classifier import Classifier
from .config import ViTConfig
from .explanation import Explanation
from .hub import HubError
from .images import Preprocessing
from .model import Recording, ViT
from .photo_files import PhotoError
from .refusals import NotAPlainViT

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
