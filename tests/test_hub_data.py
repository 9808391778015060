"""Data sets of the Hub as folders, fetched with the real libraries from a server on this machine."""

import io
import socket
import sys
from pathlib import Path

import pytest
from hub_server import HubServer, Trouble, visit
from huggingface_hub import constants
from PIL import Image

from vit.finetune import hub_data
from vit.finetune.data import DataError
from vit.finetune.hub_data import as_folder
from vit.finetune.sources import open_data
from vit.hub import HubError

datasets = pytest.importorskip("datasets")

REPO = "someone/food3"
PAGE = f"datasets/{REPO}"
CLASSES = ["apple_pie", "baby_back_ribs", "baklava"]
README = b"""---
configs:
- config_name: default
  data_files:
  - split: train
    path: data/train-*
  - split: validation
    path: data/validation-*
---
"""


def photo(number: int, kind: str = "JPEG") -> bytes:
    buffer = io.BytesIO()
    Image.new("RGB", (16, 12), (number * 7 % 256, 100, 255 - number)).save(buffer, kind)
    return buffer.getvalue()


def rows(first: int, labels: list, kind: str = "JPEG") -> dict[str, list]:
    """Photos of these classes, each unlike all others."""
    images = [{"bytes": photo(first + place, kind), "path": None} for place in range(len(labels))]
    return {"image": images, "label": labels}


def parquet(columns: dict[str, list], **features) -> bytes:
    features = {"image": datasets.Image(), "label": datasets.ClassLabel(names=CLASSES)} | features
    buffer = io.BytesIO()
    own = datasets.Features({name: features[name] for name in columns})
    datasets.Dataset.from_dict(columns, features=own).to_parquet(buffer)
    return buffer.getvalue()


TRAIN = [rows(0, [2, 0, 1, 0]), rows(4, [1, 2])]
TEST = rows(6, [0, 1, 2])


@pytest.fixture
def food() -> dict[str, bytes]:
    """The files of a data set laid out as ethz/food101 is."""
    return {
        "README.md": README,
        "data/train-00000-of-00002.parquet": parquet(TRAIN[0]),
        "data/train-00001-of-00002.parquet": parquet(TRAIN[1]),
        "data/validation-00000-of-00001.parquet": parquet(TEST),
    }


@pytest.fixture
def cache(tmp_path) -> Path:
    return tmp_path / "cache"


@pytest.fixture
def hub(tmp_path, monkeypatch, food) -> HubServer:
    with HubServer() as server:
        visit(server, tmp_path / "home", monkeypatch)
        monkeypatch.setattr(datasets.config, "HF_ENDPOINT", server.url)
        monkeypatch.setattr(
            datasets.config, "HUB_DATASETS_URL", server.url + "/datasets/{repo_id}/resolve/{revision}/{path}"
        )
        monkeypatch.setattr(datasets.config, "HF_UPDATE_DOWNLOAD_COUNTS", False)
        monkeypatch.setattr(datasets.config, "DOWNLOADED_DATASETS_PATH", tmp_path / "home" / "downloads")
        server.commit(PAGE, food)
        yield server


def refusal(kind: type[Exception], *args, **options) -> str:
    """The sentence with which it fails."""
    with pytest.raises(kind) as caught:
        as_folder(*args, **options)
    assert type(caught.value) is kind
    text = str(caught.value)
    assert "\n" not in text
    return text


def written(folder: Path) -> dict[str, bytes]:
    return {path.relative_to(folder).as_posix(): path.read_bytes() for path in folder.rglob("*") if path.is_file()}


def expected(split: str, columns: list[dict[str, list]]) -> dict[str, bytes]:
    pairs = [pair for part in columns for pair in zip(part["image"], part["label"])]
    return {f"{split}/{CLASSES[label]}/{number:06}.jpg": image["bytes"] for number, (image, label) in enumerate(pairs)}


@pytest.mark.parametrize("xet", [False, True], ids=["http", "xet"])
def test_every_photo_keeps_its_bytes(hub, cache, xet):
    hub.xet = xet
    folder = as_folder(REPO, cache)
    assert written(folder) == expected("train", TRAIN) | expected("test", [TEST])
    assert folder.parent == cache


def test_opens_as_data(hub, tmp_path, monkeypatch):
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    data = open_data(REPO)
    assert (tmp_path / "vit-explorer" / "data" / "someone--food3").is_dir()
    assert data.train.labels == data.test.labels == ["apple pie", "baby back ribs", "baklava"]
    assert data.train.counts() == [2, 2, 2]
    assert data.test.counts() == [1, 1, 1]
    assert data.train.open(0).size == (16, 12)


def test_second_call_makes_no_request(hub, cache):
    first = as_folder(REPO, cache)
    hub.requests.clear()
    assert as_folder(REPO, cache) == first
    assert not hub.requests


def test_nothing_but_the_folder_is_left_in_the_cache(hub, cache):
    folder = as_folder(REPO, cache)
    assert [path for path in cache.iterdir() if path.is_dir()] == [folder]


def test_test_comes_before_validation(hub, cache, food):
    readme = README.replace(b"---\n", b"", 1).replace(b"---\n", b"")
    readme = b"---\n" + readme + b"  - split: test\n    path: data/test-*\n---\n"
    test = rows(9, [2, 1, 0])
    hub.commit(PAGE, food | {"README.md": readme, "data/test-00000-of-00001.parquet": parquet(test)})
    assert written(as_folder(REPO, cache)) == expected("train", TRAIN) | expected("test", [test])


def test_test_without_classes_gives_way_to_validation(hub, cache):
    secret = rows(9, [-1, -1])
    hub.commit(
        PAGE, {"train.parquet": parquet(TRAIN[0]), "test.parquet": parquet(secret), "validation.parquet": parquet(TEST)}
    )
    assert written(as_folder(REPO, cache)) == expected("train", TRAIN[:1]) | expected("test", [TEST])


@pytest.mark.parametrize("name", ["train", "test"])
def test_single_split_is_to_train_on(hub, cache, name):
    hub.commit(PAGE, {f"{name}.parquet": parquet(TRAIN[0])})
    assert written(as_folder(REPO, cache)) == expected("train", TRAIN[:1])


def test_splits_of_other_names(hub, cache):
    readme = README.replace(b"split: train", b"split: left").replace(b"split: validation", b"split: right")
    hub.commit(
        PAGE,
        {"README.md": readme, "data/train-0.parquet": parquet(TRAIN[0]), "data/validation-0.parquet": parquet(TEST)},
    )
    assert refusal(DataError, REPO, cache) == (
        f"{REPO} has the splits left, right, and none to train on: choose another data set."
    )


def test_suffix_fits_the_photo(hub, cache):
    columns = rows(0, [0, 0]) | {
        "image": [{"bytes": photo(1, "PNG"), "path": None}, {"bytes": photo(2), "path": "a.JPEG"}]
    }
    hub.commit(PAGE, {"train.parquet": parquet(columns)})
    assert sorted(written(as_folder(REPO, cache))) == ["train/apple_pie/000000.png", "train/apple_pie/000001.jpeg"]


def test_photos_that_are_files_on_the_hub(hub, cache):
    files = {
        f"{split}/{name}/{split}.png": photo(len(split + name), "PNG") for split in ("train", "test") for name in "ab"
    }
    hub.commit(PAGE, files)
    found = {path.rpartition("/")[0]: content for path, content in written(as_folder(REPO, cache)).items()}
    assert found == {path.rpartition("/")[0]: content for path, content in files.items()}


def test_bytes_that_are_no_photo(hub, cache):
    hub.commit(PAGE, {"train.parquet": parquet({"image": [{"bytes": b"hello", "path": None}], "label": [0]})})
    assert refusal(DataError, REPO, cache) == (
        f"Photo 0 of train in {REPO} is of no kind that can be opened here: choose another data set."
    )
    assert not (cache / "someone--food3").exists()


@pytest.mark.parametrize(
    "column, kind, values, folders",
    [
        ("labels", "string", ["cat", "dog"], ["cat", "dog"]),
        ("class", "int64", [3, 12], ["12", "3"]),
        ("fine_label", None, [0, 2], ["apple_pie", "baklava"]),
        ("dish", None, [0, 2], ["apple_pie", "baklava"]),
    ],
)
def test_column_of_classes(hub, cache, column, kind, values, folders):
    feature = datasets.Value(kind) if kind else datasets.ClassLabel(names=CLASSES)
    columns = {"note": ["x", "y"], "image": rows(0, values)["image"], column: values}
    hub.commit(PAGE, {"train.parquet": parquet(columns, note=datasets.Value("string"), **{column: feature})})
    assert sorted(path.name for path in (as_folder(REPO, cache) / "train").iterdir()) == folders


def test_class_names_are_made_safe(hub, cache):
    names = ["../../up", "..", "", "a/b", "a:b", "A_B", "train", "x" * 300]
    kind = datasets.Value("string")
    numbers = rows(0, names)
    hub.commit(PAGE, {"train.parquet": parquet(rows(0, [name or " " for name in names]), label=kind)})
    folder = as_folder(REPO, cache)
    made = {path.name for path in (folder / "train").iterdir()}
    assert made == {"_.._up", "unnamed", "unnamed_2", "a_b_2", "a_b_3", "A_B", "train", "x" * 80}
    assert sorted(written(folder).values()) == sorted(image["bytes"] for image in numbers["image"])
    assert not (cache.parent / "up").exists()


def test_no_image_column(hub, cache):
    text = datasets.Value("string")
    hub.commit(PAGE, {"train.parquet": parquet({"text": ["a"], "label": [0]}, text=text)})
    assert refusal(DataError, REPO, cache) == (
        f"{REPO} has no column of photos, only text, label: choose a data set with both."
    )


def test_no_column_of_classes(hub, cache):
    text = datasets.Value("string")
    hub.commit(PAGE, {"train.parquet": parquet({"image": rows(0, [0])["image"], "caption": ["a"]}, caption=text)})
    assert refusal(DataError, REPO, cache) == (
        f"{REPO} has no column of classes, only image, caption: choose a data set with both."
    )


def test_several_data_sets_in_one(hub, cache):
    readme = (
        b"---\nconfigs:\n- config_name: a\n  data_files: a.parquet\n- config_name: b\n  data_files: b.parquet\n---\n"
    )
    hub.commit(PAGE, {"README.md": readme, "a.parquet": parquet(TEST), "b.parquet": parquet(TEST)})
    assert refusal(DataError, REPO, cache) == (
        f"{REPO} on the Hub is several data sets in one, which cannot be used here: choose another."
    )


def test_no_files_of_data(hub, cache):
    hub.commit(PAGE, {"README.md": b"Soon."})
    assert refusal(DataError, REPO, cache) == f"{REPO} on the Hub holds no files of data that can be read here."


def test_damaged_data(hub, cache, food):
    hub.commit(PAGE, food | {"data/train-00001-of-00002.parquet": b"PAR1 no more"})
    text = refusal(DataError, REPO, cache)
    assert text.startswith(f"{REPO} on the Hub cannot be read (")
    assert text.endswith("): choose another data set.")


def test_missing_data_set(hub, cache):
    assert refusal(HubError, "someone/nothing", cache) == (
        "There is no data set someone/nothing on the Hub, or it is private: check the spelling, or run 'hf auth login'."
    )
    assert not any(path.is_dir() for path in cache.iterdir())


def test_gated(hub, cache):
    hub.repos[PAGE].gated, hub.repos[PAGE].readers = True, set()
    assert refusal(HubError, REPO, cache) == (
        f"{REPO} is gated: accept its terms at {hub.url}/{PAGE}, then run 'hf auth login'."
    )


def test_private_with_a_token(hub, cache, monkeypatch):
    hub.tokens, hub.repos[PAGE].readers = {"hf_mine"}, {"hf_mine"}
    monkeypatch.setenv("HF_TOKEN", "hf_mine")
    assert written(as_folder(REPO, cache)) == expected("train", TRAIN) | expected("test", [TEST])


def test_unreachable(hub, cache, monkeypatch):
    with socket.socket() as unused:
        unused.bind(("127.0.0.1", 0))
        address = f"http://127.0.0.1:{unused.getsockname()[1]}"
        monkeypatch.setattr(constants, "ENDPOINT", address)
        assert refusal(HubError, REPO, cache) == (
            f"{REPO} is not in the cache and {address} cannot be reached: connect, or name a folder that is here."
        )


def test_without_the_library(hub, cache, monkeypatch):
    monkeypatch.setitem(sys.modules, "datasets", None)
    assert refusal(DataError, REPO, cache).endswith(": pip install datasets")


def test_fetch_cut_off(hub, cache):
    hub.troubles["data/train-00001-of-00002.parquet"] = Trouble(stop_at=100)
    text = refusal(HubError, REPO, cache)
    assert text.startswith(f"{REPO} could not be fetched whole (")
    hub.troubles.clear()
    assert written(as_folder(REPO, cache)) == expected("train", TRAIN) | expected("test", [TEST])


@pytest.mark.parametrize("error", [KeyboardInterrupt, OSError(28, "No space left on device")], ids=["killed", "full"])
def test_cut_short_leaves_nothing_that_looks_finished(hub, cache, monkeypatch, error):
    real, calls = hub_data._file, []

    def stops_half_way(*args):
        calls.append(args)
        if len(calls) == 5:
            raise error
        return real(*args)

    monkeypatch.setattr(hub_data, "_file", stops_half_way)
    with pytest.raises((KeyboardInterrupt, HubError)) as caught:
        as_folder(REPO, cache)
    assert caught.type is KeyboardInterrupt or str(caught.value) == (
        f"No space is left in {cache} for {REPO}: free some."
    )
    assert not any(path.is_dir() for path in cache.iterdir())

    hub.requests.clear()
    assert written(as_folder(REPO, cache)) == expected("train", TRAIN) | expected("test", [TEST])
    assert not hub.asked("GET", ".parquet")


def test_remains_of_a_killed_program_are_not_used(hub, cache):
    stale = cache / ".someone--food3.unfinished" / "photos" / "train" / "stale"
    stale.mkdir(parents=True)
    (stale / "000000.jpg").write_bytes(b"half")
    assert written(as_folder(REPO, cache)) == expected("train", TRAIN) | expected("test", [TEST])


def test_cache_that_cannot_be_written(hub, tmp_path):
    (tmp_path / "file").write_bytes(b"")
    text = refusal(HubError, REPO, tmp_path / "file" / "data")
    assert text.startswith(f"{REPO} cannot be written to {tmp_path / 'file' / 'data'} (")
