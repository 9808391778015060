"""All figures in one place: every benchmark, one file with its tables, and plots.

    python -m benchmarks --out FOLDER
    python -m benchmarks --out FOLDER --quick   # all of it in a few minutes, too coarse for figures
    python -m benchmarks --out FOLDER --only model sizes

Each benchmark runs in a process of its own, as `python -m benchmarks.NAME` does, so that none disturbs the next. What
needs photos or programs that are not there is left out, with the reason.
"""

from __future__ import annotations

import argparse
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path

from matplotlib.figure import Figure

from .report import figures_of, machine, two_threads

ROOT = Path(__file__).resolve().parent.parent


@dataclass(frozen=True)
class Row:
    """A benchmark by its module's name, and its arguments where it is to be quick."""

    name: str
    quick: tuple[str, ...]


ROWS = (
    Row("model", ("--rounds", "3")),
    Row("precision", ("--every", "60")),
    Row("relevance", ("--rounds", "3")),
    Row("sizes", ("--rounds", "3")),
    Row("predict", ("--photos", "100", "--rounds", "2")),
    Row("start", ("--rounds", "2")),
    Row("page", ("--rounds", "2")),
    Row("load", ("--quick",)),
    Row("hosting", ("--quick",)),
    Row("finetune", ("--epochs", "1")),
    Row("few_photos", ("--quick",)),
    Row("faithfulness", ("--photos", "3", "--steps", "5")),
    Row("everyday", ("--every", "60")),
    Row("registers", ("--every", "60")),
)


def run(row: Row, quick: bool) -> str:
    """What the benchmark prints, from its first line on; a sentence where it is missing or fails."""
    if not (ROOT / "benchmarks" / f"{row.name}.py").is_file():
        return "There is no such benchmark here."
    command = [sys.executable, "-m", f"benchmarks.{row.name}", *(row.quick if quick else ())]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True)
    if done.returncode:
        return f"Left out: {(done.stderr.strip().splitlines() or ['it failed'])[-1]}"
    return done.stdout.strip()


def plot(found: dict[str, dict[str, list[tuple[float, float]]]], folder: Path) -> list[str]:
    """A picture of each table that has figures: by row, over the numbers of its first column."""
    names = []
    for title, lines in found.items():
        figure = Figure((6, 4), dpi=150, layout="constrained")
        axes = figure.add_subplot(title=title, ylim=(0, 1.1 * max(y for line in lines.values() for _, y in line)))
        for name, line in lines.items():
            axes.plot(*zip(*line), marker="o", label=name)
        axes.legend(frameon=False)
        names.append(f"{title.partition(',')[0].lower().replace(' ', '-')}.png")
        figure.savefig(folder / names[-1])
    return names


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--out", required=True, type=Path, metavar="FOLDER", help="for figures.md and the plots")
    parser.add_argument("--quick", action="store_true", help="few rounds and photos: to see that all runs")
    parser.add_argument("--only", nargs="+", choices=[row.name for row in ROWS], metavar="NAME", help="some of them")
    options = parser.parse_args()
    options.out.mkdir(parents=True, exist_ok=True)
    two_threads()
    text = f"# Figures\n\n{machine()}\n"
    for row in ROWS:
        if options.only and row.name not in options.only:
            continue
        print(f"{row.name} …", flush=True)
        said = run(row, options.quick)
        text += f"\n## {row.name}\n\n`python -m benchmarks.{row.name}`\n\n{said}\n"
        pictures = plot(figures_of(said), options.out)
        text += "".join(f"\n![{name}]({name})\n" for name in pictures)
        (options.out / "figures.md").write_text(text, encoding="utf-8")
    print(f"Written to {options.out / 'figures.md'}")


if __name__ == "__main__":
    main()
