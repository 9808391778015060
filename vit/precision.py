"""Sooner answers from fewer bits, on CPUs and GPUs that have instructions for them.

Only the encoder's layers are run so, on a copy of their weights: the model itself stays as it is, and with it all that
is shown, saved or trained. What goes into the layers and what comes out of them is float32.

- bfloat16: float32 without the last 16 bits.
- int8: the linear layers on whole numbers, with a scale for each token and each output channel. One scale for all
  tokens would be cheaper, and ruin what sinks and registers leave of it: their norm is tens of times the others'. Where
  the CPU has bfloat16, attention is in it, which is sooner, and the last layer of each MLP, which moves less.
- auto: which of them is fastest here, as long as it says the same; see `choose`.
"""

from __future__ import annotations

import copy
import time
from collections.abc import Callable
from contextlib import nullcontext
from threading import Lock
from typing import TypeGuard
from weakref import WeakKeyDictionary

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from .kernels import cpu_flags, fast_linear
from .model import MultiheadSelfAttention, TransformerEncoderBlock, ViT, run_read
from .turn import Turn

AUTO = "auto"
FASTER = 0.9  # of the time of one that is more exact: else that is taken
MOVED = 0.02  # of the probability, from one class to others, in the mean of a few photos: "auto" takes nothing above
TIMED = 4  # photos of a trial
MOST_LOOKS = 2 << 20  # of a photo's tokens at tokens, which attention that is not fused holds all
# By precision, the more exact first: a CPU that has any of these flags has instructions for it.
FLAGS = {
    "float32": (),
    "bfloat16": ("avx512_bf16", "amx_bf16", "bf16"),
    "int8": ("avx512_vnni", "avx_vnni", "amx_int8", "i8mm"),
}
PRECISIONS = (*FLAGS, AUTO)


class Int8Linear(nn.Module):
    """A linear layer whose products are of whole numbers from -127 to 127, summed exactly."""

    weight: Tensor
    scale: Tensor
    bias: Tensor

    def __init__(self, linear: nn.Linear):
        super().__init__()
        weight = linear.weight.detach()  # out, in
        scale = _scale(weight)
        bias = weight.new_zeros(len(weight)) if linear.bias is None else linear.bias.detach()
        self.register_buffer("weight", (weight / scale).round().to(torch.int8).T)
        self.register_buffer("scale", scale[:, 0])
        self.register_buffer("bias", bias)

    def forward(self, z: Tensor) -> Tensor:
        tokens = z.flatten(0, -2)
        scale = _scale(tokens)
        product = torch._int_mm((tokens / scale).round().to(torch.int8), self.weight)
        return torch.addcmul(self.bias, product * scale, self.scale).unflatten(0, z.shape[:-1])


class Bfloat16Linear(nn.Module):
    """A linear layer whose products are of bfloat16 numbers."""

    weight: Tensor
    bias: Tensor | None

    def __init__(self, linear: nn.Linear):
        super().__init__()
        self.register_buffer("weight", linear.weight.detach().bfloat16())
        self.register_buffer("bias", None if linear.bias is None else linear.bias.detach().bfloat16())

    def forward(self, z: Tensor) -> Tensor:
        return F.linear(z.bfloat16(), self.weight, self.bias).to(z.dtype)


def attend_in_bfloat16(q: Tensor, k: Tensor, v: Tensor) -> Tensor:
    """Attention that is not fused: PyTorch's kernel has bfloat16's own products on few CPUs."""
    if q.shape[1] * q.shape[2] * k.shape[2] > MOST_LOOKS:
        return F.scaled_dot_product_attention(q, k, v)
    looks = (q * q.shape[-1] ** -0.5).bfloat16() @ k.bfloat16().transpose(-2, -1)  # B, H, T, T
    return (looks.softmax(dim=-1) @ v.bfloat16()).to(v.dtype)


def _scale(rows: Tensor) -> Tensor:
    """What the largest number of each row is 127 of (rows, 1)."""
    return rows.abs().amax(dim=1, keepdim=True).clamp(min=1e-20) / 127


class WholeBlock(nn.Module):
    """A plain layer in one call, which PyTorch made for its own nn.TransformerEncoderLayer.

    It takes less time, above all where other threads are busy: there is no Python between its steps.
    """

    def __init__(self, block: TransformerEncoderBlock):
        super().__init__()
        self.block = block

    def forward(self, z: Tensor) -> Tensor:
        block, [_, T, D] = self.block, z.shape
        attention, mlp = block.attention, block.mlp
        if attention.heads * T**2 > MOST_LOOKS:
            whole: Tensor = block(z)
            return whole
        return torch._transformer_encoder_layer_fwd(
            z,
            D,
            attention.heads,
            attention.qkv.weight,
            attention.qkv.bias,
            attention.out.weight,
            attention.out.bias,
            True,  # GELU
            True,  # norms first
            block.attention_norm.eps,
            block.attention_norm.weight,
            block.attention_norm.bias,
            block.mlp_norm.weight,
            block.mlp_norm.bias,
            mlp.fc1.weight,
            mlp.fc1.bias,
            mlp.fc2.weight,
            mlp.fc2.bias,
        )

    @staticmethod
    def can_be(block: nn.Module) -> TypeGuard[TransformerEncoderBlock]:
        """Whether there is nothing in the layer that PyTorch's own has not."""
        if not isinstance(block, TransformerEncoderBlock) or block.attention.qkv.bias is None:
            return False
        others = block.attention_scale, block.mlp_scale, block.mlp.to_registers
        return all(isinstance(each, nn.Identity) for each in others)


class Encoder(nn.Module):
    """A model's layers with fewer bits. The model is not kept: it lends what comes before them."""

    def __init__(self, model: ViT, precision: str):
        super().__init__()
        self.blocks = copy.deepcopy(model.blocks).requires_grad_(False).eval()
        self.dtype = torch.bfloat16 if precision == "bfloat16" else torch.float32
        self.blocks.to(self.dtype)
        if precision == "int8":
            has_bfloat16 = has_instructions("bfloat16", torch.device("cpu"))
            for name, module in list(self.blocks.named_modules()):
                if isinstance(module, MultiheadSelfAttention) and has_bfloat16:
                    module.fused = attend_in_bfloat16
                elif isinstance(module, nn.Linear):  # after the MLP's neurons: a few are far louder than the others
                    fewer = Bfloat16Linear if has_bfloat16 and name.endswith("fc2") else Int8Linear
                    self.blocks.set_submodule(name, fewer(module))
        elif model.position_embedding.device.type == "cpu":
            for number, block in enumerate(self.blocks[:-1]):
                if WholeBlock.can_be(block):
                    self.blocks[number] = WholeBlock(block)

    def forward(self, model: ViT, images: Tensor) -> Tensor:
        """The last layer's tokens that the head reads (B, tokens, D)."""
        z = model.embed(images)
        return run_read(self.blocks, z.to(self.dtype), model.read_tokens).to(z.dtype)


_making = Lock()
_choosing: WeakKeyDictionary[ViT, Lock] = WeakKeyDictionary()
_chosen: WeakKeyDictionary[ViT, tuple[torch.device, str]] = WeakKeyDictionary()
_made: WeakKeyDictionary[ViT, dict[str, tuple[object, Encoder]]] = WeakKeyDictionary()


@torch.inference_mode()
def encode(model: ViT, images: Tensor, precision: str) -> Tensor:
    """The last layer's tokens that the head reads, as `model.encode_read` gives them in float32."""
    if precision == "float32":
        with fast_linear():
            return model.encode_read(images)
    _check_device(precision, images.device)
    return _encoder(model, precision)(model, images)


def _encoder(model: ViT, precision: str) -> Encoder:
    """The model's layers in fewer bits, made once, until it learns or moves: a new copy is due then."""
    changes = sum(0 if weight.is_inference() else weight._version for weight in model.blocks.parameters())
    state = model.position_embedding.device, changes
    with _making:
        made = _made.setdefault(model, {})
        if precision not in made or made[precision][0] != state:
            made[precision] = state, Encoder(model, precision)
        return made[precision][1]


def chosen(model: ViT, precision: str) -> str | None:
    """The precision to use; None where "auto" has not yet chosen for the model where it is."""
    check(precision)
    if precision != AUTO:
        return precision
    device, name = _chosen.get(model, (None, None))
    return name if device == model.position_embedding.device else None


def settle(model: ViT, precision: str, photos: Callable[[], Tensor], turn: Turn = nullcontext) -> str:
    """The precision to use: with "auto" that which was chosen for the model where it is, with these photos at first.

    Each pass of the trial is run in a `turn` of its own. Whoever asks meanwhile waits for its end.
    """
    if (name := chosen(model, precision)) is None:
        with _choosing.setdefault(model, Lock()):
            if (name := chosen(model, precision)) is None:
                name = choose(model, photos, turn)
                _chosen[model] = model.position_embedding.device, name
    return name


@torch.inference_mode()
def choose(model: ViT, photos: Callable[[], Tensor], turn: Turn = nullcontext) -> str:
    """The fastest of what the machine has instructions for, by a trial on a few photos (B, 3, height, width).

    The first photos go through all in turn, and the least time counts: one that is less exact must be faster by a
    tenth. The fastest must then keep its promise on all of them, or the next is tried.
    """
    names = [name for name in FLAGS if has_instructions(name, model.position_embedding.device)]
    exact = names[0]
    images = photos() if len(names) > 1 else torch.empty(0)
    if not len(images):
        return exact
    seconds: dict[str, list[float]] = {name: [] for name in names}
    answers: dict[str, list[Tensor]] = {name: [] for name in names}
    for name in names[1:]:
        _encoder(model, name)  # in nobody's turn

    def ask(name: str, count: int) -> None:
        for image in images[len(answers[name]) : count]:
            with turn():
                start = time.perf_counter()
                answers[name].append(_answer(model, encode(model, image[None], name)))
                seconds[name].append(time.perf_counter() - start)

    for count in range(1, TIMED + 1):
        for name in names:
            ask(name, count)
    while (best := _fastest({name: min(seconds[name]) for name in names})) != exact:
        for name in (exact, best):
            ask(name, len(images))
        if _says_the_same(torch.stack(answers[best]), torch.stack(answers[exact])):
            break
        names.remove(best)
    for name in FLAGS:
        if name != best:
            _made.get(model, {}).pop(name, None)
    return best


def _fastest(seconds: dict[str, float]) -> str:
    """Of those that stand behind a more exact one, each must be faster by a tenth."""
    best, *others = seconds
    for name in others:
        if seconds[name] < FASTER * seconds[best]:
            best = name
    return best


def _says_the_same(found: Tensor, exact: Tensor) -> bool:
    """Whether each photo's answer is the same, and little of the probabilities (B, classes) has moved."""
    moved = (found - exact).abs().sum(dim=1).mean() / 2
    return torch.equal(found.argmax(dim=1), exact.argmax(dim=1)) and bool(moved <= MOVED)


def _answer(model: ViT, tokens: Tensor) -> Tensor:
    """The probabilities; without a head, the shares of the features' squares. Once on the CPU, a GPU has finished."""
    found = model.classify(tokens)[0]
    shares = found.softmax(dim=0) if model.config.classes else found.square() / found.square().sum()
    return shares.cpu()


def check(precision: str) -> None:
    """Raise a sentence unless there is such a precision."""
    if precision not in PRECISIONS:
        raise ValueError(f"There is no precision {precision!r}: choose one of {', '.join(PRECISIONS)}.")


def _check_device(precision: str, device: torch.device) -> None:
    if not has_instructions(precision, device):
        what = "CPU" if device.type == "cpu" else "GPU"
        raise ValueError(f"This {what} has no fast {precision}, it would be slower than float32: choose auto.")


def has_instructions(precision: str, device: torch.device) -> bool:
    """Whether the device computes fast in it; int8 is for CPUs alone."""
    if precision == "float32":
        return True
    if device.type == "cuda":
        return precision == "bfloat16" and torch.cuda.is_bf16_supported(including_emulation=False)
    return device.type == "cpu" and not cpu_flags().isdisjoint(FLAGS[precision])
