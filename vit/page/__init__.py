"""The page: Gradio's Blocks around the explorer. The model's code knows nothing of it."""

import os

os.environ.setdefault("GRADIO_ANALYTICS_ENABLED", "False")  # read when gradio is imported: nothing leaves the machine

# Nobody looks at Gradio's statistics, which it would compute anew after each request.
os.environ.setdefault("GRADIO_ANALYTICS_CACHE_FREQUENCY", str(10**9))
os.environ.setdefault("GRADIO_ANALYTICS_MAX_EVENTS", "1")

from .stubs import no_stubs

with no_stubs():
    from .layout import launch_options
    from .models import Models
    from .wiring import build

__all__ = ["Models", "build", "launch_options"]
