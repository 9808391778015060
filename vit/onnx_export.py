"""A model as ONNX, for programs without PyTorch, with the proof that it answers as ours does."""

from __future__ import annotations

import json
import logging
import warnings
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Literal

import onnxruntime
import torch
from torch import Tensor, nn
from torch.export import Dim

from .classifier import Classifier
from .photos.files import Photo
from .photos.preprocessing import Preprocessing, to_tensor

Pixels = Literal["uint8", "float32"]


class FromPixels(nn.Module):
    """The model on pixels from 0 to 255, as files have them: normalising them is its first step."""

    mean: Tensor
    std: Tensor

    def __init__(self, model: nn.Module, preprocessing: Preprocessing) -> None:
        super().__init__()
        self.model = model
        self.register_buffer("mean", torch.tensor(preprocessing.mean)[:, None, None])
        self.register_buffer("std", torch.tensor(preprocessing.std)[:, None, None])

    def forward(self, images: Tensor) -> Tensor:
        return self.model((images.to(self.mean.dtype) / 255 - self.mean) / self.std)


@dataclass(frozen=True)
class Comparison:
    """A photo's logits (classes,): ours, and ONNX Runtime's."""

    ours: Tensor
    theirs: Tensor

    @property
    def difference(self) -> float:
        """The largest of all logits."""
        return (self.ours - self.theirs).abs().max().item()


def write(classifier: Classifier, file: Path, pixels: Pixels | None = None) -> None:
    """Write the model as ONNX: `images` (batch, 3, height, width) in, `logits` (batch, classes) out.

    Images are normalised, as `Classifier.image` has them; with `pixels`, numbers of this type from 0 to 255. In the
    file's metadata are, as JSON, the `labels`, the `preprocessing`, and as `input` which of the two it takes.
    """
    preprocessing = _to_one_size(classifier)
    model: nn.Module = classifier.model
    if pixels is not None:
        model = FromPixels(model, preprocessing).eval()
    dtype = torch.float32 if pixels is None else getattr(torch, pixels)
    height, width = preprocessing.image_size or classifier.model.config.native_size
    images = torch.zeros(2, classifier.model.config.channels, height, width, dtype=dtype)  # 1 would become the batch
    logger = logging.getLogger("torch.onnx")
    level = logger.level
    with torch.inference_mode(), warnings.catch_warnings():
        warnings.simplefilter("ignore")  # about torch's own code
        logger.setLevel(logging.ERROR)
        try:
            program = torch.onnx.export(
                model,
                (images,),
                dynamo=True,
                verbose=False,
                input_names=["images"],
                output_names=["logits"],
                dynamic_shapes=({0: Dim("batch")},),
            )
        finally:
            logger.setLevel(level)
    assert program is not None
    program.model.metadata_props.update(
        labels=json.dumps(classifier.labels, ensure_ascii=False),
        preprocessing=json.dumps(preprocessing.to_dict()),
        input="normalised" if pixels is None else "pixels",
    )
    file.parent.mkdir(parents=True, exist_ok=True)
    program.save(file)


@torch.inference_mode()
def compare(classifier: Classifier, file: Path, photos: Sequence[Photo]) -> Iterator[Comparison]:
    """What the model and the file say of each photo."""
    session = onnxruntime.InferenceSession(file, providers=["CPUExecutionProvider"])
    [images] = session.get_inputs()
    normalised = session.get_modelmeta().custom_metadata_map["input"] == "normalised"
    preprocessing = _to_one_size(classifier)
    for photo in photos:
        ours = preprocessing(photo)
        if normalised:
            given = ours
        else:
            given = to_tensor(preprocessing.view(photo))
            given = given if images.type == "tensor(uint8)" else given.float()
        [theirs] = session.run(None, {images.name: given[None].numpy()})
        yield Comparison(classifier.model(ours[None])[0], torch.from_numpy(theirs)[0])


def _to_one_size(classifier: Classifier) -> Preprocessing:
    """The checkpoint's preprocessing; where its images follow the photo's shape, cut to the model's own size."""
    preprocessing = classifier.preprocessing
    return replace(preprocessing, crop=preprocessing.image_size or classifier.model.config.native_size)
