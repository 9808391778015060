import io
import json
import random

import numpy as np
import pytest
import timm
import torch
import torchvision
import transformers
from peers import DEIT_PROCESSOR, DINO_PROCESSOR, DINOV2_PROCESSOR, VIT_PROCESSOR, from_torchvision, vit_config
from PIL import Image

import vit
from vit.images import open_photo

# As on the Hub: google/vit-base-patch16-224, facebook/deit-base-*, facebook/dino-vits16, facebook/dinov2-base.
PROCESSORS = {
    "vit": {**VIT_PROCESSOR, "size": 224},
    "vit at 384": {**VIT_PROCESSOR, "size": {"height": 384, "width": 384}, "image_processor_type": "ViTImageProcessor"},
    "deit": {**DEIT_PROCESSOR, "size": 256, "crop_size": 224},
    "dino": {**DINO_PROCESSOR, "size": 224},
    "dinov2": {**DINOV2_PROCESSOR, "size": {"shortest_edge": 256}, "crop_size": {"height": 224, "width": 224}},
}


@pytest.mark.parametrize("name", PROCESSORS)
def test_within_one_grey_level_of_transformers(name, photos, tmp_path):
    transformers.ViTModel(vit_config()).save_pretrained(tmp_path)
    (tmp_path / "preprocessor_config.json").write_text(json.dumps(PROCESSORS[name]))
    ours = vit.load(tmp_path).preprocessing
    theirs = transformers.AutoImageProcessor.from_pretrained(tmp_path)
    with_pillow = transformers.AutoImageProcessor.from_pretrained(tmp_path, backend="pil")  # off by 2 in a few pixels
    # 383 - 224 is odd in a way that tells how the middle is rounded.
    for photo in [*photos, photos[0].resize((640, 427)), photos[0].resize((427, 640)), photos[0].resize((403, 300))]:
        expected = torch.as_tensor(theirs(photo, return_tensors="pt")["pixel_values"][0])
        grey_levels = (ours(photo) - expected) * torch.tensor(ours.std)[:, None, None] * 255
        assert grey_levels.shape == expected.shape
        assert grey_levels.abs().max() <= 1 + 1e-3
        pillow = torch.as_tensor(with_pillow(photo, return_tensors="pt")["pixel_values"][0])
        assert ((ours(photo) - pillow) * torch.tensor(ours.std)[:, None, None] * 255).abs().quantile(0.9999) <= 1 + 1e-3


@pytest.mark.parametrize(
    "name",
    [
        "vit_tiny_patch16_224",
        "deit_tiny_patch16_224",
        "vit_tiny_patch16_384",
        "vit_medium_patch16_gap_240",
        "vit_small_patch14_dinov2",
    ],
)
@pytest.mark.parametrize("crop_mode", ["center", "squash"])
def test_the_same_bytes_as_timm(name, crop_mode, photos, tmp_path):
    model = timm.create_model(name, depth=1, pretrained_cfg_overlay={"crop_mode": crop_mode})
    timm.models.save_for_hf(model, tmp_path, safe_serialization=True)
    ours = vit.load(tmp_path).preprocessing
    theirs = timm.data.create_transform(**timm.data.resolve_data_config({}, model=model))
    for photo in photos:
        assert torch.equal(ours(photo), theirs(photo))


def test_a_bare_timm_file_is_prepared_as_timm_does(real, photos):
    theirs = timm.data.create_transform(
        **timm.data.resolve_data_config({}, pretrained_cfg=timm.get_pretrained_cfg("vit_tiny_patch16_224").to_dict())
    )
    for photo in photos:
        assert torch.equal(real.preprocessing(photo), theirs(photo))


@pytest.mark.parametrize("file_name", ["vit_b_16-c867db91.pth", "vit_b_16_lc_swag-4e70ced5.pth", "any_other_name.pth"])
def test_torchvisions_files_are_prepared_as_torchvision_does(file_name, photos, tmp_path):
    peer = from_torchvision(
        file_name, image_size=224, patch_size=16, num_heads=12, hidden_dim=768, mlp_dim=3072, num_layers=12
    )
    ours = vit.load(peer.save(tmp_path))
    entries = torchvision.models.ViT_B_16_Weights
    weights = entries.IMAGENET1K_SWAG_LINEAR_V1 if "swag" in file_name else entries.IMAGENET1K_V1
    assert ours.labels == weights.meta["categories"]
    for photo in photos:
        torch.testing.assert_close(ours.preprocessing(photo), weights.transforms()(photo), rtol=0, atol=1e-6)


@pytest.mark.parametrize(
    "how, size, box",
    [
        (vit.Preprocessing(224, (224, 224)), (448, 448), (0, 0, 448, 448)),
        (vit.Preprocessing(224, (224, 224)), (896, 448), (224, 0, 672, 448)),
        (vit.Preprocessing(224, (224, 224)), (448, 896), (0, 224, 448, 672)),
        (vit.Preprocessing(448, (224, 224)), (448, 896), (112, 336, 336, 560)),
        (vit.Preprocessing((224, 224)), (1000, 300), (0, 0, 1000, 300)),
        (vit.Preprocessing((256, 256), (224, 224)), (512, 256), (32, 16, 480, 240)),
    ],
)
def test_the_box_is_the_part_of_the_photo_that_the_model_sees(how, size, box):
    assert how.box(size) == pytest.approx(box)


@pytest.mark.parametrize(
    "how",
    [vit.Preprocessing(248, (224, 224)), vit.Preprocessing((256, 256), (224, 224)), vit.Preprocessing((224, 224))],
)
def test_cutting_the_box_from_the_photo_gives_the_view(how, photos):
    for photo in photos:
        cut = photo.resize((224, 224), Image.Resampling.BICUBIC, box=how.box(photo.size))
        difference = np.abs(np.asarray(cut, float) - np.asarray(how.view(photo), float))
        assert difference.mean() < 2


def encoded(image: Image.Image, kind: str, **options) -> io.BytesIO:
    file = io.BytesIO()
    image.save(file, kind, **options)
    file.seek(0)
    return file


def test_photos_are_turned_upright(tmp_path, photos):
    exif = Image.Exif()
    exif[0x0112] = 6  # lies on its side
    photos[0].save(tmp_path / "phone.jpg", exif=exif)
    assert open_photo(tmp_path / "phone.jpg").size == photos[0].size[::-1]


def test_what_is_transparent_lies_on_white():
    clear = Image.new("RGBA", (4, 4), (200, 0, 0, 0))
    assert open_photo(clear).getpixel((0, 0)) == (255, 255, 255)
    palette = Image.open(encoded(Image.new("P", (4, 4), 0), "GIF", transparency=0))
    assert open_photo(palette).getpixel((0, 0)) == (255, 255, 255)


@pytest.mark.parametrize("mode", ["L", "P", "CMYK", "YCbCr", "1", "LA", "RGBA", "HSV", "I;16"])
def test_every_mode_becomes_rgb(mode, photos):
    assert open_photo(photos[0].convert("L" if mode == "I;16" else mode).convert(mode)).mode == "RGB"


def test_sixteen_bit_grey_keeps_its_shades():
    deep = Image.fromarray(np.array([[0, 0x4000], [0x8000, 0xFFFF]], np.uint16))
    assert [open_photo(deep).getpixel((x, y))[0] for y in (0, 1) for x in (0, 1)] == [0, 0x40, 0x80, 0xFF]


def test_bad_photos_get_a_sentence(tmp_path, photos):
    (tmp_path / "text.jpg").write_text("not a photo")
    (tmp_path / "empty.png").write_bytes(b"")
    whole = encoded(photos[0], "JPEG").getvalue()
    (tmp_path / "half.jpg").write_bytes(whole[: len(whole) // 2])
    said = {
        "text.jpg": "'text.jpg' is not a photo that can be read: save it as JPEG, PNG or WebP.",
        "empty.png": "'empty.png' is not a photo that can be read: save it as JPEG, PNG or WebP.",
        "half.jpg": "'half.jpg' could not be read, it may be damaged",
        "missing.jpg": "There is no photo .*: check the path.",
        ".": "is a folder: name the photos in it",
    }
    for name, sentence in said.items():
        with pytest.raises(vit.PhotoError, match=sentence):
            open_photo(tmp_path / name)


@pytest.mark.parametrize(
    "kind", ["JPEG", "PNG", "TIFF", "PPM", "WEBP", "GIF", "BMP", "DDS", "SGI", "AVIF", "TGA", "ICO"]
)
def test_damaged_photos_are_read_or_get_a_sentence(kind, photos, tmp_path):
    exif = {"exif": b"Exif\0\0MM\0*\0\0\0\x08\0\x01\x01\x12"} if kind == "JPEG" else {}
    whole = encoded(photos[0].resize((40, 30)), kind, **exif).getvalue()
    chance = random.Random(0)
    for number in range(60):
        damaged = bytearray(whole)
        for _ in range(1 + number % 4):
            damaged[chance.randrange(min(len(damaged), 400))] = chance.randrange(256)
        (tmp_path / "photo").write_bytes(damaged[: chance.choice([len(damaged), len(damaged) // 2])])
        try:
            assert open_photo(tmp_path / "photo").mode == "RGB"
        except vit.PhotoError as error:
            assert str(error).endswith((".", "another.")) and "\n" not in str(error)


@pytest.mark.parametrize("size", [(1, 65535), (1, 3000), (40000, 1)])
def test_a_strip_is_not_blown_up(size):
    with pytest.raises(vit.PhotoError, match="is too long and thin: crop it first"):
        vit.Preprocessing(248, (224, 224))(Image.new("RGB", size))


def test_a_photo_without_pixels():
    with pytest.raises(vit.PhotoError, match="has no pixels"):
        open_photo(Image.new("RGB", (0, 5)))


def test_floats_from_nothing_to_one_keep_their_shades():
    grey = Image.fromarray(np.array([[0.0, 0.5, 1.0]], np.float32))
    assert [open_photo(grey).getpixel((x, 0))[0] for x in range(3)] == [0, 127, 255]


def test_a_crop_larger_than_the_photo_is_padded_and_the_box_reaches_beyond():
    how = vit.Preprocessing(20, (31, 31))
    view = np.asarray(how.view(Image.new("RGB", (20, 20), "white")))
    assert how.box((20, 20)) == (-5, -5, 26, 26)
    assert view[5:25, 5:25].min() == 255 and view[:5].max() == 0 and view[25:].max() == 0


def test_an_unknown_interpolation():
    with pytest.raises(ValueError, match="interpolation is 'random', but must be one of nearest, bilinear"):
        vit.Preprocessing(224, interpolation="random")


def test_a_photo_with_too_many_pixels_is_not_opened(tmp_path, monkeypatch):
    monkeypatch.setattr(Image, "MAX_IMAGE_PIXELS", 1000)
    Image.new("L", (100, 100)).save(tmp_path / "huge.png")
    with pytest.raises(vit.PhotoError, match=r"'huge.png' has too many pixels to open safely: make it smaller"):
        open_photo(tmp_path / "huge.png")
