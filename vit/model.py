"""The Vision Transformer, equation by equation.

Dosovitskiy et al., "An Image is Worth 16x16 Words", ICLR 2021, arXiv 2010.11929. Shapes stand at the end of
the line, in one alphabet: B batch, T tokens, N patches, D width, H heads, L layers, P patch size, R × C grid.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from .config import ViTConfig
from .stem import ResNetStem


class PatchEmbedding(nn.Module):
    """Cuts the image into P × P patches and projects each to D numbers: x_p E in Eq. 1.

    A convolution whose kernel is its stride sees every patch once, so it is that projection. In the paper's
    hybrid a ResNet goes first, and the patches are cut from its feature map.
    """

    def __init__(self, config: ViTConfig):
        super().__init__()
        self.stem = None if config.stem is None else ResNetStem(config.channels, config.stem)
        channels = config.channels if self.stem is None else self.stem.channels
        size = config.patch_size // config.stem_stride
        self.projection = nn.Conv2d(channels, config.width, kernel_size=size, stride=size)

    def forward(self, images: Tensor) -> Tensor:
        if self.stem is not None:
            images = self.stem(images)
        patches = self.projection(images)  # B, D, R, C
        return patches.flatten(2).transpose(1, 2)  # B, N, D


class MultiheadSelfAttention(nn.Module):
    """Every token asks every token: MSA of Eq. 2, written out in the paper's appendix A (Eq. 5 to 8)."""

    fused: Callable[..., Tensor] = staticmethod(F.scaled_dot_product_attention)

    def __init__(self, config: ViTConfig):
        super().__init__()
        self.heads = config.heads
        self.qkv = nn.Linear(config.width, 3 * config.width, bias=config.qkv_bias)
        self.out = nn.Linear(config.width, config.width)
        self.dropout = nn.Dropout(config.dropout)

    def forward(self, z: Tensor, recorded: list[Tensor] | None = None, asking: int | None = None) -> Tensor:
        """The new tokens, of the first `asking` where no others ask.

        To `recorded` the attention is added (B, H, T, T): its rows sum to 1.
        """
        B, T, D = z.shape
        q, k, v = self.qkv(z).view(B, T, 3, self.heads, D // self.heads).permute(2, 0, 3, 1, 4)  # each B, H, T, D/H
        q = q[:, :, :asking]

        if recorded is None:
            z = self.fused(q, k, v)
        else:
            attention = (q * q.shape[-1] ** -0.5 @ k.transpose(-2, -1)).softmax(dim=-1)  # B, H, T, T
            z = attention @ v
            recorded.append(attention)

        z = z.transpose(1, 2).flatten(2)
        return self.dropout(self.out(z))


class MLPBlock(nn.Module):
    """Two linear layers with a GELU between them, for each token alone: MLP of Eq. 3."""

    def __init__(self, config: ViTConfig, layer: int):
        super().__init__()
        neurons = [neuron for place, neuron in config.register_neurons if place == layer]
        self.fc1 = nn.Linear(config.width, config.mlp_width)
        self.to_registers = RegisterNeurons(config, neurons) if neurons else nn.Identity()
        self.fc2 = nn.Linear(config.mlp_width, config.width)
        self.dropout = nn.Dropout(config.dropout)

    def forward(self, z: Tensor) -> Tensor:
        z = self.dropout(self.to_registers(F.gelu(self.fc1(z))))  # B, T, MLP width
        return self.dropout(self.fc2(z))  # B, T, D


class RegisterNeurons(nn.Module):
    """What these neurons of an MLP would write to patches goes to the registers (Jiang et al., arXiv 2506.08010)."""

    def __init__(self, config: ViTConfig, neurons: list[int]):
        super().__init__()
        self.placed_tokens, self.prefix_tokens, self.neurons = config.placed_tokens, config.prefix_tokens, neurons

    def forward(self, activation: Tensor) -> Tensor:
        if activation.shape[1] <= self.placed_tokens:  # neither patches nor registers, which nobody asks for
            return activation
        activation = activation.clone()  # B, T, MLP width
        largest = activation[:, self.prefix_tokens :, self.neurons].amax(dim=1, keepdim=True)
        activation[:, self.prefix_tokens :, self.neurons] = 0
        activation[:, self.placed_tokens : self.prefix_tokens, self.neurons] = largest
        return activation


class LayerScale(nn.Module):
    """A learnt factor for each channel of a residual branch (Touvron et al., CaiT)."""

    def __init__(self, width: int, initial: float):
        super().__init__()
        self.scale = nn.Parameter(torch.full((width,), initial))

    def forward(self, z: Tensor) -> Tensor:
        return z * self.scale


class StochasticDepth(nn.Module):
    """Leaves a residual branch out at random while training, photo by photo (Huang et al., arXiv 1603.09382)."""

    def __init__(self, p: float):
        super().__init__()
        self.p = p

    def forward(self, z: Tensor) -> Tensor:
        if not self.training or self.p == 0:
            return z
        kept = 1 - self.p
        return z * z.new_empty(len(z), 1, 1).bernoulli_(kept).div_(kept or 1)


class TransformerEncoderBlock(nn.Module):
    """One layer of the encoder: both residuals, the norm before each branch (Eq. 2 and 3)."""

    def __init__(self, config: ViTConfig, layer: int):
        super().__init__()
        self.attention_norm = nn.LayerNorm(config.width, eps=config.norm_eps)
        self.attention = MultiheadSelfAttention(config)
        self.mlp_norm = nn.LayerNorm(config.width, eps=config.norm_eps)
        self.mlp = MLPBlock(config, layer)

        scale = config.layer_scale
        self.attention_scale = nn.Identity() if scale is None else LayerScale(config.width, scale)
        self.mlp_scale = nn.Identity() if scale is None else LayerScale(config.width, scale)
        self.skip = StochasticDepth(config.stochastic_depth * layer / max(1, config.layers - 1))

    def forward(self, z: Tensor, recorded: list[Tensor] | None = None, asking: int | None = None) -> Tensor:
        """Tokens in, tokens out, whoever hooks it; `recorded` and `asking` as in `MultiheadSelfAttention`."""
        msa = self.attention(self.attention_norm(z), recorded, asking)
        z = z[:, :asking]
        z = z + self.skip(self.attention_scale(msa))  # Eq. 2
        z = z + self.skip(self.mlp_scale(self.mlp(self.mlp_norm(z))))  # Eq. 3
        return z


@dataclass(frozen=True)
class Recording:
    """What one forward pass showed: nothing of it stays in the model."""

    logits: Tensor  # B, classes; the features where the model has no head
    layers: tuple[int, ...]  # the layers whose attention was recorded, the first is 0
    attention: tuple[Tensor, ...]  # for each of them: B, H, T, T
    tokens: tuple[Tensor, ...]  # after each of the L layers: B, T, D


class ViT(nn.Module):
    """The whole model: image (B, channels, height, width) in, logits (B, classes) out.

    Call it for the logits alone, on PyTorch's fused attention; call `record` to see inside.
    """

    def __init__(self, config: ViTConfig):
        super().__init__()
        self.config = config
        self.patch_embedding = PatchEmbedding(config)
        rows, columns = config.grid
        D = config.width
        self.class_token = nn.Parameter(torch.zeros(1, 1, D)) if config.class_token else None
        self.distillation_token = nn.Parameter(torch.zeros(1, 1, D)) if config.distillation else None
        self.register_tokens = nn.Parameter(torch.zeros(1, config.registers, D)) if config.registers else None
        self.position_embedding = nn.Parameter(torch.zeros(1, config.placed_tokens + rows * columns, D))
        self.dropout = nn.Dropout(config.dropout)
        self.blocks = nn.ModuleList(TransformerEncoderBlock(config, layer) for layer in range(config.layers))
        self.norm = nn.LayerNorm(D, eps=config.norm_eps)

        self.head = nn.Linear(config.head_width, config.classes) if config.classes else nn.Identity()
        self.distillation_head = None
        if config.distillation_head:
            self.distillation_head = nn.Linear(D, config.classes) if config.classes else nn.Identity()
        if not self.position_embedding.is_meta:  # where weights are to be loaded: nothing to fill, and slow to try
            self.apply(_initialise)

    def forward(self, images: Tensor) -> Tensor:
        return self.classify(self.encode(images))

    def encode(self, images: Tensor) -> Tensor:
        """The last layer's tokens (B, T, D)."""
        z = self.embed(images)
        for block in self.blocks:
            z = block(z)
        return z

    def encode_read(self, images: Tensor) -> Tensor:
        """Of the last layer's tokens only those that the head reads, sooner: nobody asks for the others."""
        return run_read(self.blocks, self.embed(images), self.read_tokens)

    @property
    def read_tokens(self) -> int | None:
        """How many tokens the head reads, from the first; None where it reads all."""
        if self.config.pool != "class":
            return None
        return 1 if self.distillation_head is None else 2

    def record(self, images: Tensor, layers: Iterable[int] | None = None) -> Recording:
        """The same pass, keeping the tokens after each layer and the attention of `layers` (all by default).

        Negative numbers count from the last layer. Layers not asked for take the fast path.
        """
        L = self.config.layers
        wanted = range(L) if layers is None else tuple(layers)
        if wrong := [layer for layer in wanted if not -L <= layer < L]:
            raise ValueError(f"There is no layer {wrong[0]}: this model has the layers 0 to {L - 1}.")
        recorded = tuple(sorted({layer % L for layer in wanted}))

        attention: list[Tensor] = []
        tokens = []
        z = self.embed(images)
        for layer, block in enumerate(self.blocks):
            z = block(z, attention if layer in recorded else None)
            tokens.append(z)
        return Recording(self.classify(z), recorded, tuple(attention), tuple(tokens))

    def embed(self, images: Tensor) -> Tensor:
        """Eq. 1: z_0, the patches with the class token before them, each with its position added."""
        self.check_images(images)
        grid = images.shape[-2] // self.config.patch_size, images.shape[-1] // self.config.patch_size
        placed, patches = self.positions(grid)  # 1, 1, D and 1, N, D
        B = images.shape[0]

        z = [self.patch_embedding(images) + patches]  # B, N, D
        if self.register_tokens is not None:
            z.insert(0, self.register_tokens.expand(B, -1, -1))
        if self.distillation_token is not None:
            z.insert(0, (self.distillation_token + placed[:, 1:]).expand(B, -1, -1))
        if self.class_token is not None:
            z.insert(0, (self.class_token + placed[:, :1]).expand(B, -1, -1))
        return self.dropout(torch.cat(z, dim=1))  # B, T, D

    def positions(self, grid: tuple[int, int]) -> tuple[Tensor, Tensor]:
        """The position embedding of the tokens before the patches, and of a grid of patches of any shape."""
        placed, patches = self.position_embedding.tensor_split([self.config.placed_tokens], dim=1)
        free = any(isinstance(side, torch.SymInt) for side in grid)  # exported for images of any size
        if free or grid != self.config.grid:
            how = self.config.position_resampling
            patches = patches.transpose(1, 2).unflatten(2, self.config.grid)  # 1, D, R, C
            patches = F.interpolate(
                patches.float(),  # half precision has no bicubic on every device
                size=grid,
                mode="bicubic",
                antialias=how == "antialias",
                align_corners=how == "align corners",
            )
            patches = patches.to(placed.dtype).flatten(2).transpose(1, 2)  # 1, N, D
        return placed, patches

    def pool(self, z: Tensor) -> Tensor:
        """Eq. 4: what the head reads of the last layer's tokens. The class token, unless the checkpoint differs.

        "mean": the norm of the patches' mean (timm). "mean of norm": the mean of their norms (big_vision).
        "class + mean": both, side by side, normed first (DINOv2's linear classifier).
        """
        if self.config.pool in ("class", "mean"):
            return self.norm(self._select(z))
        return self._select(self.norm(z))

    def _select(self, z: Tensor) -> Tensor:
        """The class token, the mean of the patches, or both side by side (B, D or 2 D)."""
        match self.config.pool:
            case "class":
                return z[:, 0]
            case "class + mean":
                return torch.cat([z[:, 0], z[:, self.config.prefix_tokens :].mean(dim=1)], dim=1)
            case _:
                return z[:, self.config.prefix_tokens :].mean(dim=1)

    def classify(self, z: Tensor) -> Tensor:
        """The logits for a layer's tokens (B, T, D). DeiT's two heads are averaged."""
        logits = self.head(self.pool(z))
        if self.distillation_head is not None:
            logits = (logits + self.distillation_head(self.norm(z[:, 1]))) / 2
        return logits

    def reads(self, tokens: int) -> Tensor:
        """How the head's look at so many tokens of the last layer is shared among them (T,)."""
        each = torch.eye(tokens).to(self.position_embedding)  # every token as one of T numbers
        shares = self._select(each[None]).view(-1, tokens).mean(dim=0)
        return shares if self.distillation_head is None else (shares + each[1]) / 2

    def check_images(self, images: Tensor) -> None:
        if images.ndim != 4:
            raise ValueError(
                f"The images must have the shape (batch, {self.config.channels}, height, width), "
                f"not {tuple(images.shape)}: add a batch dimension to a single image with image[None]."
            )
        if images.shape[1] != self.config.channels:
            raise ValueError(
                f"The images have {images.shape[1]} channels, but this model takes {self.config.channels}: "
                "convert them, for instance with image.convert('RGB') for three."
            )
        self.config.check_image(*images.shape[-2:])


def run_read(blocks: nn.ModuleList, z: Tensor, read_tokens: int | None) -> Tensor:
    """Tokens (B, T, D) through these layers, and after the last only the first few, which the head reads."""
    *others, last = blocks
    for block in others:
        z = block(z)
    return last(z, asking=read_tokens)


def _initialise(module: nn.Module) -> None:
    """Truncated normal weights, zero biases and a zero head, as the paper's own code starts."""
    if isinstance(module, nn.Linear):
        nn.init.trunc_normal_(module.weight, std=0.02)
        if module.bias is not None:
            nn.init.zeros_(module.bias)
    elif isinstance(module, ViT):
        for token in (module.class_token, module.distillation_token, module.register_tokens, module.position_embedding):
            if token is not None:
                nn.init.trunc_normal_(token, std=0.02)
        for head in (module.head, module.distillation_head):
            if isinstance(head, nn.Linear):
                nn.init.zeros_(head.weight)
