"""Counts checked by hand, and against plain loops over numbers."""

import json
import math
from itertools import pairwise

import numpy as np
import pytest
import torch
from scipy.stats import binomtest

from vit.finetune.evaluation import Evaluation, Mistake


def evaluation_of(probabilities, targets, labels=None):
    """An evaluation whose softmax gives these probabilities."""
    logits = torch.tensor(probabilities).log()
    return Evaluation(logits, torch.tensor(targets), labels or [f"class {i}" for i in range(logits.shape[1])])


@pytest.fixture
def by_hand():
    """Four photos of a, one of b, none of c. Photo 1 and 3 are taken for b, photo 4 for c."""
    probabilities = [[0.7, 0.2, 0.1], [0.3, 0.6, 0.1], [0.5, 0.3, 0.2], [0.1, 0.85, 0.05], [0.1, 0.2, 0.7]]
    return evaluation_of(probabilities, [0, 0, 0, 0, 1], ["a", "b", "c"])


@pytest.fixture
def many():
    """300 photos of seven classes of quite different sizes, some with guesses."""
    rng = np.random.default_rng(0)
    targets = rng.choice(7, 300, p=[0.5, 0.2, 0.1, 0.1, 0.06, 0.04, 0])
    logits = rng.normal(size=(300, 7)) * 2
    logits[np.arange(300), targets] += 1.5
    return Evaluation(torch.tensor(logits, dtype=torch.float32), torch.tensor(targets), list("abcdefg"))


def test_counts_by_hand(by_hand):
    assert (by_hand.correct, by_hand.total) == (2, 5)
    assert by_hand.confusion.tolist() == [[2, 2, 0], [0, 0, 1], [0, 0, 0]]
    assert by_hand.per_class == [("a", 2, 4), ("b", 0, 1), ("c", 0, 0)]
    assert [by_hand.top(k) for k in (1, 2, 3)] == [2, 5, 5]


def test_balanced_accuracy_leaves_out_classes_without_photos(by_hand):
    assert by_hand.balanced_accuracy == (2 / 4 + 0 / 1) / 2


def test_counts_agree_with_a_loop_over_the_photos(many):
    logits, targets = many.logits.tolist(), many.targets.tolist()
    confusion, within = [[0] * 7 for _ in range(7)], [0] * 8
    for row, target in zip(logits, targets):
        order = sorted(range(7), key=lambda index: -row[index])
        confusion[target][order[0]] += 1
        for k in range(1, 8):
            within[k] += target in order[:k]
    assert many.confusion.tolist() == confusion
    assert [many.top(k) for k in range(1, 8)] == within[1:]
    assert many.correct == many.top(1) == sum(confusion[i][i] for i in range(7))
    assert many.top(5) < many.total == many.top(7) == many.top(100)
    shares = [confusion[i][i] / sum(confusion[i]) for i in range(6)]
    assert many.balanced_accuracy == pytest.approx(sum(shares) / 6)
    assert many.balanced_accuracy != pytest.approx(many.correct / many.total, abs=0.01)


def test_of_equal_logits_only_the_first_k_classes_count():
    evaluation = Evaluation(torch.zeros(3, 3), torch.tensor([0, 1, 2]), list("abc"))
    assert [evaluation.top(k) for k in (1, 2, 3)] == [1, 2, 3]
    assert evaluation.correct == 1


def test_calibration_error_by_hand(by_hand):
    """In bins of a fifteenth 0.7 is in the eleventh, twice and once right; the others are alone in theirs."""
    expected = abs(1 - 1.4) + abs(0 - 0.6) + abs(1 - 0.5) + abs(0 - 0.85)
    assert by_hand.calibration_error == pytest.approx(expected / 5, abs=1e-6)


def test_calibration_error_agrees_with_a_loop_over_the_bins(many):
    logits = many.logits.numpy().astype(float)
    probabilities = np.exp(logits) / np.exp(logits).sum(axis=1, keepdims=True)
    sure, right = probabilities.max(axis=1), probabilities.argmax(axis=1) == many.targets.numpy()
    edges = np.linspace(0, 1, 16)
    expected = 0
    for low, high in pairwise(edges):
        inside = (sure > low) & (sure <= high)
        if inside.any():
            expected += inside.sum() / len(sure) * abs(sure[inside].mean() - right[inside].mean())
    assert many.calibration_error == pytest.approx(expected)
    assert expected > 0.02


@pytest.mark.parametrize("target, error", [(0, 0), (1, 1)])
def test_calibration_of_a_model_that_is_certain(target, error):
    evaluation = Evaluation(torch.tensor([[200.0, 0.0]]), torch.tensor([target]), ["a", "b"])
    assert evaluation.calibration_error == error


@pytest.mark.parametrize("correct, total", [(0, 7), (2, 5), (119, 131), (9, 9)])
def test_the_interval_is_wilsons(correct, total):
    logits = torch.eye(2)[[0] * correct + [1] * (total - correct)]
    expected = binomtest(correct, total).proportion_ci(method="wilson")
    evaluation = Evaluation(logits, torch.zeros(total, dtype=torch.long), ["a", "b"])
    assert evaluation.interval == pytest.approx((expected.low, expected.high), abs=1e-4)


def test_the_surest_mistakes_come_first(by_hand):
    mistakes = by_hand.most_wrong(10)
    assert mistakes == [
        Mistake(3, 0, 1, pytest.approx(0.85)),
        Mistake(4, 1, 2, pytest.approx(0.7)),
        Mistake(1, 0, 1, pytest.approx(0.6)),
    ]
    assert by_hand.most_wrong(2) == mistakes[:2]
    assert evaluation_of([[0.9, 0.1]], [0]).most_wrong(3) == []


def test_confusions_are_all_mistakes_by_pairs_the_most_frequent_first(by_hand, many):
    assert [[(each.index, each.target, each.answer) for each in pair] for pair in by_hand.confusions()] == [
        [(3, 0, 1), (1, 0, 1)],
        [(4, 1, 2)],
    ]
    counts = [len(pair) for pair in many.confusions()]
    assert counts == sorted(counts, reverse=True) and sum(counts) == many.total - many.correct


def test_the_summary_has_counts_and_the_worst_class_first(by_hand):
    assert by_hand.summary().splitlines() == [
        "correct            2/5 = 40.0% (95 % sure: 11.8% to 76.9%)",
        "class-balanced     25.0%",
        "calibration error  47.0%",
        "",
        "b  0/1 = 0.0%",
        "a  2/4 = 50.0%",
        "classes without photos: 1",
    ]


def test_the_summary_has_the_top_five_where_there_are_more_classes(many):
    assert f"among the top 5    {many.top(5)}/300 = {many.top(5) / 3:.1f}%" in many.summary().splitlines()
    five = Evaluation(torch.eye(5), torch.arange(5), list("abcde"))
    assert "top" not in five.summary() and "top5" not in five.to_dict()


def test_the_dictionary_survives_json(by_hand, many):
    content = json.loads(json.dumps(by_hand.to_dict()))
    assert content.pop("calibration_error") == pytest.approx(0.47)
    assert content.pop("interval") == pytest.approx([0.118, 0.769], abs=1e-3)
    assert content == {
        "labels": ["a", "b", "c"],
        "total": 5,
        "correct": 2,
        "balanced_accuracy": 0.25,
        "per_class": [
            {"label": "a", "correct": 2, "total": 4},
            {"label": "b", "correct": 0, "total": 1},
            {"label": "c", "correct": 0, "total": 0},
        ],
        "confusion": [[2, 2, 0], [0, 0, 1], [0, 0, 0]],
    }
    assert many.to_dict()["top5"] == many.top(5)


@pytest.mark.parametrize(
    "logits, targets, sentence",
    [
        (torch.zeros(0, 2), [], "no photos"),
        (torch.zeros(2, 3), [0, 1], r"shape \(2, 3\).*need \(2, 2\)"),
        (torch.zeros(1, 2), [0, 1], r"shape \(1, 2\).*need \(2, 2\)"),
        (torch.zeros(1, 2), [2], "not among the classes 0 to 1"),
        (torch.zeros(1, 2), [-1], "not among the classes 0 to 1"),
        (torch.tensor([[math.nan, 0]]), [0], "lower learning rate"),
        (torch.tensor([[math.inf, 0]]), [0], "lower learning rate"),
    ],
)
def test_what_cannot_be_counted_is_refused(logits, targets, sentence):
    with pytest.raises(ValueError, match=sentence):
        Evaluation(logits, torch.tensor(targets, dtype=torch.long), ["a", "b"])
