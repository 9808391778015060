"""The ResNet in front of the paper's hybrid: patches are cut from its feature map instead of from pixels.

It is BiT's ResNet (Kolesnikov et al., arXiv 1912.11370): group norm in place of batch norm, and convolutions
whose weights are standardised, padded as TensorFlow's "SAME".
"""

from __future__ import annotations

import torch.nn.functional as F
from torch import Tensor, nn

STEM_CHANNELS = 64
STAGE_CHANNELS = (256, 512, 1024, 2048)


class StandardisedConv(nn.Conv2d):
    """A convolution whose filters have mean 0 and variance 1 each time they are used."""

    def __init__(self, channels: int, out_channels: int, size: int, stride: int = 1):
        super().__init__(channels, out_channels, size, stride, bias=False)

    def forward(self, x: Tensor) -> Tensor:
        filters = self.weight.flatten(1)
        filters = F.layer_norm(filters, filters.shape[1:], eps=1e-8).view_as(self.weight)
        return F.conv2d(pad_same(x, self.kernel_size[0], self.stride[0]), filters, stride=self.stride)


class Bottleneck(nn.Module):
    def __init__(self, channels: int, out_channels: int, stride: int):
        super().__init__()
        inner = out_channels // 4
        self.conv1, self.norm1 = StandardisedConv(channels, inner, 1), nn.GroupNorm(32, inner)
        self.conv2, self.norm2 = StandardisedConv(inner, inner, 3, stride), nn.GroupNorm(32, inner)
        self.conv3, self.norm3 = StandardisedConv(inner, out_channels, 1), nn.GroupNorm(32, out_channels)
        self.shortcut: nn.Module = nn.Identity()
        if channels != out_channels:
            conv = StandardisedConv(channels, out_channels, 1, stride)
            self.shortcut = nn.Sequential(conv, nn.GroupNorm(32, out_channels))

    def forward(self, x: Tensor) -> Tensor:
        y = F.relu(self.norm1(self.conv1(x)))
        y = F.relu(self.norm2(self.conv2(y)))
        return F.relu(self.norm3(self.conv3(y)) + self.shortcut(x))


class ResNetStem(nn.Module):
    """`stages` are the blocks in each stage: (3, 4, 9) is the paper's R50, () the first convolution alone."""

    def __init__(self, channels: int, stages: tuple[int, ...]):
        super().__init__()
        if len(stages) > len(STAGE_CHANNELS):
            raise ValueError(f"A stem has at most {len(STAGE_CHANNELS)} stages, not {len(stages)}.")
        self.conv, self.norm = StandardisedConv(channels, STEM_CHANNELS, 7, stride=2), nn.GroupNorm(32, STEM_CHANNELS)
        self.stages = nn.Sequential()
        self.channels = STEM_CHANNELS
        for stage, (blocks, out_channels) in enumerate(zip(stages, STAGE_CHANNELS)):
            for block in range(blocks):
                stride = 2 if stage > 0 and block == 0 else 1
                self.stages.add_module(f"{stage}_{block}", Bottleneck(self.channels, out_channels, stride))
                self.channels = out_channels

    def forward(self, images: Tensor) -> Tensor:
        x = F.relu(self.norm(self.conv(images)))
        x = F.max_pool2d(pad_same(x, 3, 2, value=float("-inf")), kernel_size=3, stride=2)
        return self.stages(x)


def pad_same(x: Tensor, size: int, stride: int, value: float = 0.0) -> Tensor:
    """Pads so that the output has ceil(side / stride) cells, the odd pixel to the right and below."""
    pads = []
    for side in (x.shape[-1], x.shape[-2]):
        pad = max((-(-side // stride) - 1) * stride + size - side, 0)
        pads += [pad // 2, pad - pad // 2]
    return F.pad(x, pads, value=value)
