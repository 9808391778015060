import shutil
from dataclasses import replace

import pytest
import torch
from accelerate import Accelerator
from conftest import randomise
from PIL import Image

import vit
from vit.finetune import features as module
from vit.finetune.data import Photos, cache
from vit.finetune.features import features, key_of
from vit.finetune.sources import open_data


@pytest.fixture
def accelerator():
    return Accelerator(cpu=True)


@pytest.fixture
def base(tiny_base):
    return vit.load(tiny_base)


def passes(model):
    """The images that go through a model from now on, batch by batch."""
    seen = []
    model.patch_embedding.register_forward_hook(lambda module, given, result: seen.append(len(given[0])))
    return seen


def test_features_are_what_the_head_reads(base, discs, accelerator):
    photos = open_data(discs).test
    read = []
    handle = base.model.head.register_forward_hook(lambda module, given, result: read.append(given[0].detach()))
    for file in photos.files:
        base.predict(file)
    handle.remove()
    rows, problems = features(base, photos, accelerator)
    assert problems == {}
    torch.testing.assert_close(rows, torch.cat(read), atol=1e-5, rtol=0)


def test_a_photo_goes_through_the_backbone_once(base, discs, accelerator):
    data = open_data(discs)
    seen = passes(base.model)
    rows, _ = features(base, data.test, accelerator)
    assert sum(seen) == 24
    again, _ = features(base, data.test, accelerator)
    assert sum(seen) == 24 and torch.equal(rows, again)
    features(base, data.train.take([0, 1]), accelerator)
    assert sum(seen) == 26


def test_a_file_is_known_by_its_content(base, discs, accelerator, tmp_path):
    photos = open_data(discs).test
    features(base, photos, accelerator)
    seen = passes(base.model)
    copy = tmp_path / "another name.png"
    copy.write_bytes(photos.files[3].read_bytes())
    rows, _ = features(base, replace(photos, files=[copy], targets=[0]), accelerator)
    assert not seen
    copy.write_bytes(photos.files[4].read_bytes() + b"\0")
    features(base, replace(photos, files=[copy], targets=[0]), accelerator)
    assert sum(seen) == 1 and rows.abs().sum() > 0


def test_the_key_changes_with_the_backbone_and_the_preprocessing_but_not_with_the_head(base):
    key = key_of(base)
    with torch.no_grad():
        base.model.head.weight.add_(1)
    assert key_of(base) == key
    assert key_of(replace(base, preprocessing=vit.Preprocessing((32, 32), mean=(0.4, 0.5, 0.5)))) != key
    with torch.no_grad():
        base.model.blocks[1].mlp.fc2.bias[0] += 1e-3
    assert key_of(base) != key


def test_photos_that_cannot_be_read_are_named(base, discs, accelerator, tmp_path):
    (tmp_path / "text.jpg").write_text("hello")
    photos = open_data(discs).test.take([0, 1, 2])
    photos.files[1] = tmp_path / "text.jpg"
    photos.files[2] = tmp_path / "missing.jpg"
    rows, problems = features(base, photos, accelerator)
    assert list(problems) == [1, 2]
    assert "'text.jpg' is not a photo" in problems[1] and "There is no photo" in problems[2]
    assert rows[0].abs().sum() > 0 and rows[1:].abs().sum() == 0


def test_what_was_made_before_a_kill_is_not_lost(base, discs, accelerator, monkeypatch):
    photos = open_data(discs).train
    monkeypatch.setattr(module, "PART", 32)
    calls = []

    def killed(*arguments, **options):
        calls.append(1)
        if len(calls) == 2:
            raise KeyboardInterrupt
        return infer(*arguments, **options)

    infer = module.infer
    monkeypatch.setattr(module, "infer", killed)
    with pytest.raises(KeyboardInterrupt):
        features(base, photos, accelerator)
    monkeypatch.setattr(module, "infer", infer)
    seen = passes(base.model)
    features(base, photos, accelerator)
    assert sum(seen) == 72 - 32


def test_a_damaged_part_is_made_anew(base, discs, accelerator):
    photos = open_data(discs).test.take([0, 1])
    rows, _ = features(base, photos, accelerator)
    [part] = (cache() / "features-and-fingerprints" / key_of(base)).iterdir()
    part.write_bytes(part.read_bytes()[:-5])
    seen = passes(base.model)
    assert torch.equal(features(base, photos, accelerator)[0], rows) and sum(seen) == 2


def test_features_are_those_of_the_model_at_rest(base, discs, accelerator):
    """Dropout and stochastic depth are for training."""
    photos = open_data(discs).test.take([0, 1])
    rows, _ = features(base, photos, accelerator)
    restless = vit.ViT(replace(base.model.config, dropout=0.5, stochastic_depth=0.5))
    restless.load_state_dict(base.model.state_dict())
    other = replace(base, model=restless.train())
    assert key_of(other) == key_of(base)
    shutil.rmtree(cache() / "features-and-fingerprints")
    torch.testing.assert_close(features(other, photos, accelerator)[0], rows)


@pytest.mark.parametrize(
    "options", [dict(pool="class + mean"), dict(pool="mean", registers=2), dict(distillation=True)]
)
def test_features_of_other_kinds_of_models(tiny_config, discs, accelerator, options):
    config = replace(tiny_config, **options)
    classifier = vit.Classifier(randomise(vit.ViT(config)), ["a", "b", "c"], vit.Preprocessing((32, 32)))
    photos = open_data(discs).test.take([0, 9])
    rows, _ = features(classifier, photos, accelerator)
    images = torch.stack([classifier.preprocessing(file) for file in photos.files])
    torch.testing.assert_close(classifier.model.head(rows), classifier.model(images))


def test_photos_of_other_shapes_go_one_by_one(tiny_config, accelerator, tmp_path):
    """A checkpoint may prepare photos without cropping them."""
    for name, size in (("wide", (64, 32)), ("square", (32, 32))):
        Image.new("RGB", size, "orange").save(tmp_path / f"{name}.png")
    classifier = vit.Classifier(randomise(vit.ViT(tiny_config)), ["a", "b", "c"], vit.Preprocessing(resize=32))
    photos = Photos([tmp_path / "wide.png", tmp_path / "square.png"], [0, 1], classifier.labels)
    rows, problems = features(classifier, photos, accelerator)
    assert not problems and rows.shape == (2, 64)


def test_a_part_that_is_still_being_written_is_not_read(base, discs, accelerator):
    photos = open_data(discs).test.take([0])
    features(base, photos, accelerator)
    folder = cache() / "features-and-fingerprints" / key_of(base)
    (folder / "half").write_bytes(b"half a file")
    assert features(base, photos, accelerator)[0].shape == (1, 64)
