"""How like the training photos a photo is: against numpy's Mahalanobis distance, by hand, and on discs and noise."""

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
import safetensors.torch
import torch
from conftest import randomise
from PIL import Image

import vit
from vit.__main__ import main
from vit.checkpoints import CheckpointError
from vit.familiarity import TrainingFeatures, _shrunk
from vit.finetune.data import hold_out
from vit.finetune.sources import open_data

QUICK = ["--workers", "0"]
SENTENCE = "  This is like nothing it was trained on. Its best guesses:\n"


def rows(count, width=4, classes=3, seed=0):
    """Features of classes that lie apart, with a covariance that they share and that is no multiple of the identity."""
    generator = np.random.default_rng(seed)
    mixing, centres = np.random.default_rng(9).normal(size=(2, max(width, classes), width))
    targets = np.arange(count) % classes
    found = generator.normal(size=(count, width)) @ mixing[:width] + 3 * centres[targets]
    return torch.tensor(found, dtype=torch.float32), torch.tensor(targets)


def nearest(features, targets, others, shrink=True):
    """numpy's distance of others to the nearest class mean, the covariance shrunk as in Chen et al., Eq. 23."""
    features, targets, others = (np.asarray(each, dtype=np.float64) for each in (features, targets, others))
    means = np.stack([features[targets == target].mean(0) for target in np.unique(targets)])
    around = features - means[np.searchsorted(np.unique(targets), targets)]
    n, p = around.shape
    covariance = around.T @ around / n
    if shrink:
        trace, of_square = np.trace(covariance), np.trace(covariance @ covariance)
        share = ((1 - 2 / p) * of_square + trace**2) / ((n + 1 - 2 / p) * (of_square - trace**2 / p))
        covariance = (1 - min(1, share)) * covariance + min(1, share) * trace / p * np.eye(p)
    inverse, apart = np.linalg.inv(covariance), others[:, None] - means
    return np.sqrt(np.einsum("mci,ij,mcj->mc", apart, inverse, apart)).min(1)


@pytest.mark.parametrize("count, width", [(60, 4), (30, 40)], ids=["many", "fewer than numbers"])
def test_distances_are_those_of_mahalanobis(count, width):
    (features, targets), (held_out, _) = rows(count, width), rows(25, width, seed=1)
    fitted = TrainingFeatures.fit(features, targets, held_out)
    np.testing.assert_allclose(fitted.distances, np.sort(nearest(features, targets, held_out)), rtol=1e-3)


def test_of_many_photos_the_covariance_is_hardly_shrunk():
    (features, targets), (held_out, _) = rows(100_000), rows(50, seed=1)
    fitted = TrainingFeatures.fit(features, targets, held_out)
    plain = np.sort(nearest(features, targets, held_out, shrink=False))
    np.testing.assert_allclose(fitted.distances, plain, rtol=0.01)


def test_the_shrinkage_by_hand():
    # Of two numbers: trace 3, squares 5, so (0 · 5 + 9) / ((90 + 1 - 1) (5 - 4.5)) = 0.2 of 1.5 on the diagonal.
    two = torch.tensor([[2.0, 0.0], [0.0, 1.0]]).double()
    torch.testing.assert_close(_shrunk(two, 90), torch.tensor([[1.9, 0.0], [0.0, 1.1]]).double())
    # Of four: trace 6, squares 14, so (0.5 · 14 + 36) / ((85.5 + 0.5) (14 - 9)) = 0.1 of 1.5; the rest is cut by 0.9.
    four = torch.diag(torch.tensor([3.0, 1.0, 1.0, 1.0])).double()
    four[0, 1] = four[1, 0] = 1
    expected = torch.diag(torch.tensor([2.85, 1.05, 1.05, 1.05])).double()
    expected[0, 1] = expected[1, 0] = 0.9
    torch.testing.assert_close(_shrunk(four, 85.5), expected)


def test_of_few_photos_nothing_but_the_size_is_left():
    covariance = torch.tensor([[2.0, 0.5], [0.5, 1.0]]).double()
    torch.testing.assert_close(_shrunk(covariance, 2), 1.5 * torch.eye(2).double())
    torch.testing.assert_close(_shrunk(2 * torch.eye(3).double(), 10), 2 * torch.eye(3).double())


def test_familiarity_is_the_share_of_held_out_photos_that_are_farther():
    known = TrainingFeatures(torch.tensor([[0.0, 0.0], [10.0, 0.0]]), torch.eye(2), torch.tensor([1.0, 2.0, 3.0, 4.0]))
    places = torch.tensor([[0.0, 0.0], [0.0, 2.5], [9.0, 0.0], [10.0, 3.5], [0.0, -5.0]])
    assert known.familiarity(places).tolist() == [1, 0.5, 0.75, 0.25, 0]
    stretched = replace(known, whitening=2 * torch.eye(2), means=2 * known.means)
    assert stretched.familiarity(places).tolist() == [1, 0, 0.5, 0, 0]


def test_familiarity_falls_with_the_distance_to_nothing():
    features, targets = rows(100, classes=1)
    known = TrainingFeatures.fit(features, targets)
    way = torch.linspace(0, 20, 50)[:, None] * torch.tensor([0.3, -0.5, 0.7, 0.2])
    found = known.familiarity(features.mean(0) + way)
    assert found[0] > 0.95 and found[-1] == 0 and (found.diff() <= 0).all() and (found > 0).sum() > 5


def test_of_photos_like_the_training_photos_each_share_is_below_that_share():
    known = TrainingFeatures.fit(*rows(5000))
    found = known.familiarity(rows(2000, seed=3)[0])
    below = [(found < share).float().mean().item() for share in (0.05, 0.25, 0.5, 0.9)]
    assert below == pytest.approx([0.05, 0.25, 0.5, 0.9], abs=0.04)


def test_too_few_photos_say_nothing():
    features, targets = rows(60)
    assert TrainingFeatures.fit(features, targets, rows(19, seed=1)[0]) is None
    assert len(TrainingFeatures.fit(features, targets, rows(20, seed=1)[0]).distances) == 20
    assert TrainingFeatures.fit(features, targets, features[:0]) is None
    for count in (0, 2, 7, 19):
        assert TrainingFeatures.fit(*rows(count)) is None
    assert len(TrainingFeatures.fit(*rows(20)).distances) == 20


def test_a_single_photo_says_nothing():
    assert TrainingFeatures.fit(*rows(1)) is None


def test_without_held_out_photos_each_fifth_is_held_out_in_turn():
    features, targets = rows(43)
    expected = []
    for fold in range(5):
        out = np.arange(43) % 5 == fold
        expected += nearest(features[~out], targets[~out], features[out]).tolist()
    fitted = TrainingFeatures.fit(features, targets)
    np.testing.assert_allclose(fitted.distances, np.sort(expected), rtol=1e-3)
    others = rows(9, seed=1)[0]  # for whom all photos count
    shares = [np.mean(np.array(expected) > distance) for distance in nearest(features, targets, others)]
    assert fitted.familiarity(others).tolist() == pytest.approx(shares, abs=1e-6)


def test_classes_without_photos_have_no_mean():
    features, targets = rows(60)
    fitted = TrainingFeatures.fit(features, 10 * targets + 5)
    assert fitted.means.shape == (3, 4)
    assert torch.equal(fitted.distances, TrainingFeatures.fit(features, targets).distances)


@pytest.mark.parametrize("pool", ["class", "class + mean"])
def test_a_checkpoint_keeps_what_it_knows_of_its_photos(tiny_config, tmp_path, pool):
    config = replace(tiny_config, pool=pool)
    known = TrainingFeatures.fit(*rows(300, config.head_width))
    plain = vit.Classifier(randomise(vit.ViT(config)), ["a", "b", "c"], vit.Preprocessing((32, 32)))
    vit.save(replace(plain, training_features=known), tmp_path)
    loaded = vit.load(tmp_path)
    for name, tensor in vars(known).items():
        torch.testing.assert_close(getattr(loaded.training_features, name), tensor, rtol=1e-3, atol=1e-3)
    others = rows(100, config.head_width, seed=1)[0]
    torch.testing.assert_close(
        loaded.training_features.familiarity(others), known.familiarity(others), rtol=0, atol=0.03
    )
    assert all(torch.equal(a, b) for a, b in zip(plain.model.parameters(), loaded.model.parameters()))


def test_a_checkpoint_that_knows_nothing_of_its_photos_says_nothing(tiny_base, photos):
    classifier = vit.load(tiny_base)
    answer = classifier.answer(photos[0])
    assert classifier.training_features is None and classifier.familiarity(photos[0]) is None
    assert answer.familiarity is None and not answer.unfamiliar
    assert classifier.explain(photos[0]).familiarity is None


def change(**tensors):
    return lambda state: state | {f"training_features.{name}": tensor for name, tensor in tensors.items()}


WRONG = {
    "another width": change(means=torch.zeros(3, 32), whitening=torch.eye(32)),
    "means of another width": change(means=torch.zeros(3, 32)),
    "no square": change(whitening=torch.zeros(64, 32)),
    "a row": change(means=torch.zeros(64)),
    "a name too many": change(colour=torch.zeros(3)),
    "a name too few": lambda state: {k: v for k, v in state.items() if k != "training_features.distances"},
    "no distances": change(distances=torch.zeros(0)),
    "a table of distances": change(distances=torch.zeros(5, 2)),
}


@pytest.mark.parametrize("wrong", WRONG)
def test_training_features_of_another_model_are_refused(tiny_config, tmp_path, wrong):
    known = TrainingFeatures.fit(*rows(60, 64))
    plain = vit.Classifier(randomise(vit.ViT(tiny_config)), ["a", "b", "c"], vit.Preprocessing((32, 32)))
    vit.save(replace(plain, training_features=known), tmp_path)
    vit.load(tmp_path)
    file = tmp_path / "model.safetensors"
    safetensors.torch.save_file(WRONG[wrong](safetensors.torch.load_file(file)), file)
    with pytest.raises(CheckpointError, match=r"Its training_features\.… are of another model: save the checkpoint"):
        vit.load(tmp_path)


def test_of_classes_without_spread_photos_are_familiar_after_saving_too(tiny_config, tmp_path):
    targets = torch.arange(200) % 2
    features = torch.randn(2, 64)[targets] + 1e-5 * torch.randn(200, 64)
    known = TrainingFeatures.fit(features, targets)
    plain = vit.Classifier(randomise(vit.ViT(tiny_config)), ["a", "b", "c"], vit.Preprocessing((32, 32)))
    vit.save(replace(plain, training_features=known), tmp_path)
    for each in (known, vit.load(tmp_path).training_features):
        assert (each.familiarity(features) > 0.05).float().mean() > 0.8


def features_of(classifier, photos):
    with torch.no_grad():
        images = torch.stack([classifier.preprocessing(file) for file in photos.files])
        return classifier.model.pool(classifier.model.encode(images))


@pytest.mark.parametrize("train, count", [("head", 72), ("all", 21)])
def test_finetune_keeps_what_the_photos_are_like(tiny_base, discs, tmp_path, train, count):
    """As the model that is written sees them. The head's backbone has learnt from none of them, so all may count."""
    command = ["finetune", str(discs), "--base", str(tiny_base), "--out", str(tmp_path / "out"), *QUICK]
    options = [] if train == "head" else ["--epochs", "2", "--train", "all", "--batch-size", "16", "--held-out", "0.3"]
    assert main([*command, *options]) == 0
    tuned = vit.load(tmp_path / "out")
    known, photos = tuned.training_features, open_data(discs).train
    assert len(known.distances) == count
    learnt, held = hold_out(photos, 0.3, seed=0)
    seen = photos if train == "head" else photos.take(learnt)
    features, targets = features_of(tuned, seen), np.array(seen.targets)
    means = torch.stack([features[targets == target].mean(0) for target in range(3)])
    torch.testing.assert_close(known.means, means @ known.whitening, rtol=0.01, atol=0.1)
    if train == "all":
        expected = np.sort(nearest(features, targets, features_of(tuned, photos.take(held))))
        np.testing.assert_allclose(known.distances, expected, rtol=0.01)


def test_finetune_of_all_weights_says_nothing_of_too_few_held_out_photos(tiny_base, discs, tmp_path):
    command = ["finetune", str(discs), "--base", str(tiny_base), "--out", str(tmp_path / "out"), *QUICK]
    assert main([*command, "--epochs", "1", "--train", "all"]) == 0
    assert vit.load(tmp_path / "out").training_features is None


@pytest.fixture(scope="module")
def told(discs, tmp_path_factory) -> Path:
    """A head that tells the discs, on a backbone that knows real photos."""
    folder = tmp_path_factory.mktemp("told")
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("XDG_CACHE_HOME", str(folder / "cache"))
        command = ["finetune", str(discs), "--base", "foodvision-mini", "--out", str(folder / "out"), *QUICK]
        assert main(command) == 0
    return folder / "out"


@pytest.fixture(scope="module")
def noise(tmp_path_factory) -> list[Path]:
    folder = tmp_path_factory.mktemp("noise")
    generator = torch.Generator().manual_seed(6)
    files = [folder / f"{number}.png" for number in range(8)]
    for file in files:
        Image.fromarray(torch.randint(0, 256, (44, 48, 3), generator=generator, dtype=torch.uint8).numpy()).save(file)
    return files


def test_discs_are_familiar_and_noise_is_not(told, discs, noise):
    classifier = vit.load(told)
    tested = [classifier.answer(file).unfamiliar for file in discs.glob("test/*/*.png")]
    assert len(tested) == 24 and sum(tested) <= 5
    assert all(classifier.answer(file).unfamiliar for file in noise)


def test_all_that_tell_the_familiarity_agree(told, discs, noise):
    classifier = vit.load(told)
    for file in (noise[0], *sorted(discs.glob("test/*/0.png"))):
        found = classifier.familiarity(file)
        assert 0 <= found <= 1
        answer, explanation = classifier.answer(file), classifier.explain(file)
        assert answer.familiarity == explanation.familiarity == found
        assert answer.unfamiliar == explanation.unfamiliar == (found < 0.05)
        assert answer.predictions == classifier.predict(file)


def test_predict_says_what_is_like_nothing_it_was_trained_on(told, tiny_base, discs, noise, capsys):
    classifier = vit.load(told)
    disc = max(discs.glob("test/*/*.png"), key=classifier.familiarity)
    assert main(["predict", str(noise[0]), str(disc), "--model", str(told)]) == 0
    text = capsys.readouterr().out
    assert text.startswith(f"{noise[0]}\n{SENTENCE}") and text.count(SENTENCE) == 1
    assert main(["predict", str(noise[0]), "--model", str(tiny_base)]) == 0
    assert SENTENCE not in capsys.readouterr().out
