"""Photos that are there more than once: copies, and the same photo in another size or compressed anew."""

from __future__ import annotations

from collections import defaultdict
from dataclasses import dataclass
from pathlib import Path

import torch
import torch.nn.functional as F
from torch import Tensor

from ..photos.preprocessing import Preprocessing
from .data import Photos, name_of

SIDE = 8  # pixels of a fingerprint, which is the photo as the model sees it, made tiny
ALIKE = (
    0.5  # largest difference as a share of the contrast; at a third and recompressed 0.5, different ones from 1.1 up
)
CHUNK = 1024
RULE = (
    "Of photos that are the same, or nearly (resized, compressed anew), the first counts. Where their classes differ, "
    "none of them does. What is a test photo, too, is not learnt from."
)
COPIES = RULE.replace("the same, or nearly (resized, compressed anew)", "exactly the same")


@dataclass(frozen=True)
class LeftOut:
    """A photo that does not count, and why."""

    index: int
    why: str


def fingerprints(images: Tensor, preprocessing: Preprocessing) -> Tensor:
    """The colours of each photo in 8 × 8 places (B, 3 · 8 · 8), from 0 to 1."""
    mean, std = (torch.tensor(each).to(images).view(1, 3, 1, 1) for each in (preprocessing.mean, preprocessing.std))
    return (F.adaptive_avg_pool2d(images, SIDE) * std + mean).flatten(1)


def groups(prints: Tensor, alike: float = ALIKE) -> Tensor:
    """For each photo (n,) the first that it is like, itself where there is none before it.

    Where they differ most counts: something small in its place is another photo.
    """
    colours = prints.view(len(prints), 3, -1)
    contrast = (colours - colours.mean(dim=2, keepdim=True)).square().mean(dim=(1, 2)).sqrt()
    first = torch.arange(len(prints))
    for start in range(0, len(prints), CHUNK):
        own = slice(start, start + CHUNK)
        before = slice(start + CHUNK)
        apart = torch.cdist(prints[own], prints[before], p=torch.inf)
        near = apart <= alike * torch.minimum(contrast[own, None], contrast[before])
        for row, column in near.nonzero().tolist():
            if column < start + row:
                ends = first[start + row].item(), first[column].item()
                first[first == max(ends)] = min(ends)
    return first


def left_out(
    train: Photos,
    train_prints: Tensor,
    test: Photos | None,
    test_prints: Tensor | None,
    root: str | Path = "",
    alike: float = ALIKE,
) -> list[LeftOut]:
    """The photos to learn from that do not count, by the rule. Test photos stay as they are.

    Those that they are like are named from `root` on.
    """
    tested = 0 if test is None or test_prints is None else len(test)
    prints = train_prints if test_prints is None else torch.cat([test_prints, train_prints])
    members: dict[int, list[int]] = defaultdict(list)
    for index, group in enumerate(groups(prints, alike).tolist()):
        members[group].append(index)
    found = []
    for group in members.values():
        own = [index - tested for index in group if index >= tested]
        if own and test is not None and group[0] < tested:
            found += [
                LeftOut(index, f"the same photo as the test photo {name_of(test.files[group[0]], root)}")
                for index in own
            ]
        elif len({train.targets[index] for index in own}) > 1:
            for index in own:
                other = next(each for each in own if train.targets[each] != train.targets[index])
                label = train.labels[train.targets[other]]
                found.append(
                    LeftOut(index, f"the same photo as {name_of(train.files[other], root)}, which is in {label!r}")
                )
        else:
            found += [LeftOut(index, f"the same photo as {name_of(train.files[own[0]], root)}") for index in own[1:]]
    return sorted(found, key=lambda each: each.index)
