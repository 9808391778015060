"""The page: Gradio's Blocks around the explorer. The model's code knows nothing of it."""

from .layout import build, launch_options
from .models import Models

__all__ = ["Models", "build", "launch_options"]
