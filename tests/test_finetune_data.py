import shutil

import pytest
from PIL import Image
from torchvision.datasets import Food101

from vit.finetune.data import DataError, Photos, cache, hold_out, known_to
from vit.finetune.sources import open_data


def test_a_folder_with_train_and_test_is_both(discs):
    data = open_data(discs)
    assert data.train.labels == data.test.labels == ["blue disc", "green disc", "red disc"]
    assert (data.train.counts(), data.test.counts()) == ([24] * 3, [8] * 3)
    for photos in (data.train, data.test):
        assert [file.parent.name.replace("_", " ") for file in photos.files] == [
            photos.labels[target] for target in photos.targets
        ]


def test_a_folder_of_class_folders_is_for_training(discs):
    data = open_data(discs / "train")
    assert data.test is None and len(data.train) == 72


def test_photos_in_deeper_folders_count_and_other_files_do_not(tmp_path):
    for name in ("cat/one.JPG", "cat/more/two.webp", "dog/one.png", "dog/notes.txt", "dog/.DS_Store"):
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).touch()
    assert open_data(tmp_path).train.counts() == [2, 1]


def test_the_photos_are_in_the_same_order_on_every_machine(discs):
    files = [file.relative_to(discs / "train").as_posix() for file in open_data(discs).train.files]
    assert files == sorted(files)


def test_val_is_a_test_set(discs, tmp_path):
    shutil.copytree(discs / "train", tmp_path / "train")
    shutil.copytree(discs / "test", tmp_path / "val")
    assert len(open_data(tmp_path).test) == 24


@pytest.mark.parametrize(
    "change, sentence",
    [
        (lambda folder: (folder / "train" / "empty").mkdir(), r"The class 'empty' has no photos in .*: add some"),
        (lambda folder: shutil.rmtree(folder / "test" / "red_disc"), r"two parts differ: red disc only in train\.$"),
        (lambda folder: shutil.rmtree(folder / "train" / "red_disc"), r"two parts differ: red disc only in test\.$"),
        (
            lambda folder: [shutil.rmtree(path) for path in folder.iterdir()],
            r"should hold a folder of photos for each class",
        ),
    ],
    ids=["empty class", "missing in test", "missing in train", "no class"],
)
def test_bad_folders_get_a_sentence(discs, tmp_path, change, sentence):
    folder = shutil.copytree(discs, tmp_path / "data")
    change(folder)
    with pytest.raises(DataError, match=sentence):
        open_data(folder)


def test_a_train_is_a_class_where_it_holds_photos(tmp_path):
    for name in ("bus/1.jpg", "train/1.jpg"):
        (tmp_path / name).parent.mkdir()
        (tmp_path / name).touch()
    assert open_data(tmp_path).train.labels == ["bus", "train"]


def test_copies_in_hidden_folders_do_not_count(tmp_path):
    for name in ("bus/1.jpg", "bus/.ipynb_checkpoints/1.jpg", ".git/1.jpg"):
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).touch()
    data = open_data(tmp_path).train
    assert data.labels == ["bus"] and len(data) == 1


@pytest.mark.parametrize("source", ["no/such/folder", "/nowhere", "nowhere", "~/nowhere"])
def test_no_data_gets_a_sentence(source):
    with pytest.raises(DataError, match=r"^There is no folder .*: give a folder of class folders, food101, or a Hub"):
        open_data(source)


def test_food101_as_torchvision_keeps_it():
    """Its own layout, made small: torchvision's Food101 reads the same photos and classes from it."""
    root = cache() / "food-101"
    names = {"train": ["apple_pie/1", "apple_pie/3", "sushi/8"], "test": ["apple_pie/2", "sushi/9"]}
    for part, photos in names.items():
        for photo in photos:
            (root / "images" / photo).parent.mkdir(parents=True, exist_ok=True)
            Image.new("RGB", (8, 8)).save(root / "images" / f"{photo}.jpg")
        (root / "meta").mkdir(exist_ok=True)
        (root / "meta" / f"{part}.txt").write_text("\n".join(photos) + "\n")
        classes = {name: [photo for photo in photos if photo.startswith(name)] for name in ("apple_pie", "sushi")}
        (root / "meta" / f"{part}.json").write_text(str(classes).replace("'", '"'))
    (root / "meta" / "classes.txt").write_text("apple_pie\nsushi\n")
    data = open_data("food101")
    for part, photos in (("train", data.train), ("test", data.test)):
        theirs = Food101(str(cache()), split=part)
        assert sorted(zip(photos.files, photos.targets)) == sorted(zip(theirs._image_files, theirs._labels))
    assert data.train.labels == ["apple pie", "sushi"]


def test_a_share_of_each_class_is_held_out_by_the_seed(discs):
    photos = open_data(discs).train
    kept, held = hold_out(photos, 0.25, seed=3)
    assert photos.take(held).counts() == [6, 6, 6] and sorted(kept + held) == list(range(72))
    assert hold_out(photos, 0.25, seed=3) == (kept, held)
    assert hold_out(photos, 0.25, seed=4) != (kept, held)
    assert hold_out(photos, 0, seed=3) == (list(range(72)), [])


def test_the_same_photos_are_held_out_however_the_classes_are_numbered(discs):
    photos = open_data(discs / "train").train
    joined = ["zebra", *reversed(photos.labels), "aardvark"]  # as where a teacher's classes come first
    again = known_to(photos, joined)
    assert again.targets != photos.targets
    assert hold_out(again, 0.25, seed=3) == hold_out(photos, 0.25, seed=3)


def test_no_class_is_held_out_whole():
    photos = Photos([None] * 4, [0, 1, 1, 1], ["one", "three"])
    kept, held = hold_out(photos, 0.9, seed=0)
    assert 0 in kept and photos.take(held).counts() == [0, 2]


def test_classes_are_numbered_as_a_model_numbers_them():
    photos = Photos([None] * 3, [0, 1, 1], ["Pizza", "sushi"])
    assert known_to(photos, ["steak", "sushi", "pizza"]).targets == [2, 1, 1]
    with pytest.raises(DataError, match=r"^The model does not know the class 'Pizza' and 1 others: evaluate one"):
        known_to(photos, ["cat", "dog"])
