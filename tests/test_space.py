"""A Space's files, alone in a folder with an environment of their own: it starts and serves as it would there."""

import hashlib
import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest
from browser.visitor import Visitor, close
from conftest import SKIMAGE
from gradio_client import Client, handle_file
from serving import ROOT, app_process

import vit
from vit.explain import drawing
from vit.spaces import deploy

CAT = SKIMAGE / "chelsea.png"
# As Spaces sets them; there the address is 0.0.0.0.
SPACE = {
    "SPACE_ID": "someone/explorer",
    "SPACE_AUTHOR_NAME": "someone",
    "SYSTEM": "spaces",
    "GRADIO_SERVER_NAME": "127.0.0.1",
    "GRADIO_CACHE_EXAMPLES": "true",
    "GRADIO_CACHE_MODE": "lazy",
    "HF_HUB_OFFLINE": "1",
}


@pytest.fixture(scope="module")
def python() -> Path:
    """An environment with requirements.txt and nothing else, kept between runs as long as that file stays the same."""
    key = hashlib.sha256((ROOT / "requirements.txt").read_bytes() + sys.version.encode()).hexdigest()[:16]
    folder = Path.home() / ".cache" / "vit-explorer" / f"space-{key}"
    if not (folder / "ready").exists():
        shutil.rmtree(folder, ignore_errors=True)
        subprocess.run([sys.executable, "-m", "venv", folder], check=True)
        pip = [folder / "bin" / "pip", "install", "-q", "-r", ROOT / "requirements.txt"]
        subprocess.run(pip, check=True, env={**os.environ, "PIP_DISABLE_PIP_VERSION_CHECK": "1"})
        (folder / "ready").touch()
    return folder / "bin" / "python"


def laid_out(model: str, folder: Path) -> dict[str, str]:
    """The files that are deployed, in an empty folder; returns the Space's variables."""
    plan = deploy.plan(model)
    for name, path in plan.files.items():
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        shutil.copy(path, folder / name)
    return {deploy.VARIABLE: plan.model}


@pytest.mark.slow
def test_a_space_with_the_embedded_model(python, browser, tmp_path):
    variables = laid_out("everyday", tmp_path)
    with app_process(folder=tmp_path, python=python, **SPACE, **variables) as (url, _):
        classifier = vit.load()
        answer = Client(url, verbose=False).predict(handle_file(str(CAT)), api_name="/predict")
        assert answer["label"] == classifier.predict(CAT)[0][0]
        page = browser.new_page(viewport={"width": 1440, "height": 1000})
        visitor = Visitor(page, url, classifier)
        page.get_by_role("button", name="sushi").click()
        visitor.sees(ROOT / "examples" / "sushi.jpg")
        visitor.plain()
        assert close(visitor.patches(), drawing.heat(visitor.explanation.class_attention()[11]))
        page.close()


@pytest.mark.slow
def test_a_space_with_a_fine_tuned_folder(python, tiny_base, tmp_path):
    variables = laid_out(str(tiny_base), tmp_path)
    with app_process(folder=tmp_path, python=python, **SPACE, **variables) as (url, _):
        answer = Client(url, verbose=False).predict(handle_file(str(CAT)), api_name="/predict")
        assert answer["label"] == vit.load(tiny_base).predict(CAT)[0][0]
        assert {each["label"] for each in answer["confidences"]} == {"pizza", "steak", "sushi"}
