"""Fine-tuning on photos in folders: one command, `vit finetune`, or one call."""

from typing import TYPE_CHECKING, Any

from ..extras import needs

if TYPE_CHECKING:
    from .recipe import Recipe
    from .run import finetune
    from .start import Run

__all__ = ["Recipe", "Run", "finetune"]

_HOMES = {"Recipe": "recipe", "Run": "start", "finetune": "run"}


def __getattr__(name: str) -> Any:
    """Imported when asked for: the command line lists its options without waiting for Accelerate."""
    from importlib import import_module

    if name not in _HOMES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    needs("finetune")
    return getattr(import_module(f".{_HOMES[name]}", __name__), name)
