"""A Space's files, alone in a folder with an environment of their own: it starts and serves as it would there."""

import hashlib
import os
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from browser.visitor import Visitor, close
from conftest import SKIMAGE
from gradio_client import Client, handle_file
from gradio_client.exceptions import AppError
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


def laid_out(model: str, folder: Path, **settings: Any) -> dict[str, str]:
    """The files that are deployed, in an empty folder; returns the Space's variables."""
    plan = deploy.plan(model, **settings)
    for name, file in plan.files.items():
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_bytes(file if isinstance(file, bytes) else file.read_bytes())
    return plan.variables


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
def test_a_space_with_a_fine_tuned_folder(python, browser, tiny_base, tmp_path):
    """It has its title, its example and its model, and nothing of the others."""
    (tmp_path / "mine").mkdir()
    shutil.copy(CAT, tmp_path / "mine")
    variables = laid_out(str(tiny_base), tmp_path, title="Cats & <b>dogs</b>", examples=tmp_path / "mine")
    assert not (tmp_path / "vit" / "pretrained").exists()
    with app_process(folder=tmp_path, python=python, **SPACE, **variables) as (url, _):
        client = Client(url, verbose=False)
        answer = client.predict(handle_file(str(CAT)), api_name="/predict")
        assert answer["label"] == vit.load(tiny_base).predict(CAT)[0][0]
        assert {each["label"] for each in answer["confidences"]} == {"pizza", "steak", "sushi"}
        page = browser.new_page()
        page.goto(url)
        page.get_by_role("heading", name="Cats & <b>dogs</b>", exact=True).wait_for()
        assert page.title() == "Cats & <b>dogs</b>"
        page.get_by_role("button", name="chelsea", pressed=True).wait_for()  # the page has opened with it
        assert page.locator('[data-part="model"]').is_disabled()
        with pytest.raises(AppError, match=r"models of its list only|not in the list of choices"):
            client.predict(handle_file(str(CAT)), "foodvision-mini", api_name="/predict")
        page.close()
