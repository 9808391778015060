"""Who runs a model next: each in turn, and of what is done aside never two at once."""

import gc
import threading
import time
from concurrent.futures import ThreadPoolExecutor
from contextlib import nullcontext

from PIL import Image

import vit
from vit.export import Options
from vit.page import Models, files
from vit.page.explorer.curves import Curves
from vit.page.handlers import Handlers
from vit.page.turns import Turns
from vit.photos.examples import example_photos


def test_turns_come_in_the_order_in_which_they_were_asked_for():
    turns, order, threads = Turns(), [], []
    with turns:
        for number in range(8):
            thread = threading.Thread(target=take, args=(turns, order, number))
            thread.start()
            threads.append(thread)
            while len(turns._first) <= number:
                time.sleep(0.001)
    for thread in threads:
        thread.join()
    assert order == list(range(8))


def take(turns, order, number):
    with turns:
        order.append(number)


def test_a_prediction_waits_for_one_pass_of_what_is_done_aside(tiny_base):
    """Three visitors try things out without a pause; in between, one wants a prediction, again and again."""
    models, passes, stop = Models(vit.load(tiny_base)), [0], threading.Event()

    def busy():
        while not stop.is_set():
            with models.lock.later():
                passes[0] += 1
                time.sleep(0.002)

    threads = [threading.Thread(target=busy) for _ in range(3)]
    for thread in threads:
        thread.start()
    waited = []
    for _ in range(20):
        before = passes[0]
        with models.lock:
            waited.append(passes[0] - before)
        time.sleep(0.003)
    stop.set()
    for thread in threads:
        thread.join()
    assert passes[0] > 20 and max(waited) <= 1, waited


def test_files_are_packed_in_nobodys_turn(monkeypatch, tmp_path):
    monkeypatch.setenv("GRADIO_TEMP_DIR", str(tmp_path))
    models, taken, photo = Models(vit.load("foodvision-mini")), [], str(example_photos()[0])
    handlers, pack, save_arrays = Handlers(models), files.pack, files.export.save_arrays
    monkeypatch.setattr(files, "pack", lambda *given: taken.append(models.lock._taken) or pack(*given))
    monkeypatch.setattr(
        files.export, "save_arrays", lambda *given: taken.append(models.lock._taken) or save_arrays(*given)
    )
    handlers.find_first(photo, "foodvision-mini")
    handlers.explain(photo, "foodvision-mini")
    handlers.find_arrays(photo, "foodvision-mini", Options())
    assert taken == [False] * 3


def test_many_explanations_at_once_take_one_recorded_pass_each(monkeypatch, tmp_path):
    """None is put aside for another's, and recorded again for each class."""
    monkeypatch.setenv("GRADIO_TEMP_DIR", str(tmp_path))
    handlers, passes, record = Handlers(Models(vit.load("foodvision-mini"))), [], vit.ViT.record
    monkeypatch.setattr(vit.ViT, "record", lambda *given: passes.append(1) or record(*given))
    photos = [str(photo) for photo in example_photos()[:6]]
    with ThreadPoolExecutor(len(photos)) as visitors:
        found = list(visitors.map(lambda photo: handlers.explain(photo, "foodvision-mini"), photos))
    assert [each.photo.path for each in found] == photos and len(passes) == len(photos)
    assert all(len(each.maps) == len(found[0].maps) > 3 for each in found)


def test_curves_let_the_explanation_go_before_their_many_passes():
    classifier = vit.load("foodvision-mini")
    with Image.open(example_photos()[0]) as photo:
        curves = Curves(classifier, photo)
    before = explanations()
    next(curves.packs(nullcontext))
    assert before - explanations() == 1


def explanations():
    gc.collect()
    return sum(type(each) is vit.Explanation for each in gc.get_objects())
