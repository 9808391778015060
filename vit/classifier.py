"""A model with its labels and its preprocessing: what people load, and ask about a photo."""

from __future__ import annotations

from dataclasses import dataclass

import torch
from torch import Tensor

from .explanation import Explanation
from .images import Photo, Preprocessing, open_photo
from .model import ViT


@dataclass(frozen=True)
class Classifier:
    model: ViT
    labels: list[str]  # empty when the checkpoint has no classifier
    preprocessing: Preprocessing
    name: str = ""  # where it came from: a Hub id, a folder, a file

    @torch.inference_mode()
    def predict(self, image: Photo, top_k: int = 5) -> list[tuple[str, float]]:
        """The `top_k` likeliest labels with their probabilities, the likeliest first."""
        if not self.labels:
            raise ValueError(
                f"{self.name or 'This checkpoint'} has no classifier, so it predicts nothing: "
                "use explain to see what it looks at, or load a checkpoint with labels."
            )
        probabilities = self.model(self._batch(image))[0].softmax(dim=-1)
        best = probabilities.topk(min(top_k, len(self.labels)))
        return [(self.labels[index], value) for value, index in zip(best.values.tolist(), best.indices.tolist())]

    @torch.inference_mode()
    def explain(self, image: Photo) -> Explanation:
        """What the model sees in the photo: probabilities, and the attention of every layer and head."""
        photo = open_photo(image)
        images = self._batch(photo)
        recording = self.model.record(images)
        logits = recording.logits[0]
        config = self.model.config
        return Explanation(
            probabilities=logits.softmax(dim=-1) if self.labels else logits.new_empty(0),
            attention=torch.cat(recording.attention),
            tokens=torch.cat(recording.tokens),
            grid=(images.shape[-2] // config.patch_size, images.shape[-1] // config.patch_size),
            prefix=("class",) * config.class_token
            + ("distillation",) * config.distillation
            + tuple(f"register {number + 1}" for number in range(config.registers)),
            box=self.preprocessing.box(photo.size),
            labels=self.labels,
        )

    def _batch(self, image: Photo) -> Tensor:
        weight = self.model.patch_embedding.projection.weight
        return self.preprocessing(image)[None].to(weight.device, weight.dtype)  # 1, 3, height, width
