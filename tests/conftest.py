import atexit
import os
import shutil
import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest
import skimage
import torch
from hub_server import TOKEN, HubServer, visit
from PIL import Image, ImageDraw

import vit
from benchmarks.material import MINI, SHARED, WEIGHTS, tiny

# Where pages look for a free port, from here on: 7860 is for the README's app, which another worker may be testing.
os.environ.setdefault("GRADIO_SERVER_PORT", "7960")
# A worker's own: a page that ends deletes its photos, which another worker's page may hold too.
os.environ["GRADIO_TEMP_DIR"] = tempfile.mkdtemp(prefix="gradio-")
atexit.register(shutil.rmtree, os.environ["GRADIO_TEMP_DIR"], ignore_errors=True)

SKIMAGE = Path(skimage.__file__).parent / "data"


@pytest.fixture(scope="session", autouse=True)
def two_threads():
    torch.set_num_threads(2)


@pytest.fixture(autouse=True)
def seed():
    torch.manual_seed(0)


@pytest.fixture(scope="session")
def shared() -> Path:
    if not MINI.is_file():
        pytest.skip(f"needs Food-101's photos, which are not ours to hand out, in {SHARED / 'data'}")
    return SHARED


@pytest.fixture(scope="session")
def real() -> vit.Classifier:
    """A trained ViT-Ti/16: `imagenet`, or Everyday where that is missing."""
    return tiny()


@pytest.fixture(scope="session")
def imagenet(real) -> vit.Classifier:
    """A trained ViT-Ti/16 with ImageNet's 1000 classes, and with sinks."""
    if not WEIGHTS.is_file():
        pytest.skip(f"needs timm/vit_tiny_patch16_224.augreg_in21k_ft_in1k, from the Hub, as {WEIGHTS}")
    return real


@pytest.fixture(scope="session")
def photos() -> list[Image.Image]:
    """Real photos of several shapes: wide, square, tall, small."""
    wide, square, coffee = (
        Image.open(SKIMAGE / name).convert("RGB") for name in ("chelsea.png", "astronaut.png", "coffee.png")
    )
    return [wide, square, coffee.rotate(90, expand=True), coffee.resize((150, 100))]


@pytest.fixture(scope="session")
def tiny_config() -> vit.ViTConfig:
    """As small as a ViT can be and still have several layers, heads and patches."""
    return vit.ViTConfig(image_size=32, patch_size=8, width=64, heads=2, mlp_width=128, layers=2, classes=3)


@pytest.fixture(scope="session")
def tiny_base(tmp_path_factory, tiny_config) -> Path:
    """A checkpoint to fine-tune: random, and quick."""
    folder = tmp_path_factory.mktemp("base")
    labels = ["pizza", "steak", "sushi"]
    vit.save(vit.Classifier(randomise(vit.ViT(tiny_config)), labels, vit.Preprocessing((32, 32))), folder)
    return folder


@pytest.fixture(scope="session")
def discs(tmp_path_factory) -> Path:
    """Pictures of discs in three colours, 24 to train and 8 to test of each: a class is easily told."""
    folder = tmp_path_factory.mktemp("discs")
    generator = torch.Generator().manual_seed(2)
    for part, count in (("train", 24), ("test", 8)):
        for name, colour in (("blue_disc", "#2840dc"), ("green_disc", "#28c828"), ("red_disc", "#dc2828")):
            (folder / part / name).mkdir(parents=True)
            for number in range(count):
                x, y, *ground = torch.randint(0, 20, (5,), generator=generator).tolist()
                picture = Image.new("RGB", (48, 44), tuple(12 * value for value in ground))
                ImageDraw.Draw(picture).ellipse((x, y, x + 24, y + 24), fill=colour)
                picture.save(folder / part / name / f"{number}.png")
    return folder


@pytest.fixture
def hub(tmp_path, monkeypatch) -> Iterator[HubServer]:
    """A Hub to write to, where `someone` has a token."""
    with HubServer() as server:
        visit(server, tmp_path / "home", monkeypatch)
        server.tokens, server.writers = {TOKEN}, {TOKEN: "someone"}
        yield server


@pytest.fixture(autouse=True)
def own_cache(tmp_path, monkeypatch):
    """Features and fetched data of a test stay its own."""
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))


@pytest.fixture(scope="module")
def browser():
    """Chromium; in CI it must be there. For one module: it keeps an event loop, and pipes that processes inherit."""
    from browser.visitor import FLAGS
    from playwright.sync_api import sync_playwright

    chromium = shutil.which("chromium")
    if chromium is None and not os.environ.get("CI"):
        pytest.skip("needs Chromium, from your system's packages")
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=chromium, args=FLAGS)
        yield browser
        browser.close()


def randomise(model: torch.nn.Module, seed: int = 1) -> torch.nn.Module:
    """Numbers in every parameter, so that none can be forgotten unnoticed."""
    generator = torch.Generator().manual_seed(seed)
    with torch.no_grad():
        for name, parameter in model.named_parameters():
            noise = torch.randn(parameter.shape, generator=generator)
            if parameter.ndim >= 2 and "token" not in name and "pos" not in name:
                parameter.copy_(noise / parameter[0].numel() ** 0.5)
            elif name.endswith("weight"):
                parameter.copy_(1 + 0.1 * noise)
            else:
                parameter.copy_(0.3 * noise)
    return model.eval()
