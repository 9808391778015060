"""What a fine-tuning leaves."""

from __future__ import annotations

from dataclasses import dataclass

from torch import Tensor

from ..classifier import Classifier
from .accounts import Account
from .data import Photos
from .evaluation import Evaluation
from .start import Run
from .training import Row


@dataclass(frozen=True)
class Result:
    run: Run
    classifier: Classifier
    history: list[Row]
    temperature: float  # by which the logits were divided so that the held-out photos' probabilities are right
    heed: float  # how far the head heeds what the classes' means say, as the held-out photos prefer
    counts: dict[str, int]  # photos: learnt, held out, tested
    accounts: list[Account]  # of every photo
    learnt: Photos
    validated: Evaluation | None  # of heads on those photos, each answered by one that had not learnt from it
    tested: Photos  # none where the data has no test photos, and a head was cross-validated in their place
    test: Evaluation | None
    familiarity: Tensor | None  # of each of the figures' photos, where the model knows
    linear_probe: Evaluation | None  # of the head alone on the frozen base, where all weights were trained from there
    main_process: bool  # the one of several that writes and speaks
    shared: tuple[str, ...] = ()  # classes that both the data and the teacher have
    teacher: Classifier | None = None  # whose classes were kept

    @property
    def figures(self) -> Evaluation:
        """How good it is: on the test photos, or else by cross-validation."""
        figures = self.test or self.validated
        assert figures is not None
        return figures

    @property
    def photos(self) -> Photos:
        """Those of the figures."""
        return self.tested if self.test else self.learnt
