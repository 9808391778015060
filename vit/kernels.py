"""Linear layers by the library that is fast on this CPU, and what the CPU is.

PyTorch leaves float32 products to MKL, which uses AVX-512 on Intel's CPUs alone. oneDNN comes with PyTorch too, and
uses it wherever it is: on AMD's in half the time, with the same result but for rounding.
"""

from __future__ import annotations

import platform
from collections.abc import Callable
from contextlib import AbstractContextManager, nullcontext, suppress
from functools import cache
from pathlib import Path
from typing import Any

import torch
import torch.nn.functional as F
from torch import Tensor
from torch.overrides import TorchFunctionMode


def fast_linear() -> AbstractContextManager[object]:
    """Linear layers are fast inside, where that needs anything. Their weights get no gradients: not for training."""
    return OneDNN() if mkl_is_slow() else nullcontext()


class OneDNN(TorchFunctionMode):
    """Linear layers in float32 on the CPU are run by oneDNN."""

    def __torch_function__(
        self, function: Callable[..., Any], types: object, args: tuple[Any, ...] = (), kwargs: Any = None
    ) -> Any:
        if function is F.linear and args[0].device.type == "cpu" and args[0].dtype == torch.float32:
            return _linear(*args, **(kwargs or {}))
        return function(*args, **(kwargs or {}))


def _linear(z: Tensor, weight: Tensor, bias: Tensor | None = None) -> Tensor:
    return _Linear.apply(z, weight.detach(), None if bias is None else bias.detach())


class _Linear(torch.autograd.Function):
    @staticmethod
    def forward(ctx: Any, z: Tensor, weight: Tensor, bias: Tensor | None) -> Tensor:
        ctx.save_for_backward(weight)
        return _product(z, weight, bias)

    @staticmethod
    def backward(ctx: Any, gradient: Tensor) -> tuple[Tensor, None, None]:
        [weight] = ctx.saved_tensors
        return _product(gradient, weight.T), None, None


def _product(z: Tensor, weight: Tensor, bias: Tensor | None = None) -> Tensor:
    return torch.ops.mkldnn._linear_pointwise(z, weight, bias, "none", [], "")


@cache
def mkl_is_slow() -> bool:
    """Whether there is AVX-512 that MKL does not use, and oneDNN does."""
    both = torch.backends.mkl.is_available() and torch.backends.mkldnn.is_available()
    return both and "avx512f" in cpu_flags() and _cpu("vendor_id") != "GenuineIntel"


@cache
def cpu_flags() -> frozenset[str]:
    """What the CPU can do, by the names that Linux has for it; nothing elsewhere."""
    return frozenset(_cpu("flags", "Features").split())


def cpu_name() -> str:
    """What the CPU calls itself."""
    return _cpu("model name") or platform.processor() or platform.machine()


def _cpu(*names: str) -> str:
    """What Linux says of the first CPU under one of these names."""
    with suppress(OSError):
        for line in Path("/proc/cpuinfo").read_text(encoding="utf-8").splitlines():
            name, _, value = line.partition(":")
            if name.strip() in names:
                return value.strip()
    return ""
