"""Pictures checked by what is in their figures, files by reading them back."""

import json
import subprocess
import sys
from itertools import pairwise

import numpy as np
import pytest
import torch
from PIL import Image

from vit.finetune import report
from vit.finetune.data import Photos
from vit.finetune.evaluation import Evaluation


@pytest.fixture
def figures(monkeypatch):
    """The figures that are rendered, in order."""
    seen, render = [], report.render
    monkeypatch.setattr(report, "render", lambda figure: (seen.append(figure), render(figure))[1])
    return seen


def history_of(epochs, held_out=True):
    rows = []
    for epoch in range(1, epochs + 1):
        row = dict(epoch=epoch, loss=2 / epoch, correct=50 + epoch, photos=200, learning_rate=1e-3, seconds=1.5)
        rows.append({**row, "held_out": dict(loss=3 / epoch, correct=epoch, photos=120)} if held_out else row)
    return rows


def evaluation_of(answers, targets, labels):
    """The answers are given with the more probability the later they come."""
    logits = torch.zeros(len(answers), len(labels))
    logits[torch.arange(len(answers)), torch.tensor(answers)] = torch.linspace(2, 3, len(answers))
    return Evaluation(logits, torch.tensor(targets), labels)


@pytest.fixture
def pictures(tmp_path):
    """Four photos, each of one colour and another shape: wide, tall, square, and a strip a pixel high."""
    files = []
    for colour, size in (("red", (80, 40)), ("green", (30, 60)), ("blue", (50, 50)), ("black", (900, 1))):
        files.append(tmp_path / f"{colour}.png")
        Image.new("RGB", size, colour).save(files[-1])
    return Photos(files, [0, 0, 1, 1], ["a", "b"])


@pytest.mark.parametrize("epochs", [1, 2, 12, 100])
def test_curves_show_each_epoch_of_both_kinds_of_photos(figures, epochs):
    report.curves(history_of(epochs))
    loss, accuracy = figures[0].axes
    numbers = list(range(1, epochs + 1))
    for axes, title, expected in (
        (loss, "Loss", ([2 / n for n in numbers], [3 / n for n in numbers])),
        (accuracy, "Accuracy", ([(50 + n) / 200 for n in numbers], [n / 120 for n in numbers])),
    ):
        assert axes.get_title() == title
        assert [text.get_text() for text in axes.get_legend().get_texts()] == ["training photos", "held-out photos"]
        for line, values in zip(axes.lines, expected, strict=True):
            assert line.get_xdata().tolist() == numbers
            assert line.get_ydata().tolist() == pytest.approx(values)
        low, high = axes.get_xlim()
        ticks = [tick for tick in axes.get_xticks() if low <= tick <= high]
        assert ticks and all(tick in numbers for tick in ticks)  # no half epochs, and none before the first
        assert all(text.get_text().endswith("%") == (axes is accuracy) for text in axes.get_yticklabels())


def test_a_single_epoch_is_a_dot_that_can_be_seen(figures):
    picture = np.asarray(report.curves(history_of(1, held_out=False)))
    assert len(figures[0].axes[0].lines) == 1
    blue = (picture == (0, 0x72, 0xB2)).all(axis=2)
    assert blue[:, 240:340].sum() > 20 and blue[:, 800:900].sum() > 20  # in the middle, where no legend is


def test_curves_without_held_out_photos_have_one_line(figures):
    report.curves(history_of(3, held_out=False))
    assert [[line.get_label() for line in axes.lines] for axes in figures[0].axes] == [["training photos"]] * 2


@pytest.mark.parametrize("loss", [float("nan"), float("inf")])
@pytest.mark.filterwarnings("error")
def test_a_loss_that_is_no_number_is_left_out(loss):
    history = history_of(3, held_out=False)
    whole = report.curves(history)
    history[1]["loss"] = loss
    assert report.curves(history) != whole


def test_no_epoch_cannot_be_drawn():
    with pytest.raises(ValueError, match="at least one"):
        report.curves([])


def test_the_confusion_has_a_number_for_each_pair_and_colours_by_row(figures):
    report.confusion(evaluation_of([0, 0, 1, 1, 1, 2], [0, 0, 0, 0, 1, 1], ["a", "b", "$c$"]))
    axes = figures[0].axes[0]
    assert np.asarray(axes.images[0].get_array()).tolist() == [[0.5, 0.5, 0], [0, 0.5, 0.5], [0, 0, 0]]
    numbers = {(text.get_position()[1], text.get_position()[0]): text.get_text() for text in axes.texts}
    assert numbers == {(0, 0): "2", (0, 1): "2", (1, 1): "1", (1, 2): "1"}
    assert [text.get_text() for text in axes.get_yticklabels()] == ["a", "b", "$c$"]
    assert [text.get_text() for text in axes.get_xticklabels()] == ["a", "b", "$c$"]
    assert (axes.get_ylabel(), axes.get_xlabel(), axes.get_title()) == ("true class", "answer", "3 of 6 correct")


@pytest.mark.parametrize(
    "classes, label",
    [(2, "{}"), (3, "W" * 30 + "{}"), (20, "class {}"), (21, "a long label {}"), (101, "W" * 30 + "{}")],
)
def test_nothing_of_a_confusion_is_cut_off_and_no_labels_overlap(figures, classes, label):
    labels = [label.format(index) for index in range(classes)]
    picture = report.confusion(evaluation_of(list(range(classes)), [0] * classes, labels))
    matrix, bar = figures[0].axes
    renderer = figures[0].canvas.get_renderer()
    boxes = [axes.get_tightbbox(renderer) for axes in (matrix, bar)]
    for box in boxes:
        assert box.x0 >= 0 and box.y0 >= 0 and box.x1 <= picture.width and box.y1 <= picture.height
    assert not boxes[0].overlaps(boxes[1])
    for ticks in (matrix.get_xticklabels(), matrix.get_yticklabels()):
        assert len(ticks) == classes
        places = [text.get_window_extent(renderer) for text in ticks]
        assert not any(place.overlaps(other) for place, other in pairwise(places))
    assert bool(matrix.texts) == (classes <= 20)


def test_a_confusion_of_a_thousand_classes_labels_some_of_them(figures):
    answers = list(range(1000))
    picture = report.confusion(evaluation_of(answers, answers, [f"class {index}" for index in range(1000)]))
    assert max(picture.size) < 3000
    names = [text.get_text() for text in figures[0].axes[0].get_yticklabels()]
    assert names[:2] == ["class 0", "class 7"]  # two pixels a class, and a label needs thirteen


def test_a_confusion_leaves_out_classes_that_do_not_occur(figures):
    report.confusion(evaluation_of([5, 6], [5, 7], [f"class {index}" for index in range(1000)]))
    names = [text.get_text() for text in figures[0].axes[0].get_yticklabels()]
    assert names == ["class 5", "class 6", "class 7"]


def test_the_mistakes_have_their_photos_whole_and_their_words(figures, pictures):
    evaluation = evaluation_of([1, 1, 1, 0], [0, 0, 1, 1], ["a", "b"])
    report.most_wrong(evaluation, pictures)
    shown = [(np.asarray(axes.images[0].get_array()), axes.get_xlabel()) for axes in figures[0].axes]
    sure = [np.exp(x) / (np.exp(x) + 1) for x in (3, 2 + 1 / 3, 2)]  # the last photo is the surest mistake
    files = [pictures.files[index].name for index in (3, 1, 0)]
    assert [words for _, words in shown] == [
        f"b →\na {sure[0]:.0%}\n{files[0]}",
        f"a →\nb {sure[1]:.0%}\n{files[1]}",
        f"a →\nb {sure[2]:.0%}\n{files[2]}",
    ]
    strip, tall, wide = (
        (square == colour).all(axis=2) for (square, _), colour in zip(shown, ([0] * 3, (0, 128, 0), (255, 0, 0)))
    )
    assert [seen.shape for seen in (strip, tall, wide)] == [(240, 240)] * 3
    assert wide[60:180].all() and not wide[:60].any() and not wide[180:].any()  # 80 × 40: twice as wide as high
    assert tall[:, 60:180].all() and not tall[:, :60].any() and not tall[:, 180:].any()
    assert strip.any(axis=0).all() and strip.sum() == 240


def test_as_many_mistakes_as_asked_for(figures, pictures):
    evaluation = evaluation_of([1, 1, 1, 0], [0, 0, 1, 1], ["a", "b"])
    report.most_wrong(evaluation, pictures, count=2)
    assert len(figures[0].axes) == 2


def test_the_words_of_mistakes_are_not_cut_off_and_do_not_overlap(figures, pictures):
    labels = ["a label that is much too long for any photo", "WHO WROTE THIS IN CAPITALS?"]
    photos = pictures.take([0, 1, 2, 3, 0, 1, 2, 3])
    picture = report.most_wrong(evaluation_of([1, 1, 0, 0] * 2, photos.targets, labels), photos)
    renderer = figures[0].canvas.get_renderer()
    boxes = [each.get_tightbbox(renderer) for each in (*figures[0].axes, *figures[0].texts)]
    assert len(boxes) == 9
    for index, box in enumerate(boxes):
        assert box.x0 >= 0 and box.y0 >= 0 and box.x1 <= picture.width and box.y1 <= picture.height
        assert not any(box.overlaps(other) for other in boxes[:index])
    assert all(axes.get_xlabel().splitlines()[1].endswith("%") for axes in figures[0].axes)


def test_labels_to_check_are_the_mistakes_whose_class_is_least_likely_first(figures, pictures):
    """The last photo's class has the least of the three; a class that is the answer is not doubted."""
    evaluation = evaluation_of([1, 1, 1, 0], [0, 0, 1, 1], ["a", "b"])
    report.doubts(evaluation, pictures)
    own = [1 / (np.exp(x) + 1) for x in (3, 2 + 1 / 3, 2)]
    names = [pictures.files[index].name for index in (3, 1, 0)]
    assert [axes.get_xlabel() for axes in figures[0].axes] == [
        f"b {own[0]:.0%}?\nrather a\n{names[0]}",
        f"a {own[1]:.0%}?\nrather b\n{names[1]}",
        f"a {own[2]:.0%}?\nrather b\n{names[2]}",
    ]
    assert report.doubts(evaluation_of([0, 0, 1, 1], [0, 0, 1, 1], ["a", "b"]), pictures) is None


def test_without_mistakes_there_is_no_picture_of_them(pictures):
    assert report.most_wrong(evaluation_of([0, 0, 1, 1], [0, 0, 1, 1], ["a", "b"]), pictures) is None


def test_all_files_are_written_and_read_back(tmp_path, pictures):
    folder, history = tmp_path / "some" / "run", history_of(2)
    wrong = evaluation_of([1, 0, 1, 1], pictures.targets, ["crème brûlée", "b"])
    report.write(folder, history, wrong, pictures, root=tmp_path)
    names = ["confusion.png", "curves.png", "evaluation.json", "history.json", "most_wrong.png"]
    assert sorted(path.name for path in folder.iterdir()) == names
    assert json.loads((folder / "history.json").read_text(encoding="utf-8")) == history
    text = (folder / "evaluation.json").read_text(encoding="utf-8")
    assert '"confusion": [[1, 1], [0, 2]],' in text.splitlines()  # not a line for each number
    content = json.loads(text)
    files = [file.name for file in pictures.files]
    answers = [wrong.labels[answer] for answer in (1, 0, 1, 1)]
    assert [(row["file"], row["answer"]) for row in content.pop("photos")] == list(zip(files, answers))
    assert content.pop("confusions") == [{"label": "crème brûlée", "answer": "b", "files": ["red.png"]}]
    assert content == wrong.to_dict() and "crème brûlée" in text
    for name, picture in (
        ("curves", report.curves(history)),
        ("confusion", report.confusion(wrong)),
        ("most_wrong", report.most_wrong(wrong, pictures)),
    ):
        assert Image.open(folder / f"{name}.png").tobytes() == picture.tobytes()


def test_an_evaluation_alone_leaves_the_curves_and_takes_away_old_mistakes(tmp_path, pictures):
    report.write(tmp_path, history_of(2), evaluation_of([1, 0, 1, 1], pictures.targets, ["a", "b"]), pictures)
    before = {name: (tmp_path / name).read_bytes() for name in ("curves.png", "history.json")}
    right = evaluation_of(pictures.targets, pictures.targets, ["a", "b"])
    report.write(tmp_path, [], right, pictures)
    assert not (tmp_path / "most_wrong.png").exists()
    assert json.loads((tmp_path / "evaluation.json").read_text(encoding="utf-8"))["correct"] == 4
    assert {name: (tmp_path / name).read_bytes() for name in before} == before


def test_without_an_evaluation_only_the_training_is_written(tmp_path):
    report.write(tmp_path, history_of(1), None, None)
    assert sorted(path.name for path in tmp_path.iterdir()) == ["curves.png", "history.json"]


def test_photos_of_another_evaluation_are_refused(tmp_path, pictures):
    evaluation = evaluation_of([1, 0, 1, 1], pictures.targets, ["a", "b"])
    for photos in (None, pictures.take([3, 2, 1, 0])):
        with pytest.raises(ValueError, match="not those of the evaluation"):
            report.write(tmp_path / "run", history_of(1), evaluation, photos)
    assert not (tmp_path / "run").exists()


def test_pyplot_is_never_imported():
    code = "import sys, vit.finetune.report as report; report.curves([dict(epoch=1, loss=1, correct=1, photos=2)])"
    code += "; sys.exit('matplotlib.pyplot' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", code]).returncode == 0
