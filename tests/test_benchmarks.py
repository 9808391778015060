"""What measures: all of it runs in one go, and what it prints can be drawn."""

from serving import ROOT

from benchmarks.__main__ import ROWS, plot
from benchmarks.report import Table, figures_of


def test_all_benchmarks_run_in_one_go():
    files = (ROOT / "benchmarks").glob("*.py")
    measuring = {file.stem for file in files if f"python -m benchmarks.{file.stem}" in file.read_text()}
    assert measuring == {row.name for row in ROWS}


def test_tables_over_numbers_are_drawn(tmp_path):
    memory, words = Table("Memory, in MB", ("photos", "server")), Table("Load", ("", "right", "wait"))
    for count, size in ((100, 512), (2000, 530)):
        memory.add(count, f"{size} MB")
        words.add("ours", "3 of 4", "")
    words.note = "Two cores"
    found = figures_of(f"{memory}{words}")
    assert found == {"Memory, in MB": {"server": [(100, 512), (2000, 530)]}}
    assert plot(found, tmp_path) == ["memory.png"] and (tmp_path / "memory.png").stat().st_size > 1000
