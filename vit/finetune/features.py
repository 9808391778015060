"""What a frozen backbone makes of each photo, computed once and kept on disk.

Kept by the content of three things: the backbone's weights, its preprocessing and the photo's file. A run that is
killed loses at most one part of its work.
"""

from __future__ import annotations

import functools
import hashlib
import json
import uuid
from pathlib import Path

import safetensors.torch
import torch
from accelerate import Accelerator
from accelerate.utils import broadcast_object_list
from safetensors import SafetensorError
from torch import Tensor

from ..classifier import Classifier
from .alike import SIDE, fingerprints
from .data import Photos, cache
from .views import bar_for, infer

PART = 512  # photos in one file of the cache

FeatureTable = dict[bytes, Tensor]  # a file's digest → its features and its fingerprint (D + 192,)


def features(
    classifier: Classifier, photos: Photos, accelerator: Accelerator, workers: int = 0
) -> tuple[Tensor, dict[int, str]]:
    """What the head reads of each photo (n, D), and what is wrong with those that cannot be read (their rows are 0)."""
    rows, _, problems = features_and_fingerprints(classifier, photos, accelerator, workers)
    return rows, problems


def features_and_fingerprints(
    classifier: Classifier, photos: Photos, accelerator: Accelerator, workers: int = 0
) -> tuple[Tensor, Tensor, dict[int, str]]:
    """The same, and between them what tells photos that are alike (n, 192)."""
    model, preprocessing = classifier.model.eval(), classifier.preprocessing
    folder = cache() / "features-and-fingerprints" / key_of(classifier)
    digests, known, missing = [], {}, []
    if accelerator.is_main_process:  # the others may have another disk
        known, digests = _read(folder), [digest_of(file) for file in photos.files]
        missing = [index for index, digest in enumerate(digests) if digest not in known]
    [missing] = broadcast_object_list([missing])
    problems: dict[int, str] = {}
    with bar_for(accelerator, len(missing), "features", leave=True) as bar:
        for start in range(0, len(missing), PART):
            rows, wrong = infer(
                photos,
                preprocessing,
                lambda images: torch.cat(
                    [model.pool(model.encode_read(images)).float(), fingerprints(images, preprocessing).float()], dim=1
                ),
                accelerator,
                missing[start : start + PART],
                workers,
                bar,
            )
            problems |= wrong
            if accelerator.is_main_process:
                made = {digests[index]: row for index, row in rows.items() if digests[index]}
                _write(folder, made)
                known |= made
    width = model.config.head_width
    nothing = torch.zeros(width + 3 * SIDE**2)
    [rows] = broadcast_object_list([torch.stack([known.get(digest, nothing) for digest in digests] or [nothing])])
    return rows[: len(photos), :width], rows[: len(photos), width:], problems


def key_of(classifier: Classifier) -> str:
    """What features depend on besides the photo: the weights below the head, the shape, the preprocessing."""
    digest = hashlib.sha256()
    config = {**classifier.model.config.to_dict(), "classes": 0, "dropout": 0, "stochastic_depth": 0}
    digest.update(json.dumps([config, classifier.preprocessing.to_dict()], sort_keys=True).encode())
    for name, tensor in classifier.model.state_dict().items():
        if not name.startswith(("head.", "distillation_head.")):
            digest.update(name.encode() + tensor.cpu().contiguous().numpy().tobytes())
    return digest.hexdigest()


def digest_of(file: Path) -> bytes:
    try:
        found = file.stat()
        return _digest_of(file, found.st_size, found.st_mtime_ns)
    except OSError:
        return b""  # no photo has it; opening the file says what is wrong


@functools.cache
def _digest_of(file: Path, size: int, changed: int) -> bytes:
    return hashlib.sha256(file.read_bytes()).digest()


def _read(folder: Path) -> FeatureTable:
    known: FeatureTable = {}
    for file in sorted(folder.glob("*.safetensors")):
        try:
            part = safetensors.torch.load_file(file)
        except SafetensorError:  # damaged, as after a power cut: it is made anew
            file.unlink()
            continue
        known |= {bytes(digest): row for digest, row in zip(part["files"].tolist(), part["features"])}
    return known


def _write(folder: Path, part: FeatureTable) -> None:
    if not part:
        return
    folder.mkdir(parents=True, exist_ok=True)
    digests = torch.tensor([list(digest) for digest in part], dtype=torch.uint8)
    new = folder / uuid.uuid4().hex
    try:
        new.write_bytes(safetensors.torch.save({"files": digests, "features": torch.stack(list(part.values()))}))
        new.rename(new.with_suffix(".safetensors"))  # whole, or not at all
    finally:
        new.unlink(missing_ok=True)
