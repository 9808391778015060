"""Parts of the project whose packages pip installs on demand, as extras."""

from __future__ import annotations

from importlib.util import find_spec

EXTRAS = {
    "page": ("The page", ["gradio"]),
    "finetune": ("Fine-tuning", ["accelerate"]),
    "onnx": ("ONNX", ["onnx", "onnxruntime", "onnxscript"]),
}


class MissingPackages(ImportError):
    """A part of the project is not installed, in a sentence that says how to install it."""


def needs(extra: str, what: str | None = None) -> None:
    """Raise a sentence where the packages of an extra are missing, which `what` needs."""
    part, packages = EXTRAS[extra]
    if any(find_spec(package) is None for package in packages):
        raise MissingPackages(f"{what or part} needs more packages: run pip install 'vit-explorer[{extra}]'.")
