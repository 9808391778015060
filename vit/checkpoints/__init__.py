"""Where weights come from and go to: the package, a folder, a file, the Hugging Face Hub."""

from .errors import CheckpointError, NotAPlainViT
from .loading import load
from .saving import save
from .sources import DEFAULT, EMBEDDED, WEIGHTS, find

__all__ = ["DEFAULT", "EMBEDDED", "WEIGHTS", "CheckpointError", "NotAPlainViT", "find", "load", "save"]
