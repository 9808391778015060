"""The checkpoints that come with the package, as they lie there."""

import json
import math
import socket
import statistics
import zipfile
from pathlib import Path

import pytest
import safetensors.torch
import torch
from accelerate import Accelerator

import vit
from benchmarks import everyday
from vit.checkpoints import EMBEDDED
from vit.finetune.data import known_to
from vit.finetune.run import evaluate
from vit.finetune.sources import open_data
from vit.photos.examples import example_photos

MEGABYTE = 1_000_000
TOTALS = {"foodvision-mini": (150, 149), "foodvision-101": (2766, 2167), "everyday": (2766, 2116)}


@pytest.fixture(params=EMBEDDED)
def name(request) -> str:
    return request.param


@pytest.fixture
def no_network(monkeypatch):
    def refuse(*_):
        raise AssertionError("the network was asked for")

    monkeypatch.setattr(socket.socket, "connect", refuse)
    monkeypatch.setattr(socket, "getaddrinfo", refuse)


EXAMPLES = {
    **{dish: dish.replace("_", " ") for dish in ("pizza", "sushi", "pancakes", "hamburger", "cup_cakes")},
    **{"spaghetti": "spaghetti bolognese", "grilled_salmon": "grilled salmon"},
    **{thing: thing.replace("_", " ") for thing in ("balloon", "golden_retriever", "goldfish", "lorikeet")},
    **{"chameleon": "African chameleon", "space_shuttle": "space shuttle", "tabby_cat": "tabby"},
}


def test_everyday_is_what_load_gives_and_needs_no_network(no_network):
    classifier = vit.load()
    assert classifier.name == "everyday" and len(classifier.labels) == 1097


def test_everyday_names_every_example(no_network):
    classifier = vit.load()
    assert {photo.stem: classifier.predict(photo)[0][0] for photo in example_photos()} == EXAMPLES


def test_foodvision_101_knows_its_dishes(no_network):
    classifier = vit.load("foodvision-101")
    assert len(classifier.labels) == 101
    assert classifier.predict("examples/pizza.jpg")[0][0] == "pizza"


def test_foodvision_mini_tells_its_three(no_network):
    classifier = vit.load("foodvision-mini")
    assert classifier.labels == ["pizza", "steak", "sushi"]
    assert [classifier.predict(f"examples/{food}.jpg")[0][0] for food in ("pizza", "sushi")] == ["pizza", "sushi"]


def test_it_is_small_and_in_float16(name):
    file = EMBEDDED[name] / "model.safetensors"
    assert file.stat().st_size <= (13 if name == "everyday" else 12) * MEGABYTE
    state = safetensors.torch.load_file(file)
    parameters = {name: tensor for name, tensor in state.items() if not name.startswith("training_features.")}
    assert {tensor.dtype for tensor in parameters.values()} == {torch.float16}


def test_no_weights_of_the_base_are_in_it(name, imagenet):
    base = imagenet.model.state_dict()
    for parameter, tensor in safetensors.torch.load_file(EMBEDDED[name] / "model.safetensors").items():
        if parameter not in base:  # registers, and what its training photos were like
            continue
        assert tensor.shape != base[parameter].shape or not torch.equal(tensor, base[parameter].half()), parameter


def test_its_card_says_what_was_measured(name):
    card = (EMBEDDED[name] / "README.md").read_text(encoding="utf-8")
    measured = json.loads((EMBEDDED[name] / "evaluation.json").read_text(encoding="utf-8"))
    assert f"| top-1 | {measured['correct']:,} of {measured['total']:,} " in card
    assert f"| top-1, the mean of the classes | {measured['balanced_accuracy']:.1%} |" in card
    assert f"| calibration error | {measured['calibration_error']:.3f} |" in card
    for row in (row for row in measured["per_class"] if row["total"]):
        assert f"| {row['label']} | {row['correct']} | {row['total']} |" in card


def test_its_class_token_looks_at_no_sinks(name):
    classifier = vit.load(name)
    assert classifier.model.config.registers == 4
    explanations = [classifier.explain(photo) for photo in sorted(Path("examples").glob("*.jpg"))]
    for layer in range(-4, 0):
        shares = [(e.class_attention()[layer] * _sinks(e)).sum().item() for e in explanations]
        assert sum(shares) / len(shares) < 0.01


def _sinks(explanation: vit.Explanation) -> torch.Tensor:
    """Patches whose norm is four times their layer's median after any layer (R, C)."""
    norms, _ = explanation.outliers()
    return (norms > 4 * norms.flatten(1).median(dim=1).values[:, None, None]).any(dim=0)


def test_the_figures_on_its_card_are_those_of_its_photos(name):
    measured = json.loads((EMBEDDED[name] / "evaluation.json").read_text(encoding="utf-8"))
    photos = measured["photos"]
    right = [photo["answer"] == photo["label"] for photo in photos]
    assert (measured["total"], measured["correct"]) == (len(photos), sum(right)) == TOTALS[name]
    classes = {photo["label"] for photo in photos}
    shares = [statistics.mean(one for one, photo in zip(right, photos) if photo["label"] == own) for own in classes]
    assert measured["balanced_accuracy"] == pytest.approx(statistics.mean(shares))
    sure = [math.ceil(15 * photo["probability"]) for photo in photos]  # the bin, of 15
    gaps = [
        sum(photo["probability"] - one for one, photo, its in zip(right, photos, sure) if its == each)
        for each in set(sure)
    ]
    assert measured["calibration_error"] == pytest.approx(sum(map(abs, gaps)) / len(photos), abs=0.001)


@pytest.mark.slow
@pytest.mark.parametrize(
    "name, archive, every",
    [
        ("foodvision-mini", "pizza_steak_sushi_20_percent.zip", 1),
        ("foodvision-101", "food101_small.zip", 3),
        ("everyday", "food101_small.zip", 3),
    ],
)
def test_what_its_card_says_of_photos_is_measured_again(shared, tmp_path, name, archive, every):
    with zipfile.ZipFile(shared / "data" / archive) as photos:
        photos.extractall(tmp_path, [file for file in photos.namelist() if file.startswith("test/")])
    classifier = vit.load(name)
    test = known_to(open_data(tmp_path).test, classifier.labels)
    chosen = test.take(range(0, len(test), every))
    evaluation, *_ = evaluate(classifier, chosen, Accelerator(cpu=True))
    measured = json.loads((EMBEDDED[name] / "evaluation.json").read_text(encoding="utf-8"))["photos"][::every]
    probabilities, answers = evaluation.logits.softmax(dim=1).max(dim=1)
    assert [str(file.relative_to(tmp_path)) for file in chosen.files] == [photo["file"] for photo in measured]
    answered = [classifier.labels[answer] for answer in answers.tolist()]
    differ = [photo["file"] for photo, answer in zip(measured, answered) if photo["answer"] != answer]
    assert len(differ) <= 1, "another CPU may round a near tie otherwise"
    assert probabilities.tolist() == pytest.approx([photo["probability"] for photo in measured], abs=0.002)


def test_everyday_keeps_what_its_base_knew(shared, imagenet, tmp_path):
    """Of 150 ImageNet photos that it was not trained on, at least 95 % as many right as the base, among all classes."""
    _, things, _ = everyday.lay_out(tmp_path)
    right = {}
    for classifier in (imagenet, vit.load("everyday")):
        photos = known_to(open_data(things).test, classifier.labels)
        right[classifier.name], *_ = evaluate(classifier, photos, Accelerator(cpu=True))
    kept, base = (right.pop(name).correct for name in ("everyday", imagenet.name))
    assert kept >= 0.95 * base
