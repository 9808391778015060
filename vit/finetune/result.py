"""What a fine-tuning leaves."""

from __future__ import annotations

from dataclasses import dataclass

from ..classifier import Classifier
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
    counts: dict[str, int]  # photos: learnt, held out, tested, skipped
    photos: Photos  # the test photos
    test: Evaluation
    floor: Evaluation | None  # of the head alone on the frozen base, where all weights were trained from there
    main_process: bool  # the one of several that writes and speaks
    shared: tuple[str, ...] = ()  # classes that both the data and the teacher have
    teacher: Classifier | None = None  # whose classes were kept
