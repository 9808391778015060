"""The page: Gradio's Blocks around the explorer. The model's code knows nothing of it."""

from .layout import LAUNCH, build
from .models import Models

__all__ = ["LAUNCH", "Models", "build"]
