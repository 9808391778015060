import ast
import configparser
import os
import shutil
import subprocess
import sys
import zipfile
from email.parser import Parser
from importlib.metadata import packages_distributions
from pathlib import Path

import httpx2 as httpx
import pytest
from packaging.requirements import Requirement
from packaging.utils import canonicalize_name
from serving import app_process

import vit.finetune
from vit.__main__ import main
from vit.spaces.deploy import FOR_DEVELOPERS

ROOT = Path(__file__).resolve().parents[1]
# Who has asked for it is told in a sentence; ZeroGPU brings its own.
ON_DEMAND = {"datasets", "spaces"}


def files(*under: str) -> list[str]:
    """What git tracks, wherever the tests are run from."""
    listed = subprocess.run(["git", "ls-files", "-z", *under], cwd=ROOT, check=True, capture_output=True, text=True)
    return listed.stdout.split("\0")[:-1]


@pytest.fixture(scope="module")
def wheel(tmp_path_factory) -> Path:
    """Built from a copy: building writes into the folder it builds from."""
    folder = tmp_path_factory.mktemp("package")
    for name in files("vit", "examples", "pyproject.toml", "README.md", "LICENSE"):
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
    needed += [f"vit/{name}" for name in files("examples")]
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


def test_the_command_serves_the_page_far_from_the_checkout(installed, tmp_path):
    environment = {"PYTHONPATH": str(installed), "HF_HUB_OFFLINE": "1"}
    with app_process(folder=tmp_path, command=[installed / "bin" / "vit", "app"], **environment) as (url, _):
        components = httpx.get(f"{url}/config").json()["components"]
    shown = [example["name"] for each in components for example in each["props"].get("props", {}).get("examples", [])]
    assert sorted(shown) == sorted(Path(name).stem for name in files("examples") if name.endswith(".jpg"))
    assert not list(installed.rglob("*.pyi"))  # which Gradio writes beside components, wherever they are installed


@pytest.fixture(scope="module")
def requirements(wheel) -> dict[str, dict[str, Requirement]]:
    """What the wheel needs, by the extra that needs it ("" for all), and by name."""
    with zipfile.ZipFile(wheel) as archive:
        [name] = [name for name in archive.namelist() if name.endswith(".dist-info/METADATA")]
        lines = Parser().parsestr(archive.read(name).decode()).get_all("Requires-Dist")
    found: dict[str, dict[str, Requirement]] = {"": {}, "page": {}, "finetune": {}, "onnx": {}}
    for requirement in map(Requirement, lines):
        marker = requirement.marker
        extra = next(extra for extra in found if marker is None or marker.evaluate({"extra": extra}))
        found[extra][canonicalize_name(requirement.name)] = requirement
    return found


def test_what_is_imported_is_required(requirements):
    distributions = packages_distributions()
    for file in files("vit/*.py"):
        room = Path(file).parts[1].partition("_")[0]  # onnx_export.py is the extra onnx's
        room = {"processes.py": "finetune"}.get(room, room)  # whose sentence names it
        extra = room if room in requirements else ""
        tree = ast.parse((ROOT / file).read_text(encoding="utf-8"))
        names = [name.name for node in ast.walk(tree) if isinstance(node, ast.Import) for name in node.names]
        names += [node.module for node in ast.walk(tree) if isinstance(node, ast.ImportFrom) and not node.level]
        packages = {name.partition(".")[0] for name in names} - set(sys.stdlib_module_names) - ON_DEMAND
        for package in packages:
            possible = {canonicalize_name(name) for name in distributions[package]}
            assert possible & {*requirements[""], *requirements[extra]}, f"{file} imports {package}"


def test_the_pins_of_the_space_lie_in_the_ranges(requirements):
    pins = [Requirement(line) for line in (ROOT / "requirements.txt").read_text().splitlines()]
    every = {name: requirement for part in requirements.values() for name, requirement in part.items()}
    assert {name for part in requirements.values() for name in part} >= {canonicalize_name(pin.name) for pin in pins}
    for pin in pins:
        [specifier] = pin.specifier
        assert specifier.operator == "==" and specifier.version in every[canonicalize_name(pin.name)].specifier


@pytest.mark.parametrize(
    "package, command, sentence",
    [
        ("gradio", ["app"], "The page needs more packages: run pip install 'vit-explorer[page]'."),
        (
            "accelerate",
            ["finetune", "photos", "--out", "model"],
            "Fine-tuning needs more packages: run pip install 'vit-explorer[finetune]'.",
        ),
        (
            "accelerate",
            ["evaluate", "photos"],
            "Fine-tuning needs more packages: run pip install 'vit-explorer[finetune]'.",
        ),
        (
            "onnxruntime",
            ["export", "everyday", "--onnx", "model.onnx"],
            "ONNX needs more packages: run pip install 'vit-explorer[onnx]'.",
        ),
    ],
)
def test_a_missing_extra_is_named(monkeypatch, capsys, package, command, sentence):
    monkeypatch.setitem(sys.modules, package, None)
    assert main(command) == 1
    assert capsys.readouterr().err == f"vit: {sentence}\n"


def test_a_missing_extra_is_named_in_python(monkeypatch):
    monkeypatch.setitem(sys.modules, "accelerate", None)
    with pytest.raises(ImportError, match=r"run pip install 'vit-explorer\[finetune\]'"):
        _ = vit.finetune.finetune
