"""Uploading to the Hub with its real client, to a server on this machine that speaks the Hub's protocol."""

import socket
from pathlib import Path

import pytest
import torch
from conftest import randomise
from hub_server import TOKEN, Trouble
from huggingface_hub import constants

import vit
from vit.__main__ import main
from vit.hub.upload import upload

REPO = "someone/my-vit"
MODEL = "model.safetensors"


@pytest.fixture(scope="session")
def saved(tiny_config) -> vit.Classifier:
    model = randomise(vit.ViT(tiny_config))
    return vit.Classifier(model, ["cat", "dog", "bird"], vit.Preprocessing(resize=40, crop=(32, 32)))


@pytest.fixture
def folder(saved, tmp_path) -> Path:
    vit.save(saved, tmp_path / "model")
    return tmp_path / "model"


def weights(classifier: vit.Classifier) -> torch.Tensor:
    return torch.cat([tensor.flatten() for tensor in classifier.model.state_dict().values()])


def refusal(*args, **options) -> str:
    """The sentence with which uploading fails."""
    with pytest.raises(vit.HubError) as caught:
        upload(*args, **options)
    text = str(caught.value)
    assert "\n" not in text
    assert text.endswith(".")
    return text


@pytest.mark.parametrize("xet", [False, True], ids=["http", "xet"])
def test_what_is_uploaded_loads_again(hub, folder, saved, xet):
    assert upload(folder, REPO, token=TOKEN) == f"{hub.url}/{REPO}"
    hub.xet = xet
    loaded = vit.load(REPO)
    assert torch.equal(weights(loaded), weights(saved))
    assert loaded.labels == saved.labels
    assert loaded.preprocessing == saved.preprocessing


def test_one_commit_holds_all_files(hub, folder):
    (folder / "README.md").write_text("---\nlicense: apache-2.0\n---\nMine.\n")
    upload(folder, REPO, token=TOKEN)
    assert len(hub.asked("POST", "/commit/main")) == 1
    sent = {name: content for name, content in hub.files(REPO).items() if name != ".gitattributes"}
    assert sent == {path.name: path.read_bytes() for path in folder.iterdir()}


def test_weights_go_to_the_storage(hub, folder):
    upload(folder, REPO, token=TOKEN)
    assert sum(map(len, hub.pieces.popitem()[1])) == (folder / MODEL).stat().st_size


def test_a_subfolder_can_be_left_out(hub, folder):
    (folder / "unfinished" / "deep").mkdir(parents=True)
    (folder / "unfinished" / "state.bin").write_bytes(b"half")
    (folder / "unfinished" / "deep" / "log.json").write_bytes(b"{}")
    (folder / "finished").mkdir()
    (folder / "finished" / "log.json").write_bytes(b"{}")
    upload(folder, REPO, token=TOKEN, leave_out="unfinished")
    assert set(hub.files(REPO)) == {".gitattributes", "config.json", MODEL, "finished/log.json"}


def test_overwrites_what_is_there_and_keeps_the_rest(hub, folder, saved):
    hub.commit(REPO, {MODEL: b"older", "NOTES.md": b"Keep me."})
    upload(folder, REPO, token=TOKEN)
    assert hub.files(REPO)["NOTES.md"] == b"Keep me."
    assert torch.equal(weights(vit.load(REPO)), weights(saved))


def test_same_files_again_make_no_commit(hub, folder):
    upload(folder, REPO, token=TOKEN)
    before = hub.repos[REPO].refs["main"]
    assert upload(folder, REPO, token=TOKEN) == f"{hub.url}/{REPO}"
    assert hub.repos[REPO].refs["main"] == before


def test_other_weights_replace_the_weights(hub, folder, saved, tiny_config):
    upload(folder, REPO, token=TOKEN)
    other = vit.Classifier(vit.ViT(tiny_config).eval(), saved.labels, saved.preprocessing)
    vit.save(other, folder)
    upload(folder, REPO, token=TOKEN)
    assert torch.equal(weights(vit.load(REPO)), weights(other))


def test_name_without_an_owner_is_ones_own(hub, folder):
    assert upload(folder, "my-vit", token=TOKEN) == f"{hub.url}/{REPO}"
    assert MODEL in hub.files(REPO)


@pytest.mark.parametrize("private", [False, True])
def test_private_is_for_oneself(hub, folder, saved, private):
    upload(folder, REPO, private=private, token=TOKEN)
    assert torch.equal(weights(vit.load(REPO, token=TOKEN)), weights(saved))
    assert hub.repos[REPO].readers == ({TOKEN} if private else None)


def test_token_of_the_environment(hub, folder, monkeypatch):
    monkeypatch.setenv("HF_TOKEN", TOKEN)
    upload(folder, REPO)
    assert MODEL in hub.files(REPO)


def test_not_logged_in(hub, folder):
    assert refusal(folder, REPO) == (
        f"The Hub does not know who uploads {REPO}: run 'hf auth login' with a token that may write."
    )
    assert not hub.repos


def test_wrong_token(hub, folder):
    assert refusal(folder, REPO, token="hf_wrong") == (
        f"The Hub does not accept the token sent for {REPO}: check HF_TOKEN, or run 'hf auth login'."
    )


@pytest.mark.parametrize("there", [False, True], ids=["new", "existing"])
def test_somebody_elses_name(hub, folder, there):
    if there:
        hub.commit("other/my-vit", {"README.md": b"Not yours."})
    assert refusal(folder, "other/my-vit", token=TOKEN) == (
        "The Hub does not let you write to other/my-vit: put your own name before the slash, "
        "and run 'hf auth login' with a token that may write."
    )
    assert not there or hub.files("other/my-vit") == {"README.md": b"Not yours."}


@pytest.mark.parametrize("name", ["some--one/vit", "someone/-vit", "a/b/c", "someone/", "x" * 97])
def test_not_a_name(hub, folder, name):
    assert refusal(folder, name, token=TOKEN) == (
        f"{name!r} cannot be a repository's name on the Hub: give one such as 'you/my-vit'."
    )
    assert not hub.asked("POST")


def test_name_that_the_hub_refuses(hub, folder):
    hub.troubles[REPO] = Trouble(status=400)
    assert refusal(folder, REPO, token=TOKEN) == (
        f"The Hub refuses {REPO} (This name is reserved): change that, and try again."
    )


def test_service_unavailable(hub, folder):
    hub.troubles[REPO] = Trouble(status=503)
    assert refusal(folder, REPO, token=TOKEN) == f"The Hub answered 503 for {REPO}: try again later."


def test_unreachable(hub, folder, monkeypatch):
    with socket.socket() as unused:
        unused.bind(("127.0.0.1", 0))
        address = f"http://127.0.0.1:{unused.getsockname()[1]}"
        monkeypatch.setattr(constants, "ENDPOINT", address)
        assert refusal(folder, REPO, token=TOKEN) == (
            f"{REPO} cannot be uploaded, {address} cannot be reached: connect, and try again."
        )


def test_offline(hub, folder, monkeypatch):
    monkeypatch.setattr(constants, "HF_HUB_OFFLINE", True)
    assert refusal(folder, REPO, token=TOKEN) == (
        f"{REPO} cannot be uploaded, HF_HUB_OFFLINE is set: connect, and try again."
    )


@pytest.mark.parametrize("place", ["/v1/xorbs/", "/v1/shards", "/commit/main"])
def test_cut_off(hub, folder, saved, place):
    def cut(request):
        if place in request.path:
            raise ConnectionError

    hub.handle_error = lambda *args: None
    hub.before = cut
    text = refusal(folder, REPO, token=TOKEN)
    assert text.startswith(f"The upload to {REPO} broke off (")
    assert text.endswith("): try again.")
    assert MODEL not in hub.files(REPO)

    hub.before = lambda request: None
    upload(folder, REPO, token=TOKEN)
    assert torch.equal(weights(vit.load(REPO)), weights(saved))


def test_folder_that_is_not_there(hub, tmp_path):
    missing = tmp_path / "missing"
    assert refusal(missing, REPO, token=TOKEN) == f"There is no folder {str(missing)!r} to upload: check the path."


def test_folder_with_nothing_finished(hub, tmp_path):
    (tmp_path / "run" / "unfinished").mkdir(parents=True)
    (tmp_path / "run" / "unfinished" / "state.bin").write_bytes(b"half")
    assert refusal(tmp_path / "run", REPO, token=TOKEN, leave_out="unfinished") == (
        f"The folder {str(tmp_path / 'run')!r} holds nothing to upload: save a model there first."
    )
    assert not hub.requests


def test_a_fine_tuned_model_is_pushed_and_loads_from_the_hub(hub, tiny_base, discs, tmp_path, monkeypatch, capsys):
    monkeypatch.setenv("HF_TOKEN", TOKEN)
    command = ["finetune", str(discs), "--base", str(tiny_base), "--out", str(tmp_path / "out")]
    assert main([*command, "--workers", "0", "--push-to-hub", REPO]) == 0
    assert f"Uploaded to {hub.url}/{REPO}" in capsys.readouterr().out
    assert torch.equal(weights(vit.load(REPO)), weights(vit.load(tmp_path / "out")))
    names = set(hub.files(REPO))
    assert {"README.md", "config.json", "model.safetensors", "curves.png", "confusion.png"} <= names
    assert hub.files(REPO)["README.md"].startswith(b"---\nlibrary_name: vit-explorer\n")


def test_a_push_that_fails_loses_nothing(hub, tiny_base, discs, tmp_path, capsys, monkeypatch):
    monkeypatch.setenv("HF_TOKEN", "hf_another")
    command = ["finetune", str(discs), "--base", str(tiny_base), "--out", str(tmp_path / "out")]
    assert main([*command, "--workers", "0", "--push-to-hub", REPO]) == 1
    error = capsys.readouterr().err
    assert "The Hub does not accept the token" in error and f"hf upload {REPO} {tmp_path / 'out'}" in error
    assert vit.load(tmp_path / "out").labels == ["blue disc", "green disc", "red disc"]
