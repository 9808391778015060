import configparser
import os
import shutil
import subprocess
import sys
import zipfile
from pathlib import Path

import pytest

from vit.deploy import FOR_DEVELOPERS

ROOT = Path(__file__).resolve().parents[1]


def files(*under: str) -> list[str]:
    """What git tracks, wherever the tests are run from."""
    listed = subprocess.run(["git", "ls-files", "-z", *under], cwd=ROOT, check=True, capture_output=True, text=True)
    return listed.stdout.split("\0")[:-1]


@pytest.fixture(scope="module")
def wheel(tmp_path_factory) -> Path:
    """Built from a copy: building writes into the folder it builds from."""
    folder = tmp_path_factory.mktemp("package")
    for name in files("vit", "pyproject.toml", "requirements.txt", "README.md", "LICENSE"):
        (folder / "source" / name).parent.mkdir(parents=True, exist_ok=True)
        shutil.copy(ROOT / name, folder / "source" / name)
    tools = folder / "source" / "vit" / "page" / "web" / "node_modules"
    for name in ("tool.js", "typescript/index.js", "typescript/lib/tsc.js", "typescript/__init__.py"):
        (tools / name).parent.mkdir(parents=True, exist_ok=True)
        (tools / name).touch()
    pip("wheel", "--no-deps", "--wheel-dir", str(folder), str(folder / "source"))
    return next(folder.glob("*.whl"))


@pytest.fixture(scope="module")
def installed(wheel, tmp_path_factory) -> Path:
    folder = tmp_path_factory.mktemp("installed")
    pip("install", "--no-deps", "--target", str(folder), str(wheel))
    return folder


def pip(*arguments: str) -> None:
    subprocess.run([sys.executable, "-m", "pip", "-q", "--disable-pip-version-check", *arguments], check=True)


def run_vit(installed: Path, empty: Path, *arguments: str) -> subprocess.CompletedProcess[str]:
    environment = {**os.environ, "PYTHONPATH": str(installed), "HF_HUB_OFFLINE": "1"}
    command = [str(installed / "bin" / "vit"), *arguments]
    return subprocess.run(command, cwd=empty, env=environment, capture_output=True, text=True)


def test_the_wheel_holds_what_git_tracks_and_nothing_else(wheel):
    with zipfile.ZipFile(wheel) as archive:
        packed = [name for name in archive.namelist() if ".dist-info/" not in name]
    needed = [name for name in files("vit") if Path(name).name not in FOR_DEVELOPERS]
    assert sorted(packed) == sorted(needed)


def test_the_wheel_has_one_command(wheel):
    with zipfile.ZipFile(wheel) as archive:
        [name] = [name for name in archive.namelist() if name.endswith(".dist-info/entry_points.txt")]
        entries = configparser.ConfigParser()
        entries.read_string(archive.read(name).decode())
    assert {section: dict(entries[section]) for section in entries.sections()} == {
        "console_scripts": {"vit": "vit.__main__:main"}
    }


def test_the_command_predicts_far_from_the_checkout(installed, tmp_path):
    photo = str(ROOT / "examples" / "pizza.jpg")
    done = run_vit(installed, tmp_path, "predict", photo)
    assert (done.returncode, done.stderr) == (0, "")
    lines = done.stdout.splitlines()
    assert lines[0] == photo and lines[1].endswith("%  pizza") and len(lines) == 6


def test_the_command_passes_its_exit_code(installed, tmp_path):
    done = run_vit(installed, tmp_path, "summary", "B/17")
    assert done.returncode == 1 and done.stderr.startswith("vit: There is no variant 'B/17'")


def test_the_command_goes_by_its_own_name(installed, tmp_path):
    done = run_vit(installed, tmp_path)
    assert done.returncode == 2 and done.stderr.startswith("usage: vit [-h] COMMAND")
