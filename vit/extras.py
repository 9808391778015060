"""Parts of the project whose packages pip installs on demand, as extras."""

from __future__ import annotations

from importlib.util import find_spec

EXTRAS = {"page": ("gradio", "The page"), "finetune": ("accelerate", "Fine-tuning")}


class MissingPackages(ImportError):
    """A part of the project is not installed, in a sentence that says how to install it."""


def needs(extra: str) -> None:
    """Raise a sentence where the packages of an extra are missing."""
    package, part = EXTRAS[extra]
    if find_spec(package) is None:
        raise MissingPackages(f"{part} needs more packages: run pip install 'vit-explorer[{extra}]'.")
