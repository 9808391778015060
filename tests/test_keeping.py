"""New classes beside the kept ones: how the classes join, the loss by hand, and whole runs on discs."""

import shutil
from dataclasses import replace

import numpy as np
import pytest
import safetensors.torch
import torch
from accelerate import Accelerator
from conftest import randomise
from PIL import Image
from scipy.optimize import minimize
from scipy.special import log_softmax
from torch import nn
from torch.utils.data import TensorDataset

import vit
from vit.__main__ import main
from vit.finetune.head import Problem
from vit.finetune.keeping import STIFFNESS, Keeping, evened_out, join, repeated, tell_apart
from vit.finetune.objective import log_prior, shares
from vit.finetune.recipe import Recipe
from vit.finetune.sources import open_data
from vit.finetune.start import Run, start, with_head, with_registers
from vit.finetune.training import Training

QUICK = ["--workers", "0"]
KEPT = ["pizza", "Red-Disc", "steak"]
JOINED = ["pizza", "red disc", "steak", "blue disc", "green disc"]


def test_the_kept_classes_come_first_and_the_new_ones_follow():
    assert join(["pizza", "apple pie"], ["waffle", "bread"]) == (["pizza", "apple pie", "waffle", "bread"], [])


def test_two_spellings_are_one_class_written_as_it_is_now():
    labels, shared = join(["Hot_Dog", "pizza"], ["bread", "hotdog", "pizza"])
    assert labels == ["hotdog", "pizza", "bread"] and shared == ["hotdog", "pizza"]


def test_of_kept_classes_of_one_name_the_first_is_meant():
    kept = ["crane", "pier", "crane"]
    assert join(kept, ["Crane"]) == (["Crane", "pier", "crane"], ["Crane"])
    assert join(kept, ["ship"]) == ([*kept, "ship"], [])
    assert kept == ["crane", "pier", "crane"]


def test_a_target_is_a_share_of_every_class_and_nothing_without_a_label():
    assert shares(torch.tensor([2, -1, 0]), 3).tolist() == [[0, 0, 1], [0, 0, 0], [1, 0, 0]]


def test_photos_without_labels_are_repeated_to_their_share():
    assert repeated(3, 28, 0.2) == [0, 1, 2, 0, 1, 2, 0]  # 7 of 35
    assert repeated(9, 28, 0.2) == list(range(9))  # more than that share: each once
    assert repeated(3, 28, 0) == [0, 1, 2]
    assert repeated(0, 28, 0.2) == []


def test_photos_with_labels_are_told_from_others_by_the_best_direction():
    """Three kept classes and two new ones, of which the photos show one kept and both new."""
    torch.manual_seed(0)
    head, shown = torch.nn.Linear(4, 5), torch.tensor([1, 3, 4])
    rows, others, targets = torch.randn(40, 4) + 0.7, torch.randn(30, 4) - 0.7, shown[torch.randint(3, (40,))]
    opinion = torch.randn(30, 3)
    before = {name: values.detach().double().numpy().copy() for name, values in head.named_parameters()}
    new = np.isin(np.arange(5), shown)

    def logits(features, change):
        found = features.double().numpy() @ before["weight"].T + before["bias"]
        return found + (features.double().numpy() @ change[:4] + change[4])[:, None] * new

    def loss(change):
        learnt = -log_softmax(logits(rows, change), axis=1)[np.arange(40), targets]
        theirs = log_softmax(opinion.double().numpy(), axis=1)
        kept = np.exp(theirs) * (theirs - log_softmax(logits(others, change), axis=1)[:, :3])
        return (learnt.mean() + kept.sum(axis=1).mean()) / 2 + STIFFNESS * (change[:4] ** 2).sum()

    best = minimize(loss, np.zeros(5), method="BFGS").x
    tell_apart(head, shown, rows, targets, others, opinion)
    for features in (rows, others):
        np.testing.assert_allclose(head(features).detach().numpy(), logits(features, best), atol=5e-3)
    assert loss(best) < loss(np.zeros(5)) - 0.05  # or the comparison says nothing


def test_the_prior_is_of_the_labelled_photos():
    targets = torch.tensor([0, 0, 0, 2, -1, -1, -1, -1])
    logs = [np.log(0.75), np.log(0.25)]
    expected = [logs[0], np.mean(logs), logs[1], np.mean(logs)]
    assert log_prior(targets, 4).tolist() == pytest.approx(expected, abs=1e-6)


TARGETS = torch.tensor([1, 1, 2, 1, -1])
PRIOR = [np.log(0.75) / 2 + np.log(0.25) / 2, np.log(0.75), np.log(0.25)]
SPREAD = [0, 0.75, 0.25]
LESSONS = {
    "a new class": [0.0, 0.0, 1.0],
    "a kept class": [0.0, 1.0, 0.0],
    "no label": [0.0, 0.0, 0.0],
    "a new class, mixed with no label": [0.0, 0.0, 0.6],
    "two classes, mixed": [0.3, 0.0, 0.7],
}


def softmax(values):
    powers = np.exp(values - np.max(values))
    return powers / powers.sum()


def by_hand(logits, opinion, target, keep, smoothing):
    """The loss of one photo, term by term; the teacher knows two of three classes, and photos show the last two."""
    labelled, loss = sum(target), 0.0
    p = softmax(opinion)
    adjusted, among_all, among_kept = softmax(logits + np.array(PRIOR)), softmax(logits), softmax(logits[:2])
    for place in range(3):
        wanted = (1 - smoothing) * target[place] + smoothing * labelled * SPREAD[place]
        loss -= wanted * np.log(adjusted[place])
    for place in range(2):
        loss += keep * labelled * p[place] * np.log(p[place] / among_kept[place])
        loss += (1 - labelled) * p[place] * np.log(p[place] / among_all[place])
    return loss


@pytest.fixture
def student_and_teacher():
    """Four numbers in; three logits of the student, two of the teacher."""
    student, teacher = nn.Linear(4, 3), nn.Linear(4, 2)
    inputs = torch.randn(len(LESSONS), 4)
    return student, teacher, inputs


@pytest.mark.parametrize("lesson", LESSONS)
def test_the_loss_of_a_photo_by_hand(student_and_teacher, lesson):
    student, teacher, inputs = student_and_teacher
    objective = Keeping(student, TARGETS, 3, Recipe(keep=0.7, label_smoothing=0.1), teacher.forward)
    loss, logits = objective(inputs[:1], torch.tensor([LESSONS[lesson]]))
    z, opinion = student(inputs[0]).detach().double().numpy(), teacher(inputs[0]).detach().double().numpy()
    assert loss.item() == pytest.approx(by_hand(z, opinion, LESSONS[lesson], 0.7, 0.1), rel=1e-5)
    assert torch.equal(logits, student(inputs[:1]))


def test_the_loss_of_a_batch_is_the_sum_of_its_photos(student_and_teacher):
    student, teacher, inputs = student_and_teacher
    objective = Keeping(student, TARGETS, 3, Recipe(), teacher.forward)
    targets = torch.tensor(list(LESSONS.values()))
    alone = [objective(inputs[i : i + 1], targets[i : i + 1])[0].item() for i in range(len(targets))]
    assert len(set(alone)) == len(alone)
    assert objective(inputs, targets)[0].item() == pytest.approx(sum(alone), rel=1e-5)


def test_a_photo_without_a_label_pulls_the_answer_to_the_teachers(student_and_teacher):
    """The gradient by the logits of a cross-entropy is what is answered less what is wanted: no new class is."""
    student, teacher, inputs = student_and_teacher
    objective = Keeping(student, TARGETS, 3, Recipe(), teacher.forward)
    loss, logits = objective(inputs[:1], torch.zeros(1, 3))
    [gradient] = torch.autograd.grad(loss, logits)
    wanted = np.append(softmax(teacher(inputs[0]).detach().numpy()), 0)
    assert gradient[0].tolist() == pytest.approx(softmax(logits[0].detach().numpy()) - wanted, abs=1e-6)


def test_a_labelled_photo_learns_its_label_and_keeps_the_teachers_opinion(student_and_teacher):
    student, teacher, inputs = student_and_teacher
    objective = Keeping(student, TARGETS, 3, Recipe(keep=0.5, label_smoothing=0), teacher.forward)
    loss, logits = objective(inputs[:1], torch.tensor([[0.0, 0.0, 1.0]]))
    [gradient] = torch.autograd.grad(loss, logits, retain_graph=True)
    z = logits[0].detach().numpy()
    expected = softmax(z + np.array(PRIOR)) - [0, 0, 1]
    expected[:2] += 0.5 * (softmax(z[:2]) - softmax(teacher(inputs[0]).detach().numpy()))
    assert gradient[0].tolist() == pytest.approx(expected, abs=1e-6)
    loss.backward()
    assert student.weight.grad.abs().max() > 0 and teacher.weight.grad is None


def test_how_often_photos_without_labels_were_met_is_taken_back():
    """Six photos of two classes beside two without a label: three times as often."""
    shift = evened_out(torch.tensor([1, 3, 1, 1, 3, 1, -1, -1]), 4, balance=0.5)
    assert shift.tolist() == pytest.approx([0, -0.5 * np.log(3), 0, -0.5 * np.log(3)], abs=1e-6)
    assert not evened_out(torch.tensor([1, 3]), 4, balance=0.5).any()  # none without: there is nothing to take back


def test_an_epochs_loss_is_the_mean_of_its_photos():
    """A head of zeros beside a teacher that knows two of three classes and nothing of the photos."""
    head, targets = nn.Linear(2, 3), torch.tensor([0, -1, -1, -1])
    nn.init.zeros_(head.weight)
    nn.init.zeros_(head.bias)
    recipe = Recipe(epochs=1, batch_size=4, label_smoothing=0, balance=0, mixup=0, ema=0)
    training = Training(
        head,
        [dict(params=list(head.parameters()), lr=0.0, weight_decay=0.0)],
        lambda epoch: TensorDataset(torch.ones(4, 2), targets),
        targets,
        3,
        recipe,
        Accelerator(cpu=True),
        teacher=lambda rows: torch.zeros(len(rows), 2),
    )
    [row] = training.run()
    assert row["photos"] == 1  # those that can be answered correctly
    assert row["loss"] == pytest.approx((np.log(3) + 3 * np.log(1.5)) / 4, abs=1e-5)


@pytest.fixture(scope="module")
def base(tmp_path_factory, tiny_config):
    """A classifier that knows a disc already, by another spelling."""
    folder = tmp_path_factory.mktemp("keeping") / "known"
    vit.save(vit.Classifier(randomise(vit.ViT(tiny_config)), KEPT, vit.Preprocessing((32, 32))), folder)
    return folder


@pytest.fixture(scope="module")
def stripes(tmp_path_factory):
    """Pictures that are no discs, some to ask the teacher about and as many to test on."""
    folder = tmp_path_factory.mktemp("stripes")
    generator = torch.Generator().manual_seed(5)
    for part in ("seen", "unseen"):
        (folder / part / "deep").mkdir(parents=True)
        for number in range(20):
            colours = torch.randint(0, 256, (4, 1, 3), generator=generator, dtype=torch.uint8).repeat_interleave(8, 0)
            picture = Image.fromarray(colours.repeat(1, 32, 1).numpy())
            picture.rotate(90 * (number % 2)).save(folder / part / "deep" / f"{number}.png")
        (folder / part / "note.txt").write_text("no photo")
    return folder


@pytest.fixture
def finetune(base, discs, tmp_path):
    """Runs the command on the discs, keeping classes; the exit code."""

    def run(*arguments, out="out", base=base):
        command = ["finetune", str(discs), "--base", str(base), "--out", str(tmp_path / out), *QUICK]
        return main([*command, "--keep-classes", *arguments])

    return run


def weights(folder):
    return safetensors.torch.load_file(folder / "model.safetensors")


def answers(folder, photos):
    """The probabilities of all classes for each photo."""
    classifier = vit.load(folder)
    with torch.no_grad():
        return classifier.model(torch.stack([classifier.preprocessing(photo) for photo in photos])).softmax(1).numpy()


ALL = ["--train", "all", "--batch-size", "16", "--learning-rate", "1e-3", "--blend", "1", "--ema", "0"]


@pytest.mark.parametrize("train", ["head", "all"])
@pytest.mark.parametrize("asked", [False, True], ids=["", "teacher-photos"])
def test_new_classes_join_the_kept_ones(finetune, stripes, tmp_path, train, asked):
    options = ["--train", "head"] if train == "head" else [*ALL, "--epochs", "2"]
    photos = ["--teacher-photos", str(stripes / "seen")] * asked
    assert finetune(*options, *photos) == 0
    tuned = vit.load(tmp_path / "out")
    assert tuned.labels == JOINED and tuned.model.config.classes == 5
    assert {label for label, _ in tuned.predict(next(stripes.rglob("*.png")))} == set(JOINED)
    assert tuned.training_features is None  # the kept classes' photos are not known
    card = (tmp_path / "out" / "README.md").read_text()
    beside = ", and on photos without labels (seen)" * asked
    assert (
        f"It keeps the 3 classes of `known`, its teacher for them on these photos{beside}; 2 new ones joined them. "
        "Classes that both have: red disc." in card
    )
    assert "72 photos to learn from, 0 held out, 24 to test, 0 left out" in card


def started(discs, base, **options):
    """The weights that a run starts from."""
    recipe = Recipe.of("head", **{name: options.pop(name) for name in ("recall", "registers") if name in options})
    run = Run(str(discs), str(base), recipe, keep_classes=True, **options)
    begin = start(run)
    return with_registers(run, begin, begin.train).model.state_dict()


def test_the_heads_rows_start_from_the_bases(discs, base):
    before, after = weights(base), started(discs, base)
    for name in ("head.weight", "head.bias"):
        assert torch.equal(after[name][:3], before[name]) and not after[name][3:].any()


def test_another_teachers_classes_are_kept(finetune, base, discs, tmp_path, tiny_config):
    """A class that the base knows starts from the base's row, another from the teacher's."""
    other = vit.Classifier(vit.ViT(replace(tiny_config, classes=2)), ["soup", "Steak"], vit.Preprocessing((32, 32)))
    nn.init.normal_(other.model.head.weight)
    vit.save(other, tmp_path / "other")
    head, old = started(discs, base, teacher=str(tmp_path / "other"))["head.weight"], weights(base)["head.weight"]
    assert torch.equal(head[0], other.model.head.weight[0]) and torch.equal(head[1], old[2])
    assert torch.equal(head[4], old[1]) and not head[2:4].any()
    assert finetune("--teacher", str(tmp_path / "other")) == 0
    assert vit.load(tmp_path / "out").labels == ["soup", "Steak", "blue disc", "green disc", "red disc"]
    assert "It keeps the 2 classes of `other`" in (tmp_path / "out" / "README.md").read_text()


@pytest.mark.parametrize("registers", [0, 2])
def test_a_share_of_the_teachers_weights_comes_back(base, discs, tmp_path, tiny_config, registers):
    """A quarter of the way, with and without registers; the head's rows stay whose they are."""
    teacher = randomise(vit.ViT(replace(tiny_config, registers=registers)), seed=3)
    vit.save(vit.Classifier(teacher, KEPT, vit.Preprocessing((32, 32))), tmp_path / "teacher")
    between = started(discs, base, teacher=str(tmp_path / "teacher"), recall=0.25, registers=registers)
    own, theirs = weights(base), weights(tmp_path / "teacher")
    for name in ("blocks.1.mlp.fc1.weight", "class_token", "norm.weight"):
        torch.testing.assert_close(between[name], 0.75 * own[name] + 0.25 * theirs[name])
    assert torch.equal(between["head.weight"][:3], own["head.weight"])


def test_a_teacher_without_registers_is_given_some_before_its_weights_come_back(finetune, base, tmp_path, tiny_config):
    model = randomise(vit.ViT(replace(tiny_config, registers=2)), seed=3)
    vit.save(vit.Classifier(model, KEPT, vit.Preprocessing((32, 32))), tmp_path / "own")
    options = ["--teacher", str(base), "--recall", "1"]
    assert finetune(*options, base=tmp_path / "own") == 0
    theirs, given = weights(base), weights(tmp_path / "out")
    assert torch.equal(given["blocks.0.attention.qkv.weight"], theirs["blocks.0.attention.qkv.weight"])
    assert given["register_tokens"].shape == (1, 2, tiny_config.width)


def test_kept_classes_of_one_name_keep_their_own_rows(tiny_config):
    """ImageNet has two: Cardigan, a dog, and cardigan, to wear."""
    model = randomise(vit.ViT(tiny_config))
    old = vit.Classifier(model, ["Cardigan", "pier", "cardigan"], vit.Preprocessing((32, 32)))
    labels, _ = join(old.labels, ["red disc"])
    assert torch.equal(with_head(old, labels, 0.0, old).model.head.weight[:3], model.head.weight)


def test_a_class_written_alike_comes_before_one_that_is_not():
    assert join(["Cardigan", "pier", "cardigan"], ["cardigan"])[0] == ["Cardigan", "pier", "cardigan"]


@pytest.mark.parametrize("train", ["head", "all"])
def test_a_teacher_keeps_the_old_answers(finetune, base, stripes, tmp_path, train):
    """On pictures that no run has seen, among the kept classes; and these are taken for new ones less often."""
    options = [] if train == "head" else [*ALL, "--epochs", "4"]
    assert finetune(*options, "--keep", "0", out="alone") == 0
    assert finetune(*options, out="taught") == 0
    assert finetune(*options, "--teacher-photos", str(stripes / "seen"), out="asked") == 0
    unseen = sorted(stripes.glob("unseen/deep/*.png"))
    old = answers(base, unseen)
    moved, new = {}, {}
    for out in ("alone", "taught", "asked"):
        given = answers(tmp_path / out, unseen)
        kept = given[:, :3] / given[:, :3].sum(1, keepdims=True)
        moved[out] = (old * np.log(old / kept)).sum(1).mean()
        new[out] = given[:, 3:].sum(1).mean()
    assert moved["taught"] < moved["alone"] / 2 and moved["asked"] < moved["alone"] / 2
    assert new["asked"] < new["taught"]


@pytest.mark.parametrize("distilled", [False, True])
def test_the_opinion_that_a_head_learns_is_the_teachers(finetune, discs, tmp_path, tiny_config, monkeypatch, distilled):
    """A distilled model's answer is the mean of its two heads."""
    config = replace(tiny_config, distillation=distilled, distillation_head=distilled)
    teacher = vit.Classifier(randomise(vit.ViT(config)), KEPT, vit.Preprocessing((32, 32)))
    vit.save(teacher, tmp_path / "base")
    opinions = []

    solve = Problem.solve
    monkeypatch.setattr(Problem, "solve", lambda self, *given: opinions.append(self.opinion) or solve(self, *given))
    assert finetune(base=tmp_path / "base") == 0
    with torch.no_grad():
        images = torch.stack([teacher.preprocessing(file) for file in open_data(discs).train.files])
        expected = teacher.model(images).double().log_softmax(1)
    torch.testing.assert_close(opinions[0], expected, rtol=0, atol=1e-4)


def test_a_stopped_run_that_keeps_classes_goes_on_to_the_same_weights(finetune, stripes, tmp_path, monkeypatch, capsys):
    photos = shutil.copytree(stripes / "seen", tmp_path / "photos")
    options = [*ALL, "--epochs", "3", "--mixup", "0.2", "--teacher-photos", str(photos)]
    assert finetune(*options, out="whole") == 0
    part = Training._micro_batch

    def stopped(self, *given):
        part(self, *given)
        self.asked_to_stop = self.state is not None and (self.progress.epoch, self.progress.step) == (1, 2)

    monkeypatch.setattr(Training, "_micro_batch", stopped)
    assert finetune(*options) == 130
    monkeypatch.setattr(Training, "_micro_batch", part)
    done = torch.load(tmp_path / "out" / "unfinished" / "state.pt", weights_only=True)["progress"]
    assert (done["epoch"], done["step"]) == (1, 2)

    moved = (photos / "deep" / "3.png").rename(photos / "deep" / "new.png")
    assert finetune(*options, "--resume") == 1
    assert "began with other photos: go on as it began, or choose another folder." in capsys.readouterr().err
    moved.rename(photos / "deep" / "3.png")
    assert finetune(*options, "--resume") == 0
    whole, resumed = weights(tmp_path / "whole"), weights(tmp_path / "out")
    assert all(torch.equal(whole[name], resumed[name]) for name in whole)


def test_what_cannot_keep_classes_gets_a_sentence(finetune, base, discs, stripes, tmp_path, tiny_config, capsys):
    headless = vit.Classifier(vit.ViT(replace(tiny_config, classes=0)), [], vit.Preprocessing((32, 32)))
    vit.save(headless, tmp_path / "headless")
    other = vit.Preprocessing((32, 32), mean=(0.4, 0.4, 0.4), std=(0.2, 0.2, 0.2))
    vit.save(vit.Classifier(vit.ViT(tiny_config), ["a", "b", "c"], other), tmp_path / "other")
    narrow = vit.Classifier(vit.ViT(replace(tiny_config, layers=1)), KEPT, vit.Preprocessing((32, 32)))
    vit.save(narrow, tmp_path / "narrow")
    (tmp_path / "empty").mkdir()
    (tmp_path / "empty" / "note.txt").write_text("no photo")
    start = ["finetune", str(discs), "--base", str(base), "--out", str(tmp_path / "out"), *QUICK]
    photos = "--teacher-photos is a folder of photos without labels."
    refused = {
        f"{tmp_path / 'headless'} knows no classes that could be kept: leave --keep-classes out.": lambda: finetune(
            base=tmp_path / "headless"
        ),
        "--teacher-photos is for --keep-classes: add that, or leave it out.": lambda: main(
            [*start, "--teacher-photos", str(stripes)]
        ),
        "--teacher is for --keep-classes: add that, or leave it out.": lambda: main([*start, "--teacher", str(base)]),
        f"There are no photos in {str(tmp_path / 'empty')!r}: {photos}": lambda: finetune(
            "--teacher-photos", str(tmp_path / "empty")
        ),
        f"There is no folder {str(tmp_path / 'none')!r}: {photos}": lambda: finetune(
            "--teacher-photos", str(tmp_path / "none")
        ),
        "A model from scratch has no classes to keep: leave --keep-classes out.": lambda: finetune("--from-scratch"),
        f"{tmp_path / 'other'} sees photos in another way than the base (mean (0.4, 0.4, 0.4), deviation (0.2, 0.2, "
        "0.2); the base (0.5, 0.5, 0.5), (0.5, 0.5, 0.5)): choose a teacher of the base's kind.": lambda: finetune(
            "--teacher", str(tmp_path / "other")
        ),
        "The teacher's weights are of another shape than the base's: leave --recall out.": lambda: finetune(
            "--teacher", str(tmp_path / "narrow"), "--recall", "0.5"
        ),
    }
    for sentence, ask in refused.items():
        assert ask() == 1
        assert capsys.readouterr().err == f"vit: {sentence}\n"
    assert not (tmp_path / "out").exists()
