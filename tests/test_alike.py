"""Photos that are there more than once, on real photos: copies are found, and others are not."""

import io

import torch
from PIL import Image

import vit
from vit.finetune.alike import fingerprints, groups, left_out
from vit.finetune.data import Photos
from vit.photos.examples import example_photos

PREPROCESSING = vit.Preprocessing((224, 224))


def prints_of(pictures):
    return torch.cat([fingerprints(PREPROCESSING(picture)[None], PREPROCESSING) for picture in pictures])


def compressed(photo):
    """At half the size, and a poor quality."""
    file = io.BytesIO()
    photo.resize((photo.width // 2, photo.height // 2)).save(file, "JPEG", quality=50)
    return Image.open(file).convert("RGB")


def test_a_photo_compressed_anew_is_the_same_and_other_photos_are_not():
    pictures = [Image.open(file).convert("RGB") for file in example_photos()]
    found = groups(prints_of([*pictures, *map(compressed, pictures)]))
    expected = torch.arange(len(pictures))
    assert torch.equal(found, torch.cat([expected, expected]))


def test_a_chain_of_likenesses_is_one_photo():
    """Each is like the next; the ends are alike by what lies between."""
    base = torch.rand(1, 192, generator=torch.Generator().manual_seed(0))
    other = torch.rand(1, 192, generator=torch.Generator().manual_seed(1))
    steps = [base.lerp(other, share) for share in (0, 0.2, 0.1)]
    assert groups(torch.cat(steps)).tolist() == [0, 0, 0]
    assert groups(torch.cat(steps[:2])).tolist() == [0, 1]


def test_something_small_in_its_place_is_another_photo():
    """Where a fixed camera looks at the same thing, that alone tells the classes apart."""
    pictures = [Image.open(file).convert("RGB") for file in example_photos()]
    marked = [picture.copy() for picture in pictures]
    for picture in marked:
        width, height = picture.size
        picture.paste((255, 0, 255), (width // 2, height // 2, width // 2 + width // 8, height // 2 + width // 8))
    found = groups(prints_of([*pictures, *marked]))
    assert torch.equal(found, torch.arange(2 * len(pictures)))


def test_where_copies_alone_are_asked_for_nearly_the_same_is_not():
    pictures = [Image.open(file).convert("RGB") for file in example_photos()]
    own = prints_of(pictures)
    found = groups(torch.cat([own, prints_of(map(compressed, pictures)), own]), alike=0)
    count = len(pictures)
    assert torch.equal(found, torch.cat([torch.arange(2 * count), torch.arange(count)]))


def photos(names, targets, tmp_path):
    return Photos([tmp_path / name for name in names], targets, ["cat", "dog"])


def test_what_counts_by_the_rule(tmp_path):
    """Four pictures: a has a copy of its class, b one in another class, c one in the test, d none."""
    a, b, c, d = torch.rand(4, 192, generator=torch.Generator().manual_seed(2))
    train = photos(["a1", "a2", "b1", "b2", "c1", "d1"], [0, 0, 0, 1, 1, 1], tmp_path)
    test = photos(["c2"], [1], tmp_path)
    found = left_out(train, torch.stack([a, a, b, b, c, d]), test, c[None], tmp_path)
    assert {train.files[each.index].name: each.why for each in found} == {
        "a2": "the same photo as a1",
        "b1": "the same photo as b2, which is in 'dog'",
        "b2": "the same photo as b1, which is in 'cat'",
        "c1": "the same photo as the test photo c2",
    }
    assert len(left_out(train, torch.stack([a, a, b, b, c, d]), None, None)) == 3
