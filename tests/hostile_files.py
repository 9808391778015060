"""Odd and hostile files, made by hand where no program would write them, and what is to become of each."""

import base64
import io
import struct
import zlib
from collections.abc import Callable
from functools import partial

import numpy as np
import pillow_heif
from conftest import SKIMAGE
from PIL import Image

pillow_heif.register_heif_opener()

MEGABYTE = 1 << 20
PREDICTION = ""  # any other outcome is what the sentence says
DAMAGED = "could not be read, it may be damaged: save it again, or choose another."
UNKNOWN = "is not a photo that can be read: save it as JPEG, PNG or WebP."
TOO_LARGE = "pixels, more than can be opened safely: make it smaller, {} megapixels at most."
TOO_THIN = "is too long and thin: crop it first."
TOO_MUCH = "takes too much memory or time to open: save it as JPEG, PNG or WebP."

CAT = Image.open(SKIMAGE / "chelsea.png").convert("RGB").resize((300, 200))

# An AVIF that calls itself 400 × 300 and holds a picture of 16384 × 8192.
FORGED_AVIF = (
    "eNpjYGBQSCupLEgsy0xjAAIQnZuZZpibmZjm62joBBR6nZtaksgAAYoZKTlFUDZDQWZyCQMa4CvILMkFsxiBWC4zJz8ZxHEB8RkhoozCDAxs+k"
    "C2RmZmXhpcrRSQk8oE5SWWGRg65+fkg+3KyiwoKgDS3pkFyflAWiSzuCAVYh3jBCDWATIECjIrMkEizBwcHECKJ7HM0LlRngckJJycn1OUl5xT"
    "ATSZl4GtASgknlmQC/MT0GEsjEzNLEBXmeemJJYIMXBxy3+3////twuLiZSA0VweCfbkw4fWvP///2P6AwaG+POnNI9PM+9q3lN9k89KpEPca9"
    "fhZatPPayTVGrnDZRkP27Mz6+3Y+5Bm8dbv+wOPhNWcd7b4t5Jd45f3kk/CvPPP5kmMkNkzxynnknPKpu6py5L3PP4o8rKc/Zfp2WZHhLjvLqB"
    "Y9SCUQtGLRi1YNQCalhAa/MBnudFSg=="
)


def saved(picture: Image.Image, kind: str, **options) -> bytes:
    file = io.BytesIO()
    picture.save(file, kind, **options)
    return file.getvalue()


def segment(marker: int, content: bytes) -> bytes:
    return struct.pack(">BBH", 0xFF, marker, 2 + len(content)) + content


def flat_jpeg(
    width: int,
    height: int,
    layers: int = 3,
    frame: int = 0xC0,  # 0xC2 for a progressive one
    luma: int = 2,  # how many times finer than the colours in each direction
    together: bool = True,  # the layers in one scan
    repeat: int = 1,
    exif: bytes = b"",
) -> bytes:
    """A grey JPEG of any size, without ever holding its pixels: each coefficient is the code 0, one bit long."""
    sampling = [luma, *[1] * (layers - 1)]
    sof = struct.pack(">BHHB", 8, height, width, layers)
    sof += b"".join(bytes([number, 17 * times, 0]) for number, times in enumerate(sampling, 1))
    code = bytes([1, *[0] * 15, 0])
    scans = b""
    end = 0 if frame == 0xC2 else 63
    for group in [range(layers)] if together else [[layer] for layer in range(layers)]:
        if together:
            units = -(-width // (8 * luma)) * -(-height // (8 * luma))
            blocks = units * sum(times * times for times in sampling)
        else:
            shrunk = luma // sampling[group[0]]
            blocks = -(-width // (8 * shrunk)) * -(-height // (8 * shrunk))
        chosen = bytes([len(group)]) + b"".join(bytes([layer + 1, 0]) for layer in group)
        scans += segment(0xDA, chosen + bytes([0, end, 0])) + bytes(blocks * (2 if end else 1) // 8 + 1)
    return b"".join(
        [
            b"\xff\xd8",
            segment(0xE1, b"Exif\0\0" + exif) if exif else b"",
            segment(0xDB, bytes([0]) + b"\x01" * 64),
            segment(frame, sof),
            segment(0xC4, b"\x00" + code + b"\x10" + code),
            scans * repeat,
            b"\xff\xd9",
        ]
    )


def chunk(kind: bytes, content: bytes) -> bytes:
    return struct.pack(">I", len(content)) + kind + content + struct.pack(">I", zlib.crc32(kind + content))


def zeros(count: int) -> bytes:
    """So many, compressed, without ever holding them."""
    packer = zlib.compressobj(1)
    whole, rest = divmod(count, MEGABYTE)
    packed = [packer.compress(bytes(MEGABYTE)) for _ in range(whole)]
    return b"".join([*packed, packer.compress(bytes(rest)), packer.flush()])


def flat_png(width: int, height: int, colour: int = 0, bits: int = 8, between: bytes = b"", exif: bytes = b"") -> bytes:
    """A black PNG; `colour` is 0 for grey, 2 for RGB, 6 for RGBA."""
    row = 1 + -(-width * bits * {0: 1, 2: 3, 6: 4}[colour] // 8)
    pixels = zeros(row * height)
    header = chunk(b"IHDR", struct.pack(">IIBBBBB", width, height, bits, colour, 0, 0, 0))
    exif = chunk(b"eXIf", exif) if exif else b""
    return b"\x89PNG\r\n\x1a\n" + header + exif + between + chunk(b"IDAT", pixels) + chunk(b"IEND", b"")


def texts(count: int) -> bytes:
    """Texts of a million letters, of 4 bytes each because one of them is 🍕."""
    packed = zlib.compress(("🍕" + "x" * 1_000_000).encode())
    return b"".join(chunk(b"iTXt", b"text %d\0\x01\0\0\0" % number + packed) for number in range(count))


def tags(*entries: tuple[int, int, int, int]) -> bytes:
    """TIFF's directory of (tag, type, count, value)."""
    return struct.pack("<H", len(entries)) + b"".join(struct.pack("<HHII", *entry) for entry in entries) + bytes(4)


def exif(orientation: int) -> bytes:
    return b"II*\0\x08\0\0\0" + tags((0x0112, 3, 1, orientation))


def overlapping(entries: int, size: int) -> bytes:
    """EXIF in which every tag holds the same large text."""
    directory = tags(*((40000 + number, 7, size - 8, 8) for number in range(entries)))
    return (b"II*\0\x08\0\0\0" + directory).ljust(size, b"\0")


def tiff(data: bytes, *entries: tuple[int, int, int, int], size: int = 100) -> bytes:
    """A grey TIFF, its data from byte 8 on."""
    usual = {256: (4, 1, size), 257: (4, 1, size), 258: (3, 1, 8), 259: (3, 1, 1), 262: (3, 1, 1)}
    given = {tag: tuple(entry) for tag, *entry in entries}
    both = sorted({**usual, **given}.items())
    return struct.pack("<2sHI", b"II", 42, 8 + len(data)) + data + tags(*((tag, *entry) for tag, entry in both))


def tiled_tiff() -> bytes:
    """A picture of 100 × 100 pixels in one tile of 20,000 × 20,000."""
    data = zeros(20_000 * 20_000)
    return tiff(data, (259, 3, 1, 8), (322, 4, 1, 20_000), (323, 4, 1, 20_000), (324, 4, 1, 8), (325, 4, 1, len(data)))


def animation(kind: str, frames: int = 3) -> bytes:
    pictures = [CAT.resize((64, 48)).rotate(number) for number in range(frames)]
    return saved(pictures[0], kind, save_all=True, append_images=pictures[1:])


def many_frames() -> bytes:
    data = saved(CAT.resize((64, 48)).quantize(256), "GIF")
    start = data.index(b",", 13 + 3 * 256)
    return data[:start] + data[start:-1] * 5000 + b";"


def webp_of_canvas(width: int, height: int) -> bytes:
    data = bytearray(animation("WEBP"))
    place = data.index(b"VP8X") + 12
    data[place : place + 6] = (width - 1).to_bytes(3, "little") + (height - 1).to_bytes(3, "little")
    return bytes(data)


def icon_of(png: bytes) -> bytes:
    return struct.pack("<HHHBBBBHHII", 0, 1, 1, 0, 0, 0, 0, 1, 32, len(png), 22) + png


def bmp(width: int, height: int, compression: int, data: bytes, bits: int = 24) -> bytes:
    header = struct.pack("<IiiHHIIiiII", 40, width, height, 1, bits, compression, len(data), 0, 0, 0, 0)
    palette = bytes(4 << bits) if bits <= 8 else b""
    start = 14 + len(header) + len(palette)
    return b"BM" + struct.pack("<IHHI", start + len(data), 0, 0, start) + header + palette + data


def half(data: bytes) -> bytes:
    return data[: len(data) // 2]


def nan_tiff() -> bytes:
    values = np.linspace(0, 1, 64 * 64, dtype=np.float32).reshape(64, 64)
    values[3:9, 5:20] = np.nan
    values[20:22] = np.inf
    return saved(Image.fromarray(values), "TIFF")


def clear(size: tuple[int, int], kind: str, **options) -> bytes:
    return saved(Image.new("RGBA", size, (200, 30, 30, 90)), kind, **options)


grey = CAT.convert("L")
turned: dict[str, tuple[Callable[[], bytes], str]] = {
    f"turned {n}.{kind.lower()}": (partial(saved, CAT, kind, exif=exif(n)), PREDICTION)
    for n, kind in zip(range(1, 9), ["JPEG", "JPEG", "PNG", "WEBP", "JPEG", "JPEG", "TIFF", "AVIF"])
}

# Name, how it is made, and the outcome.
FILES: dict[str, tuple[Callable[[], bytes], str]] = {
    **turned,
    # JPEG
    "12 megapixels, turned.jpg": (lambda: flat_jpeg(4000, 3000, exif=exif(6)), PREDICTION),
    "26 megapixels, turned.jpg": (lambda: flat_jpeg(6240, 4160, exif=exif(8)) + bytes(19_000_000), PREDICTION),
    "26 megapixels, CMYK.jpg": (lambda: flat_jpeg(6240, 4160, layers=4, luma=1), PREDICTION),
    "50 megapixels.jpg": (lambda: flat_jpeg(8160, 6120), PREDICTION),
    "108 megapixels, turned.jpg": (lambda: flat_jpeg(12000, 9000, exif=exif(6)), PREDICTION),
    "200 megapixels.jpg": (lambda: flat_jpeg(16320, 12240), PREDICTION),
    "65 megapixels, progressive.jpg": (lambda: flat_jpeg(8060, 8060, frame=0xC2), PREDICTION),
    "25 megapixels, progressive, CMYK.jpg": (lambda: flat_jpeg(5000, 5000, 4, 0xC2, luma=1), PREDICTION),
    "12k progressive.jpg": (lambda: flat_jpeg(12000, 12000, frame=0xC2), "12,000 × 12,000 " + TOO_LARGE.format(67)),
    "12k in three scans.jpg": (lambda: flat_jpeg(12000, 12000, together=False), TOO_LARGE.format(67)),
    "65k.jpg": (lambda: flat_jpeg(65535, 65535, layers=1, luma=1)[:5000], TOO_LARGE.format("1,664")),
    "ten thousand scans.jpg": (lambda: flat_jpeg(800, 800, frame=0xC2, repeat=10_000), DAMAGED),
    "five million segments.jpg": (
        lambda: b"\xff\xd8" + segment(0xE5, b"") * 5_000_000 + flat_jpeg(64, 64)[2:],
        DAMAGED,
    ),
    "overlapping tags.jpg": (lambda: flat_jpeg(300, 200, exif=overlapping(5000, 65_000)), PREDICTION),
    "broken tags.jpg": (lambda: flat_jpeg(300, 200, exif=b"MM\0*\0\0\0\x08\0\x05\x01\x12"), PREDICTION),
    "half.jpg": (lambda: half(saved(CAT, "JPEG")), DAMAGED),
    "grey.jpg": (lambda: saved(grey, "JPEG"), PREDICTION),
    "cmyk.jpg": (lambda: saved(CAT.convert("CMYK"), "JPEG"), PREDICTION),
    "three d.mpo": (lambda: saved(CAT, "MPO", save_all=True, append_images=[CAT.rotate(3)]), PREDICTION),
    "really a png.jpg": (lambda: saved(CAT, "PNG"), PREDICTION),
    # PNG
    "13k.png": (lambda: flat_png(13000, 13000, bits=1), "13,000 × 13,000 " + TOO_LARGE.format(26)),
    "26 megapixels, clear, turned.png": (lambda: flat_png(6240, 4160, 6, exif=exif(6)), PREDICTION),
    "26 megapixels, deep.png": (lambda: flat_png(6240, 4160, bits=16), PREDICTION),
    "wide.png": (lambda: flat_png(60_000, 400, 2), PREDICTION),
    "1 × 20,000.png": (lambda: flat_png(1, 20_000), TOO_THIN),
    "1 × 20,000,000.png": (lambda: flat_png(1, 20_000_000, bits=1), "1 × 20,000,000 pixels, " + TOO_THIN),
    "1 × 1.png": (lambda: flat_png(1, 1), PREDICTION),
    "texts.png": (lambda: flat_png(300, 200, between=texts(60)), PREDICTION),
    "profile.png": (
        lambda: flat_png(300, 200, between=chunk(b"iCCP", b"x\0\0" + zeros(100_000_000))),
        PREDICTION,
    ),
    "a million chunks.png": (lambda: flat_png(300, 200, between=chunk(b"prIv", b"") * 1_700_000), PREDICTION),
    "overlapping tags.png": (lambda: flat_png(300, 200, exif=overlapping(3000, 10_000_000)), PREDICTION),
    "half.png": (lambda: half(saved(CAT, "PNG")), DAMAGED),
    "header only.png": (lambda: saved(CAT, "PNG")[:33], DAMAGED),
    "animated.png": (lambda: animation("PNG"), PREDICTION),
    "palette.png": (lambda: saved(CAT.quantize(32), "PNG", transparency=bytes(range(0, 256, 8))), PREDICTION),
    "grey and clear.png": (lambda: saved(CAT.convert("LA"), "PNG"), PREDICTION),
    "one bit.png": (lambda: saved(CAT.convert("1"), "PNG"), PREDICTION),
    "sixteen bits.png": (lambda: saved(Image.fromarray(np.asarray(grey).astype(np.uint16) * 257), "PNG"), PREDICTION),
    # WebP
    "12 megapixels, clear.webp": (lambda: clear((4240, 3060), "WEBP", lossless=True, quality=0, method=0), PREDICTION),
    "canvas.webp": (lambda: webp_of_canvas(16383, 16383), "16,383 × 16,383 " + TOO_LARGE.format(13)),
    "animated.webp": (lambda: animation("WEBP"), PREDICTION),
    "half.webp": (lambda: half(saved(CAT, "WEBP")), DAMAGED),
    # Others
    "many frames.gif": (many_frames, PREDICTION),
    "no frames.gif": (lambda: b"GIF89a\x40\0\x30\0\0\0\0;", UNKNOWN),
    "65k.gif": (lambda: b"GIF89a\xff\xff\xff\xff\0\0\0,\0\0\0\0\x08\0\x08\0\0\x02\0;", "has more pixels than can be"),
    "clear.gif": (lambda: saved(CAT.quantize(16), "GIF", transparency=3), PREDICTION),
    "pages.tif": (lambda: animation("TIFF", 20), PREDICTION),
    "cmyk.tif": (lambda: saved(CAT.convert("CMYK"), "TIFF", compression="tiff_lzw"), PREDICTION),
    "not a number.tif": (nan_tiff, PREDICTION),
    "26 megapixels, clear.tif": (lambda: clear((6240, 4160), "TIFF", compression="tiff_lzw"), PREDICTION),
    "lying.bmp": (lambda: bmp(30_000, 30_000, 0, bytes(100)), "has more pixels than can be opened safely"),
    "short.bmp": (lambda: bmp(3_000, 3_000, 0, bytes(100)), DAMAGED),
    "plain.bmp": (lambda: saved(CAT, "BMP"), PREDICTION),
    "plain.ppm": (lambda: saved(CAT, "PPM"), PREDICTION),
    "plain.avif": (lambda: saved(CAT, "AVIF"), PREDICTION),
    "plain.jp2": (lambda: saved(CAT, "JPEG2000"), PREDICTION),
    "sizes.ico": (lambda: saved(CAT, "ICO", sizes=[(16, 16), (48, 48), (256, 256)]), PREDICTION),
    "plain.heic": (lambda: saved(CAT, "HEIF"), PREDICTION),
    "turned.heic": (lambda: saved(CAT, "HEIF", exif=exif(6)), PREDICTION),
    "24 megapixels.heic": (lambda: saved(Image.new("RGB", (5712, 4284), (200, 30, 30)), "HEIF"), PREDICTION),
    "half.heic": (lambda: half(saved(CAT, "HEIF")), UNKNOWN),
    "no photo in it.heic": (lambda: b"\0\0\0\x18ftypheic\0\0\0\0mif1heic" + bytes(500), UNKNOWN),
    "drawing.svg": (lambda: b"<svg xmlns='http://www.w3.org/2000/svg'/>", UNKNOWN),
    "paper.pdf": (lambda: saved(CAT, "PDF"), UNKNOWN),
    "postscript.eps": (lambda: saved(CAT, "EPS"), UNKNOWN),
    "layers.psd": (lambda: b"8BPS\0\x01" + bytes(6) + struct.pack(">HIIHH", 3, 9, 9, 8, 3) + bytes(900), UNKNOWN),
    "texture.dds": (lambda: saved(CAT, "DDS"), UNKNOWN),
    "text.jpg": (lambda: b"not a photo", UNKNOWN),
    "empty.png": (lambda: b"", UNKNOWN),
    "zeros.webp": (lambda: bytes(10_000), UNKNOWN),
    "<b onclick='x'>ümläut 🍕 \u202egnp.jpg": (lambda: b"not a photo", UNKNOWN),
}

# What only the process apart withstands.
BOMBS: dict[str, tuple[Callable[[], bytes], str]] = {
    "forged.avif": (lambda: zlib.decompress(base64.b64decode(FORGED_AVIF)), DAMAGED),
    "overlapping tags.tif": (
        lambda: tiff(bytes(10_000_000), *((40000 + n, 7, 9_000_000, 8) for n in range(300)), (273, 4, 1, 8)),
        TOO_MUCH,
    ),
    "strips.tif": (lambda: tiff(bytes(10_000_000), (273, 3, 5_000_000, 8), (278, 3, 1, 1)), TOO_MUCH),
    "one tile.tif": (tiled_tiff, DAMAGED),
    "13k.ico": (lambda: icon_of(flat_png(13_000, 13_000, 2)), TOO_MUCH),
    "leaps.bmp": (lambda: bmp(25_000_000, 1, 1, b"\0\x02\xff\xff" * 50, bits=8), TOO_THIN),
}
ALL = {**FILES, **BOMBS}
