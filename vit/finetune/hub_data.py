"""A data set of the Hugging Face Hub as a folder of photos: the layout that everything else reads."""

from __future__ import annotations

import io
import re
import shutil
from collections.abc import Iterable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import TYPE_CHECKING, Any

from huggingface_hub import HfApi, constants, errors
from huggingface_hub.utils import WeakFileLock
from PIL import Image
from tqdm import tqdm

from ..hub.download import download_errors
from ..hub.errors import NO_SPACE, HubError, first_line
from ..photos.finding import SUFFIXES
from .data import TEST, TRAIN, DataError
from .data import cache as own_cache

if TYPE_CHECKING:
    from datasets import Dataset, DatasetDict, Features

CLASS_COLUMNS = ("label", "labels", "class", "fine_label")
UNLABELLED = (None, -1, "")  # -1 is what the Hub's test sets have whose classes are kept secret
LONGEST_NAME = 80


def as_folder(repo: str, cache: Path | None = None) -> Path:
    """The Hub data set as a folder `{train,test}/<class>/<number>.<suffix>`, written once, with the photos' own bytes.

    The folder appears when it is complete. A call that was cut short starts it anew, from what was fetched by then.
    """
    cache = cache or own_cache() / "data"
    folder = cache / repo.replace("/", "--")
    if folder.is_dir():
        return folder
    with _disk(repo, cache):
        cache.mkdir(parents=True, exist_ok=True)
        with WeakFileLock(cache / f".{folder.name}.lock"):  # against another program that does the same
            if not folder.is_dir():
                unfinished = cache / f".{folder.name}.unfinished"
                shutil.rmtree(unfinished, ignore_errors=True)
                try:
                    _write(_load(repo, unfinished / "tables"), repo, unfinished / "photos")
                    (unfinished / "photos").rename(folder)
                finally:
                    shutil.rmtree(unfinished, ignore_errors=True)
    return folder


@contextmanager
def _disk(repo: str, cache: Path) -> Iterator[None]:
    """Turn errors of writing into one sentence each."""
    try:
        yield
    except (DataError, HubError):
        raise
    except OSError as error:
        if error.errno in NO_SPACE:
            raise HubError(f"No space is left in {cache} for {repo}: free some.") from error
        raise HubError(f"{repo} cannot be written to {cache} ({error}): make it a folder that can be.") from error


def _load(repo: str, tables: Path) -> DatasetDict:
    """The data set's splits; what is fetched stays in the Hub's own cache, what is made of it goes to `tables`."""
    try:
        import datasets
    except ImportError as error:
        raise DataError(
            f"{repo} is a data set of the Hub, which needs another library: pip install datasets"
        ) from error

    with download_errors(repo, kind="data set"):
        HfApi().auth_check(repo, repo_type="dataset")
    try:
        return datasets.load_dataset(repo, cache_dir=str(tables))
    except (datasets.exceptions.DataFilesNotFoundError, datasets.data_files.EmptyDatasetError) as error:
        raise DataError(f"{repo} on the Hub holds no files of data that can be read here.") from error
    except datasets.exceptions.DatasetGenerationError as error:
        raise _not_read(repo, tables, error.__cause__ or error) from error
    except Exception as error:  # many libraries take part
        raise _not_read(repo, tables, error) from error


def _not_read(repo: str, tables: Path, error: BaseException) -> HubError | DataError:
    text = first_line(error)
    if getattr(error, "errno", None) in NO_SPACE or text.startswith("Not enough disk space"):
        caches = f"{constants.HF_HUB_CACHE} or {tables.parents[1]}"
        return HubError(f"No space is left in {caches} for {repo}: free some.")
    if text.startswith("Config name is missing"):
        return DataError(f"{repo} on the Hub is several data sets in one, which cannot be used here: choose another.")
    if text.startswith("Dataset scripts"):
        return DataError(f"{repo} on the Hub is a program instead of files of data, which is not run: choose another.")
    if not isinstance(error, (OSError, RuntimeError, errors.HTTPError)):
        return DataError(f"{repo} on the Hub cannot be read ({text}): choose another data set.")
    try:
        with download_errors(repo, kind="data set"):
            raise error
    except HubError as said:
        return said


def _write(splits: DatasetDict, repo: str, folder: Path) -> None:
    from datasets import Image as ImageColumn

    image, label = _columns(next(iter(splits.values())).features, repo)
    chosen = _chosen(splits, label, repo)
    names = {split: _class_names(rows, label) for split, rows in chosen.items()}
    folders = _folder_names(name for own in names.values() for name in own.values())
    with tqdm(total=sum(map(len, chosen.values())), desc=f"writing {repo}", unit="photo") as progress:
        for split, rows in chosen.items():
            for name in names[split].values():
                (folder / split / folders[name]).mkdir(parents=True, exist_ok=True)
            rows = rows.select_columns([image, label]).cast_column(image, ImageColumn(decode=False))
            for number, row in enumerate(rows):
                if row[image] is not None and row[label] not in UNLABELLED:
                    content, suffix = _file(row[image], f"Photo {number} of {split} in {repo}")
                    place = folder / split / folders[names[split][row[label]]]
                    (place / f"{number:06}{suffix}").write_bytes(content)
                progress.update()


def _columns(features: Features, repo: str) -> tuple[str, str]:
    """The names of the columns with the photos and with their classes."""
    from datasets import ClassLabel, Value
    from datasets import Image as ImageColumn

    image = next((name for name, kind in features.items() if isinstance(kind, ImageColumn)), None)
    plain = [
        name
        for name in CLASS_COLUMNS
        if isinstance(kind := features.get(name), ClassLabel)
        or (isinstance(kind, Value) and re.fullmatch(r"(large_)?string|u?int\d+", kind.dtype))
    ]
    label = next(iter(plain + [name for name, kind in features.items() if isinstance(kind, ClassLabel)]), None)
    if image is None or label is None:
        lacks = "photos" if image is None else "classes"
        raise DataError(f"{repo} has no column of {lacks}, only {', '.join(features)}: choose a data set with both.")
    return image, label


def _chosen(splits: DatasetDict, label: str, repo: str) -> dict[str, Dataset]:
    """The splits to train and to test on, under these names. A split without classes is as good as none."""
    labelled = {name: rows for name, rows in splits.items() if set(rows.unique(label)) - set(UNLABELLED)}
    train = next((name for name in TRAIN if name in labelled), None)
    test = next((name for name in TEST if name in labelled), None)
    if train is None and len(labelled) == 1:
        train, test = *labelled, None
    if train is None:
        raise DataError(f"{repo} has the splits {', '.join(splits)}, and none to train on: choose another data set.")
    return {"train": labelled[train]} | ({"test": labelled[test]} if test else {})


def _class_names(rows: Dataset, label: str) -> dict[int | str, str]:
    """The name of each class that the rows have, by what stands in their column."""
    kind = rows.features[label]
    values = sorted(set(rows.unique(label)) - set(UNLABELLED))
    return {value: kind.int2str(value) if hasattr(kind, "int2str") else str(value) for value in values}


def _folder_names(names: Iterable[str]) -> dict[str, str]:
    """A folder's name for each class's: safe on every system, and another for each class."""
    folders: dict[str, str] = {}
    for name in sorted(set(names)):
        safe = re.sub(r'[\x00-\x1f\x7f/\\:*?"<>|]', "_", name)[:LONGEST_NAME].strip(" .")
        safe = safe if safe.strip("_ .") else "unnamed"
        number, folder = 1, safe
        while folder.lower() in {taken.lower() for taken in folders.values()}:
            number, folder = number + 1, f"{safe}_{number + 1}"
        folders[name] = folder
    return folders


def _file(photo: dict[str, Any], what: str) -> tuple[bytes, str]:
    """A photo's bytes, and the suffix that goes with them."""
    content = Path(photo["path"]).read_bytes() if photo["bytes"] is None else photo["bytes"]
    suffix = Path(photo["path"] or "").suffix.lower()
    if suffix not in SUFFIXES:
        suffix = ""
        with suppress(OSError, SyntaxError, ValueError), Image.open(io.BytesIO(content)) as opened:
            suffix = ".jpg" if opened.format in ("JPEG", "MPO") else f".{opened.format}".lower()
        if suffix not in SUFFIXES:
            raise DataError(f"{what} is of no kind that can be opened here: choose another data set.")
    return content, suffix
