"""A model with its labels and its preprocessing: what people load, and ask about a photo."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass, replace
from functools import lru_cache, partial

import torch
from torch import Tensor

from .explain import maps
from .explain.explanation import Explanation, Gradients, UnsupportedError
from .explain.what_if import Changes, kept_tokens, run
from .familiarity import TrainingFeatures, unfamiliar
from .model import ViT
from .photos.examples import example_photos
from .photos.files import Photo, open_photo
from .photos.preprocessing import Preprocessing
from .registers import TestTimeRegisters, test_time_registers


@dataclass(frozen=True)
class Answer:
    """What a classifier says of a photo."""

    predictions: list[tuple[str, float]]  # labels with their probabilities, the likeliest first
    familiarity: float | None  # how like its training photos the photo is; None where the checkpoint does not know

    @property
    def unfamiliar(self) -> bool:
        """Whether the photo is like nothing the model was trained on, as far as it knows."""
        return unfamiliar(self.familiarity)


@dataclass(frozen=True)
class Classifier:
    model: ViT
    labels: list[str]  # empty when the checkpoint has no classifier
    preprocessing: Preprocessing
    name: str = ""  # where it came from: a Hub id, a folder, a file
    training_features: TrainingFeatures | None = None  # what `familiarity` needs, where the checkpoint has it

    def predict(self, image: Photo, top_k: int = 5) -> list[tuple[str, float]]:
        """The `top_k` likeliest labels with their probabilities, the likeliest first."""
        return self.answer(image, top_k).predictions

    @torch.inference_mode()
    def answer(self, image: Photo, top_k: int = 5) -> Answer:
        """The likeliest labels, and how familiar the photo is, from one forward pass."""
        if not self.labels:
            raise UnsupportedError(
                f"{self.name or 'This checkpoint'} has no classifier, so it predicts nothing: "
                "use explain to see what it looks at, or load a checkpoint with labels."
            )
        if top_k < 1:
            raise ValueError(f"top_k is {top_k}, but must be at least 1.")
        tokens = self.model.encode(self._batch(image))
        best = self.model.classify(tokens)[0].softmax(dim=-1).topk(min(top_k, len(self.labels)))
        labels = [self.labels[index] for index in best.indices.tolist()]
        return Answer(list(zip(labels, best.values.tolist())), self._familiarity(tokens))

    def explain(self, image: Photo) -> Explanation:
        """What the model sees in the photo: probabilities, and the attention of every layer and head."""
        photo = open_photo(image)
        images = self._batch(photo)
        with torch.inference_mode():
            recording = self.model.record(images)
            tokens = torch.cat(recording.tokens)  # L, T, D
            logits = self.model.classify(tokens)  # each layer's tokens as if they were the last's: L, classes
        return self._explanation(images, photo.size, torch.cat(recording.attention), tokens, logits)

    def what_if(self, image: Photo, changes: Changes) -> Explanation:
        """The same with something changed. Removed patches get no look, and have no token: zeros are in its place.

        In a layer that is off each token looks at itself. Maps for a class, which need gradients, are not given.
        """
        photo = open_photo(image)
        images = self._batch(photo)
        recording = run(self.model, images[0], changes)
        config = self.model.config
        grid = images.shape[-2] // config.patch_size, images.shape[-1] // config.patch_size
        kept = torch.tensor(kept_tokens(self.model, grid[0] * grid[1], changes), device=images.device)
        T = config.prefix_tokens + grid[0] * grid[1]
        with torch.inference_mode():
            found = torch.cat(recording.tokens)  # L, tokens that are left, D
            logits = self.model.classify(found)
            tokens = found.new_zeros(len(found), T, config.width).index_copy(1, kept, found)
            attention = torch.eye(T).to(found).expand(len(found), config.heads, T, T).clone()
            for layer, looks in zip(recording.layers, recording.attention):
                rows = looks.new_zeros(config.heads, len(kept), T).index_copy(2, kept, looks[0])
                attention[layer] = 0
                attention[layer, :, kept] = rows
        explanation = self._explanation(images, photo.size, attention, tokens, logits)
        return replace(explanation, familiarity=None, backward=_no_gradients)

    def _explanation(
        self, images: Tensor, size: tuple[int, int], attention: Tensor, tokens: Tensor, logits: Tensor
    ) -> Explanation:
        """Of a photo of this size: its attention, its tokens, and each layer's logits (L, classes)."""
        config = self.model.config
        return Explanation(
            probabilities=logits[-1].softmax(dim=-1) if self.labels else logits.new_empty(0),
            attention=attention,
            tokens=tokens,
            lens=logits.softmax(dim=-1) if self.labels else logits.new_empty(len(tokens), 0),
            grid=(images.shape[-2] // config.patch_size, images.shape[-1] // config.patch_size),
            prefix=("class",) * config.class_token
            + ("distillation",) * config.distillation
            + tuple(f"register {number + 1}" for number in range(config.registers)),
            reads=self.model.reads(tokens.shape[1]),
            box=self.preprocessing.box(size),
            labels=self.labels,
            patch_size=config.patch_size,
            familiarity=self._familiarity(tokens[-1:]),
            backward=lru_cache(maxsize=4)(partial(self._backward, images)),
        )

    @torch.inference_mode()
    def familiarity(self, image: Photo) -> float | None:
        """How like its training photos the photo is: the share of held-out ones that are less like them (0 to 1).

        Below `vit.familiarity.UNFAMILIAR` the photo is unfamiliar. None where the checkpoint does not know.
        """
        return None if self.training_features is None else self._familiarity(self.model.encode(self._batch(image)))

    def with_registers(
        self, photos: Iterable[Photo] | None = None, report: Callable[[TestTimeRegisters], object] | None = None
    ) -> Classifier:
        """The same classifier with test-time registers in place of its sinks; itself where there are none.

        `photos` are a handful to find the sinks with, by default the examples that come with the project. `report` is
        given what was found: `print` prints a sentence. Nothing is trained, this classifier stays as it is, and
        `vit.save` keeps what was found.
        """
        whole = replace(self.preprocessing, crop=self.preprocessing.image_size or self.model.config.native_size)
        weight = self.model.patch_embedding.projection.weight
        images = [whole(photo) for photo in (example_photos() if photos is None else photos)]
        if not images:
            raise ValueError("There is no photo to find the sinks with: give a handful.")
        found = test_time_registers(self.model, torch.stack(images).to(weight.device, weight.dtype))
        if report is not None:
            report(found)
        return replace(self, model=found.model, training_features=None) if found.neurons else self

    def position_similarity(self) -> Tensor:
        """How alike the position embeddings of all patches are (R, C, R, C): the paper's Figure 7, middle."""
        _, patches = self.model.positions(self.model.config.grid)
        return maps.position_similarity(patches[0].detach(), self.model.config.grid)

    def filter_components(self, count: int = 28) -> Tensor:
        """The principal components of the patch filters, as tiles (count, 3, P, P): the paper's Figure 7, left."""
        if self.model.config.stem is not None:
            raise ValueError("The patches of a hybrid come from a ResNet's features, so its filters are no pictures.")
        return maps.filter_components(self.model.patch_embedding.projection.weight.detach(), count)

    @torch.inference_mode()
    def _familiarity(self, tokens: Tensor) -> float | None:
        """Of the last layer's tokens (1, T, D)."""
        if self.training_features is None:
            return None
        return self.training_features.familiarity(self.model.pool(tokens))[0].item()

    def _backward(self, images: Tensor, index: int) -> Gradients:
        """How a class's logit changes with the attention and the tokens. No gradient stays in the model."""
        with torch.inference_mode(False), torch.enable_grad():
            recording = self.model.record(images.clone().requires_grad_())
            recorded = recording.attention + recording.tokens
            gradients = torch.autograd.grad(recording.logits[0, index], recorded)
        count = len(recording.attention)
        return Gradients(torch.cat(gradients[:count]), torch.cat(gradients[count:]))

    def image(self, photo: Photo) -> Tensor:
        """What the model sees of a photo (3, height, width), normalised, where the model is."""
        weight = self.model.patch_embedding.projection.weight
        return self.preprocessing(photo).to(weight.device, weight.dtype)

    def _batch(self, photo: Photo) -> Tensor:
        return self.image(photo)[None]  # 1, 3, height, width


def _no_gradients(index: int) -> Gradients:
    raise UnsupportedError("Of a changed pass there are no maps for a class: use class_attention or rollout.")
