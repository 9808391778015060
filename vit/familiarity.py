"""How unlike the training photos one is: the Mahalanobis distance of its features (Lee et al., arXiv 1807.03888)."""

from __future__ import annotations

from dataclasses import dataclass

import torch
from torch import Tensor

UNFAMILIAR = 0.05  # a photo that fewer of the held-out photos are unlike
LEAST = 20  # held-out photos, to say anything
FOLDS = 5


def unfamiliar(familiarity: float | None) -> bool:
    """Whether a photo is like nothing the model was trained on; a checkpoint that does not know claims nothing."""
    return familiarity is not None and familiarity < UNFAMILIAR


@dataclass(frozen=True)
class TrainingFeatures:
    """What the features of a model's training photos are like, class by class with one shared covariance.

    Distances are measured after `whitening`, where that covariance is the identity.
    """

    means: Tensor  # C, D: of each class that has photos, whitened
    whitening: Tensor  # D, D
    distances: Tensor  # of the held-out photos to the nearest mean, ascending

    @classmethod
    def fit(cls, features: Tensor, targets: Tensor, held_out: Tensor | None = None) -> TrainingFeatures | None:
        """From the features of training photos (n, D) and their classes (n,); `held_out` are those of others (m, D).

        Without held-out photos each fifth of the training photos is held out in turn, which is fair where the backbone
        was not trained on them. None where there are too few photos.
        """
        if len(targets) < FOLDS:
            return None
        if held_out is not None:
            distances = _fit(features, targets)._nearest(held_out)
        else:
            distances = held_out_distances(features, targets) if len(targets) >= LEAST else torch.empty(0)
        if len(distances) < LEAST:
            return None
        fitted = _fit(features, targets)
        return cls(fitted.means, fitted.whitening, distances.sort().values)

    def familiarity(self, features: Tensor) -> Tensor:
        """For each photo (…, D) the share of held-out training photos that are less like the training photos (…)."""
        return self.rank(self._nearest(features))

    def rank(self, distances: Tensor) -> Tensor:
        """The same for photos that are so far from the training photos (…)."""
        nearer = torch.searchsorted(self.distances.to(distances), distances, right=True)
        return 1 - nearer / len(self.distances)

    def discriminant(self) -> tuple[Tensor, Tensor]:
        """The linear head (C, D) and (C,) that half the squared distances to the means make: near is likely."""
        return self.means @ self.whitening.T, -self.means.square().sum(dim=1) / 2

    def _nearest(self, features: Tensor) -> Tensor:
        """The Mahalanobis distance to the nearest class mean."""
        whitened = features.float() @ self.whitening.to(features.device)
        exactly = "donot_use_mm_for_euclid_dist"  # the faster way blunts small distances between large numbers
        return torch.cdist(whitened, self.means.to(features.device), compute_mode=exactly).amin(dim=-1)

    def to_state(self) -> dict[str, Tensor]:
        """The tensors by name; whitened, they may be too large for half precision."""
        return {name: tensor.cpu().float().contiguous() for name, tensor in vars(self).items()}

    def fits(self, width: int) -> bool:
        """Whether the shapes are those for features of so many numbers."""
        shapes = [tuple(tensor.shape) for tensor in (self.means, self.whitening, self.distances)]
        return shapes == [(len(self.means), width), (width, width), (self.distances.numel(),)] and shapes[2] != (0,)


def held_out_distances(features: Tensor, targets: Tensor) -> Tensor:
    """How far each training photo (n,) is from the others: each fifth is held out in turn."""
    folds = torch.arange(len(targets)) % FOLDS
    distances = torch.empty(len(targets))
    for mask in (folds == fold for fold in folds.unique()):
        distances[mask] = _fit(features[~mask], targets[~mask])._nearest(features[mask])
    return distances


def _fit(features: Tensor, targets: Tensor) -> TrainingFeatures:
    """The means and the whitening: the covariance around the classes' means, shrunk as far as the photos are few."""
    classes, places = targets.unique(return_inverse=True)
    features = features.double()
    means = torch.zeros(len(classes), features.shape[1]).double().index_add(0, places, features)
    means = means / torch.bincount(places)[:, None]
    around = features - means[places]
    values, vectors = torch.linalg.eigh(_shrunk(around.T @ around / len(around), len(around)))
    whitening = vectors / values.clamp(min=1e-12).sqrt()
    return TrainingFeatures((means @ whitening).float(), whitening.float(), torch.empty(0))


def _shrunk(covariance: Tensor, photos: int) -> Tensor:
    """Towards a multiple of the identity, by the oracle approximating shrinkage of Chen et al., arXiv 0907.4698."""
    size = len(covariance)
    trace, squares = covariance.trace(), covariance.square().sum()
    spread = (photos + 1 - 2 / size) * (squares - trace**2 / size)
    share = 1.0 if spread <= 0 else min(1.0, (((1 - 2 / size) * squares + trace**2) / spread).item())
    return (1 - share) * covariance + share * trace / size * torch.eye(size).to(covariance)
