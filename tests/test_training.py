import copy
import math
import shutil
from dataclasses import replace
from itertools import chain

import pytest
import torch
import torch.nn.functional as F
from accelerate import Accelerator
from torch import nn
from torch.utils.data import Dataset

import vit
from vit.finetune import training as module
from vit.finetune.recipe import Augmentation, Recipe, parameter_groups
from vit.finetune.sources import open_data
from vit.finetune.training import Augmented, Training, _divide

PLAIN = Recipe(
    epochs=2, batch_size=8, mixup=0, ema=0, clip=0, label_smoothing=0, balance=0, warm_up=0, learning_rate=0.1
)


def table(count=24, classes=3):
    """Rows whose class can be told from them, and their classes."""
    targets = torch.arange(count) % classes
    rows = torch.randn(count, 5, generator=torch.Generator().manual_seed(3)) + 3 * F.one_hot(targets, 5)
    return rows, targets


class Table(Dataset):
    """Rows with their classes, in place of photos."""

    def __init__(self, rows, targets):
        self.rows, self.targets = rows, targets

    def __len__(self):
        return len(self.rows)

    def __getitem__(self, index):
        return self.rows[index], self.targets[index]


def head_training(recipe, state=None, accumulate=1, rows_and_targets=None, head=None, **options):
    rows, targets = rows_and_targets or table()
    head = head or nn.Sequential(nn.Linear(5, 3))
    with torch.no_grad():
        head[0].weight.fill_(0.1)
        head[0].bias.zero_()
    groups = [dict(params=list(head.parameters()), lr=recipe.learning_rate, weight_decay=recipe.weight_decay)]
    accelerator = Accelerator(cpu=True, gradient_accumulation_steps=accumulate)
    return Training(
        head, groups, lambda epoch: Table(rows, targets), targets, 3, recipe, accelerator, **options, state=state
    )


def test_training_is_adamw_on_the_cross_entropy_of_each_batch_once():
    """Beside a loop as short as PyTorch allows, on the batches that were drawn."""
    drawn = []

    class Watched(Table):
        def __getitems__(self, indexes):
            drawn.append(indexes)
            return [self[index] for index in indexes]

    rows, targets = table()
    training = head_training(PLAIN)
    training.epoch_of = lambda epoch: Watched(rows, targets)
    history = training.run()

    assert sorted(chain(*drawn[:3])) == sorted(chain(*drawn[3:])) == list(range(24)) and drawn[:3] != drawn[3:]
    model = nn.Linear(5, 3)
    nn.init.constant_(model.weight, 0.1)
    nn.init.zeros_(model.bias)
    optimizer = torch.optim.AdamW(model.parameters(), lr=0.1, weight_decay=0.05)
    losses = []
    for step, batch in enumerate(drawn):
        optimizer.param_groups[0]["lr"] = 0.1 * (1 + math.cos(math.pi * max(0, step - 1) / 5)) / 2
        loss = F.cross_entropy(model(rows[batch]), targets[batch])
        losses.append(loss.item())
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
    torch.testing.assert_close(training.best[0].weight, model.weight, atol=1e-5, rtol=0)
    assert [row["loss"] for row in history] == pytest.approx([sum(losses[:3]) / 3, sum(losses[3:]) / 3], abs=1e-5)


def test_an_epoch_counts_photos_and_not_batches():
    training = head_training(replace(PLAIN, epochs=6))
    history = training.run()
    assert all(row["photos"] == 24 and isinstance(row["correct"], int) for row in history)
    assert history[-1]["correct"] == 24


def test_a_batch_in_parts_is_the_same_batch():
    whole, parts = head_training(PLAIN), head_training(PLAIN, accumulate=4)
    whole.run()
    parts.run()
    torch.testing.assert_close(parts.best[0].weight, whole.best[0].weight, atol=1e-6, rtol=0)


def test_the_gradient_is_clipped():
    rows, targets = table()
    training = head_training(replace(PLAIN, clip=1.0), rows_and_targets=(1000 * rows, targets))
    norms = []
    step = training.optimizer.step
    training.optimizer.step = lambda: (
        norms.append(torch.cat([weights.grad.flatten() for weights in training.model.parameters()]).norm().item())
        or step()
    )
    training.run()
    assert len(norms) == 6 and max(norms) == pytest.approx(1, abs=1e-3)


def test_the_moving_average_is_what_it_says():
    seen = []
    training = head_training(replace(PLAIN, ema=0.5))
    update = training.average.update_parameters
    training.average.update_parameters = lambda model: seen.append(model[0].weight.detach().clone()) or update(model)
    training.run()
    mean = seen[0]
    for number, weights in enumerate(seen[1:], start=1):
        decay = min(0.5, (1 + number) / (10 + number))
        mean = decay * mean + (1 - decay) * weights
    torch.testing.assert_close(training.best[0].weight, mean, atol=1e-6, rtol=0)
    assert not torch.equal(training.best[0].weight, training.model[0].weight)


def test_rare_classes_are_evened_out():
    """One feature that tells nothing: evened out, all classes become equally likely; otherwise as they are common."""
    targets = torch.tensor([0] * 18 + [1] * 4 + [2] * 2)
    rows = torch.zeros(24, 5)
    shares = {}
    for balance in (0.0, 1.0):
        recipe = replace(PLAIN, epochs=150, batch_size=24, balance=balance, weight_decay=0)
        training = head_training(recipe, rows_and_targets=(rows, targets))
        training.run()
        shares[balance] = training.best[0].bias.softmax(0).tolist()
    assert shares[0.0] == pytest.approx([0.75, 1 / 6, 1 / 12], abs=0.01)
    assert shares[1.0] == pytest.approx([1 / 3] * 3, abs=0.01)


def learnt(inputs, targets, balance, smoothing):
    """The logits (n, 3) that the objective is least for, by as many numbers of their own as inputs differ."""
    recipe = Recipe(label_smoothing=smoothing, balance=balance)
    model = nn.Linear(inputs.shape[1], 3, bias=False)
    objective = module.Objective(model, targets, 3, recipe)
    optimizer = torch.optim.LBFGS(model.parameters(), max_iter=200, line_search_fn="strong_wolfe")

    def loss():
        optimizer.zero_grad()
        total, _ = objective(inputs, targets)
        total.backward()
        return total

    optimizer.step(loss)
    return model(inputs).detach()


def test_smoothing_leaves_rare_classes_as_likely_as_they_should_be():
    """Where nothing can be told all classes are equally likely, evened out: spread equally, the rarest would be it."""
    targets = torch.tensor([0] * 18 + [1] * 5 + [2])
    found = learnt(torch.ones(24, 1), targets, balance=1.0, smoothing=0.3)[0].softmax(0)
    torch.testing.assert_close(found, torch.full((3,), 1 / 3), atol=1e-3, rtol=0)


def test_a_sure_photo_of_a_common_class_is_not_answered_with_a_rare_one():
    targets = torch.tensor([0] * 90 + [1] * 9 + [2])
    found = learnt(F.one_hot(targets, 3).float(), targets, balance=1.0, smoothing=0.1)
    assert torch.equal(found.argmax(dim=1), targets)


def test_mixup_mixes_within_groups_of_eight():
    training = head_training(replace(PLAIN, mixup=1.0, batch_size=16))
    images = torch.eye(16).reshape(16, 1, 4, 4)  # each has a pixel of its own
    mixed, shares = training._mix(images, torch.arange(16) % 3, place=0)
    parts = mixed.flatten(1)
    assert parts.sum(1).tolist() == pytest.approx([1] * 16) and shares.sum(1).tolist() == pytest.approx([1] * 16)
    assert parts[:8, 8:].abs().max() == parts[8:, :8].abs().max() == 0
    torch.testing.assert_close(shares, parts @ F.one_hot(torch.arange(16) % 3, 3).float())
    second, _ = training._mix(images[8:], torch.arange(8, 16) % 3, place=8)  # as another process sees it
    torch.testing.assert_close(second, mixed[8:])


def test_a_photo_is_changed_by_its_place_and_the_epoch_alone(discs):
    photos = open_data(discs).train
    augmentation = Augmentation(Recipe(), vit.Preprocessing((32, 32)), (32, 32))
    first = Augmented(photos, augmentation, 0, 1)
    torch.manual_seed(9)
    image, target = first[5]
    torch.rand(100)
    assert torch.equal(Augmented(photos, augmentation, 0, 1)[5][0], image) and target == photos.targets[5]
    assert not torch.equal(Augmented(photos, augmentation, 0, 2)[5][0], image)
    assert not torch.equal(Augmented(photos, augmentation, 1, 1)[5][0], image)


class Killed(Exception):
    pass


@pytest.mark.parametrize("steps", [1, 3, 4, 8])
def test_a_resumed_training_ends_as_an_unbroken_one(discs, tmp_path, tiny_config, monkeypatch, steps):
    """All of it: augmentation, mixup, dropout, the moving average. Saved after each step, killed after some."""
    photos = open_data(discs).train
    recipe = Recipe(epochs=3, batch_size=24, learning_rate=1e-2, stochastic_depth=0.2)
    start = vit.ViT(replace(tiny_config, dropout=0.1, stochastic_depth=0.2))

    def training(state):
        model = copy.deepcopy(start)
        augmentation = Augmentation(recipe, vit.Preprocessing((32, 32)), (32, 32))
        return Training(
            model,
            parameter_groups(model, recipe, 2),
            lambda epoch: Augmented(photos, augmentation, recipe.seed, epoch),
            torch.tensor(photos.targets),
            3,
            recipe,
            Accelerator(cpu=True),
            state=state,
        )

    unbroken = training(None)
    history = unbroken.run()

    monkeypatch.setattr(module, "SAVE_EVERY", -1)
    broken = training(tmp_path / "state.pt")
    part = broken._micro_batch
    broken._micro_batch = lambda *given: part(*given) if _count(broken) < steps else (_ for _ in ()).throw(Killed)
    with pytest.raises(Killed):
        broken.run()
    torch.manual_seed(123)
    resumed = training(tmp_path / "state.pt")
    assert 0 < _count(resumed) <= steps
    torch.rand(7)
    again = resumed.run()
    for name, weights in unbroken.best.state_dict().items():
        assert torch.equal(weights, resumed.best.state_dict()[name]), name
    assert [{**row, "seconds": 0} for row in again] == [{**row, "seconds": 0} for row in history]


def _count(training):
    return training.progress.epoch * training.steps + training.progress.step


def test_a_kill_while_saving_leaves_the_last_state(tmp_path, monkeypatch):
    training = head_training(PLAIN, state=tmp_path / "state.pt")
    training._save()
    before = (tmp_path / "state.pt").read_bytes()
    monkeypatch.setattr(module.os, "replace", lambda *paths: (_ for _ in ()).throw(Killed))
    training.progress.step = 2
    with pytest.raises(Killed):
        training._save()
    assert (tmp_path / "state.pt").read_bytes() == before
    assert head_training(PLAIN, state=tmp_path / "state.pt").progress.step == 0


@pytest.mark.parametrize(
    "photos, batch_size, processes, expected",
    [
        (9666, 64, 1, (151, 64)),
        (127, 64, 1, (2, 56)),
        (95, 64, 2, (2, 40)),
        (64, 64, 1, (1, 64)),
        (5, 64, 2, (1, 4)),
        (450, 64, 1, (7, 64)),
        (405, 64, 2, (7, 56)),
        (66, 16, 2, (4, 16)),
    ],
)
def test_few_photos_are_left_over(photos, batch_size, processes, expected):
    assert _divide(photos, batch_size, processes) == expected


def test_processes_that_cannot_share_a_batch_get_a_sentence():
    with pytest.raises(
        ValueError, match=r"^3 processes cannot share a batch of 64 .*: make --batch-size a multiple of 3"
    ):
        _divide(100, 64, 3)


def test_parts_that_a_batch_does_not_have_get_a_sentence():
    with pytest.raises(ValueError, match=r"^A batch of 8 photos has no 9 parts: --accumulate less\.$"):
        head_training(PLAIN, accumulate=9)


def test_uneven_parts_know_their_places():
    """Ten photos in four parts start at 0, 3, 6 and 8: mixup is drawn by these places."""
    training = head_training(replace(PLAIN, batch_size=10, mixup=0.2), accumulate=4, rows_and_targets=table(20))
    places = []
    training._mix = lambda inputs, targets, place: (places.append(place), (inputs, targets))[1]
    training.run()
    assert places[:4] == [0, 3, 6, 8]


def test_the_average_of_a_head_is_what_is_watched():
    recipe = replace(PLAIN, ema=0.9)
    watched = []
    training = head_training(recipe)
    training.held_out = lambda head: (watched.append(head) or torch.zeros(24, 3), table()[1])
    training.run()
    assert all(head is training.average.module for head in watched) and len(watched) == 2


def test_a_photo_that_vanishes_gets_a_sentence(discs, tmp_path, tiny_config):
    photos = open_data(shutil.copytree(discs, tmp_path / "data")).train
    augmentation = Augmentation(PLAIN, vit.Preprocessing((32, 32)), (32, 32))
    model = vit.ViT(tiny_config)
    photos.files[0].unlink()
    for workers in (0, 1):
        training = Training(
            model,
            parameter_groups(model, PLAIN, 2),
            lambda epoch: Augmented(photos, augmentation, 0, epoch),
            torch.tensor(photos.targets),
            3,
            PLAIN,
            Accelerator(cpu=True),
            workers=workers,
        )
        with pytest.raises(
            ValueError, match=r"^A photo can no longer be read \(There is no photo .*0.png'.*--resume\.$"
        ):
            training.run()


def test_a_full_disk_is_an_error_of_writing(tmp_path, monkeypatch):
    training = head_training(PLAIN, state=tmp_path / "state.pt")

    def full(content, path):
        path.write_bytes(b"some of it")
        raise RuntimeError("[enforce fail at inline_container.cc:672] . unexpected pos 64 vs 0")

    monkeypatch.setattr(module.torch, "save", full)
    with pytest.raises(OSError, match="the disk may be full"):
        training.run()
    assert list(tmp_path.iterdir()) == []


def test_a_damaged_state_gets_a_sentence(tmp_path):
    (tmp_path / "state.pt").write_bytes(b"half a file")
    with pytest.raises(ValueError, match=r"state.pt' is damaged: start the run anew, in another folder\.$"):
        head_training(PLAIN, state=tmp_path / "state.pt")


def test_fewer_photos_than_a_batch_are_one_batch():
    training = head_training(replace(PLAIN, batch_size=64))
    assert (training.batch_size, training.steps) == (24, 1)
    assert training.run()[0]["photos"] == 24


def test_photos_left_over_are_others_in_each_epoch():
    training = head_training(replace(PLAIN, batch_size=10))
    training.steps, training.batch_size = 2, 10
    left = []
    for epoch in range(3):
        training.progress.epoch = epoch
        left.append(set(range(24)) - set(chain(*training._parts())))
    assert all(len(photos) == 4 for photos in left) and left[0] != left[1] != left[2]
