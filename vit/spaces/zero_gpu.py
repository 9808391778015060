"""ZeroGPU, the GPUs that Spaces share: a Space has one only while a function runs that asks for it."""

from __future__ import annotations

import os
from collections.abc import Callable
from importlib.util import find_spec
from typing import Any, TypeVar

import torch

Function = TypeVar("Function", bound=Callable[..., Any])
ON_ZERO_GPU = os.environ.get("SPACES_ZERO_GPU", "").lower() in ("1", "t", "true") and find_spec("spaces") is not None

if ON_ZERO_GPU:
    import spaces  # as early as this: it must be there before CUDA is used, for which it stands in


def gpu(function: Function) -> Function:
    """Give the function, or generator, a GPU while it runs; unchanged where there is no ZeroGPU.

    There it runs in a process of its own: what it takes and returns is pickled, so no tensors on the GPU and no
    explanations, and what it changes elsewhere is lost.
    """
    return spaces.GPU(function) if ON_ZERO_GPU else function


def device() -> str:
    """Where a model goes before the page is launched: "cuda" where there is a GPU, for good or by ZeroGPU, or "cpu"."""
    return "cuda" if ON_ZERO_GPU or torch.cuda.is_available() else "cpu"
