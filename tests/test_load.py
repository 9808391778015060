"""The page under load: photos in batches, what is kept of them, visitors who leave, and a server that dies."""

import asyncio
import os
import signal
import sys
import threading
import time
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from types import SimpleNamespace

import httpx2 as httpx
import pytest
from browser.visitor import serving
from gradio_client import Client, handle_file
from serving import app_process

import vit
from benchmarks.load import distinct_photos
from vit import precision
from vit.page import Models, build
from vit.page.explorer import curves
from vit.page.handlers import Handlers
from vit.page.kept import Lately
from vit.page.together import NICE, Together
from vit.page.turns import Budget, Crowd, TurnError, Turns


@pytest.fixture(scope="module")
def photos(tmp_path_factory):
    return distinct_photos(tmp_path_factory.mktemp("photos"), 48)


def test_photos_that_wait_go_together_and_nobody_gets_anothers_answer(photos, monkeypatch):
    classifier, batches = vit.load(), []
    expected = [classifier.predict(photo) for photo in photos]
    answers = vit.Classifier.answers
    monkeypatch.setattr(
        vit.Classifier, "answers", lambda self, views, *rest: batches.append(len(views)) or answers(self, views, *rest)
    )
    with serving(build(Models(classifier))) as url:
        clients = [Client(url, verbose=False, ssl_verify=False) for _ in range(16)]

        def visit(number):
            mine = photos[number::16]
            return [clients[number].predict(handle_file(str(photo)), api_name="/predict") for photo in mine]

        with ThreadPoolExecutor(16) as visitors:
            found = list(visitors.map(visit, range(16)))
        assert sum(batches) == 48 and max(batches) > 1
        for number, answer in enumerate(found[at % 16][at // 16] for at in range(48)):
            given = [(each["label"], pytest.approx(each["confidence"], abs=1e-4)) for each in answer["confidences"]]
            assert given == expected[number]
        # Asked again, it comes from what is kept, and is the same.
        assert clients[0].predict(handle_file(str(photos[5])), api_name="/predict") == found[5][0]
        assert sum(batches) == 48


def test_who_leaves_while_a_batch_runs_takes_no_other_answer_along(photos, monkeypatch):
    classifier, runs, go = vit.load("foodvision-mini"), [], threading.Event()
    run = Together._run

    def watched(self, batch):
        runs.append(len(batch))
        assert len(runs) > 2 or go.wait(60)
        return run(self, batch)

    monkeypatch.setattr(Together, "_run", watched)

    async def visit():
        together = Together(Turns())
        ask = [together.answer(classifier, str(photo), lambda: False) for photo in photos[:6]]
        first = asyncio.create_task(ask[0])
        while not runs:
            await asyncio.sleep(0.01)
        others = [asyncio.create_task(each) for each in ask[1:]]
        while len(together._waiting) < 5:
            await asyncio.sleep(0.01)
        others[4].cancel()  # waits still
        go.set()
        await first
        go.clear()
        while len(runs) < 2:
            await asyncio.sleep(0.01)
        others[0].cancel()  # in the batch
        await asyncio.sleep(0.1)
        go.set()
        found = await asyncio.wait_for(asyncio.gather(*others, return_exceptions=True), 60)
        return [isinstance(each, asyncio.CancelledError) for each in found]

    assert asyncio.run(visit()) == [True, False, False, False, True]
    assert runs == [1, 4]


@pytest.mark.skipif(sys.platform != "linux", reason="a thread's priority is its own on Linux alone")
def test_what_runs_batches_lets_those_go_first_who_talk_to_visitors():
    def priority():
        return os.getpriority(os.PRIO_PROCESS, threading.get_native_id())

    together, here = Together(Turns()), priority()
    assert [together._parts.submit(priority).result() for _ in range(4)] == [min(19, here + NICE)] * 4
    assert together._opening.submit(priority).result() == together._runner.submit(priority).result() == here
    assert priority() == here


@pytest.mark.parametrize("seconds, expected", [(0.001, 32), (0.06, 10), (5.0, 2)])
def test_a_batch_is_as_large_as_a_turn_allows(monkeypatch, seconds, expected):
    together, model, now = Together(Turns()), vit.load().model, [0.0]
    together._cores = 2
    assert together._most(model) == 2  # of which nothing is known yet
    monkeypatch.setattr("vit.page.together.time.perf_counter", lambda: now[0])
    monkeypatch.setattr("vit.page.together._answer", lambda part: now.__setitem__(0, now[0] + seconds * len(part)))
    failed = []
    answer = SimpleNamespace(exception=lambda: failed[-1] if failed else None)
    waiting = SimpleNamespace(classifier=SimpleNamespace(model=model), answer=answer)
    together._parts = ThreadPoolExecutor(1)
    together._run([waiting] * 4)
    assert together._most(model) == expected
    failed.append(MemoryError())
    now[0] = 0.0
    monkeypatch.setattr("vit.page.together._answer", lambda part: None)
    together._run([waiting] * 4)
    assert together._most(model) == expected  # what fails at once is not quick


def test_who_waits_for_a_model_holds_up_nobody_else(photos, monkeypatch):
    """45 want one that is being fetched, more than the threads that serve files and everything else."""
    fetched, waiting, get = threading.Event(), [], Models.get

    def slow(self, source, *rest):
        if source == "foodvision-mini":
            waiting.append(source)
            assert fetched.wait(60)
        return get(self, source, *rest)

    monkeypatch.setattr(Models, "get", slow)
    with serving(build(Models(vit.load()))) as url:
        client = Client(url, verbose=False, ssl_verify=False)
        with httpx.Client(base_url=f"{url.rstrip('/')}/gradio_api", timeout=20) as visitor:
            with photos[0].open("rb") as file:
                given = {"path": visitor.post("/upload", files={"files": file}).json()[0]}
            body = {"data": [{**given, "meta": {"_type": "gradio.FileData"}}, "foodvision-mini"]}
            asked = [visitor.post("/call/predict", json=body).json()["event_id"] for _ in range(45)]
            while len(waiting) < len(asked):
                time.sleep(0.01)
            assert client.predict(handle_file(str(photos[1])), api_name="/predict")["label"]
            fetched.set()
            answers = [visitor.get(f"/call/predict/{event}").text for event in asked]
            assert all("event: complete" in answer for answer in answers)


def test_what_was_made_is_kept_within_bounds():
    kept = Lately(10, seconds=0.5)
    for number in range(30):
        kept.put(number, str(number), 2)
    assert len(kept) == 5 and kept.get(29) == "29" and kept.get(3) is None
    time.sleep(0.8)
    assert len(kept) == 0  # though nobody asked


def test_at_most_one_later_turn_before_one_that_is_wanted_at_once(monkeypatch):
    monkeypatch.setattr("vit.page.turns.PATIENCE", 0.0)
    turns, order = Turns(), []

    def take(name, turn):
        with turn:
            order.append(name)

    threads = []
    with turns:
        for name in ("later", "later", "later", "first", "first", "first"):
            thread = threading.Thread(target=take, args=(name, turns if name == "first" else turns.later()))
            thread.start()
            threads.append(thread)
            while len(turns._first) + len(turns._later) < len(threads):
                time.sleep(0.001)
    for thread in threads:
        thread.join()
    assert order == ["later", "first"] * 3


def test_a_long_request_has_a_budget_and_ends_when_its_visitor_has_left():
    left = [False]
    turn = Budget(Turns(), lambda: left[0], seconds=0.05)
    with turn():
        time.sleep(0.06)
    with pytest.raises(TurnError, match="takes too long"), turn():
        pass
    left[0] = True
    with pytest.raises(TurnError, match="Nobody waits"), turn():
        pass


def test_busy_says_how_many_wait_and_about_how_long():
    crowd = Crowd(3)
    for _ in range(3):
        with crowd:
            time.sleep(0.5)
    with crowd, crowd, crowd, pytest.raises(TurnError, match=r"Busy: 3 are waiting, .* about 2 seconds"):
        crowd.__enter__()


def test_a_visitor_who_leaves_frees_the_work(photos, monkeypatch):
    """Their curves end with the pass that runs."""
    made = []
    deletion = curves.deletion

    def slow(*arguments, **options):
        made.append(time.monotonic())
        time.sleep(0.3)
        return deletion(*arguments, **options)

    monkeypatch.setattr(curves, "deletion", slow)
    with serving(build(Models(vit.load()), photos[:1])) as url:
        url = url.rstrip("/")
        config = httpx.get(f"{url}/config").json()
        components = {each["id"]: each for each in config["components"]}
        opened = next(each["props"]["value"] for each in components.values() if "explanation" in str(each["props"]))
        numbers = [
            each["id"] for each in config["dependencies"] if any(on == "ask_curves" for _, on in each["targets"])
        ]
        body = {"fn_index": numbers[0], "data": [opened], "session_hash": "leaves", "event_data": {}}
        assert httpx.post(f"{url}/gradio_api/queue/join", json=body, timeout=20).status_code == 200
        with httpx.stream("GET", f"{url}/gradio_api/queue/data?session_hash=leaves", timeout=20) as answer:
            for line in answer.iter_lines():
                if "process_generating" in line:
                    break
        time.sleep(1.5)
        before = len(made)
        time.sleep(1.5)
        assert before == len(made) < 10


def test_a_server_that_is_killed_starts_again_and_clients_go_on(photos, tmp_path):
    with app_process(GRADIO_TEMP_DIR=str(tmp_path)) as (url, process):
        client = Client(url, verbose=False, ssl_verify=False)
        jobs = [client.submit(handle_file(str(photo)), api_name="/explain") for photo in photos]  # made one by one
        while not any(job.done() for job in jobs):
            time.sleep(0.01)
        process.send_signal(signal.SIGKILL)
        process.wait()
        ended = [job.exception(60) for job in jobs]
        assert any(ended) and not all(ended)
    with app_process(GRADIO_TEMP_DIR=str(tmp_path), port=int(url.rpartition(":")[2])) as (again, _):
        answer = Client(again, verbose=False).predict(handle_file(str(photos[0])), api_name="/predict")
        assert answer["label"] == vit.load().predict(photos[0])[0][0]


def test_nobody_waits_for_the_trial_that_chooses_a_precision(photos, monkeypatch):
    """Until it has chosen, answers are exact; it is begun once, and the model that has chosen answers from then on."""
    begun, go, exact = [], threading.Event(), vit.load()

    def choose(model, examples, turn):
        begun.append(model)
        assert go.wait(60)
        return "bfloat16"

    monkeypatch.setattr(precision, "choose", choose)
    monkeypatch.setattr(precision, "cpu_flags", lambda: frozenset({"avx512_bf16"}))
    auto = vit.load(precision="auto")
    handlers = Handlers(Models(auto))
    for photo in photos[:3]:
        assert asyncio.run(handlers.predict(str(photo), auto.name)) == dict(exact.predict(photo))
    assert begun == [auto.model]
    go.set()
    deadline = time.monotonic() + 60
    while not auto.is_settled:
        assert time.monotonic() < deadline
        time.sleep(0.01)
    said = asyncio.run(handlers.predict(str(photos[3]), auto.name))
    assert said == dict(replace(exact, precision="bfloat16").predict(photos[3])) != dict(exact.predict(photos[3]))
    assert len(begun) == 1
