"""Running a model over many photos, each as the model sees it when it is asked."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterable

import torch
from accelerate import Accelerator
from accelerate.utils import gather_object
from torch import Tensor
from torch.utils.data import DataLoader, Dataset
from tqdm import tqdm

from ..kernels import fast_linear
from ..photos.files import PhotoError
from ..photos.preprocessing import Preprocessing
from .data import Photos
from .training import ignore_interrupt, out_of_memory

BATCH = 16
NAMED = 10  # unreadable photos that are named, the others are counted


class Views(Dataset[tuple[int, Tensor | str]]):
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


def bar_for(accelerator: Accelerator, photos: int, what: str, leave: bool = False) -> tqdm:
    """A progress bar over photos, of the main process alone; none where there are no photos."""
    hidden = not photos or not accelerator.is_main_process
    return tqdm(total=photos, desc=what, unit="photo", disable=hidden, leave=leave)


@torch.no_grad()
def infer(
    photos: Photos,
    preprocessing: Preprocessing,
    model: Callable[[Tensor], Tensor],
    accelerator: Accelerator,
    indexes: list[int] | None = None,
    workers: int = 0,
    bar: tqdm | None = None,
) -> tuple[dict[int, Tensor], dict[int, str]]:
    """What the model makes of each photo, and what is wrong with those that cannot be read, both by index.

    The processes share the work, and all get the whole. A progress bar moves with the photos of all of them.
    """
    indexes = list(range(len(photos))) if indexes is None else indexes
    own = indexes[accelerator.process_index :: accelerator.num_processes]
    rows: dict[int, Tensor] = {}
    problems: dict[int, str] = {}
    views = Views(photos, preprocessing, own)
    for batch in DataLoader(views, BATCH, num_workers=workers, collate_fn=list, worker_init_fn=ignore_interrupt):
        problems |= {index: wrong for index, wrong in batch if isinstance(wrong, str)}
        seen = {index: view for index, view in batch if isinstance(view, Tensor)}
        images = [view.to(accelerator.device) for view in seen.values()]
        with fast_linear():
            found = _run(model, images)
        rows |= zip(seen, (row.float().cpu().clone() for row in found))
        if bar is not None:
            bar.update(min(accelerator.num_processes * len(batch), bar.total - bar.n))
    for others, wrong in gather_object([(rows, problems)]):
        rows |= others
        problems |= wrong
    return rows, problems


def _run(model: Callable[[Tensor], Tensor], images: list[Tensor]) -> Iterable[Tensor]:
    """All at once; one by one where their shapes differ or memory runs out."""
    if len({image.shape for image in images}) == 1:
        try:
            return model(torch.stack(images))
        except (RuntimeError, MemoryError) as error:
            if not out_of_memory(error):
                raise
    return [model(image[None])[0] for image in images]


def without(photos: Photos, problems: dict[int, str], accelerator: Accelerator) -> Photos:
    """The photos that can be read; the others are named and counted."""
    name_problems(photos, problems, accelerator, "photos were skipped")
    return photos.take([index for index in range(len(photos)) if index not in problems])


def name_problems(photos: Photos, problems: dict[int, str], accelerator: Accelerator, what: str) -> None:
    """Some photos by name, with what is wrong with them, and how many there are."""
    if problems and accelerator.is_main_process:
        for index, problem in sorted(problems.items())[:NAMED]:
            print(f"vit: {photos.files[index]}: {problem}", file=sys.stderr)
        more = f", {len(problems) - NAMED} of them not named here" if len(problems) > NAMED else ""
        print(f"vit: {len(problems)} of {len(photos)} {what}{more}.", file=sys.stderr)
