"""Files and folders on this machine that cannot be loaded; what the Hub can do wrong is in test_hub.py."""

import pickle

import pytest
import torch
from conftest import randomise
from safetensors.torch import save_file

import vit


@pytest.fixture
def folder(tmp_path, tiny_config):
    classifier = vit.Classifier(randomise(vit.ViT(tiny_config)), ["a", "b", "c"], vit.Preprocessing((32, 32)))
    vit.save(classifier, tmp_path)
    return tmp_path


@pytest.mark.parametrize("source", ["nowhere/at/all", "missing.safetensors", "./missing", "missing.pth"])
def test_a_path_that_is_not_there(source):
    with pytest.raises(vit.CheckpointError, match=r"There is no file or folder .*: check the path"):
        vit.load(source)


def test_a_folder_without_weights(tmp_path):
    with pytest.raises(vit.CheckpointError, match=r"should hold model\.safetensors, but there is none"):
        vit.load(tmp_path)


def test_a_folder_with_one_file_of_another_name(folder):
    (folder / "model.safetensors").rename(folder / "epoch_9.safetensors")
    assert vit.load(folder).labels == ["a", "b", "c"]


def test_a_truncated_file(folder):
    weights = folder / "model.safetensors"
    weights.write_bytes(weights.read_bytes()[:-100])
    with pytest.raises(vit.CheckpointError, match=r"model\.safetensors is not a file of weights, or is damaged"):
        vit.load(folder)


@pytest.mark.parametrize("name", ["model.safetensors", "pytorch_model.bin", "weights.pth"])
@pytest.mark.parametrize("content", [b"", b"hello", bytes(1000)])
def test_a_file_of_something_else(tmp_path, name, content):
    (tmp_path / name).write_bytes(content)
    with pytest.raises(
        vit.CheckpointError, match=r"is not a file of weights, or is damaged|holds more than plain tensors"
    ):
        vit.load(tmp_path / name)


@pytest.mark.parametrize(
    "index, said",
    [
        ("{}", r"index\.json does not say which files hold the weights"),
        ('{"weight_map": {"a": ["b"]}}', r"index\.json does not say which files hold the weights"),
        ('{"weight_map": {"a": "../b.safetensors"}}', r"index\.json does not say which files hold the weights"),
        ('{"weight_map": {"a": "model.safetensors.index.json"}}', r"index\.json does not say which files"),
        (
            '{"weight_map": {"norm.weight": "part-2.safetensors"}}',
            r"part-2\.safetensors is missing: its index names it",
        ),
    ],
)
def test_an_index_that_leads_nowhere(folder, index, said):
    (folder / "model.safetensors").unlink()
    (folder / "model.safetensors.index.json").write_text(index)
    with pytest.raises(vit.CheckpointError, match=said):
        vit.load(folder)


def test_a_pickle_never_runs_code(tmp_path):
    class Trap:
        def __reduce__(self):
            return (open, (str(tmp_path / "sprung"), "w"))

    torch.save({"weight": Trap()}, tmp_path / "trap.pth")
    (tmp_path / "plain.pt").write_bytes(pickle.dumps(Trap()))
    for name in ("trap.pth", "plain.pt"):
        with pytest.raises(vit.CheckpointError, match="holds more than plain tensors, and opening it could run code"):
            vit.load(tmp_path / name)
    assert not (tmp_path / "sprung").exists()


def test_a_pickle_of_other_things(tmp_path):
    torch.save([1, 2, 3], tmp_path / "list.pth")
    with pytest.raises(vit.CheckpointError, match="holds something other than a model's parameters"):
        vit.load(tmp_path / "list.pth")


@pytest.mark.parametrize(
    "text, said", [("{", r"config\.json cannot be read"), ("[]", r"config\.json must hold a JSON object")]
)
def test_a_config_that_is_none(folder, text, said):
    (folder / "config.json").write_text(text)
    with pytest.raises(vit.CheckpointError, match=said):
        vit.load(folder)


@pytest.mark.parametrize(
    "change, said",
    [
        ('"heads": 2', r"What the checkpoint says of itself cannot be built: 5 heads do not divide the width 64"),
        ('"image_size"', r"cannot be built: .*pixels"),
        ('"labels"', r"cannot be built: config\.json lacks 'labels'\."),
    ],
)
def test_a_config_with_wrong_settings(folder, change, said):
    text = (folder / "config.json").read_text()
    (folder / "config.json").write_text(text.replace(change, '"heads": 5' if "heads" in change else '"pixels"'))
    with pytest.raises(vit.CheckpointError, match=said):
        vit.load(folder)


def test_a_label_too_few(folder):
    text = (folder / "config.json").read_text()
    (folder / "config.json").write_text(text.replace('"c"\n', "").replace('"b",', '"b"'))
    with pytest.raises(vit.CheckpointError, match="2 labels for 3 classes"):
        vit.load(folder)


def test_heads_that_cannot_be_told(tmp_path, tiny_config):
    config = vit.ViTConfig(**{**tiny_config.to_dict(), "width": 96, "heads": 3})
    save_file(vit.ViT(config).state_dict(), tmp_path / "bare.safetensors")
    with pytest.raises(vit.CheckpointError, match=r"number of heads of a model 96 wide .* put a config\.json beside"):
        vit.load(tmp_path / "bare.safetensors")
