"""From a photo to what the model sees, and the way back: which part of the photo that was."""

from __future__ import annotations

from dataclasses import asdict, dataclass
from typing import Any, Literal

import torch
from PIL import Image
from torch import Tensor
from torchvision.transforms import InterpolationMode
from torchvision.transforms.v2 import functional as transforms

from .files import Photo, PhotoError, bands, open_photo

INTERPOLATIONS = ("nearest", "bilinear", "bicubic", "lanczos")
MOST_PIXELS = 16_000_000  # of a photo while it is resized, first in width: a strip would become a giant


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
        pixels = transforms.pil_to_tensor(self.view(photo))  # 3, height, width
        # A plain division: multiplying by 1/255 differs from what others compute in the last bit.
        return transforms.normalize(pixels.to(torch.float32) / 255, list(self.mean), list(self.std))

    def view(self, photo: Photo) -> Image.Image:
        """What the model sees of the photo, as a picture."""
        whole = open_photo(photo)
        height, width = self._resized(whole.size)
        if width * max(height, whole.height) > MOST_PIXELS:
            raise PhotoError(f"The photo, {whole.width} × {whole.height} pixels, is too long and thin: crop it first.")
        method = InterpolationMode(self.interpolation)
        resized: Image.Image
        if self.rounding == "transformers" and method != InterpolationMode.LANCZOS:  # which tensors cannot do
            resized = transforms.to_pil_image(transforms.resize(_tensor(whole), [height, width], method))
        else:
            resized = transforms.resize(whole, [height, width], method)
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


def _tensor(photo: Image.Image) -> Tensor:
    """As torchvision's pil_to_tensor, which holds two more copies meanwhile."""
    pixels = torch.empty(photo.height, photo.width, 3, dtype=torch.uint8)
    for top, band in bands(photo):
        pixels[top : top + band.height] = transforms.pil_to_tensor(band).permute(1, 2, 0)
    return pixels.permute(2, 0, 1)
