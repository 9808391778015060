"""Sharing work among the processes that `accelerate launch` or torchrun starts."""

from __future__ import annotations

import os
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import TypeVar

import torch
from torch import distributed
from tqdm import tqdm

from .extras import needs

Item = TypeVar("Item")


@dataclass(frozen=True)
class Processes:
    """How many processes do a command's work, and which of them this is."""

    index: int = 0
    count: int = 1
    device: torch.device | None = None  # None: where the model is

    @classmethod
    def started(cls) -> Processes:
        """Those that were started together; this one alone where nobody started others."""
        if not _several():
            return cls()
        needs("finetune", "Work in several processes")
        from accelerate import PartialState

        state = PartialState(cpu=on_cpus())
        return cls(state.process_index, state.num_processes, state.device)

    @property
    def main(self) -> bool:
        """Whether this is the one that says and writes what all have done."""
        return self.index == 0

    def rounds(self, items: Sequence[Item], unit: str) -> Iterator[Sequence[Item]]:
        """One item for each process, then the next; the last of them has fewer. The main one has a progress bar."""
        with tqdm(total=len(items), unit=unit, disable=len(items) < 2 or not self.main) as bar:
            for start in range(0, len(items), self.count):
                together = items[start : start + self.count]
                yield together
                bar.update(len(together))

    def gather(self, found: list[Item]) -> list[Item]:
        """What all of them found, in the order of the processes."""
        if self.count == 1:
            return found
        from accelerate.utils import gather_object

        return gather_object(found)


def on_cpus() -> bool:
    """Whether work is for CPUs: asked for, or that of several processes without GPUs, which else would not meet."""
    from accelerate.utils import parse_flag_from_env

    return parse_flag_from_env("ACCELERATE_USE_CPU") or (_several() and not torch.accelerator.is_available())


def _several() -> bool:
    return int(os.environ.get("WORLD_SIZE") or 1) > 1


def exit_code(failed: bool) -> int:
    """1 where a photo could not be used; 0 in one of several, whose launcher takes anything else for a crash."""
    return int(failed and not _several())


def end_together() -> None:
    """The processes' work together is done: whoever ends first now takes no other down with it."""
    if distributed.is_available() and distributed.is_initialized():
        from accelerate import PartialState

        state = PartialState()
        state.wait_for_everyone()
        state.destroy_process_group()
