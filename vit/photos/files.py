"""Opening the file of a photo within bounds of memory: odd, damaged and hostile files too.

JPEG, PNG and WebP, which nearly all photos are, are opened here, and Pillow gets to see only what their pixels need:
its readers of tags and texts can be made to take any amount of memory. So can its decoders of other formats: for files
of strangers see `uploads`. This file is the program of their sandbox, too, so it imports nothing of the package.
"""

from __future__ import annotations

import io
import struct
import sys
import zlib
from collections.abc import Callable, Iterator
from contextlib import suppress
from pathlib import Path
from typing import Any

from PIL import AvifImagePlugin, ExifTags, Image, ImageOps, UnidentifiedImageError
from PIL.ImageFile import ImageFile
from PIL.JpegImagePlugin import JpegImageFile
from PIL.PngImagePlugin import PngImageFile
from PIL.WebPImagePlugin import WebPImageFile

Photo = str | Path | Image.Image | Any  # or an array (height, width, 3) of bytes
OTHER_FORMATS = ("GIF", "TIFF", "AVIF", "BMP", "JPEG2000", "PPM", "ICO")
HEIF = {b"heic", b"heix", b"heim", b"heis", b"mif1", b"msf1"}  # the first brands of files that phones write
LARGEST = 26_000_000  # pixels, of 4 bytes each, which are held twice while a photo is turned or becomes RGB
LARGEST_OF = {
    "WEBP": 13_000_000,
    "AVIF": 16_000_000,
    "HEIF": 25_000_000,
    "JPEG2000": 8_000_000,
}  # whose decoders hold further copies
LONGEST = 65_535  # pixels of a side
MEMORY = 8 * LARGEST
SANDBOX_MEMORY, SANDBOX_MEMORY_HEIF, SANDBOX_SECONDS = 256 << 20, 448 << 20, 10

# The markers of a JPEG. Needed are tables and frames, and JFIF and Adobe, which tell the colours.
NEEDED = {*range(0xC0, 0xD0), 0xDB, 0xDD, 0xE0, 0xEE} - {0xC8}
SCAN, APP1 = 0xDA, 0xE1
REMARKS = "remarks"  # in the info of a photo that was opened: what is not as in the file, in sentences
ON_WHITE = "Transparent parts are shown on white."
MOST_SEGMENTS, MOST_SCANS = 10_000, 100  # cameras write some 20 and 10


class PhotoError(ValueError):
    """A photo that cannot be used, in a sentence for the person who chose it."""


def open_photo(photo: Photo) -> Image.Image:
    """The photo, upright and in RGB, what is transparent on white; the one given where it is so already.

    A JPEG too large to be held is read at a half, a quarter or an eighth of its size. What else is not as in the file,
    `remarks` says.
    """
    if isinstance(photo, str | Path):
        photo = _read(Path(photo))
    elif not isinstance(photo, Image.Image):
        photo = _from_array(photo)
    if 0 in photo.size:
        raise PhotoError("The photo has no pixels: choose another.")
    try:
        photo.load()
        if _is_turned(photo):
            photo = ImageOps.exif_transpose(photo)
        return photo if photo.mode == "RGB" and not photo.has_transparency_data else _rgb(photo)
    except MemoryError:
        raise
    except Exception as error:  # Pillow's decoders raise anything
        raise PhotoError("The photo ends too early or is damaged: save it again, or choose another.") from error


def _from_array(array: Any) -> Image.Image:
    try:
        return Image.fromarray(array)
    except (AttributeError, TypeError, ValueError):
        kind = f" {tuple(array.shape)} of {array.dtype}" if hasattr(array, "shape") and hasattr(array, "dtype") else ""
        raise PhotoError(
            "A photo is a path, an image of Pillow's, or an array (height, width, 3) of bytes: "
            f"ask about one at a time, not about a {type(array).__name__}{kind}."
        ) from None


def remarks(photo: Image.Image) -> list[str]:
    """What a person should know of a photo that `open_photo` gave."""
    return photo.info.get(REMARKS, [])


def bands(photo: Image.Image) -> Iterator[tuple[int, Image.Image]]:
    """Bands of about a megapixel, from the top, each with where it begins."""
    rows = max(1, 1_000_000 // photo.width)
    for top in range(0, photo.height, rows):
        yield top, photo.crop((0, top, photo.width, min(top + rows, photo.height)))


def _read(path: Path) -> ImageFile:
    try:
        reader = _reader(path)
        photo, exif = (_open_other(path), None) if reader is None else reader(path)
        frames = _count_others(path) if reader is None else photo.info.pop("frames", 1)
        with photo:
            _check(path, photo.size, LARGEST_OF.get(photo.format or "", LARGEST))
            photo.load()
        if frames > 1:
            photo.info[REMARKS] = [f"Only the first of its {frames:,} pictures is shown."]
        if exif is not None:
            photo.getexif()[ExifTags.Base.Orientation] = _orientation(exif)
        return photo
    except (PhotoError, MemoryError):
        raise
    except FileNotFoundError:
        raise PhotoError(f"There is no photo {str(path)!r}: check the path.") from None
    except IsADirectoryError:
        raise PhotoError(f"{str(path)!r} is a folder: name the photos in it, as in {str(path / '*.jpg')!r}.") from None
    except PermissionError:
        raise PhotoError(f"{path.name!r} may not be read: change its permissions.") from None
    except UnidentifiedImageError:
        raise PhotoError(f"{path.name!r} is not a photo that can be read: save it as JPEG, PNG or WebP.") from None
    except Image.DecompressionBombError:
        raise PhotoError(
            f"{path.name!r} has more pixels than can be opened safely: "
            f"make it smaller, {LARGEST // 1_000_000} megapixels at most."
        ) from None
    except Exception as error:  # Pillow's decoders raise anything
        sentence = f"{path.name!r} could not be read, it may be damaged: save it again, or choose another."
        raise PhotoError(sentence) from error


def size_of(path: Path) -> tuple[int, int] | None:
    """The sides of a photo as its file states them, without decoding it; None where that cannot be read."""
    with suppress(Exception):  # Pillow's readers raise anything
        reader = _reader(path)
        with _open_other(path) if reader is None else reader(path)[0] as photo:
            return photo.size
    return None


def has_safe_reader(path: Path) -> bool:
    """Whether the file is of a format that is opened here within bounds of memory."""
    return _reader(path) is not None


def _reader(path: Path) -> Callable[[Path], tuple[ImageFile, bytes]] | None:
    """What opens the file without decoding it, and finds its EXIF; None unless it is a JPEG, PNG or WebP."""
    with path.open("rb") as file:
        start = file.read(12)
    if start.startswith(b"\xff\xd8\xff"):
        return _open_jpeg
    if start.startswith(b"\x89PNG\r\n\x1a\n"):
        return _open_png
    return _open_webp if start.startswith(b"RIFF") and start.endswith(b"WEBP") else None


def _open_other(path: Path) -> ImageFile:
    if not _is_heif(path):
        return Image.open(path, formats=OTHER_FORMATS)
    import pillow_heif  # whose decoder is large, and seldom needed

    pillow_heif.options.DECODE_THREADS = 1  # their stacks would count
    pillow_heif.register_heif_opener(thumbnails=False)
    return Image.open(path, formats=("AVIF", "HEIF"))  # which begin alike


def _count_others(path: Path) -> int:
    """How many pictures the file holds; 1 where it is damaged after the first."""
    with suppress(Exception), _open_other(path) as photo:
        return getattr(photo, "n_frames", 1)
    return 1


def _is_heif(path: Path) -> bool:
    with path.open("rb") as file:
        start = file.read(12)
    return start[4:8] == b"ftyp" and start[8:] in HEIF


def _open_jpeg(path: Path) -> tuple[ImageFile, bytes]:
    data = path.read_bytes()
    header, exif, scans = _jpeg_header(data)
    photo = JpegImageFile(io.BytesIO(header + data[scans:]))
    pixels = photo.width * photo.height
    waiting = 0.0
    if photo.info.get("progressive") or data[scans + 4] < photo.layers:
        # The colours come one after the other, or coarse first and fine later. Until the last scan is read, all
        # coefficients wait, 2 bytes each and in full size.
        if data.count(b"\xff\xda", scans) > MOST_SCANS:
            raise ValueError("The JPEG has so many scans that it would take minutes to read.")
        _, high, wide, _ = (max(values) for values in zip(*photo.layer))
        waiting = 2 * sum(v * h for _, v, h, _ in photo.layer) / (high * wide)
    for scale in (1, 2, 4, 8):
        held = -(-photo.width // scale) * -(-photo.height // scale)
        if held <= LARGEST and waiting * pixels + 4 * held <= MEMORY:
            if scale > 1:
                photo.draft(None, (photo.width // scale, photo.height // scale))
            return photo, exif
    raise _too_large(path, photo.size, int(min(64 * LARGEST, MEMORY / (waiting + 4 / 64))))


def _jpeg_header(data: bytes) -> tuple[bytes, bytes, int]:
    """What stands before the first scan without texts, thumbnails and profiles; the EXIF; where that scan begins."""
    header, exif, place = bytearray(data[:2]), b"", 2
    for _ in range(MOST_SEGMENTS):
        while data[place] != 0xFF or data[place + 1] in (0, 0xFF):  # filling
            place = data.index(b"\xff", place + 1)
        marker, length = struct.unpack_from(">BH", data, place + 1)
        segment = data[place : place + 2 + length]
        if marker == SCAN:
            return bytes(header), exif, place
        if length < 2:
            break
        if marker in NEEDED:
            header += segment
        elif marker == APP1 and segment[4:10] == b"Exif\0\0":
            exif = exif or segment[10:]
        place += 2 + length
    raise ValueError("The header of the JPEG has no end.")


def _open_png(path: Path) -> tuple[ImageFile, bytes]:
    data = path.read_bytes()
    chunks: dict[bytes, bytes] = {}
    pixels, exif, frames, place = bytearray(), b"", 1, 8
    while place + 8 <= len(data):
        length, kind = struct.unpack_from(">I4s", data, place)
        if kind == b"IDAT":
            pixels += data[place + 8 : place + 8 + length]
        elif kind in (b"IHDR", b"PLTE", b"tRNS"):
            chunks.setdefault(kind, data[place : place + 12 + length])
        elif kind == b"eXIf":
            exif = data[place + 8 : place + 8 + length]
        elif kind == b"acTL":
            (frames,) = struct.unpack_from(">I", data, place + 8)
        place += 12 + length
    end = struct.pack(">I", zlib.crc32(pixels, zlib.crc32(b"IDAT"))) + b"\0\0\0\0IEND\xaeB`\x82"
    parts = data[:8], *(chunks.get(kind, b"") for kind in (b"IHDR", b"PLTE", b"tRNS"))
    content = b"".join((*parts, struct.pack(">I4s", len(pixels), b"IDAT"), pixels, end))
    photo = PngImageFile(io.BytesIO(content))
    photo.info["frames"] = frames
    return photo, exif


def _open_webp(path: Path) -> tuple[ImageFile, bytes]:
    photo = WebPImageFile(path)
    photo.info["frames"] = photo.n_frames
    return photo, photo.info.pop("exif", b"")


def _check(path: Path, size: tuple[int, int], most: int) -> None:
    if size[0] * size[1] > most:
        raise _too_large(path, size, most)
    if max(size) > LONGEST:
        raise PhotoError(f"{path.name!r}, {size[0]:,} × {size[1]:,} pixels, is too long and thin: crop it first.")


def _too_large(path: Path, size: tuple[int, int], most: int) -> PhotoError:
    return PhotoError(
        f"{path.name!r} has {size[0]:,} × {size[1]:,} pixels, more than can be opened safely: "
        f"make it smaller, {most // 1_000_000:,} megapixels at most."
    )


def _orientation(exif: bytes) -> int:
    """How the camera was held, 1 to 8. Where the EXIF is broken or does not say, upright."""
    with suppress(struct.error, KeyError):
        tags = exif.removeprefix(b"Exif\0\0")
        order = {b"II": "<", b"MM": ">"}[tags[:2]]
        (start,) = struct.unpack_from(order + "I", tags, 4)
        (count,) = struct.unpack_from(order + "H", tags, start)
        for place in range(start + 2, start + 2 + 12 * count, 12):
            tag, kind = struct.unpack_from(order + "HH", tags, place)
            if tag == ExifTags.Base.Orientation:
                return struct.unpack_from(order + {3: "H", 4: "I"}[kind], tags, place + 8)[0]
    return 1


def _is_turned(photo: Image.Image) -> bool:
    with suppress(Exception):  # of broken EXIF
        return photo.getexif().get(ExifTags.Base.Orientation) in range(2, 9)
    return False


def _rgb(photo: Image.Image) -> Image.Image:
    """The photo in RGB, made a band at a time: of the whole, several copies would be held."""
    deep, scale = photo.mode[0] in "IF", 1.0  # more than 8 bits: Pillow would clip them
    if deep:
        tops: list[Any] = [band.convert("F").getextrema()[1] for _, band in bands(photo)]
        highest = max(tops)
        scale = 255 if highest <= 1 else 1 / 256 if highest > 255 else 1
    whole, clear = Image.new("RGB", photo.size), False
    for top, band in bands(photo):
        if deep:
            band = band.convert("F").point(lambda value: value * scale).convert("L")
        if band.has_transparency_data:
            band = band.convert("RGBA")
            clear = clear or band.getchannel("A").histogram()[255] < band.width * band.height
            band = Image.alpha_composite(Image.new("RGBA", band.size, "white"), band)
        whole.paste(band.convert("RGB"), (0, top))
    whole.info[REMARKS] = [*remarks(photo), *([ON_WHITE] if clear else [])]
    return whole


def _main() -> None:
    """Open the first file, bounded, and save it as the second; where it cannot be, say why."""
    AvifImagePlugin.DEFAULT_MAX_THREADS = 1  # their stacks would count
    with suppress(ImportError, OSError, ValueError):  # which systems other than Linux may raise
        import resource

        memory = SANDBOX_MEMORY_HEIF if _is_heif(Path(sys.argv[1])) else SANDBOX_MEMORY
        resource.setrlimit(resource.RLIMIT_AS, (memory, memory))
        resource.setrlimit(resource.RLIMIT_CPU, (SANDBOX_SECONDS, SANDBOX_SECONDS))
    try:
        photo = open_photo(sys.argv[1])
        photo.save(sys.argv[2], "PPM")
        print(*remarks(photo), sep="\n", end="")
    except PhotoError as error:
        print(error)
        sys.exit(1)


if __name__ == "__main__":
    _main()
