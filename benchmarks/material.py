"""What is measured with: photos and weights in ../shared, and what comes with the project where they are missing."""

from __future__ import annotations

import shutil
import zipfile
from pathlib import Path
from typing import TYPE_CHECKING

import vit
from vit.checkpoints.families.timm import TIMM
from vit.checkpoints.renaming import rename
from vit.photos.examples import FOOD, example_photos

if TYPE_CHECKING:
    from timm.models import VisionTransformer

SHARED = Path(__file__).resolve().parents[2] / "shared"
MINI = SHARED / "data" / "pizza_steak_sushi_20_percent.zip"  # FoodVision Mini, with 20 % of the photos
WEIGHTS = SHARED / "weights" / "vit_tiny_patch16_224.safetensors"  # timm's, of ImageNet


def tiny() -> vit.Classifier:
    """ViT-Ti/16 with ImageNet's 1000 classes, or Everyday, which has most of them too."""
    return vit.load(WEIGHTS) if WEIGHTS.is_file() else vit.load()


def lay_out(folder: Path) -> str:
    """Put photos into train and test folders with a folder for each class, and say which they are.

    FoodVision Mini, 450 and 150 photos of three dishes; or the examples, 10 and 4 of food and of other things.
    """
    if MINI.is_file():
        with zipfile.ZipFile(MINI) as archive:
            archive.extractall(folder)
        return "FoodVision Mini"
    photos = example_photos()
    for name, members in (
        ("food", [photo for photo in photos if photo.stem in FOOD]),
        ("other", [photo for photo in photos if photo.stem not in FOOD]),
    ):
        for number, photo in enumerate(members):
            place = folder / ("test" if number < 2 else "train") / name
            place.mkdir(parents=True, exist_ok=True)
            shutil.copy(photo, place)
    return "The examples"


def in_timm(model: vit.ViT) -> VisionTransformer:
    """A ViT-Ti/16 of ours in timm: there, as registers have no position, the class token's is in the token."""
    import timm
    from timm.models import VisionTransformer

    config, state = model.config, model.state_dict()
    theirs = timm.create_model(
        "vit_tiny_patch16_224", num_classes=config.classes, reg_tokens=config.registers, no_embed_class=True
    )
    assert isinstance(theirs, VisionTransformer)
    position, state["position_embedding"] = state["position_embedding"].tensor_split([1], dim=1)
    state["class_token"] = state["class_token"] + position
    names = {name: next(iter(rename({name: tensor}, TIMM))) for name, tensor in theirs.state_dict().items()}
    theirs.load_state_dict({name: state[ours] for name, ours in names.items()})
    return theirs.eval()
