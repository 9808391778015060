"""From a photo to what the model sees, and the way back: which part of the photo that was."""

from __future__ import annotations

import math
from dataclasses import asdict, dataclass, replace
from typing import Any, Literal

import numpy as np
import torch
from PIL import Image
from torch import Tensor

from .files import Photo, PhotoError, bands, open_photo

INTERPOLATIONS = ("nearest", "bilinear", "bicubic", "lanczos")
MOST_PIXELS = 16_000_000  # of a photo while it is resized, first in width: a strip would become a giant
STRIP = 4  # times as long as wide


@dataclass(frozen=True)
class Preprocessing:
    """Resize, crop and normalise a photo the way a checkpoint was trained.

    `resize` is the length of the shorter side, or (height, width) to squash the photo into; `crop` is the
    (height, width) then cut from the middle, None for all of it. `rounding` is whose: transformers and timm differ by a
    grey level here and there and by a pixel in where the middle is, and a checkpoint is to see what it was trained on.
    """

    resize: int | tuple[int, int]
    crop: tuple[int, int] | None = None
    interpolation: str = "bicubic"  # one of INTERPOLATIONS
    mean: tuple[float, ...] = (0.5, 0.5, 0.5)
    std: tuple[float, ...] = (0.5, 0.5, 0.5)
    rounding: Literal["timm", "transformers"] = "timm"

    def __post_init__(self) -> None:
        for field in ("resize", "crop", "mean", "std"):  # JSON has lists
            if isinstance(value := getattr(self, field), list):
                object.__setattr__(self, field, tuple(value))
        if self.interpolation not in INTERPOLATIONS:
            raise ValueError(
                f"interpolation is {self.interpolation!r}, but must be one of {', '.join(INTERPOLATIONS)}."
            )

    def __call__(self, photo: Photo) -> Tensor:
        """The photo as a tensor (3, height, width), normalised."""
        pixels = to_tensor(self.view(photo))  # 3, height, width
        mean, std = (torch.tensor(values)[:, None, None] for values in (self.mean, self.std))
        # A plain division: multiplying by 1/255 differs from what others compute in the last bit.
        # And one colour after the other from here on, as models read them.
        return (pixels.to(torch.float32, memory_format=torch.contiguous_format) / 255).sub_(mean).div_(std)

    def view(self, photo: Photo) -> Image.Image:
        """What the model sees of the photo, as a picture."""
        whole = open_photo(photo)
        height, width = self._resized(whole.size)
        if width * max(height, whole.height) > MOST_PIXELS:
            raise PhotoError(f"The photo, {whole.width} × {whole.height} pixels, {_too_much(whole, width, height)}.")
        resized: Image.Image
        if self.rounding == "transformers" and self.interpolation != "lanczos":  # which tensors cannot do
            from torchvision.transforms import InterpolationMode  # slow to import, and only for this
            from torchvision.transforms.v2 import functional as transforms

            method = InterpolationMode(self.interpolation)
            resized = transforms.to_pil_image(transforms.resize(_tensor(whole), [height, width], method))
        else:
            resized = whole.resize((width, height), Image.Resampling[self.interpolation.upper()])
        left, top, crop_width, crop_height = self._crop(width, height)
        return resized.crop((left, top, left + crop_width, top + crop_height))  # black where it reaches beyond

    def box(self, size: tuple[int, int]) -> tuple[float, float, float, float]:
        """The part of a photo of `size` (width, height) that the model sees: left, top, right, bottom.

        In the photo's own pixels. It reaches beyond the photo where a crop larger than the photo is padded.
        """
        height, width = self._resized(size)
        left, top, crop_width, crop_height = self._crop(width, height)
        x, y = size[0] / width, size[1] / height
        return left * x, top * y, (left + crop_width) * x, (top + crop_height) * y

    def at_size(self, side: int) -> Preprocessing:
        """The same for a square image of another size: as much of the photo is cut off as before."""
        if self.crop is None:
            return replace(self, resize=side if isinstance(self.resize, int) else (side, side))
        scale = side / min(self.crop)
        if isinstance(self.resize, int):
            return replace(self, resize=round(self.resize * scale), crop=(side, side))
        height, width = self.resize
        return replace(self, resize=(round(height * scale), round(width * scale)), crop=(side, side))

    def fitted(self, size: tuple[int, int], side: int, patch_size: int) -> Preprocessing:
        """The same for all of a photo of `size` (width, height), in its own shape: nothing is cut off.

        It gets about as many patches as a square image of this side has, in whole rows and columns.
        """
        width, height = size
        shape = math.sqrt(height / width)
        rows, columns = (max(1, round(side * factor / patch_size)) for factor in (shape, 1 / shape))
        return replace(self, resize=(rows * patch_size, columns * patch_size), crop=None)

    @property
    def image_size(self) -> tuple[int, int] | None:
        """(height, width) of the result, None where it depends on the photo."""
        return self.crop or (self.resize if isinstance(self.resize, tuple) else None)

    def to_dict(self) -> dict[str, Any]:
        return asdict(self)

    def _crop(self, width: int, height: int) -> tuple[int, int, int, int]:
        """Left, top, width and height of what is cut from the middle of a resized photo."""
        crop_height, crop_width = self.crop or (height, width)
        return self._middle(width - crop_width), self._middle(height - crop_height), crop_width, crop_height

    def _middle(self, spare: int) -> int:
        """Where to cut when there are so many pixels to spare; where they are wanting, the odd one goes last."""
        if spare < 0:
            return -(-spare // 2)
        return spare // 2 if self.rounding == "transformers" else round(spare / 2)

    def _resized(self, size: tuple[int, int]) -> tuple[int, int]:
        """(height, width) after resizing a photo of (width, height)."""
        if isinstance(self.resize, tuple):
            return self.resize
        width, height = size
        if width <= height:
            return int(self.resize * height / width), self.resize
        return self.resize, int(self.resize * width / height)


def _too_much(photo: Image.Image, width: int, height: int) -> str:
    """Why it cannot be resized: it is a strip, or the image is to be far too large."""
    if max(photo.size) > STRIP * min(photo.size):
        return "is too long and thin: crop it first"
    return f"would become {width:,} × {height:,}, which is too large: choose a smaller size"


def to_tensor(photo: Image.Image) -> Tensor:
    """The pixels, from 0 to 255 (3, height, width)."""
    return torch.from_numpy(np.array(photo)).permute(2, 0, 1)


def _tensor(photo: Image.Image) -> Tensor:
    """As `to_tensor`, which holds two more copies meanwhile."""
    pixels = torch.empty(photo.height, photo.width, 3, dtype=torch.uint8)
    for top, band in bands(photo):
        pixels[top : top + band.height] = torch.from_numpy(np.array(band))
    return pixels.permute(2, 0, 1)
