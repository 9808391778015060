"""The README's commands and Python run as they stand."""

import os
import re
import shutil
import socket
import subprocess
import sys
from pathlib import Path

import pytest
from hub_server import HubServer
from huggingface_hub import constants
from serving import ROOT

from vit.explain.methods import METHODS
from vit.finetune.recipe import BASE

README = (ROOT / "README.md").read_text(encoding="utf-8")
DEIT = "facebook/deit-tiny-patch16-224"
LONG = ("pip install", "benchmarks", "food101_small")  # minutes to hours: what they make stands in tables


def blocks(language: str) -> list[str]:
    return re.findall(rf"^```{language}\n(.*?)^```$", README, re.MULTILINE | re.DOTALL)


@pytest.fixture
def project(tmp_path, discs, tiny_base):
    """The project's folder as a user has it: with .venv, and with photos of one's own."""
    for name in ("app.py", "vit", "examples", "README.md", "LICENSE", "requirements.txt"):
        (tmp_path / name).symlink_to(ROOT / name)
    (tmp_path / ".venv").symlink_to(sys.prefix)
    shutil.copytree(discs, tmp_path / "photos")
    return tmp_path


@pytest.fixture
def hub(tiny_base):
    """A Hub that has the models which the README names, small ones under their names."""
    files = {path.name: path.read_bytes() for path in tiny_base.iterdir()}
    with HubServer() as server:
        for repo in (BASE, DEIT):
            server.commit(repo, files)
        yield server


def run(script: str, project: Path, hub: HubServer) -> str:
    environment = {**os.environ, "HF_ENDPOINT": hub.url, "HF_HOME": str(project / "home"), "CI": ""}
    environment |= {"HF_HUB_DISABLE_XET": "1", "HF_TOKEN": ""}
    done = subprocess.run(
        ["bash", "-e", "-c", script], cwd=project, env=environment, capture_output=True, text=True, timeout=300
    )
    assert done.returncode == 0, done.stderr
    return done.stdout


def test_commands(project, hub):
    lines = [
        line
        for block in blocks("bash")
        if not any(word in block for word in LONG)
        for line in block.strip().splitlines()
    ]
    apps = [line for line in lines if "app.py" in line]
    commands = [line for line in lines if "app.py" not in line]
    assert len(apps) == 3 and len(commands) == 8
    # Fine-tuning comes before evaluating and deploying what it made, as in the text.
    said = {line: run(line, project, hub) for line in commands}
    of = {word: text for line, text in said.items() for word in line.split() if word in WORDS}
    assert (project / "my-model" / "most_wrong.png").exists() and (project / "report" / "photos.csv").exists()
    assert len((project / "answers.csv").read_text().splitlines()) == 97
    assert re.search(r"correct +\d+/24", of["evaluate"])
    assert "model/my-model/model.safetensors" in of["deploy"] and "VIT_MODEL=model/my-model" in of["deploy"]
    assert of["predict"].count(".jpg") == 14 and "%" in of["predict"]
    assert (project / "maps" / "pizza" / "deletion.png").exists()
    assert "86,567,656" in of["summary"]
    assert (project / "model.onnx").exists() and "Largest difference of the logits" in of["export"]


WORDS = ("finetune", "evaluate", "deploy", "predict", "explain", "export", "summary")


@pytest.mark.parametrize("number", range(3))
def test_the_app_starts_as_written(project, hub, number):
    """Each line that starts the app, on another port, until it answers; the models are made first."""
    apps = [line for block in blocks("bash") for line in block.strip().splitlines() if "python app.py" in line]
    line = [line for line in apps if "pip install" not in line][number]
    if "my-model" in line:
        shutil.copytree(hub_folder(hub), project / "my-model")
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    script = f"{line.partition('#')[0]} & app=$!; " + (
        f"for _ in $(seq 240); do curl -sf http://127.0.0.1:{port}/config > config.json && break; sleep 0.25; done; "
        "kill $app; wait $app || true; test -s config.json"
    )
    run(f"export GRADIO_SERVER_PORT={port}; {script}", project, hub)
    assert "ViT Explorer" in (project / "config.json").read_text()


def hub_folder(hub: HubServer) -> Path:
    folder = Path(os.environ["XDG_CACHE_HOME"]) / "my-model"
    folder.mkdir(parents=True)
    for name, content in hub.files(BASE).items():
        (folder / name).write_bytes(content)
    return folder


def test_python(monkeypatch):
    """One after another, as a reader would type them; with the app running where they expect it."""
    with socket.socket() as port:
        if port.connect_ex(("127.0.0.1", 7860)) == 0:
            pytest.skip("needs port 7860, where something else is running")
    monkeypatch.chdir(ROOT)
    monkeypatch.setattr(constants, "HF_HUB_OFFLINE", True)
    from serving import app_process

    names: dict[str, object] = {}
    found = [block for block in blocks("python") if "vit.finetune" not in block]
    assert len(found) == 5
    with app_process(port=7860):
        for block in found:
            exec(compile(block, "README.md", "exec"), names)
    explanation = names["e"]
    assert names["attention"].shape == tuple(explanation.attention.shape)
    assert abs(names["attention"] - explanation.attention.numpy()).max() < 1e-4
    assert names["logits"].shape == (1, 3)
    assert names["recording"].attention[0].shape == (1, 12, 281, 281)


def test_python_that_fine_tunes(project, hub):
    [block] = [block for block in blocks("python") if "vit.finetune" in block]
    (project / "script.py").write_text(block)
    shutil.copy(ROOT / "examples" / "pizza.jpg", project / "photo.jpg")
    assert "'strength'" in run(".venv/bin/python script.py", project, hub)
    assert (project / "my-model" / "model.safetensors").exists()


def test_the_table_of_maps_has_the_methods_by_their_titles():
    table = README.partition("| map |")[2].partition("\n\n")[0]
    rows = re.findall(r"^\| ([^|]+?) \| \d", table, re.MULTILINE)
    assert len(rows) >= 6 and set(rows) <= {*(method.title for method in METHODS.values()), "random"}


def test_figures_have_a_command_and_pictures_are_there():
    for path in re.findall(r"\((docs/[\w.-]+)\)|src=\"(docs/[\w.-]+)\"", README):
        assert (ROOT / (path[0] or path[1])).is_file()
    for name in re.findall(r"python -m (benchmarks\.\w+)", README):
        assert (ROOT / f"{name.replace('.', '/')}.py").is_file()
    for target in re.findall(r"\]\((?!http|#|docs)([^)]+)\)", README):
        assert (ROOT / target).is_file(), target


def test_contributing_names_what_is_there():
    text = re.sub(r"^```.*?^```$", "", (ROOT / "CONTRIBUTING.md").read_text(encoding="utf-8"), flags=re.M | re.S)
    listed = subprocess.run(["git", "ls-files"], cwd=ROOT, check=True, capture_output=True, text=True).stdout.split()
    folders = {f"{parent}/" for name in listed for parent in Path(name).parents}
    source = "\n".join(
        (ROOT / name).read_text(encoding="utf-8") for name in listed if name.endswith((".py", ".js", ".json", ".mjs"))
    )
    gone = []
    for name in set(re.findall(r"`([^`]+)`", text)):
        if re.fullmatch(r"[\w./-]*(/|\.(py|js|json|md))", name):  # by its path, or the end of it
            there = any(f"/{path}".endswith(f"/{name}") for path in [*listed, *folders])
        elif re.fullmatch(r"[\w.]+", name):  # of `Classifier.explain`, both
            there = all(re.search(rf"\b{part}\b", source) for part in name.split(".") if part)
        else:
            continue  # a command, or a piece of code
        if not there:
            gone.append(name)
    assert not gone


def test_contributing_names_every_room():
    text = (ROOT / "CONTRIBUTING.md").read_text(encoding="utf-8")
    rooms = [path for folder in ("vit", "vit/page") for path in (ROOT / folder).iterdir()]
    names = [path.name if path.suffix == ".py" else f"{path.name}/" for path in rooms if path.suffix in (".py", "")]
    assert not [name for name in names if not name.startswith("__") and f"`{name}`" not in text]
