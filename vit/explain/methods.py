"""The explanation methods, a row for each: what writes, measures, tests or shows maps reads them here."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Literal

from torch import Tensor

from . import maps
from .explanation import Explanation, UnsupportedError

Column = maps.Heads | str | None  # how heads are fused, or a class by label or index; None: their mean, the likeliest


@dataclass(frozen=True)
class Settings:
    """What else can be chosen; a method takes what concerns it."""

    discard: float = 0.0  # share of the weakest links that is cut
    start: int = 0  # the layer to start from


@dataclass(frozen=True)
class Method:
    """One way to make maps."""

    name: str  # in files, links and flags
    title: str  # on its button, and in tables
    caption: str  # of a map; {class} stands for the class's label
    note: str  # the sentence under the map
    source: str  # what its array holds
    paper: str
    columns: Literal["heads", "classes"]  # what its maps are made for, one by one
    make: Callable[[Explanation, Column, Settings], Tensor]  # after each layer (L, R, C), or of the whole model (R, C)
    unit: Literal["share", ""] = ""
    needs: tuple[str, ...] = ()  # of `explanation.NEEDS`
    of_token: bool = False  # any token can be asked: the page makes the maps itself, from the attention
    last_layer: bool = False  # of a class's evidence that builds up, what is written is where it ends
    term: str = ""  # what explains it in the glossary of the page

    def map(self, explanation: Explanation, column: Column = None, settings: Settings | None = None) -> Tensor:
        """The maps of a column, where the checkpoint can give them; else an `UnsupportedError`."""
        explanation.need(self.title, *self.needs)
        if column is None and self.columns == "heads":
            column = "mean"
        return self.make(explanation, column, settings or Settings())

    def missing(self, explanation: Explanation) -> str | None:
        """The sentence that says why the checkpoint cannot give it, if it cannot."""
        try:
            explanation.need(self.title, *self.needs)
        except UnsupportedError as error:
            return str(error)
        return None

    def last(self, explanation: Explanation, column: Column = None, settings: Settings | None = None) -> Tensor:
        """The one map (R, C) that stands for the whole model: the last layer's where there are several."""
        found = self.map(explanation, column, settings)
        return found[-1] if found.ndim == 3 else found


METHODS = {
    method.name: method
    for method in (
        Method(
            name="class_attention",
            title="Class attention",
            caption="what the class token looks at",
            note="",  # the page says what the token gives to others than patches
            term="attention",
            source="attention of the class token to each patch, by layer and head",
            paper="Dosovitskiy et al., arXiv 2010.11929",
            columns="heads",
            make=lambda e, heads, _: e.class_attention(heads),  # type: ignore[arg-type]
            unit="share",
            needs=("class token",),
            of_token=True,
        ),
        Method(
            name="rollout",
            title="Rollout",
            caption="rollout to what the classifier reads",
            note="Rollout follows attention through all layers up to this one.",
            term="rollout",
            source="attention rollout after each layer",
            paper="Abnar & Zuidema, arXiv 2005.00928",
            columns="heads",
            make=lambda e, heads, how: e.rollout(heads, how.discard, how.start),  # type: ignore[arg-type]
            unit="share",
        ),
        Method(
            name="relevance",
            title="Class relevance",
            caption="relevance for {class}",
            note="Relevance has no unit: what counts is one patch against another.",
            term="relevance",
            source="relevance to the class",
            paper="Chefer et al., arXiv 2103.15679",
            columns="classes",
            make=lambda e, label, how: e.relevance_by_layer(label, how.start),
            needs=("classes",),
            last_layer=True,
        ),
        Method(
            name="gradient_attention",
            title="Gradient × attention",
            caption="gradient × attention for {class}",
            note="Gradient × attention keeps the looks of this layer that speak for the class; it has no unit.",
            term="gradient × attention",
            source="gradient × attention for the class, by layer",
            paper="Chefer et al., arXiv 2103.15679, Eq. 5",
            columns="classes",
            make=lambda e, label, _: e.gradient_attention(label),
            needs=("classes",),
        ),
        Method(
            name="grad_cam",
            title="Grad-CAM",
            caption="Grad-CAM for {class}",
            note="Grad-CAM reads the tokens that enter the last layer: one map for the whole model, without a unit.",
            term="Grad-CAM",
            source="Grad-CAM for the class on the tokens entering the last block",
            paper="Selvaraju et al., arXiv 1610.02391",
            columns="classes",
            make=lambda e, label, _: e.grad_cam(label),
            needs=("classes", "two layers"),
        ),
    )
}
