"""Running a model over many photos, each as the model sees it when it is asked."""

from __future__ import annotations

import sys
from collections.abc import Callable

import torch
from accelerate import Accelerator
from accelerate.utils import gather_object
from torch import Tensor
from torch.utils.data import DataLoader, Dataset
from tqdm import tqdm

from ..images import PhotoError, Preprocessing
from .data import Photos

BATCH = 16
NAMED = 10  # unreadable photos that are named, the others are counted


class Views(Dataset):
    """What the model sees of each photo, or what is wrong with it."""

    def __init__(self, photos: Photos, preprocessing: Preprocessing, indexes: list[int]):
        self.photos, self.preprocessing, self.indexes = photos, preprocessing, indexes

    def __len__(self) -> int:
        return len(self.indexes)

    def __getitem__(self, place: int) -> tuple[int, Tensor | str]:
        index = self.indexes[place]
        try:
            return index, self.preprocessing(self.photos.open(index))
        except PhotoError as error:
            return index, str(error)


@torch.no_grad()
def over(
    photos: Photos,
    preprocessing: Preprocessing,
    model: Callable[[Tensor], Tensor],
    accelerator: Accelerator,
    indexes: list[int] | None = None,
    workers: int = 0,
    bar: str = "",
) -> tuple[dict[int, Tensor], dict[int, str]]:
    """What the model makes of each photo, and what is wrong with those that cannot be read, both by index.

    The processes share the work, and all get the whole. `bar` is what the progress bar says, none without it.
    """
    indexes = list(range(len(photos))) if indexes is None else indexes
    own = indexes[accelerator.process_index :: accelerator.num_processes]
    hidden = not bar or not indexes or not accelerator.is_main_process
    rows: dict[int, Tensor] = {}
    problems: dict[int, str] = {}
    with tqdm(total=len(own), desc=bar, unit="photo", disable=hidden, leave=False) as progress:
        for batch in DataLoader(Views(photos, preprocessing, own), BATCH, num_workers=workers, collate_fn=list):
            problems |= {index: wrong for index, wrong in batch if isinstance(wrong, str)}
            seen = {index: view for index, view in batch if isinstance(view, Tensor)}
            if seen:
                images = torch.stack(list(seen.values())).to(accelerator.device)
                rows |= zip(seen, model(images).float().cpu().clone())
            progress.update(len(batch))
    for others, wrong in gather_object([(rows, problems)]):
        rows |= others
        problems |= wrong
    return rows, problems


def without(photos: Photos, problems: dict[int, str], accelerator: Accelerator) -> Photos:
    """The photos that can be read; the others are named and counted."""
    if problems and accelerator.is_main_process:
        for index, problem in sorted(problems.items())[:NAMED]:
            print(f"vit: {photos.files[index]}: {problem}", file=sys.stderr)
        more = f", {len(problems) - NAMED} of them not named here" if len(problems) > NAMED else ""
        print(f"vit: {len(problems)} of {len(photos)} photos were skipped{more}.", file=sys.stderr)
    return photos.take([index for index in range(len(photos)) if index not in problems])
