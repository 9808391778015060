"""predict and explain over many photos: the answers of one by one, in one file, whoever shares the work."""

import csv
import json
import os
import shutil
import subprocess
import sys
from dataclasses import replace

import numpy as np
import pytest
from conftest import SKIMAGE
from PIL import Image
from serving import ROOT

import vit
from vit import many
from vit.__main__ import main
from vit.photos.examples import example_photos
from vit.photos.finding import find_photos

UNREADABLE = "'text.jpg' is not a photo that can be read: save it as JPEG, PNG or WebP."


@pytest.fixture
def folder(tmp_path, discs):
    """25 photos at two depths, one that cannot be read, and files that are none."""
    photos = shutil.copytree(discs / "train" / "red_disc", tmp_path / "photos" / "b")
    shutil.copy(SKIMAGE / "chelsea.png", photos.parent / "a.PNG")
    (photos.parent / "text.jpg").write_text("hello")
    (photos.parent / "notes.txt").write_text("hello")
    (photos.parent / ".hidden.jpg").write_text("hello")
    return photos.parent


def rows(file):
    if file.suffix == ".jsonl":
        return [json.loads(line) for line in file.read_text(encoding="utf-8").splitlines()]
    with file.open(newline="", encoding="utf-8") as opened:
        return list(csv.DictReader(opened))


def launch(*arguments):
    """The command in two processes, as torchrun starts them where there is no GPU."""
    run = [sys.executable, "-m", "torch.distributed.run", "--standalone", "--nproc-per-node", "2", "-m", "vit"]
    environment = {**os.environ, "CUDA_VISIBLE_DEVICES": ""}
    command = [*run, *map(str, arguments)]
    return subprocess.run(command, cwd=ROOT, env=environment, capture_output=True, text=True, timeout=300)


def test_folders_and_patterns_are_searched_and_files_stay_as_they_are(folder):
    inside = [str(folder / "a.PNG"), *sorted(str(path) for path in folder.glob("b/*.png")), str(folder / "text.jpg")]
    assert find_photos([str(folder)]) == inside and len(inside) == 26
    assert find_photos([f"{folder}/b/1*.png"]) == [path for path in inside if path.startswith(f"{folder}/b/1")]
    assert find_photos([f"{folder}/*"]) == find_photos([f"{folder}/**"]) == inside
    (folder / "[1].jpg").touch()
    assert find_photos([f"{folder}/[1].jpg", "missing.jpg"]) == [f"{folder}/[1].jpg", "missing.jpg"]


@pytest.mark.parametrize("command", ["predict", "explain"])
@pytest.mark.parametrize("place", ["empty", "photos/*.webp"])
def test_where_nothing_is_found_there_is_one_sentence(tmp_path, folder, tiny_base, capsys, command, place):
    (tmp_path / "empty").mkdir()
    given = str(tmp_path / place)
    assert main([command, given, "--model", str(tiny_base), "--out", str(tmp_path / "out.csv")]) == 1
    assert (
        capsys.readouterr().err == f"vit: There are no photos in {given!r}: name photos, or folders that hold some.\n"
    )
    assert not (tmp_path / "out.csv").exists()


def test_batches_give_the_answers_of_one_by_one(real):
    photos = [str(photo) for photo in example_photos()] * 2
    for known in (real, vit.load()):  # the second knows what is familiar
        found = list(many.answers(known, photos))
        assert [photo for photo, _ in found] == photos
        for photo, answer in found[:14]:
            alone = known.answer(photo)
            assert [label for label, _ in answer.predictions] == [label for label, _ in alone.predictions]
            assert [value for _, value in answer.predictions] == pytest.approx(
                [value for _, value in alone.predictions], abs=1e-5
            )
            assert answer.familiarity == pytest.approx(alone.familiarity, abs=2e-3)  # a share of held-out photos


def test_photos_of_different_shapes_share_a_batch(tiny_base, tmp_path):
    """Without a crop, what the model sees has the photo's shape; one that patches do not divide loses no other."""
    classifier = replace(vit.load(tiny_base), preprocessing=vit.Preprocessing(32))
    sizes = [(64, 32), (32, 64), (32, 32), (64, 32), (33, 32), (32, 32)] * 3
    photos = [str(tmp_path / f"{number}.png") for number in range(len(sizes))]
    for number, (photo, size) in enumerate(zip(photos, sizes)):
        Image.new("RGB", size, (12 * number, 200 - 9 * number, 90)).save(photo)
    for (photo, answer), size in zip(many.answers(classifier, photos), sizes, strict=True):
        if size == (33, 32):
            assert answer.startswith("Patches of 8 × 8 pixels do not divide an image of 32 × 33")
        else:
            alone = dict(classifier.predict(photo))
            assert dict(answer.predictions) == pytest.approx(alone, abs=1e-5)


@pytest.mark.parametrize("ending", [".csv", ".jsonl"])
def test_a_file_has_a_row_for_each_photo(folder, tiny_base, tmp_path, capsys, ending):
    out = tmp_path / "new" / f"answers{ending}"
    exact = ["--model", str(tiny_base), "--precision", "float32"]
    assert main(["predict", str(folder), *exact, "--top-k", "2", "--out", str(out)]) == 1
    said = capsys.readouterr()
    assert said.out == f"Written to {out}\n"
    assert "26/26" in said.err and f"vit: 1 of 26 photos could not be used: {out} says why." in said.err
    written, classifier = rows(out), vit.load(tiny_base)
    assert list(written[0]) == ["photo", "label", "probability", "label_2", "probability_2", "familiarity", "error"]
    assert [row["photo"] for row in written] == find_photos([str(folder)])
    for row in written[:-1]:
        (first, probability), (second, other) = classifier.predict(row["photo"], 2)
        assert (row["label"], row["label_2"]) == (first, second) and not row["error"] and not row["familiarity"]
        assert [float(row["probability"]), float(row["probability_2"])] == pytest.approx([probability, other], abs=1e-5)
    assert written[-1]["error"] == UNREADABLE and not written[-1]["label"]


def test_what_is_familiar_stands_in_the_file(tmp_path):
    photos = [str(photo) for photo in example_photos()[:3]]
    assert main(["predict", *photos, "--out", str(tmp_path / "out.jsonl")]) == 0
    found = [row["familiarity"] for row in rows(tmp_path / "out.jsonl")]
    assert found == pytest.approx([vit.load().familiarity(photo) for photo in photos], abs=2e-3)


def test_another_ending_gets_a_sentence_before_the_work(folder, capsys, tmp_path):
    out = tmp_path / "answers.xlsx"
    assert main(["predict", str(folder), "--model", "not/a/model", "--out", str(out)]) == 1
    said = f"vit: {str(out)!r} should end in .csv or .jsonl: the ending says how answers are written.\n"
    assert capsys.readouterr().err == said and not out.exists()


def test_two_processes_write_the_file_of_one(folder, tiny_base, tmp_path):
    given = ["predict", str(folder), "--model", str(tiny_base), "--precision", "float32", "--out"]
    assert main([*given, str(tmp_path / "one.jsonl")]) == 1
    run = launch(*given, tmp_path / "two.jsonl")
    assert run.returncode == 0, "torchrun would print a traceback and call it failed"
    assert run.stdout.count("Written to") == 1
    assert run.stderr.count("1 of 26 photos could not be used") == 1
    for one, two in zip(rows(tmp_path / "one.jsonl"), rows(tmp_path / "two.jsonl"), strict=True):
        assert two.keys() == one.keys() and two["error"] == one["error"]
        assert {name: value for name, value in two.items() if value} == pytest.approx(
            {name: value for name, value in one.items() if value}, abs=1e-5
        )


def test_two_processes_explain_a_folder(folder, tiny_base, tmp_path):
    given = [
        "explain",
        f"{folder}/b/1*.png",
        str(folder / "text.jpg"),
        "--arrays-only",
        "--model",
        str(tiny_base),
        "--out",
    ]
    assert main([*given, str(tmp_path / "one")]) == 1
    run = launch(*given, tmp_path / "two")
    assert run.returncode == 0, run.stderr[-2000:]
    assert run.stdout.count(" → ") == 11 and "12/12" in run.stderr and run.stderr.count(UNREADABLE) == 1
    files = [sorted(path.relative_to(out) for path in out.rglob("*.*")) for out in (tmp_path / "one", tmp_path / "two")]
    assert files[0] == files[1]
    classifier = vit.load(tiny_base)
    for one, two in zip(*(rows(tmp_path / out / "answers.csv") for out in ("one", "two")), strict=True):
        assert (two["photo"], two["folder"], two["error"]) == (one["photo"], one["folder"], one["error"])
        if one["error"]:
            assert one["error"] == UNREADABLE and not one["folder"] and not one["label"]
            continue
        assert (tmp_path / "two" / two["folder"] / "maps.npz").exists()
        [(label, probability)] = classifier.predict(two["photo"], 1)
        assert two["label"] == label and float(two["probability"]) == pytest.approx(probability, abs=1e-5)
    for file in [file for file in files[0] if file.suffix == ".npz"]:
        one, two = (np.load(tmp_path / out / file) for out in ("one", "two"))
        for name in one:
            np.testing.assert_allclose(two[name], one[name], atol=1e-5, err_msg=f"{file} {name}")


def test_several_processes_without_accelerate_get_a_sentence(monkeypatch, tiny_base, folder, capsys):
    monkeypatch.setenv("WORLD_SIZE", "2")
    monkeypatch.setattr("vit.extras.find_spec", lambda package: None)
    assert main(["predict", str(folder), "--model", str(tiny_base)]) == 1
    said = "vit: Work in several processes needs more packages: run pip install 'vit-explorer[finetune]'.\n"
    assert capsys.readouterr().err == said
