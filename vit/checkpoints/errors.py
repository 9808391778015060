"""Why a checkpoint cannot be used."""

from __future__ import annotations


class CheckpointError(ValueError):
    """A checkpoint that cannot be used, in a sentence that says why and what to do."""


class NotAPlainViT(ValueError):
    """A model of another kind, in a sentence that names it."""
