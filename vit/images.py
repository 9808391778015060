"""From a photo to what the model sees, and the way back: which part of the photo that was."""

from __future__ import annotations

from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any, Literal

import torch
from PIL import Image, ImageOps, UnidentifiedImageError
from torch import Tensor
from torchvision.transforms import InterpolationMode
from torchvision.transforms.v2 import functional as transforms

Photo = str | Path | Image.Image


class PhotoError(ValueError):
    """A photo that cannot be used, in a sentence for the person who chose it."""


def open_photo(photo: Photo) -> Image.Image:
    """The photo, upright and in RGB; what is transparent lies on white."""
    if not isinstance(photo, Image.Image):
        photo = _read(Path(photo))
    try:
        photo = ImageOps.exif_transpose(photo)
        if photo.mode.startswith("I") and photo.convert("I").getextrema()[1] > 255:  # 16 bits: Pillow would clip
            photo = photo.convert("I").point(lambda value: value / 256).convert("L")
        if photo.has_transparency_data:
            photo = photo.convert("RGBA")
            white = Image.new("RGBA", photo.size, "white")
            photo = Image.alpha_composite(white, photo)
        return photo.convert("RGB")
    except (OSError, SyntaxError) as error:
        raise PhotoError("The photo ends too early or is damaged: save it again, or choose another.") from error


def _read(path: Path) -> Image.Image:
    try:
        with Image.open(path) as photo:
            photo.load()
            return photo
    except FileNotFoundError:
        raise PhotoError(f"There is no photo {str(path)!r}: check the path.") from None
    except IsADirectoryError:
        raise PhotoError(f"{str(path)!r} is a folder: name the photos in it, as in {str(path / '*.jpg')!r}.") from None
    except UnidentifiedImageError:
        raise PhotoError(f"{path.name!r} is not a photo that can be read: save it as JPEG, PNG or WebP.") from None
    except Image.DecompressionBombError:
        raise PhotoError(f"{path.name!r} has too many pixels to open safely: make it smaller.") from None
    except (OSError, SyntaxError) as error:
        raise PhotoError(f"{path.name!r} could not be read, it may be damaged ({error}): choose another.") from error


@dataclass(frozen=True)
class Preprocessing:
    """Resize, crop and normalise a photo the way a checkpoint was trained.

    `resize` is the length of the shorter side, or (height, width) to squash the photo into; `crop` is the
    (height, width) then cut from the middle, None for all of it. `resize_by` is who resizes: the two round
    differently, by a grey level here and there, and a checkpoint is to see what it was trained on.
    """

    resize: int | tuple[int, int]
    crop: tuple[int, int] | None = None
    interpolation: Literal["nearest", "bilinear", "bicubic", "lanczos"] = "bicubic"
    mean: tuple[float, ...] = (0.5, 0.5, 0.5)
    std: tuple[float, ...] = (0.5, 0.5, 0.5)
    resize_by: Literal["pillow", "torchvision"] = "pillow"

    def __post_init__(self) -> None:
        for field in ("resize", "crop", "mean", "std"):  # JSON has lists
            if isinstance(value := getattr(self, field), list):
                object.__setattr__(self, field, tuple(value))

    def __call__(self, photo: Photo) -> Tensor:
        """The photo as a tensor (3, height, width), normalised."""
        pixels = transforms.pil_to_tensor(self.view(photo))  # 3, height, width
        # A plain division: multiplying by 1/255 differs from what others compute in the last bit.
        return transforms.normalize(pixels.to(torch.float32) / 255, list(self.mean), list(self.std))

    def view(self, photo: Photo) -> Image.Image:
        """What the model sees of the photo, as a picture."""
        photo = open_photo(photo)
        size, method = list(self._resized(photo.size)), InterpolationMode(self.interpolation)
        if self.resize_by == "torchvision" and method != InterpolationMode.LANCZOS:
            photo = transforms.to_pil_image(transforms.resize(transforms.pil_to_tensor(photo), size, method))
        else:
            photo = transforms.resize(photo, size, method)
        return photo if self.crop is None else transforms.center_crop(photo, list(self.crop))

    def box(self, size: tuple[int, int]) -> tuple[float, float, float, float]:
        """The part of a photo of `size` (width, height) that the model sees: left, top, right, bottom.

        In the photo's own pixels. It reaches beyond the photo where a crop larger than the photo is padded.
        """
        height, width = self._resized(size)
        crop_height, crop_width = self.crop or (height, width)
        top = round((height - crop_height) / 2)
        left = round((width - crop_width) / 2)
        x, y = size[0] / width, size[1] / height
        return left * x, top * y, (left + crop_width) * x, (top + crop_height) * y

    @property
    def image_size(self) -> tuple[int, int] | None:
        """(height, width) of the result, None where it depends on the photo."""
        return self.crop or (self.resize if isinstance(self.resize, tuple) else None)

    def to_dict(self) -> dict[str, Any]:
        return asdict(self)

    def _resized(self, size: tuple[int, int]) -> tuple[int, int]:
        """(height, width) after resizing a photo of (width, height)."""
        if isinstance(self.resize, tuple):
            return self.resize
        width, height = size
        if width <= height:
            return int(self.resize * height / width), self.resize
        return self.resize, int(self.resize * width / height)
