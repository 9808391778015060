"""Loading from the Hub with its real client, from a server on this machine that speaks the Hub's protocol."""

import fcntl
import io
import json
import os
import pty
import re
import socket
import struct
import subprocess
import sys
import termios
import threading
import time
from contextlib import contextmanager, suppress
from pathlib import Path

import huggingface_hub
import pytest
import torch
from conftest import randomise
from hub_server import HubServer, Trouble, ask, live_in
from huggingface_hub import constants
from safetensors.torch import load, save

import vit
from vit.checkpoints.loading import WEIGHTS
from vit.hub.download import fetch
from vit.page import Models

REPO = "someone/tiny-vit"
MODEL = "model.safetensors"
LABELS = ["cat", "dog", "bird"]
IMAGES = torch.linspace(-1, 1, 2 * 3 * 32 * 32).reshape(2, 3, 32, 32)

both_ways = pytest.mark.parametrize("xet", [False, True], ids=["http", "xet"])


@pytest.fixture(scope="session")
def saved(tiny_config) -> vit.Classifier:
    return vit.Classifier(randomise(vit.ViT(tiny_config)), LABELS, vit.Preprocessing(resize=40, crop=(32, 32)))


@pytest.fixture(scope="session")
def files(saved, tmp_path_factory) -> dict[str, bytes]:
    folder = tmp_path_factory.mktemp("tiny-vit")
    vit.save(saved, folder)
    return {path.name: path.read_bytes() for path in folder.iterdir()}


@pytest.fixture(scope="session")
def other_files(files) -> dict[str, bytes]:
    """The same model with other weights."""
    return {**files, MODEL: save({name: 2 * tensor for name, tensor in load(files[MODEL]).items()})}


@pytest.fixture
def waits(monkeypatch) -> list[float]:
    """The seconds that the client would have waited between its tries: here it waits for none."""
    waited: list[float] = []
    monkeypatch.setattr(time, "sleep", waited.append)
    return waited


@pytest.fixture
def cache(tmp_path, monkeypatch, waits) -> Path:
    home = tmp_path / "home"
    live_in(home, monkeypatch)
    monkeypatch.setattr(constants, "DOWNLOAD_CHUNK_SIZE", 1 << 12)  # 10 MB are more than our whole file
    return home / "hub"


@pytest.fixture
def hub(cache, monkeypatch, files) -> HubServer:
    with HubServer() as server:
        ask(server, monkeypatch)
        server.commit(REPO, files)
        yield server


def same(loaded: vit.Classifier, expected: vit.Classifier) -> bool:
    with torch.inference_mode():
        return torch.equal(loaded.model(IMAGES), expected.model(IMAGES))


def refusal(*args, kind=vit.HubError, **options) -> str:
    """The sentence with which loading fails."""
    with pytest.raises(kind) as caught:
        vit.load(*args, **options)
    assert type(caught.value) is kind
    text = str(caught.value)
    assert "\n" not in text
    assert text.endswith(".")
    return text


def blobs(cache: Path) -> list[Path]:
    """The large files in the cache and what is left of them, in the repository's own folder and the one they share."""
    own = [path for path in cache.glob("models--*/blobs/*") if not re.fullmatch("[0-9a-f]{40}", path.name)]
    return own + [path for path in cache.glob("blobs/??/*") if not path.suffix]


@both_ways
def test_loads_by_id(hub, saved, xet):
    hub.xet = xet
    loaded = vit.load(REPO)
    assert same(loaded, saved)
    assert loaded.labels == LABELS
    assert loaded.preprocessing == saved.preprocessing
    assert loaded.name == REPO
    assert any("/xorb/" in request.path for request in hub.asked("GET", MODEL)) == xet


def test_second_load_asks_only_whether_the_branch_moved(hub, saved):
    vit.load(REPO)
    hub.requests.clear()
    assert same(vit.load(REPO), saved)
    assert [(method, path) for method, path, *_ in hub.requests] == [("HEAD", f"/{REPO}/resolve/main/config.json")]


def test_new_commit_is_fetched(hub, saved, other_files):
    vit.load(REPO)
    hub.commit(REPO, other_files)
    assert not same(vit.load(REPO), saved)


def test_file_that_a_new_commit_adds(hub, files):
    hub.commit(REPO, {MODEL: files[MODEL]})
    assert not fetch(REPO, WEIGHTS).with_name("config.json").exists()
    hub.commit(REPO, files)
    assert fetch(REPO, WEIGHTS).with_name("config.json").exists()


def test_all_files_are_of_one_commit(hub, saved, other_files):
    first = hub.repos[REPO].refs["main"]

    def move_branch(request):
        if request.path.endswith("preprocessor_config.json"):
            hub.commit(REPO, other_files)

    hub.before = move_branch
    assert same(vit.load(REPO), saved)
    assert hub.repos[REPO].refs["main"] != first
    assert [request.path for request in hub.asked("HEAD", MODEL)] == [f"/{REPO}/resolve/{first}/{MODEL}"]


@pytest.mark.parametrize("revision", ["v1.0", "refs/pr/1", "commit"])
def test_revision(hub, saved, files, other_files, revision):
    older = hub.commit(REPO, files, ref=revision)
    hub.commit(REPO, other_files)
    assert same(vit.load(REPO, revision=older if revision == "commit" else revision), saved)
    assert not same(vit.load(REPO), saved)


def pickled(files: dict[str, bytes]) -> dict[str, bytes]:
    buffer = io.BytesIO()
    torch.save(load(files[MODEL]), buffer)
    return {"config.json": files["config.json"], "pytorch_model.bin": buffer.getvalue()}


def test_pickle_where_there_is_no_safetensors(hub, saved, files):
    hub.commit(REPO, pickled(files))
    assert same(vit.load(REPO), saved)


def test_no_pickle_where_there_is_safetensors(hub, saved, files):
    hub.commit(REPO, {**files, "pytorch_model.bin": b"not even a pickle"})
    assert same(vit.load(REPO), saved)
    assert not hub.asked("HEAD", ".bin")
    assert not hub.asked("GET", ".bin")


def sharded(files: dict[str, bytes]) -> dict[str, bytes]:
    tensors = load(files[MODEL])
    place = {name: f"model-0000{1 + number % 2}-of-00002.safetensors" for number, name in enumerate(tensors)}
    parts = {
        part: save({name: tensor for name, tensor in tensors.items() if place[name] == part})
        for part in set(place.values())
    }
    index = json.dumps({"metadata": {}, "weight_map": place}).encode()
    return {"config.json": files["config.json"], "model.safetensors.index.json": index, **parts}


def test_sharded(hub, saved, files):
    hub.commit(REPO, sharded(files))
    assert same(vit.load(REPO), saved)


def test_missing_shard(hub, files):
    parts = sharded(files)
    del parts["model-00002-of-00002.safetensors"]
    hub.commit(REPO, parts)
    assert refusal(REPO) == (
        f"{REPO} on the Hub lacks model-00002-of-00002.safetensors, which its model.safetensors.index.json names: "
        "it is incomplete."
    )


@pytest.mark.parametrize("index", [{}, [], {"weight_map": {"a": ["b"]}}, {"weight_map": {"a": "../a.safetensors"}}])
def test_index_that_names_no_files(hub, files, index):
    hub.commit(REPO, {"config.json": files["config.json"], f"{MODEL}.index.json": json.dumps(index).encode()})
    assert refusal(REPO) == f"{REPO} on the Hub: {MODEL}.index.json does not say which files hold the weights."


def test_preprocessor_config_lies_beside_the_weights(hub, files):
    hub.commit(REPO, {**files, "preprocessor_config.json": b'{"size": 32}'})
    path = fetch(REPO, WEIGHTS)
    assert path.name == MODEL
    assert path.with_name("preprocessor_config.json").read_bytes() == b'{"size": 32}'
    assert path.with_name("config.json").read_bytes() == files["config.json"]


@both_ways
@pytest.mark.parametrize("given_as", ["argument", "HF_TOKEN"])
def test_token(hub, monkeypatch, saved, xet, given_as):
    hub.xet, hub.tokens, hub.repos[REPO].readers = xet, {"hf_mine"}, {"hf_mine"}
    if given_as == "HF_TOKEN":
        monkeypatch.setenv("HF_TOKEN", "hf_mine")
    assert same(vit.load(REPO, token="hf_mine" if given_as == "argument" else None), saved)
    for request in hub.requests:
        to_the_hub = "/resolve/" in request.path or "xet-read-token" in request.path
        assert (request.authorization == "Bearer hf_mine") == to_the_hub, request


def test_unreachable_with_nothing_cached(hub):
    hub.stop()
    assert refusal(REPO) == (
        f"{REPO} is not in the cache and {hub.url} cannot be reached: connect, or name what is here, such as everyday."
    )


@both_ways
def test_unreachable_but_cached(hub, saved, waits, xet):
    hub.xet = xet
    vit.load(REPO)
    hub.stop()
    assert same(vit.load(REPO), saved)
    assert not waits


def test_unreachable_but_pickle_cached(hub, saved, files, waits):
    hub.commit(REPO, pickled(files))
    vit.load(REPO)
    hub.stop()
    assert same(vit.load(REPO), saved)
    assert not waits


def test_unreachable_and_cached_by_another_program(hub, saved):
    huggingface_hub.hf_hub_download(REPO, "config.json")
    huggingface_hub.hf_hub_download(REPO, MODEL)
    hub.stop()
    assert same(vit.load(REPO), saved)


@contextmanager
def silent_hub(monkeypatch):
    """A Hub that takes connections and never says a word; gives how many it took."""
    taken = []
    with socket.create_server(("127.0.0.1", 0)) as listener:

        def take():
            with suppress(OSError):  # it is closed
                while True:
                    taken.append(listener.accept()[0])

        threading.Thread(target=take, daemon=True).start()
        url = f"http://127.0.0.1:{listener.getsockname()[1]}"
        monkeypatch.setattr(constants, "ENDPOINT", url)
        monkeypatch.setattr(constants, "HUGGINGFACE_CO_URL_TEMPLATE", url + "/{repo_id}/resolve/{revision}/{filename}")
        yield taken
        listener.shutdown(socket.SHUT_RDWR)
    for connection in taken:
        connection.close()


def test_a_silent_hub_is_asked_once_by_whoever_has_little_patience(hub, monkeypatch, saved):
    vit.load(REPO)
    with silent_hub(monkeypatch) as taken:
        assert same(vit.load(REPO, patience=0.2), saved)
        assert len(taken) == 1
        with pytest.raises(vit.HubError, match=r"^other/model is not in the cache and http.* cannot be reached: "):
            vit.load("other/model", patience=0.2)
        assert len(taken) == 2


def test_the_page_has_little_patience(hub, monkeypatch, saved):
    models = Models(saved)
    with silent_hub(monkeypatch) as taken:
        with pytest.raises(vit.HubError, match="cannot be reached"):
            models.get("facebook/dino-vits16")
        assert len(taken) == 1
    hub.stop()
    with pytest.raises(vit.HubError, match="cannot be reached"):
        models.get("facebook/dino-vits16")


@pytest.mark.parametrize("offline", [False, True])
def test_connection_lost_before_the_weights(hub, monkeypatch, saved, offline):
    huggingface_hub.hf_hub_download(REPO, "config.json")
    if offline:
        monkeypatch.setattr(constants, "HF_HUB_OFFLINE", True)
    else:
        hub.stop()
    reason = "HF_HUB_OFFLINE is set" if offline else f"{hub.url} cannot be reached"
    assert refusal(REPO) == (
        f"{REPO} is not in the cache and {reason}: connect, or name what is here, such as everyday."
    )


def test_connection_lost_between_the_shards(hub, files):
    hub.commit(REPO, sharded(files))
    hub.troubles["model-00002-of-00002.safetensors"] = Trouble(status=503)
    assert refusal(REPO) == f"The Hub answered 503 for {REPO}: try again later."
    hub.stop()
    assert f"{REPO} is not in the cache and {hub.url} cannot be reached" in refusal(REPO)


def test_offline(hub, monkeypatch, saved):
    monkeypatch.setattr(constants, "HF_HUB_OFFLINE", True)
    assert refusal(REPO) == (
        f"{REPO} is not in the cache and HF_HUB_OFFLINE is set: connect, or name what is here, such as everyday."
    )
    assert not hub.requests
    monkeypatch.setattr(constants, "HF_HUB_OFFLINE", False)
    vit.load(REPO)
    hub.requests.clear()
    monkeypatch.setattr(constants, "HF_HUB_OFFLINE", True)
    assert same(vit.load(REPO), saved)
    assert not hub.requests


@pytest.mark.parametrize("token", [None, "hf_mine"])
def test_no_such_repository(hub, token):
    hub.tokens = {"hf_mine"}
    assert refusal("someone/tiny-vitt", token=token) == (
        "There is no model someone/tiny-vitt on the Hub, or it is private: check the spelling, or run 'hf auth login'."
    )


def test_no_such_revision(hub):
    assert refusal(REPO, revision="v9") == f"{REPO} on the Hub has no revision 'v9': check its branches and tags."


@pytest.mark.parametrize("token", [None, "hf_mine"])
def test_gated(hub, token):
    hub.tokens = {"hf_mine"}
    hub.repos[REPO].gated, hub.repos[REPO].readers = True, set()
    assert refusal(REPO, token=token) == (
        f"{REPO} is gated: accept its terms at {hub.url}/{REPO}, then run 'hf auth login'."
    )


def test_wrong_token(hub):
    assert refusal(REPO, token="hf_wrong") == (
        f"The Hub does not accept the token sent for {REPO}: check HF_TOKEN, or run 'hf auth login'."
    )


def test_token_that_permits_too_little(hub):
    hub.troubles["config.json"] = Trouble(status=403)
    assert refusal(REPO) == (
        f"The Hub does not let you read {REPO}: check what your token permits, or run 'hf auth login'."
    )


def test_token_that_is_no_token(hub):
    assert refusal(REPO, token="hf_mïne").startswith(f"{REPO} could not be fetched whole (")


@pytest.mark.parametrize("name", ["config.json", MODEL])
def test_service_unavailable(hub, saved, name):
    hub.troubles[name] = Trouble(status=503)
    assert refusal(REPO) == f"The Hub answered 503 for {REPO}: try again later."
    hub.troubles.clear()
    assert same(vit.load(REPO), saved)


def test_service_unavailable_once(hub, saved, waits):
    hub.troubles[MODEL] = Trouble(status=503, times=2)
    assert same(vit.load(REPO), saved)
    assert waits


def test_service_unavailable_but_cached(hub, saved):
    vit.load(REPO)
    hub.troubles["config.json"] = Trouble(status=503)
    assert same(vit.load(REPO), saved)


def test_no_weights(hub, files):
    hub.commit(REPO, {"config.json": files["config.json"], "README.md": b"Soon."})
    assert refusal(REPO) == (
        f"{REPO} on the Hub has none of {', '.join(WEIGHTS)}: it holds no weights that can be loaded here."
    )


def test_empty_repository(hub):
    hub.commit("someone/empty", {})
    assert refusal("someone/empty").startswith("someone/empty on the Hub has none of ")


@pytest.mark.parametrize("name", ["some--one/vit", "someone/vit..tiny", "someone/-vit", "someone/" + "x" * 97])
def test_not_an_id(hub, name):
    assert refusal(name) == f"{name!r} is neither a file or folder here nor a Hub id such as 'owner/name'."
    assert not hub.requests


@pytest.fixture
def small_disk(cache) -> Path:
    """The cache on a disk of its own that the weights do not fit on."""
    cache.mkdir(parents=True)
    mounted = subprocess.run(["mount", "-t", "tmpfs", "-o", "size=128k", "tmpfs", cache], capture_output=True)
    if mounted.returncode:
        pytest.skip("may not mount a disk here")
    yield cache
    subprocess.run(["umount", "--lazy", cache], check=True)


@both_ways
@pytest.mark.filterwarnings("ignore:Not enough free disk space")
def test_no_space_left(hub, small_disk, saved, xet):
    hub.xet = xet
    assert refusal(REPO) == (f"No space is left in {small_disk} for {REPO}: free some, or set HF_HOME to another disk.")
    assert not blobs(small_disk)
    subprocess.run(["mount", "-o", "remount,size=8m", small_disk], check=True)
    assert same(vit.load(REPO), saved)


def test_cache_that_cannot_be_written(hub, small_disk):
    subprocess.run(["mount", "-o", "remount,ro", small_disk], check=True)
    text = refusal(REPO)
    assert text.startswith(f"The cache {small_disk} cannot be written (")
    assert text.endswith("): set HF_HOME to a folder that can.")


def test_cut_off_once_goes_on_where_it_stopped(hub, saved):
    hub.troubles[MODEL] = Trouble(stop_at=100_000, times=1)
    assert same(vit.load(REPO), saved)
    first, second = hub.asked("GET", MODEL)
    assert first.range is None
    resumed = int(re.fullmatch(r"bytes=(\d+)-", second.range)[1])
    assert 90_000 < resumed <= 100_000


def test_cut_off_once_with_xet(hub, saved):
    hub.xet, hub.troubles[MODEL] = True, Trouble(stop_at=100_000, times=1)
    assert same(vit.load(REPO), saved)


@both_ways
def test_cut_off_always(hub, cache, saved, xet):
    hub.xet, hub.troubles[MODEL] = xet, Trouble(stop_at=100_000)
    assert re.fullmatch(rf"{REPO} could not be fetched whole \(.+\): try again\.", refusal(REPO))
    assert not blobs(cache)
    hub.troubles.clear()
    assert same(vit.load(REPO), saved)


@both_ways
def test_corrupt_on_arrival(hub, cache, saved, xet):
    hub.xet, hub.troubles[MODEL] = xet, Trouble(corrupt=True)
    for _ in range(2):
        assert refusal(REPO) == f"{MODEL} of {REPO} was damaged and has been removed from the cache: try again."
        assert not blobs(cache)
        assert not [path for path in cache.glob("*/snapshots/*/*") if path.name == MODEL]
    hub.troubles.clear()
    assert same(vit.load(REPO), saved)


def test_corrupt_config_on_arrival(hub, saved):
    hub.troubles["config.json"] = Trouble(corrupt=True)
    assert refusal(REPO) == f"config.json of {REPO} was damaged and has been removed from the cache: try again."
    hub.troubles.clear()
    assert same(vit.load(REPO), saved)


def damage(path: Path, length: int) -> None:
    file = path.resolve()
    file.chmod(0o644)
    file.write_bytes(file.read_bytes()[:length])


@both_ways
@pytest.mark.parametrize("length", [0, 100, 100_000])
def test_damaged_in_the_cache(hub, cache, saved, xet, length):
    hub.xet = xet
    damage(fetch(REPO, WEIGHTS), length)
    text = refusal(REPO, kind=vit.CheckpointError)
    assert text.startswith(f"{REPO}: {MODEL} is not a file of weights, or is damaged (")
    assert not blobs(cache)
    hub.requests.clear()
    assert same(vit.load(REPO), saved)
    assert hub.asked("GET", MODEL)


def test_config_damaged_in_the_cache(hub, saved):
    damage(fetch(REPO, WEIGHTS).with_name("config.json"), 50)
    assert refusal(REPO) == f"config.json of {REPO} was damaged and has been removed from the cache: try again."
    assert same(vit.load(REPO), saved)


def environment(hub: HubServer, home: Path, **more: str) -> dict[str, str]:
    clean = {name: value for name, value in os.environ.items() if not name.startswith(("HF_", "HUGGING_FACE_"))}
    root = str(Path(__file__).resolve().parents[1])
    return {**clean, "HF_ENDPOINT": hub.url, "HF_HOME": str(home), "PYTHONPATH": root, **more}


PRINT_LOGITS = """
import sys, torch, vit
images = torch.linspace(-1, 1, 2 * 3 * 32 * 32).reshape(2, 3, 32, 32)
print(vit.load(sys.argv[1]).model(images).tolist())
"""


def run_on_a_terminal(code: str, env: dict[str, str]) -> tuple[str, str]:
    """What a program prints, and what a person sees of its errors and progress."""
    terminal, theirs = pty.openpty()
    fcntl.ioctl(terminal, termios.TIOCSWINSZ, struct.pack("4H", 24, 120, 0, 0))
    command = [sys.executable, "-c", code, REPO]
    with subprocess.Popen(command, env=env, stdout=subprocess.PIPE, stderr=theirs, text=True) as process:
        os.close(theirs)
        seen = b""
        try:
            while piece := os.read(terminal, 1 << 16):
                seen += piece
        except OSError:  # Linux says so when the program has ended
            pass
        printed = process.stdout.read()
    os.close(terminal)
    assert process.returncode == 0, seen.decode()
    return printed, seen.decode()


def test_with_the_real_environment(files, saved, tmp_path):
    with HubServer() as hub:
        hub.commit(REPO, files)
        hub.xet = True
        first, seen = run_on_a_terminal(PRINT_LOGITS, environment(hub, tmp_path))
        assert hub.asked("GET", MODEL)
    assert re.search(r"model\.safetensors.*100%\|", seen)
    with torch.inference_mode():
        assert torch.allclose(torch.tensor(json.loads(first)), saved.model(IMAGES), atol=1e-6)

    again, seen = run_on_a_terminal(PRINT_LOGITS, environment(hub, tmp_path, HF_HUB_OFFLINE="1"))
    assert again == first
    assert "%|" not in seen


FETCH_IN_SMALL_PIECES = """
import sys
from huggingface_hub import constants, hf_hub_download
constants.DOWNLOAD_CHUNK_SIZE = 1 << 12
hf_hub_download(sys.argv[1], "model.safetensors")
"""


def test_killed_while_fetching(hub, cache, saved):
    release = threading.Event()
    hub.troubles[MODEL] = Trouble(stop_at=100_000, hold=release, times=1)
    process = subprocess.Popen(
        [sys.executable, "-c", FETCH_IN_SMALL_PIECES, REPO],
        env=environment(hub, cache.parent),
        stderr=subprocess.DEVNULL,
    )
    try:
        deadline = time.monotonic() + 60
        while not any(path.stat().st_size for path in cache.glob(f"*/blobs/{64 * '?'}.*.incomplete")):
            assert time.monotonic() < deadline and process.poll() is None, "it never got to the weights"
            threading.Event().wait(0.05)
    finally:
        process.kill()
        process.wait()
        release.set()
    assert same(vit.load(REPO), saved)
