"""The page: Gradio's Blocks around the explorer. The model's code knows nothing of it."""

import os

os.environ.setdefault("GRADIO_ANALYTICS_ENABLED", "False")  # read when gradio is imported: nothing leaves the machine

from .layout import launch_options
from .models import Models
from .wiring import build

__all__ = ["Models", "build", "launch_options"]
