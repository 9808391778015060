"""The sizes of a Vision Transformer: one table of variants, and the options real checkpoints need."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import asdict, dataclass
from typing import Any, Literal, get_args

# layers, width D, MLP width, heads: Table 1 of the ViT paper; Ti and S as in DeiT.
VARIANTS = {
    "Ti": (12, 192, 768, 3),
    "S": (12, 384, 1536, 6),
    "B": (12, 768, 3072, 12),
    "L": (24, 1024, 4096, 16),
    "H": (32, 1280, 5120, 16),
}
PATCH_SIZES = (8, 14, 16, 32)
LEAST = dict(patch_size=1, channels=1, classes=0, layers=1, width=1, mlp_width=1, heads=1, registers=0, norm_eps=0)

Pool = Literal["class", "mean", "mean of norm", "class + mean"]
PositionResampling = Literal["bicubic", "antialias", "align corners"]


@dataclass(frozen=True)
class ViTConfig:
    """Everything that fixes the shape of a `vit.ViT`.

    The defaults are the paper's ViT-B/16 for 1000 classes; `ViTConfig.of("S/16")` gives the others. The
    options below `dropout` are off by default and are there because published checkpoints use them.
    """

    image_size: int | tuple[int, int] = 224  # pixels, or (height, width); a tuple once made
    patch_size: int = 16
    channels: int = 3
    classes: int = 1000  # 0: no head, the model returns features
    layers: int = 12
    width: int = 768
    mlp_width: int = 3072
    heads: int = 12
    dropout: float = 0.0

    layer_scale: float | None = None  # initial value of LayerScale (CaiT; DINOv2), None for none
    registers: int = 0  # register tokens (Darcet et al.)
    register_neurons: tuple[tuple[int, int], ...] = ()  # (layer, MLP neuron): write to registers, not to patches
    stochastic_depth: float = 0.0  # chance that the last block is skipped in training; rises linearly
    class_token: bool = True
    distillation: bool = False  # DeiT's second token
    distillation_head: bool = False  # and a second head that reads it
    pool: Pool = "class"  # what the head reads: see `ViT.pool`
    qkv_bias: bool = True
    norm_eps: float = 1e-6
    position_resampling: PositionResampling = "bicubic"  # as each family does it for other image sizes
    stem: tuple[int, ...] | None = None  # the hybrid: blocks in each stage of a ResNet before the patches

    @classmethod
    def of(cls, name: str, **options: Any) -> ViTConfig:
        """The variant called `name`, such as "B/16"; `options` are the fields above, `classes` for one.

        >>> ViTConfig.of("Ti/16", classes=3, image_size=(224, 320)).grid
        (14, 20)
        """
        variant, _, patch = name.partition("/")
        if variant not in VARIANTS or patch not in map(str, PATCH_SIZES):
            raise ValueError(
                f"There is no variant {name!r}: write one of {', '.join(VARIANTS)}, a slash, and a patch size of "
                f"{', '.join(map(str, PATCH_SIZES))}, as in 'B/16'; for any other shape use ViTConfig(...)."
            )
        layers, width, mlp_width, heads = VARIANTS[variant]
        sizes = dict(layers=layers, width=width, mlp_width=mlp_width, heads=heads, patch_size=int(patch))
        return cls(**{**sizes, **options})

    def __post_init__(self) -> None:
        size = self.image_size if isinstance(self.image_size, Iterable) else (self.image_size, self.image_size)
        object.__setattr__(self, "image_size", tuple(int(side) for side in size))
        if len(self.native_size) != 2:
            raise ValueError(f"image_size is a number of pixels, or (height, width), not {self.image_size}.")
        if self.stem is not None:
            object.__setattr__(self, "stem", tuple(self.stem))
        object.__setattr__(self, "register_neurons", tuple((int(a), int(b)) for a, b in self.register_neurons))
        for field, least in LEAST.items():
            if getattr(self, field) < least:
                raise ValueError(f"{field} is {getattr(self, field)}, but must be at least {least}.")
        for field in ("dropout", "stochastic_depth"):
            if not 0 <= getattr(self, field) < 1:
                raise ValueError(f"{field} is {getattr(self, field)}, but must be from 0 up to 1.")
        for field, choices in (("pool", get_args(Pool)), ("position_resampling", get_args(PositionResampling))):
            if getattr(self, field) not in choices:
                raise ValueError(f"{field} is {getattr(self, field)!r}, but must be one of {', '.join(choices)}.")
        if self.register_neurons and not self.registers:
            raise ValueError("register_neurons write to registers: set registers as well.")
        for layer, neuron in self.register_neurons:
            if not (0 <= layer < self.layers and 0 <= neuron < self.mlp_width):
                raise ValueError(f"There is no neuron {neuron} in layer {layer}: register_neurons names one.")
        if self.width % self.heads:
            raise ValueError(
                f"{self.heads} heads do not divide the width {self.width}: "
                f"choose a number of heads that does, such as {_nearest_divisor(self.width, self.heads)}."
            )
        if self.patch_size % self.stem_stride:
            raise ValueError(
                f"A stem of {len(self.stem or ())} stages shrinks the image {self.stem_stride} times: "
                f"patch_size must be a multiple of that, not {self.patch_size}."
            )
        if not self.class_token and (self.distillation or self.pool not in ("mean", "mean of norm")):
            raise ValueError(
                "Without a class token the head must read the patches: set pool='mean' and no distillation."
            )
        if self.distillation_head and not self.distillation:
            raise ValueError("A distillation head reads the distillation token: set distillation=True as well.")
        self.check_image(*self.native_size)

    def check_image(self, height: int, width: int) -> None:
        """Raise a sentence that says what to change unless patches divide an image of this size."""
        p = self.patch_size
        if height < p or width < p or height % p or width % p:
            near = [max(p, round(side / p) * p) for side in (height, width)]
            raise ValueError(
                f"Patches of {p} × {p} pixels do not divide an image of {height} × {width} (height × width): "
                f"make it {near[0]} × {near[1]}."
            )

    @property
    def native_size(self) -> tuple[int, int]:
        """`image_size` as (height, width), which it is once made."""
        assert isinstance(self.image_size, tuple)
        return self.image_size

    @property
    def grid(self) -> tuple[int, int]:
        """Rows and columns of patches at the native image size."""
        height, width = self.native_size
        return height // self.patch_size, width // self.patch_size

    @property
    def stem_stride(self) -> int:
        """How many image pixels one step on the stem's feature map is."""
        return 1 if self.stem is None else 4 * 2 ** max(0, len(self.stem) - 1)

    @property
    def placed_tokens(self) -> int:
        """Tokens before the patches that have a position embedding: the class and the distillation token."""
        return int(self.class_token) + int(self.distillation)

    @property
    def prefix_tokens(self) -> int:
        """All tokens before the patches, in their order: class, distillation, registers."""
        return self.placed_tokens + self.registers

    @property
    def head_width(self) -> int:
        """How many numbers the head reads."""
        return 2 * self.width if self.pool == "class + mean" else self.width

    @property
    def name(self) -> str:
        """The variant's name, such as "ViT-B/16", or the sizes where it is none of the table."""
        sizes = (self.layers, self.width, self.mlp_width, self.heads)
        variant = next((name for name, known in VARIANTS.items() if known == sizes), None)
        if variant is None:
            variant = f"{self.layers} layers × {self.width}"
        return f"ViT-{variant}/{self.patch_size}" if self.stem is None else f"hybrid ViT-{variant}/{self.patch_size}"

    def to_dict(self) -> dict[str, Any]:
        """The fields as plain JSON values; `ViTConfig(**d)` makes the same config again."""
        return asdict(self)


def _nearest_divisor(width: int, heads: int) -> int:
    return min((d for d in range(1, width + 1) if width % d == 0), key=lambda d: abs(d - heads))
