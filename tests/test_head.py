"""A head as the solution of a convex problem: beside SciPy's optimiser, and what the cross-validation of it tells."""

import numpy as np
import pytest
import torch
import torch.nn.functional as F
from scipy.optimize import minimize
from scipy.special import log_softmax
from torch import nn

from vit.familiarity import TrainingFeatures
from vit.finetune import head as module
from vit.finetune.head import FOLDS, STRENGTHS, Problem, cross_validate, deal, heed_means

SIZES = (40, 25, 6)
TARGETS = torch.cat([torch.full((size,), number) for number, size in enumerate(SIZES)])


def table(noise=1.0, seed=3):
    """Features (71, 4) that tell three classes of uneven size as well as the noise lets them."""
    generator = torch.Generator().manual_seed(seed)
    return 5 + 2 * (F.one_hot(TARGETS, 4) + noise * torch.randn(len(TARGETS), 4, generator=generator))


def head_of(weight=0.0):
    head = nn.Linear(4, 3)
    nn.init.constant_(head.bias, 0)
    with torch.no_grad():
        head.weight.copy_(weight * torch.eye(3, 4))
    return head


def centred(logits):
    """Without what is the same for all classes, and changes no answer."""
    return logits - logits.mean(1, keepdims=True)


def by_scipy(rows, start, strength, balance, opinion=None, keep=0.0, counts=None, targets=TARGETS):
    """The same problem in NumPy, minimised by SciPy from nothing; the logits of all rows."""
    x, y = rows.double().numpy(), targets.numpy()
    mean = x.mean(0)
    scale = np.sqrt(((x - mean) ** 2).mean())
    x = np.hstack([(x - mean) / scale, np.ones((len(x), 1))])
    first = np.hstack([start.weight.detach().numpy() * scale, start.weight.detach().numpy() @ mean[:, None]])
    sizes = np.bincount(y[y >= 0], minlength=3)
    prior = balance * np.log(sizes / sizes.sum())
    counts = np.ones(len(y)) if counts is None else counts

    def loss(flat):
        head = flat.reshape(3, 5)
        logits = x @ head.T
        each = np.where(y >= 0, -log_softmax(logits + prior, axis=1)[np.arange(len(y)), y.clip(0)], 0)
        if opinion is not None:
            p = opinion.double().softmax(1).numpy()
            kept = (p * (np.log(p) - log_softmax(logits[:, :2], axis=1))).sum(1)
            among_all = (p * (np.log(p) - log_softmax(logits, axis=1)[:, :2])).sum(1)
            each = each + np.where(y >= 0, keep * kept, among_all)
        return (counts * each).sum() + strength / 2 * ((head - first)[:, :-1] ** 2).sum()

    return x @ minimize(loss, np.zeros(15), method="BFGS", options=dict(gtol=1e-7)).x.reshape(3, 5).T


@pytest.mark.parametrize("balance", [0.0, 1.0])
@pytest.mark.parametrize("strength", [0.1, 30.0])
@pytest.mark.parametrize("weight", [0.0, 2.0], ids=["from nothing", "from a head"])
def test_the_head_is_the_solution_that_scipy_finds(balance, strength, weight):
    rows, start, head = table(), head_of(weight), head_of()
    problem = Problem.of(start, rows, TARGETS, balance)
    problem.write(problem.solve(strength), head)
    found = head(rows).detach().numpy()
    np.testing.assert_allclose(centred(found), centred(by_scipy(rows, start, strength, balance)), atol=2e-3)


def test_with_a_teacher_it_is_the_solution_that_scipy_finds():
    """Some photos have no label, and count several times."""
    rows, targets = table(), TARGETS.clone()
    targets[::9] = -1
    opinion, counts = torch.randn(len(targets), 2), torch.where(targets < 0, 3, 1)
    start, head = head_of(1.0), head_of()
    problem = Problem.of(start, rows, targets, 1.0, counts, opinion, keep=0.7)
    problem.write(problem.solve(2.0), head)
    expected = by_scipy(rows, start, 2.0, 1.0, opinion, 0.7, counts.numpy(), targets)
    np.testing.assert_allclose(centred(head(rows).detach().numpy()), centred(expected), atol=2e-3)


def test_neither_the_scale_nor_the_place_of_the_features_matters():
    answers = []
    for rows in (table(), 100 * table() - 7000):
        head = head_of()
        problem = Problem.of(head, rows, TARGETS, 1.0)
        problem.write(problem.solve(1.0), head)
        answers.append(head(rows).detach())
    torch.testing.assert_close(answers[1], answers[0], atol=5e-3, rtol=0)


def test_one_problem_has_one_solution():
    problem = Problem.of(head_of(), table(), TARGETS, 1.0)
    first = problem.solve(0.1)
    assert torch.equal(first, problem.solve(0.1))
    torch.testing.assert_close(problem.solve(0.1, guess=torch.randn(3, 5).double()), first, atol=1e-3, rtol=0)


def test_a_class_spreads_over_the_folds():
    folds = deal(TARGETS, seed=0)
    assert not torch.equal(folds, deal(TARGETS, seed=1)) and torch.equal(folds, deal(TARGETS, seed=0))
    for target, size in enumerate(SIZES):
        counts = folds[target == TARGETS].bincount(minlength=FOLDS)
        assert counts.sum() == size and counts.max() - counts.min() <= 1


def test_no_photo_has_a_part_in_its_own_answer(monkeypatch):
    """Other labels for a fold change the answers to the others, and not its own."""
    monkeypatch.setattr(module, "STRENGTHS", (1.0,))
    rows, folds = table(), deal(TARGETS, seed=0)
    before = cross_validate(Problem.of(head_of(), rows, TARGETS, 0.0), folds).logits
    other = TARGETS.clone()
    fold = (folds == folds[0]) & (TARGETS < 2)
    other[fold] = 1 - other[fold]
    after = cross_validate(Problem.of(head_of(), rows, other, 0.0), folds).logits
    torch.testing.assert_close(after[folds == folds[0]], before[folds == folds[0]], atol=1e-4, rtol=0)
    assert (after - before)[folds != folds[0]].abs().max() > 0.1


def test_the_strength_is_the_one_that_does_best_on_photos_left_out():
    """By hand, fold by fold; noise wants a strong penalty, and what is plain to see a weak one."""
    chosen = {}
    for noise in (0.1, 3.0):
        rows, folds = table(noise), deal(TARGETS, seed=0)
        problem = Problem.of(head_of(), rows, TARGETS, 1.0)
        validation = cross_validate(problem, folds)
        losses = []
        for strength in STRENGTHS[: len(validation.history)]:
            logits = torch.empty(len(TARGETS), 3).double()
            for fold in range(FOLDS):
                logits[folds == fold] = problem.rows[folds == fold] @ problem.solve(strength, folds != fold).T
            sizes = torch.tensor(SIZES).double()
            losses.append(F.cross_entropy(logits + (sizes / sizes.sum()).log(), TARGETS).item())
        assert [row["loss"] for row in validation.history] == pytest.approx(losses, abs=1e-4)
        assert validation.strength == STRENGTHS[int(np.argmin(losses))]
        chosen[noise] = validation.strength
    assert chosen[3.0] > chosen[0.1]


def clusters(count: int, seed: int) -> tuple[torch.Tensor, torch.Tensor]:
    """Four classes of 16 numbers around a mean each, with one covariance."""
    places, stretch = (torch.randn(shape, generator=torch.Generator().manual_seed(7)) for shape in ((4, 16), (16, 16)))
    targets = torch.arange(count) % 4
    noise = torch.randn(count, 16, generator=torch.Generator().manual_seed(seed))
    return places[targets] + 0.5 * noise @ stretch, targets


def test_the_discriminant_is_half_the_squared_distance_to_each_mean():
    rows, targets = clusters(4000, 1)
    known = TrainingFeatures.fit(rows, targets)
    weight, bias = known.discriminant()
    squares = (rows[:50, None] @ known.whitening - known.means).square().sum(dim=-1)
    found = rows[:50] @ weight.T + bias + squares / 2  # the same for all classes of a photo
    torch.testing.assert_close(found, found[:, :1].expand(-1, 4), rtol=1e-4, atol=1e-4)


def test_a_head_heeds_the_means_as_far_as_photos_held_out_are_likelier():
    known, (rows, targets) = TrainingFeatures.fit(*clusters(4000, 1)), clusters(1000, 2)
    torch.manual_seed(0)
    poor, good = nn.Linear(16, 4), nn.Linear(16, 4)
    with torch.no_grad():
        for parameter, value in zip(good.parameters(), known.discriminant()):
            parameter.copy_(value)  # there is nothing better
    before = poor.weight.clone()
    assert heed_means(poor, known, rows, targets) > 0
    right = (poor(rows).argmax(dim=1) == targets).float().mean()
    assert right > (rows @ before.T + poor.bias).argmax(dim=1).eq(targets).float().mean() + 0.2
    found = [parameter.clone() for parameter in good.parameters()]
    heed_means(good, known, rows, targets)
    scale = good.weight.norm() / found[0].norm()
    torch.testing.assert_close(good.weight, found[0] * scale)  # the same answers
    other = nn.Linear(16, 5)  # a class without photos
    assert heed_means(other, known, rows, targets) == 0
