import csv
import json
import os
import shutil
import signal
import subprocess
import sys
import time
from dataclasses import replace
from pathlib import Path

import pillow_heif
import pytest
import safetensors.torch
import torch
import torch.nn.functional as F
from accelerate import Accelerator
from PIL import Image

import vit
from benchmarks.material import lay_out
from vit.__main__ import main
from vit.finetune.recipe import Recipe
from vit.finetune.run import calibrate, evaluate
from vit.finetune.sources import open_data
from vit.finetune.start import Run, start

pillow_heif.register_heif_opener()

ROOT = Path(__file__).resolve().parents[1]
QUICK = ["--workers", "0"]
ALL = ["--train", "all", "--batch-size", "16"]


@pytest.fixture
def finetune(tiny_base, discs, tmp_path):
    """Runs the command on the discs; the exit code."""

    def run(*arguments, data=discs, out="out", base=tiny_base):
        return main(["finetune", str(data), "--base", str(base), "--out", str(tmp_path / out), *QUICK, *arguments])

    return run


def weights(folder):
    """The model's own parameters in a folder."""
    state = safetensors.torch.load_file(folder / "model.safetensors")
    return {name: tensor for name, tensor in state.items() if not name.startswith("training_features.")}


def wait_for(file, process):
    end = time.monotonic() + 120
    while not file.exists():
        assert process.poll() is None and time.monotonic() < end, f"there never was {file}"
        time.sleep(0.01)


def test_a_head_is_trained_and_a_folder_is_written_that_load_takes(finetune, tiny_base, discs, tmp_path, capsys):
    assert finetune() == 0
    out = tmp_path / "out"
    written = {path.name for path in out.iterdir()} - {"most_wrong.png", "labels_to_check.png"}
    assert written == {"model.safetensors", "config.json", "README.md", "history.json", "evaluation.json"} | {
        "curves.png",
        "confusion.png",
        "photos.csv",
    }
    tuned, base = vit.load(out), vit.load(tiny_base)
    assert tuned.labels == ["blue disc", "green disc", "red disc"] and tuned.preprocessing == base.preprocessing
    changed = {name for name, tensor in weights(out).items() if not torch.equal(tensor, weights(tiny_base)[name])}
    assert changed == {"head.weight", "head.bias"}

    right = sum(
        tuned.predict(file, 1)[0][0] == file.parent.name.replace("_", " ") for file in discs.glob("test/*/*.png")
    )
    assert json.loads((out / "evaluation.json").read_text())["correct"] == right
    assert f"{right}/24" in capsys.readouterr().out
    card = (out / "README.md").read_text()
    assert f"| top-1 | {right} of 24 ({right / 24:.1%}) |" in card
    assert "72 photos to learn from, 0 held out, 24 to test, 0 left out" in card
    history = json.loads((out / "history.json").read_text())
    assert [row["strength"] for row in history] == [10**power for power in range(3, 3 - len(history), -1)]
    assert all(row["photos"] == 72 for row in history)


def test_a_call_from_python_leaves_a_finished_folder(tiny_base, discs, tmp_path):
    from vit.finetune import finetune

    out = tmp_path / "out"
    seen = []
    run = Run(str(discs), str(tiny_base), Recipe.of("head"), workers=0)
    result = finetune(run, out, on_row=seen.append)
    assert seen == result.history and not (out / "unfinished").exists()
    assert f"{result.test.correct} of 24" in (out / "README.md").read_text()
    assert vit.load(out).labels[0] == "blue disc"


def test_all_weights_are_trained(finetune, tiny_base, tmp_path):
    assert finetune(*ALL, "--epochs", "2", "--learning-rate", "3e-3") == 0
    before, after = weights(tiny_base), weights(tmp_path / "out")
    assert all(not torch.equal(after[name], before[name]) for name in before)
    assert "its head alone, on the frozen base" in (tmp_path / "out" / "README.md").read_text()


def test_what_was_learnt_is_blended_with_where_it_started(finetune, tmp_path):
    """Of three runs that differ in nothing else, one lies on the line between the others."""
    for blend in ("0", "0.25", "1"):
        options = [*ALL, "--epochs", "2", "--learning-rate", "3e-3", "--blend", blend]
        assert finetune(*options, out=blend) == 0
    start, between, end = (weights(tmp_path / blend) for blend in ("0", "0.25", "1"))
    for name in start:
        torch.testing.assert_close(between[name], 0.75 * start[name] + 0.25 * end[name])
        assert not torch.equal(start[name], end[name])


def test_a_model_learns_discs_from_scratch(tmp_path, discs, monkeypatch, tiny_config):
    """The largest share by chance is 8 of 24."""
    monkeypatch.setattr(
        vit.ViTConfig, "of", lambda name, **options: vit.ViTConfig(**{**tiny_config.to_dict(), **options})
    )
    plain = ["--rand-augment", "0", "--mixup", "0", "--ema", "0"]  # the colour is what tells the classes
    options = ["--from-scratch", "--epochs", "10", "--learning-rate", "3e-3", "--held-out", "0", *plain, *QUICK]
    assert main(["finetune", str(discs), "--out", str(tmp_path / "out"), *options]) == 0
    assert json.loads((tmp_path / "out" / "evaluation.json").read_text())["correct"] >= 18
    assert "held_out" not in json.loads((tmp_path / "out" / "history.json").read_text())[0]


def test_one_seed_is_one_result_and_another_is_another(finetune, tmp_path):
    for out, seed in (("a", "1"), ("b", "1"), ("c", "2")):
        assert finetune(*ALL, "--epochs", "1", "--seed", seed, out=out) == 0
    a, b, c = (weights(tmp_path / out) for out in "abc")
    assert all(torch.equal(a[name], b[name]) for name in a)
    assert not torch.equal(a["head.weight"], c["head.weight"])


def test_a_killed_run_is_resumed_to_the_same_result(finetune, tiny_base, discs, tmp_path):
    """A real process, killed in the middle with no warning."""
    options = [*ALL, "--epochs", "6"]
    assert finetune(*options, out="whole") == 0
    command = [sys.executable, "-m", "vit", "finetune", discs, "--base", tiny_base, "--out", tmp_path / "out"]
    process = subprocess.Popen(
        [*map(str, command), *QUICK, *options],
        cwd=ROOT,
        env={**os.environ, "OMP_NUM_THREADS": "2"},
        stderr=subprocess.PIPE,
    )
    state = tmp_path / "out" / "unfinished" / "state.pt"
    wait_for(state, process)
    process.send_signal(signal.SIGKILL)
    process.wait()
    process.stderr.close()
    assert not (tmp_path / "out" / "model.safetensors").exists()
    done = torch.load(state, weights_only=True)["progress"]["epoch"]
    assert 0 < done < 6

    assert finetune(*options, "--resume") == 0
    whole, resumed = weights(tmp_path / "whole"), weights(tmp_path / "out")
    assert all(torch.equal(whole[name], resumed[name]) for name in whole)
    assert not state.parent.exists()


@pytest.mark.parametrize("workers", ["0", "1"])
def test_ctrl_c_says_how_to_go_on(tiny_base, discs, tmp_path, workers):
    """As a terminal sends it: to the whole group of processes."""
    command = [sys.executable, "-m", "vit", "finetune", discs, "--base", tiny_base, "--out", tmp_path / "out"]
    options = [*ALL, "--epochs", "500", "--workers", workers]
    process = subprocess.Popen(
        [*map(str, command), *options], cwd=ROOT, stderr=subprocess.PIPE, text=True, start_new_session=True
    )
    wait_for(tmp_path / "out" / "unfinished" / "state.pt", process)
    os.killpg(process.pid, signal.SIGINT)
    _, error = process.communicate(timeout=60)
    assert process.returncode == 130
    assert error.endswith("vit: Stopped. Run the same command again with --resume to go on.\n")
    assert "Traceback" not in error


def test_ctrl_c_before_anything_was_begun_says_so(finetune, monkeypatch, capsys):
    from vit.finetune import run

    monkeypatch.setattr(run, "start", lambda *given: (_ for _ in ()).throw(KeyboardInterrupt))
    assert finetune() == 130
    assert capsys.readouterr().err == "vit: Stopped. Run the same command again to go on.\n"


def test_nothing_is_overwritten_and_a_run_goes_on_as_it_began(finetune, tmp_path, capsys, monkeypatch):
    from vit.finetune import run

    assert finetune("--resume") == 1
    assert "There is no unfinished run in" in capsys.readouterr().err
    real = run._train_all
    monkeypatch.setattr(run, "_train_all", lambda *given: (_ for _ in ()).throw(KeyboardInterrupt))
    finetune(*ALL, "--epochs", "1")
    monkeypatch.setattr(run, "_train_all", real)
    capsys.readouterr()
    assert finetune(*ALL, "--epochs", "1") == 1
    assert "holds an unfinished run: go on with --resume, or choose another folder." in capsys.readouterr().err
    assert finetune(*ALL, "--epochs", "2", "--resume") == 1
    assert "began with another epochs (1, now 2): go on as it began" in capsys.readouterr().err
    assert finetune(*ALL, "--epochs", "1", "--resume") == 0
    capsys.readouterr()
    assert finetune() == 1
    assert "is not empty: choose another, so that nothing is overwritten." in capsys.readouterr().err


@pytest.mark.parametrize("train", ["all", "head"])
def test_two_processes_give_the_result_of_one(finetune, tiny_base, discs, tmp_path, train):
    """Started as torchrun starts them where there is no GPU; they share each batch."""
    options = [] if train == "head" else [*ALL, "--epochs", "2", "--learning-rate", "3e-3"]
    assert finetune(*options, out="one") == 0
    launch = [sys.executable, "-m", "torch.distributed.run", "--standalone", "--nproc-per-node", "2"]
    command = ["-m", "vit", "finetune", discs, "--base", tiny_base, "--out", tmp_path / "two", *QUICK, *options]
    environment = {**os.environ, "CUDA_VISIBLE_DEVICES": "", "XDG_CACHE_HOME": str(tmp_path / "other")}
    run = subprocess.run(
        [*launch, *map(str, command)], cwd=ROOT, env=environment, capture_output=True, text=True, timeout=300
    )
    assert run.returncode == 0, run.stderr[-2000:]
    assert run.stdout.count("Written to") == 1
    one, two = weights(tmp_path / "one"), weights(tmp_path / "two")
    for name in one:
        if name.endswith("qkv.bias"):  # a key's bias changes no attention: its gradient is rounding error
            one[name], two[name] = (torch.cat([bias[:64], bias[128:]]) for bias in (one[name], two[name]))
        torch.testing.assert_close(two[name], one[name], atol=5e-5, rtol=0)
    rows = [json.loads((tmp_path / out / "history.json").read_text()) for out in ("one", "two")]
    assert [row["correct"] for row in rows[0]] == [row["correct"] for row in rows[1]]


def test_unreadable_photos_are_named_skipped_and_counted(finetune, discs, tmp_path, capsys):
    data = shutil.copytree(discs, tmp_path / "data")
    (data / "train" / "red_disc" / "0.png").write_text("hello")
    (data / "test" / "blue_disc" / "1.png").write_bytes((data / "test" / "blue_disc" / "1.png").read_bytes()[:60])
    assert finetune(data=data) == 0
    error = capsys.readouterr().err
    assert f"vit: {data / 'train' / 'red_disc' / '0.png'}: '0.png' is not a photo that can be read" in error
    assert "vit: 1 of 72 photos were skipped." in error and "vit: 1 of 24 photos were skipped." in error
    assert "23 to test, 2 left out: unreadable, or there already." in (tmp_path / "out" / "README.md").read_text()


def test_every_photo_is_accounted_for(finetune, discs, tmp_path, capsys):
    """A copy, one photo in two classes, a test photo among the others, one that cannot be read, small ones, a HEIC."""
    data = shutil.copytree(discs, tmp_path / "data")
    red, blue = data / "train" / "red_disc", data / "train" / "blue_disc"
    shutil.copy(red / "0.png", red / "copy.png")
    shutil.copy(red / "1.png", blue / "again.png")
    shutil.copy(data / "test" / "blue_disc" / "2.png", blue / "tested.png")
    (red / "2.png").write_text("hello")
    Image.open(red / "3.png").save(red / "3.heic")
    (red / "3.png").unlink()
    for other in ("valid/red_disc/1.png", "train/loose.png", "train/red_disc/notes.txt", "train/red_disc/.hidden"):
        (data / other).parent.mkdir(parents=True, exist_ok=True)
        (data / other).touch()
    for number, side in ((4, 20), (5, 31)):
        Image.open(red / f"{number}.png").resize((side, 90)).save(red / f"{number}.png")
    assert finetune(data=data) == 0
    said = capsys.readouterr()
    assert (
        "3 classes, 75 photos to learn from (24 of green disc to 26 of blue disc); 24 to test. Their shorter side has "
        "20 to 44 pixels, in the middle 44; 2 are smaller than the model's image, 32 pixels." in said.out
    )
    others = "train/loose.png, train/red_disc/notes.txt, valid/red_disc/1.png"
    assert f"\nFiles that are no photos of a class, and do not count: {others}.\n" in said.out
    assert "vit: 4 of 74 photos do not count." in said.err
    with open(tmp_path / "out" / "photos.csv", newline="") as file:
        rows = {row["file"]: row for row in csv.DictReader(file)}
    files = {path.relative_to(data).as_posix() for path in data.rglob("*.*") if path.stat().st_size}
    assert set(rows) == files and rows["train/red_disc/3.heic"]["part"] == "learnt"
    left = {name: row["note"] for name, row in rows.items() if row["part"] == "left out"}
    assert set(left) == {
        "train/blue_disc/again.png",
        "train/blue_disc/tested.png",
        "train/red_disc/1.png",
        "train/red_disc/2.png",
        "train/red_disc/copy.png",
    }
    assert "is not a photo" in left["train/red_disc/2.png"] and "'red disc'" in left["train/blue_disc/again.png"]
    assert "Of photos that are the same, or nearly" in (tmp_path / "out" / "README.md").read_text()
    tuned = vit.load(tmp_path / "out")
    row = rows["test/green_disc/3.png"]
    answer = tuned.answer(data / "test" / "green_disc" / "3.png", 1)
    assert (row["label"], row["answer"]) == ("green disc", answer.predictions[0][0])
    assert float(row["probability"]) == pytest.approx(answer.predictions[0][1], abs=1e-3)
    assert float(row["familiarity"]) == pytest.approx(answer.familiarity, abs=0.05)
    assert main(["predict", str(red / "3.heic"), "--model", str(tmp_path / "out"), "--precision", "float32"]) == 0
    assert f"{tuned.predict(red / '3.heic', 1)[0][1]:.1%}" in capsys.readouterr().out


def test_a_class_without_readable_photos_gets_a_sentence(finetune, discs, tmp_path, capsys):
    data = shutil.copytree(discs, tmp_path / "data")
    for file in (data / "train" / "red_disc").iterdir():
        file.write_text("hello")
    assert finetune(data=data) == 1
    error = capsys.readouterr().err
    assert "24 of 72 photos were skipped, 14 of them not named here." in error
    assert error.endswith("vit: None of the photos of 'red disc' can be read: mend them, or remove the class.\n")


def test_bad_data_gets_a_sentence_and_leaves_no_folder(finetune, discs, tmp_path, capsys):
    one = tmp_path / "one"
    shutil.copytree(discs / "train" / "red_disc", one / "red_disc")
    for data, sentence in (
        (one, "There is one class only, 'red disc': a classifier needs two or more."),
        (tmp_path / "nothing", f"There is no folder '{tmp_path / 'nothing'}'"),
    ):
        assert finetune(data=data) == 1
        assert sentence in capsys.readouterr().err
    assert not (tmp_path / "out").exists()


def test_data_without_test_photos_gives_up_a_share(finetune, discs, tmp_path):
    assert finetune("--test", "0.25", data=discs / "train") == 0
    assert "54 photos to learn from, 0 held out, 18 to test" in (tmp_path / "out" / "README.md").read_text()
    assert json.loads((tmp_path / "out" / "evaluation.json").read_text())["total"] == 18


def test_a_head_without_test_photos_is_cross_validated_and_learns_from_all(finetune, discs, tmp_path, capsys):
    assert finetune(data=discs / "train") == 0
    measured = json.loads((tmp_path / "out" / "evaluation.json").read_text())
    low, high = measured["interval"]
    assert measured["total"] == 72 and low < measured["correct"] / 72 < high
    said = capsys.readouterr().out
    assert "answered by a head that had not learnt from it (cross-validation):" in said
    assert f"{measured['correct']}/72" in said and f"(95 % sure: {low:.1%} to {high:.1%})" in said
    card = (tmp_path / "out" / "README.md").read_text()
    assert "72 photos to learn from, 0 held out, 0 to test" in card and "| | cross-validated |" in card
    with open(tmp_path / "out" / "photos.csv", newline="") as file:
        rows = list(csv.DictReader(file))
    ranks = sorted(round(72 * float(row["familiarity"])) for row in rows)
    assert ranks == list(range(72))  # each among the others
    assert [row["familiarity"] for row in measured["photos"]] == [float(row["familiarity"]) for row in rows]


def test_the_card_leads_from_a_confusion_to_its_photos(finetune, discs, tmp_path):
    """Seven blue discs among the red ones, in another folder: more than a line of the card names."""
    data = shutil.copytree(discs / "train", tmp_path / "data")
    (data / "red_disc" / "odd|ones").mkdir()
    wrong = [data / "red_disc" / "odd|ones" / f"{number}.png" for number in range(7)]
    for file in wrong:
        shutil.move(data / "blue_disc" / file.name, file)
    assert finetune(data=data) == 0
    measured = json.loads((tmp_path / "out" / "evaluation.json").read_text())
    counted = {(row["label"], row["answer"]): len(row["files"]) for row in measured["confusions"]}
    labels, matrix = measured["labels"], measured["confusion"]
    assert counted == {
        (true, answer): matrix[i][j]
        for i, true in enumerate(labels)
        for j, answer in enumerate(labels)
        if i != j and matrix[i][j]
    }
    first = measured["confusions"][0]
    assert (first["label"], first["answer"]) == ("red disc", "blue disc")
    assert {f"red_disc/odd|ones/{file.name}" for file in wrong} <= set(first["files"])
    named = ", ".join(f"`{name}`".replace("|", r"\|") for name in first["files"][:5])
    line = f"| red disc | blue disc | {len(first['files'])} | {named}, and {len(first['files']) - 5} more |"
    assert line in (tmp_path / "out" / "README.md").read_text().splitlines()


def test_the_share_to_test_is_of_photos_that_can_be_read(finetune, discs, tmp_path):
    """Of the 24 red discs 14 are left: a fifth is three, and none of them is unreadable."""
    data = shutil.copytree(discs / "train", tmp_path / "data")
    for number in range(10):
        (data / "red_disc" / f"{number}.png").write_text("hello")
    assert finetune(*ALL, "--epochs", "1", data=data) == 0
    measured = json.loads((tmp_path / "out" / "evaluation.json").read_text())
    assert [row["total"] for row in measured["per_class"]] == [5, 5, 3]


def test_a_share_held_out_of_a_head_gets_a_sentence(finetune, capsys):
    assert finetune("--held-out", "0.1") == 1
    assert "A head is cross-validated, and no photo held out for good: leave --held-out out." in capsys.readouterr().err


def test_where_memory_runs_out_a_smaller_batch_is_named(discs, tmp_path):
    """A real process that may have a little more memory than it takes to start."""
    script = """
import resource, sys, torch
from benchmarks.material import lay_out
from vit.__main__ import main
from vit.finetune import run

train = run._train_all
def limited(*given):
    used = int(open("/proc/self/statm").read().split()[0]) * resource.getpagesize()
    resource.setrlimit(resource.RLIMIT_AS, (used + (200 << 20), resource.RLIM_INFINITY))
    return train(*given)
run._train_all = limited
sys.exit(main(sys.argv[1:]))
"""
    options = ["--from-scratch", "S/16", "--batch-size", "64", "--workers", "0", "--epochs", "1"]
    command = [sys.executable, "-c", script, "finetune", str(discs), "--out", str(tmp_path / "out"), *options]
    run = subprocess.run(command, cwd=ROOT, capture_output=True, text=True)
    assert run.returncode == 1
    assert "vit: The memory does not hold 64 photos at a time: try --batch-size 32, or --accumulate 2" in run.stderr
    assert "Traceback" not in run.stderr
    assert not (tmp_path / "out").exists()  # so that the same folder may be named again


def test_half_precision_is_half_the_size_and_is_what_was_measured(finetune, tmp_path, discs):
    assert finetune() == 0 and finetune("--half", out="half") == 0
    whole, half = weights(tmp_path / "out"), weights(tmp_path / "half")
    assert all(torch.equal(half[name], whole[name].half()) for name in whole)
    classifier = vit.load(tmp_path / "half")
    measured = json.loads((tmp_path / "half" / "evaluation.json").read_text())
    evaluation, *_ = evaluate(classifier, open_data(discs).test, Accelerator(cpu=True), 0)
    assert evaluation.calibration_error == pytest.approx(measured["calibration_error"], abs=1e-6)


def test_probabilities_are_made_right_by_one_temperature():
    """The answers stay, the weights keep their direction, and neighbouring temperatures are no better."""
    targets = torch.arange(300) % 3
    rows = F.one_hot(targets, 5) + torch.randn(300, 5)
    head = torch.nn.Linear(5, 3)
    with torch.no_grad():
        head.weight.copy_(5 * torch.eye(3, 5))  # far too sure
    before, logits = head.weight.clone(), head(rows).detach()
    temperature = calibrate(head, logits, targets)
    assert temperature > 1.5
    torch.testing.assert_close(head.weight * temperature, before)
    after = head(rows).detach()
    torch.testing.assert_close(after * temperature, logits)
    loss = F.cross_entropy(after, targets)
    assert all(loss <= F.cross_entropy(after * factor, targets) for factor in (0.9, 1.1))
    assert calibrate(head, logits[:20], targets[:20]) == 1


def test_a_head_costs_one_pass_of_the_backbone_over_each_photo(finetune, tiny_base, monkeypatch, tmp_path):
    """Training, watching, calibrating and testing together."""
    seen = []
    forward = vit.model.PatchEmbedding.forward
    monkeypatch.setattr(
        vit.model.PatchEmbedding, "forward", lambda self, images: seen.append(len(images)) or forward(self, images)
    )
    assert finetune() == 0
    assert sum(seen) == 72 + 24
    assert finetune("--balance", "0.5", out="again") == 0
    assert sum(seen) == 72 + 24


def test_a_base_that_knows_the_classes_keeps_what_it_knows(tiny_base, discs, tmp_path):
    """The head starts from the base's own, and the penalty pulls it there."""
    data = shutil.copytree(discs, tmp_path / "data")
    for part in ("train", "test"):
        for old, new in (("blue_disc", "sushi"), ("green_disc", "pizza")):
            (data / part / old).rename(data / part / new)
        shutil.rmtree(data / part / "red_disc")
    begin = start(Run(str(data), str(tiny_base), Recipe.of("head")))
    assert torch.equal(begin.classifier.model.head.weight, weights(tiny_base)["head.weight"][[0, 2]])
    assert begin.classifier.labels == ["pizza", "sushi"]  # of pizza, steak, sushi


def test_accelerate_launches_it_with_mixed_precision_and_accumulation(finetune, tiny_base, discs, tmp_path):
    """Half the digits, nearly the same result."""
    options = [*ALL, "--epochs", "2"]
    assert finetune(*options, out="one") == 0
    launch = ["accelerate.commands.launch", "--cpu", "--num_processes", "1", "--mixed_precision", "bf16"]
    command = ["--gradient_accumulation_steps", "2", "-m", "vit", "finetune", discs, "--base", tiny_base]
    environment = {**os.environ, "ONEDNN_MAX_CPU_ISA": "AVX2"}  # some machines announce bfloat16 and do not have it
    run = subprocess.run(
        [sys.executable, "-m", *launch, *map(str, command), "--out", str(tmp_path / "two"), *QUICK, *options],
        cwd=ROOT,
        env=environment,
        capture_output=True,
        text=True,
        timeout=300,
    )
    assert run.returncode == 0, run.stderr[-2000:]
    rows = [json.loads((tmp_path / out / "history.json").read_text()) for out in ("one", "two")]
    for one, two in zip(*rows):
        assert one["loss"] != two["loss"] and one["loss"] == pytest.approx(two["loss"], abs=0.02)


@pytest.mark.parametrize("option", ["--mixup", "--layer-decay", "--crop", "--learning-rate"])
def test_choices_that_a_head_does_not_have_get_a_sentence(finetune, capsys, option):
    assert finetune(option, "0.5") == 1
    assert capsys.readouterr().err.endswith("in training the head alone: leave it out.\n")


def test_an_upload_that_could_not_be_is_refused_before_the_work(finetune, capsys, monkeypatch, tmp_path):
    monkeypatch.delenv("HF_TOKEN", raising=False)
    monkeypatch.setenv("HF_TOKEN_PATH", str(tmp_path / "none"))
    monkeypatch.setattr("huggingface_hub.constants.HF_TOKEN_PATH", str(tmp_path / "none"))
    for name, sentence in (("my-vit", "give one such as 'you/my-vit'"), ("me/my-vit", "run 'hf auth login'")):
        assert finetune("--push-to-hub", name) == 1
        assert sentence in capsys.readouterr().err
    assert not (tmp_path / "out").exists()


def test_photos_that_changed_are_told_when_a_run_is_resumed(finetune, discs, tmp_path, capsys, monkeypatch):
    from vit.finetune import run

    data = shutil.copytree(discs, tmp_path / "data")
    real = run._train_all
    monkeypatch.setattr(run, "_train_all", lambda *given: (_ for _ in ()).throw(KeyboardInterrupt))
    assert finetune(*ALL, data=data) == 130
    monkeypatch.setattr(run, "_train_all", real)
    (data / "train" / "red_disc" / "3.png").rename(data / "train" / "red_disc" / "new.png")
    assert finetune(*ALL, "--resume", data=data) == 1
    assert "began with other photos: go on as it began, or choose another folder." in capsys.readouterr().err


def test_a_base_without_a_classifier_gets_one(finetune, tiny_config, tmp_path):
    base = vit.Classifier(vit.ViT(replace(tiny_config, classes=0)), [], vit.Preprocessing((32, 32)))
    vit.save(base, tmp_path / "headless")
    assert finetune(base=tmp_path / "headless") == 0
    assert vit.load(tmp_path / "out").labels == ["blue disc", "green disc", "red disc"]


def test_a_distilled_base_keeps_its_token_and_loses_its_second_head(finetune, tiny_config, tmp_path):
    config = replace(tiny_config, distillation=True, distillation_head=True)
    vit.save(vit.Classifier(vit.ViT(config), ["a", "b", "c"], vit.Preprocessing((32, 32))), tmp_path / "deit")
    assert finetune(*ALL, "--epochs", "1", base=tmp_path / "deit") == 0
    tuned = vit.load(tmp_path / "out").model
    assert tuned.distillation_token is not None and tuned.distillation_head is None


def test_tensorboard_gets_the_figures_of_the_epochs(finetune, tmp_path):
    event_accumulator = pytest.importorskip("tensorboard.backend.event_processing.event_accumulator")
    assert finetune(*ALL, "--epochs", "3", "--held-out", "0.1", "--log-to", "tensorboard") == 0
    events = event_accumulator.EventAccumulator(str(tmp_path / "out" / "tensorboard"))
    events.Reload()
    assert len(list((tmp_path / "out" / "tensorboard").iterdir())) == 1
    history = json.loads((tmp_path / "out" / "history.json").read_text())
    for name, row in (("loss/train", lambda row: row["loss"]), ("loss/held out", lambda row: row["held_out"]["loss"])):
        assert [scalar.value for scalar in events.Scalars(name)] == pytest.approx([row(each) for each in history])


def test_trackio_gets_the_figures_of_the_head(finetune, tmp_path, monkeypatch):
    """What is given to its `log`, which is replaced here: its run is begun and ended by its own functions."""
    monkeypatch.setenv("TRACKIO_DIR", str(tmp_path / "trackio"))
    rows = []
    monkeypatch.setattr("trackio.log", lambda values, step: rows.append((step, values)))
    assert finetune("--log-to", "trackio") == 0
    history = json.loads((tmp_path / "out" / "history.json").read_text())
    assert [values["loss/cross-validated"] for _, values in rows] == pytest.approx([row["loss"] for row in history])
    assert [step for step, _ in rows] == list(range(len(history)))


def test_evaluate_counts_what_predict_answers(finetune, discs, tmp_path, capsys):
    assert finetune() == 0
    capsys.readouterr()
    assert main(["evaluate", str(discs), "--model", str(tmp_path / "out"), "--out", str(tmp_path / "report")]) == 0
    text = capsys.readouterr().out
    measured = json.loads((tmp_path / "out" / "evaluation.json").read_text())
    again = json.loads((tmp_path / "report" / "evaluation.json").read_text())
    assert again.pop("calibration_error") == pytest.approx(measured.pop("calibration_error"), abs=1e-6)
    for one, other in zip(again.pop("photos"), measured.pop("photos"), strict=True):
        assert one.pop("probability") == pytest.approx(other.pop("probability"), abs=2e-4) and one == other
    assert again == measured and "has learnt from" not in text
    assert f"{measured['correct']}/24" in text and (tmp_path / "report" / "confusion.png").exists()
    data = shutil.copytree(discs, tmp_path / "data")
    (data / "train" / "red_disc" / "bad.png").write_text("hello")
    report = ["--part", "train", "--out", str(tmp_path / "report")]
    assert main(["evaluate", str(data), "--model", str(tmp_path / "out"), *report]) == 0
    with open(tmp_path / "report" / "photos.csv", newline="") as file:
        parts = {row["file"]: row["part"] for row in csv.DictReader(file)}
    assert len(parts) == 73 and parts["train/red_disc/bad.png"] == "left out"
    text = capsys.readouterr().out
    assert "/72" in text and "The model has learnt from 72 of these 73 photos: " in text


def test_evaluate_tells_a_model_of_other_classes(discs, tiny_base, capsys):
    assert main(["evaluate", str(discs), "--model", str(tiny_base)]) == 1
    assert "does not know the class 'blue disc' and 2 others" in capsys.readouterr().err


def test_wrong_options_get_a_sentence(finetune, capsys):
    assert finetune(*ALL, "--epochs", "0") == 1
    assert capsys.readouterr().err == "vit: epochs is 0, but must be at least 1.\n"
    with pytest.raises(SystemExit):
        finetune("--held-out", "1.5")
    assert "'1.5' is not a share from 0 up to 1" in capsys.readouterr().err


def test_a_head_on_a_trained_model_tells_the_photos_apart(real, tmp_path):
    lay_out(tmp_path / "photos")
    assert main(["finetune", str(tmp_path / "photos"), "--base", real.name, "--out", str(tmp_path / "out")]) == 0
    measured = json.loads((tmp_path / "out" / "evaluation.json").read_text())
    assert measured["total"] - measured["correct"] <= measured["total"] // 100
