"""A model with its labels and its preprocessing: what people load, and ask about a photo."""

from __future__ import annotations

import weakref
from collections import deque
from collections.abc import Callable, Iterable
from contextlib import nullcontext
from dataclasses import dataclass, replace
from numbers import Integral
from typing import Any, ClassVar

import torch
from PIL import Image
from torch import Tensor

from .explain import maps
from .explain.explanation import Box, Explanation, Gradients, UnsupportedError
from .explain.what_if import Changes, kept_tokens, run
from .familiarity import TrainingFeatures, unfamiliar
from .kernels import fast_linear
from .memory import available
from .model import Recording, ViT
from .photos.examples import example_photos
from .photos.files import Photo, open_photo
from .photos.preprocessing import Preprocessing
from .precision import chosen, encode, settle
from .registers import TestTimeRegisters, test_time_registers, without_registers
from .turn import Turn


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
    precision: str = "float32"  # of `predict`, `answer` and `logits`, see vit.precision; all else is exact

    def predict(
        self, image: Photo, top_k: int = 5, size: int | None = None, fit: bool = False
    ) -> list[tuple[str, float]]:
        """The `top_k` likeliest labels with their probabilities, the likeliest first. See `explain` for the size."""
        return self.answer(image, top_k, size, fit).predictions

    def answer(self, image: Photo, top_k: int = 5, size: int | None = None, fit: bool = False) -> Answer:
        """The likeliest labels, and how familiar the photo is, from one forward pass."""
        self.check_predicts(top_k)
        return self.answers([self.image(image, size, fit)], top_k)[0]

    @torch.inference_mode()
    def answers(self, views: list[Tensor], top_k: int = 5) -> list[Answer]:
        """The same of many photos from one forward pass: what `image` gives of them, all of one shape."""
        self.check_predicts(top_k)
        tokens = self._encode(torch.stack(views))
        best = self.model.classify(tokens).softmax(dim=-1).topk(min(top_k, len(self.labels)))
        labels = [[self.labels[index] for index in row] for row in best.indices.tolist()]
        predictions = [list(zip(*row)) for row in zip(labels, best.values.tolist())]
        return [Answer(*row) for row in zip(predictions, self._familiarity(tokens))]

    @torch.inference_mode()
    def logits(self, images: Tensor) -> Tensor:
        """What the model says of images (B, 3, height, width), in the classifier's precision (B, classes)."""
        return self.model.classify(self._encode(images))

    def settled(self, turn: Turn = nullcontext) -> Classifier:
        """The same with a precision that "auto" has chosen: the fastest here that says the same.

        Each pass of the trial, which is run once for a model, is in a `turn` of its own.
        """
        return replace(self, precision=settle(self.model, self.precision, self._trial, turn))

    @property
    def is_settled(self) -> bool:
        """Whether "auto" has chosen, or has nothing to choose."""
        return chosen(self.model, self.precision) is not None

    def _encode(self, images: Tensor) -> Tensor:
        return encode(self.model, images, settle(self.model, self.precision, self._trial))

    def _trial(self) -> Tensor:
        photos = example_photos()
        return self._whole(photos) if photos else torch.empty(0)

    def check_predicts(self, top_k: int = 5) -> None:
        """Raise a sentence where there is nothing to answer with, or nothing asked for."""
        if not self.labels:
            raise UnsupportedError(
                f"{self.name or 'This checkpoint'} has no classifier, so it predicts nothing: "
                "use explain to see what it looks at, or load a checkpoint with labels."
            )
        if top_k < 1:
            raise ValueError(f"top_k is {top_k}, but must be at least 1.")

    def explain(self, image: Photo, size: int | None = None, fit: bool = False) -> Explanation:
        """What the model sees in the photo: probabilities, and the attention of every layer and head.

        `size` is the side of the image in pixels, where it is not to be the checkpoint's own: the grid of patches grows
        with it. With `fit` the photo keeps its shape and nothing is cut off, with about as many patches.
        """
        photo = open_photo(image)
        images = self.image(photo, size, fit)[None]  # 1, 3, height, width
        self._check_memory(images)
        backward = Backward(self, images)
        recording = backward.record()
        with torch.inference_mode():
            tokens = torch.cat(recording.tokens)  # L, T, D
            logits = self.model.classify(tokens)  # each layer's tokens as if they were the last's: L, classes
            attention = torch.cat(recording.attention)
        box = self.preprocessing_of(photo, size, fit).box(photo.size)
        return replace(self._explanation(images, box, attention, tokens, logits), backward=backward)

    def what_if(self, image: Photo, changes: Changes) -> Explanation:
        """The same with something changed. Removed patches get no look, and have no token: zeros are in its place.

        In a layer that is off each token looks at itself. Maps for a class, which need gradients, are not given.
        """
        photo = open_photo(image)
        images = self.image(photo)[None]
        with fast_linear():
            recording = run(self.model, images[0], changes)
        config = self.model.config
        grid = images.shape[-2] // config.patch_size, images.shape[-1] // config.patch_size
        kept = torch.tensor(kept_tokens(self.model, grid[0] * grid[1], changes), device=images.device)
        T = config.prefix_tokens + grid[0] * grid[1]
        with torch.inference_mode():
            found = torch.cat(recording.tokens)  # L, tokens that are left, D
            logits = self.model.classify(found)
            if len(kept) == T and len(recording.layers) == config.layers:  # nothing is missing
                tokens, attention = found, torch.cat(recording.attention)
            else:
                tokens = found.new_zeros(len(found), T, config.width).index_copy(1, kept, found)
                attention = torch.eye(T).to(found).expand(len(found), config.heads, T, T).clone()
                for layer, looks in zip(recording.layers, recording.attention):
                    rows = looks.new_zeros(config.heads, len(kept), T).index_copy(2, kept, looks[0])
                    attention[layer] = 0
                    attention[layer, :, kept] = rows
        box = self.preprocessing.box(photo.size)
        return replace(self._explanation(images, box, attention, tokens, logits), familiarity=None)

    def _explanation(self, images: Tensor, box: Box, attention: Tensor, tokens: Tensor, logits: Tensor) -> Explanation:
        """Of the part of a photo that was seen: its attention, its tokens, and each layer's logits (L, classes)."""
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
            box=box,
            labels=self.labels,
            patch_size=config.patch_size,
            familiarity=self._familiarity(tokens[-1:])[0],
            backward=_no_gradients,
        )

    @torch.inference_mode()
    def familiarity(self, image: Photo) -> float | None:
        """How like its training photos the photo is: the share of held-out ones that are less like them (0 to 1).

        Below `vit.familiarity.UNFAMILIAR` the photo is unfamiliar. None where the checkpoint does not know.
        """
        if self.training_features is None:
            return None
        return self._familiarity(encode(self.model, self.image(image)[None], "float32"))[0]

    def with_registers(
        self,
        photos: Iterable[Photo] | None = None,
        report: Callable[[TestTimeRegisters], object] | None = None,
        turn: Turn = nullcontext,
    ) -> Classifier:
        """The same classifier with test-time registers in place of its sinks; itself where there are none.

        `photos` are a handful to find the sinks with, by default the examples that come with the project. `report` is
        given what was found: `print` prints a sentence. Each photo's pass is in a `turn` of its own. Nothing is
        trained, this classifier stays as it is, and `vit.save` keeps what was found.
        """
        handful = example_photos() if photos is None else list(photos)
        if not handful:
            raise ValueError("There is no photo to find the sinks with: give a handful.")
        found = test_time_registers(self.model, self._whole(handful), turn)
        if report is not None:
            report(found)
        return replace(self, model=found.model, training_features=None) if found.neurons else self

    def without_registers(self) -> Classifier:
        """The same classifier with its registers taken out of the sequence, to see what they are for."""
        return replace(self, model=without_registers(self.model), training_features=None)

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
    def _familiarity(self, tokens: Tensor) -> list[float] | list[None]:
        """Of each photo, by the last layer's tokens (B, T, D)."""
        if self.training_features is None:
            return [None] * len(tokens)
        return self.training_features.familiarity(self.model.pool(tokens)).tolist()

    def image(self, photo: Photo, size: int | None = None, fit: bool = False) -> Tensor:
        """What the model sees of a photo (3, height, width), normalised, where the model is."""
        weight = self.model.patch_embedding.projection.weight
        picture = open_photo(photo)
        return self.preprocessing_of(picture, size, fit)(picture).to(weight.device, weight.dtype)

    def _whole(self, photos: Iterable[Photo]) -> Tensor:
        """Photos as the model sees them, all of one shape (B, 3, height, width)."""
        whole = replace(self.preprocessing, crop=self.preprocessing.image_size or self.model.config.native_size)
        weight = self.model.patch_embedding.projection.weight
        return torch.stack([whole(photo) for photo in photos]).to(weight.device, weight.dtype)

    def preprocessing_of(self, photo: Image.Image, size: int | None = None, fit: bool = False) -> Preprocessing:
        """How a photo is made an image of this size, see `explain`."""
        config = self.model.config
        if size is not None and not (isinstance(size, Integral) and size > 0):
            raise ValueError(f"size is {size!r}, but must be a whole number: the image's side in pixels.")
        side = size or min(self.preprocessing.image_size or config.native_size)
        if fit:
            return self.preprocessing.fitted(photo.size, side, config.patch_size)
        if size is None:
            return self.preprocessing
        config.check_image(side, side)
        return self.preprocessing.at_size(side)

    def _check_memory(self, images: Tensor) -> None:
        """Raise a sentence where the attention would not fit into memory: twice, for it is put together."""
        config, free = self.model.config, available()
        T = config.prefix_tokens + images.shape[-2] * images.shape[-1] // config.patch_size**2
        wanted = 2 * images.element_size() * config.layers * config.heads * T**2
        if free is not None and wanted > free:
            raise UnsupportedError(
                f"The attention of {T:,} tokens takes {wanted / 1e9:,.1f} GB, and {free / 1e9:,.1f} GB are free: "
                "choose a smaller size."
            )


class Backward:
    """Runs backward passes from a photo's logits, and keeps what it found of the last few classes.

    The forward pass is recorded with its graph once, for all classes. Graphs are large: the process holds those of the
    latest few explanations, as long as these live, and none above a bound. Where it is gone, it is recorded again.
    """

    KEPT = 4  # classes
    GRAPHS = 2
    GRAPH_BYTES = 1_000_000_000

    _holders: ClassVar[deque[weakref.ref[Backward]]] = deque()

    def __init__(self, classifier: Classifier | None, images: Tensor) -> None:
        self.classifier, self.images = classifier, images
        self.found: dict[int, Gradients] = {}
        self.recording: Recording | None = None

    def __call__(self, index: int) -> Gradients:
        """How a class's logit changes with the attention and the tokens. No gradient stays in the model."""
        if index not in self.found:
            recording = self.recording or self.record()
            recorded = recording.attention + recording.tokens
            with torch.inference_mode(False), torch.enable_grad():
                gradients = torch.autograd.grad(recording.logits[0, index], recorded, retain_graph=True)
            count = len(recording.attention)
            while len(self.found) >= self.KEPT:
                del self.found[next(iter(self.found))]
            self.found[index] = Gradients(torch.cat(gradients[:count]), torch.cat(gradients[count:]))
        return self.found[index]

    def record(self) -> Recording:
        """A forward pass with its graph, which is held unless it is too large."""
        if self.classifier is None:
            raise UnsupportedError(
                "This explanation was stored without its model, so there are no more maps for a class: "
                "explain the photo again."
            )
        model = self.classifier.model
        if not self.classifier.labels:
            with torch.inference_mode(), fast_linear():
                return model.record(self.images)
        with torch.inference_mode(False), torch.enable_grad(), fast_linear():
            recording = model.record(self.images.clone().requires_grad_())
        if _graph_bytes(recording) <= self.GRAPH_BYTES:
            self._hold(recording)
        return recording

    def _hold(self, recording: Recording) -> None:
        self.recording = recording
        holders = [holder for ref in self._holders if (holder := ref()) is not None and holder is not self]
        for holder in holders[: 1 - self.GRAPHS]:
            holder.recording = None
        Backward._holders = deque(weakref.ref(holder) for holder in (*holders[1 - self.GRAPHS :], self))

    def __getstate__(self) -> dict[str, Any]:
        """An explanation that is pickled takes no model along: it would be larger than all the rest."""
        return {"classifier": None, "images": self.images, "found": {}, "recording": None}


def _graph_bytes(recording: Recording) -> int:
    """About what a recorded pass holds: its attention before and after the softmax, and 16 of each layer's tokens."""
    attention, tokens = recording.attention[0], recording.tokens[0]
    return len(recording.tokens) * attention.element_size() * (2 * attention.numel() + 16 * tokens.numel())


def _no_gradients(index: int) -> Gradients:
    raise UnsupportedError("Of a changed pass there are no maps for a class: use class_attention or rollout.")
