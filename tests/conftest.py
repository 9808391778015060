from pathlib import Path

import pytest
import skimage
import torch
from PIL import Image

import vit

SHARED = Path(__file__).resolve().parents[2] / "shared"
SKIMAGE = Path(skimage.__file__).parent / "data"


@pytest.fixture(scope="session", autouse=True)
def two_threads():
    torch.set_num_threads(2)


@pytest.fixture(autouse=True)
def seed():
    torch.manual_seed(0)


@pytest.fixture(scope="session")
def shared() -> Path:
    if not SHARED.is_dir():
        pytest.skip("needs ../shared, the photos and weights for building and measuring")
    return SHARED


@pytest.fixture(scope="session")
def real(shared) -> vit.Classifier:
    """A real ViT-Ti/16 with ImageNet's 1000 classes."""
    return vit.load(shared / "weights" / "vit_tiny_patch16_224.safetensors")


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


def randomise(model: torch.nn.Module) -> torch.nn.Module:
    """Numbers in every parameter, so that none can be forgotten unnoticed."""
    generator = torch.Generator().manual_seed(1)
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
