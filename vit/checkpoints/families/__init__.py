"""The families of checkpoints that can be loaded, a file for each."""

from ..family import Family
from .timm import TIMM
from .torchvision import TORCHVISION
from .transformers import TRANSFORMERS
from .vit_explorer import VIT_EXPLORER

FAMILIES: tuple[Family, ...] = (VIT_EXPLORER, TRANSFORMERS, TIMM, TORCHVISION)
