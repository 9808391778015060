"""What a benchmark found: tables as Markdown, and the machine's name."""

from __future__ import annotations

import argparse
import os
import re
from dataclasses import dataclass, field

import torch

from vit.kernels import cpu_flags, cpu_name
from vit.precision import FLAGS


@dataclass
class Table:
    """Rows under a title, printed as Markdown."""

    title: str
    columns: tuple[str, ...]
    note: str = ""
    rows: list[tuple[str, ...]] = field(default_factory=list)

    def add(self, *cells: object) -> None:
        self.rows.append(tuple(str(cell) for cell in cells))

    def __str__(self) -> str:
        lines = [self.columns, ("---",) * len(self.columns), *self.rows]
        table = "\n".join(f"| {' | '.join(line)} |" for line in lines).replace(" --- ", "---")
        return f"\n{self.title}\n\n{table}\n" + (f"\n{self.note}\n" if self.note else "")


def figures_of(text: str) -> dict[str, dict[str, list[tuple[float, float]]]]:
    """What can be drawn of printed tables: by title and column, the points of tables whose first column has numbers."""
    found: dict[str, dict[str, list[tuple[float, float]]]] = {}
    for title, table in re.findall(r"^(\S.*)\n\n((?:\|.*\n?)+)", text, re.MULTILINE):
        head, _, *rows = ([cell.strip() for cell in line.strip("|").split("|")] for line in table.strip().splitlines())
        if len(rows) > 1 and all(row[0].split()[0].isdecimal() for row in rows):
            at = [float(row[0].split()[0]) for row in rows]
            values = list(zip(*([float(cell.split()[0]) for cell in row[1:]] for row in rows)))
            found[title] = {name: list(zip(at, line)) for name, line in zip(head[1:], values)}
    return found


def machine() -> str:
    """The CPU by its own name, how many of its cores are used, and which instructions for fewer bits it has."""
    known = sorted(flag for flags in FLAGS.values() for flag in flags if flag in cpu_flags())
    has = f"with {', '.join(known)}" if known else "without instructions for fewer bits"
    return f"{cpu_name()} {has}, {torch.get_num_threads()} of {os.cpu_count()} cores; torch {torch.__version__}"


def two_threads(threads: int | None = None) -> None:
    """Two, where there are as many cores, or so many."""
    torch.set_num_threads(threads or min(2, os.cpu_count() or 1))


def arguments(doc: str | None) -> argparse.ArgumentParser:
    """A parser that says what the benchmark is."""
    parser = argparse.ArgumentParser(description=doc, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--threads", type=int, metavar="N", help="1: processor time counts (default: two at most)")
    return parser
