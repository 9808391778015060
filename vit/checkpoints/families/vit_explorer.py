"""Our own: what `vit.save` writes."""

from __future__ import annotations

from ...config import ViTConfig
from ...photos.preprocessing import Preprocessing
from ..defaults import HALF, all_labels, default_preprocessing
from ..family import Description, Family, Files, State
from ..shapes import from_shapes

MODEL_TYPE = "vit-explorer"
TRAINING_FEATURES = "training_features."  # what `familiarity` needs lies among the weights under these names


def describe(state: State, files: Files) -> Description:
    config = files.config
    if not config:
        architecture = from_shapes(state)
        return Description(
            architecture, all_labels({}, architecture.classes), default_preprocessing(architecture, HALF, HALF)
        )
    return Description(
        ViTConfig(**config["architecture"]), list(config["labels"]), Preprocessing(**config["preprocessing"])
    )


VIT_EXPLORER = Family(
    patch_projection=r"patch_embedding\.projection\.weight",
    renames={r"(.*)": r"\1"},
    model_types=(MODEL_TYPE,),
    describe=describe,
)
