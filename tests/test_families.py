"""For each family: their model, saved as on the Hub, loaded by us; everything we compute equals what they compute."""

import json

import pytest
import timm
import torch
import transformers
from conftest import randomise
from peers import PEERS, SIZES, from_timm, vit_config
from safetensors.torch import load_file, save_file

import vit

SMALL = dict(depth=1, embed_dim=64, num_heads=2)  # of timm's models


@pytest.fixture(scope="module", params=PEERS, ids=str)
def pair(request, tmp_path_factory):
    peer = PEERS[request.param]()
    return peer, vit.load(peer.save(tmp_path_factory.mktemp("peer")))


@pytest.mark.parametrize("size", ["native", "larger"])
@torch.inference_mode()
def test_logits_and_all_attention_equal_theirs(pair, size):
    peer, ours = pair
    images = torch.randn(2, 3, *getattr(peer, size), dtype=peer.dtype)
    logits, attentions = peer.answer(images)
    recording = ours.model.to(peer.dtype).record(images)

    assert logits.std() > 0.1  # a model that says nothing would agree with any other
    torch.testing.assert_close(recording.logits, logits, rtol=0, atol=1e-5)
    torch.testing.assert_close(ours.model(images), logits, rtol=0, atol=1e-5)
    assert len(recording.attention) == len(attentions) == ours.model.config.layers
    for mine, theirs in zip(recording.attention, attentions):
        torch.testing.assert_close(mine, theirs, rtol=0, atol=1e-5)


@pytest.mark.parametrize(
    "name, made",
    [
        ("vit_base_patch16_gap_224", {}),
        ("vit_tiny_patch16_224", dict(num_heads=6)),
        ("vit_tiny_patch16_224", dict(img_size=[128, 160])),
        ("vit_tiny_patch16_224", dict(img_size=[128, 288])),
        ("vit_tiny_patch16_224", dict(img_size=160)),
        ("vit_tiny_patch16_224", dict(global_pool="avg", fc_norm=False)),
        ("vit_tiny_patch16_224", dict(global_pool="avg", fc_norm=True)),
        ("vit_tiny_patch16_224", dict(global_pool="token", fc_norm=True)),
        ("vit_tiny_patch16_224", dict(global_pool="avg", class_token=False)),
        ("vit_tiny_patch16_224", dict(reg_tokens=4)),
        ("vit_tiny_patch16_224", dict(reg_tokens=4, no_embed_class=True)),
        ("vit_tiny_patch16_224", dict(init_values=0.1, qkv_bias=False)),
    ],
)
@torch.inference_mode()
def test_timms_model_args_are_heeded(name, made, tmp_path):
    model = randomise(timm.create_model(name, depth=2, **made))
    timm.models.save_for_hf(model, tmp_path, model_args={**made, "depth": 2}, safe_serialization=True)
    images = torch.randn(1, 3, *model.patch_embed.img_size)
    torch.testing.assert_close(vit.load(tmp_path).model(images), model(images), rtol=0, atol=1e-5)


@pytest.mark.parametrize(
    "made, said",
    [
        (dict(global_pool="max"), "a ViT whose head reads 'max'"),
        (dict(act_layer="relu"), "its model_args set act_layer, which is not known here"),
        (dict(global_pool="avg", pool_include_prefix=True), "its model_args set pool_include_prefix"),
    ],
)
def test_timms_model_args_that_compute_something_else_are_refused(made, said, tmp_path):
    model = timm.create_model("vit_tiny_patch16_224", depth=1, **made)
    timm.models.save_for_hf(model, tmp_path, model_args=made, safe_serialization=True)
    with pytest.raises(vit.CheckpointError, match=said):
        vit.load(tmp_path)


def test_an_old_timm_config_without_an_inner_one(tmp_path):
    PEERS["timm/vit_tiny"]().save(tmp_path)
    config = json.loads((tmp_path / "config.json").read_text())
    inner = config.pop("pretrained_cfg")
    inner.pop("interpolation")
    labels = [f"thing {number}" for number in range(1000)]
    (tmp_path / "config.json").write_text(json.dumps({**config, **inner, "mean": [0.1, 0.2, 0.3], "labels": labels}))
    loaded = vit.load(tmp_path)
    assert loaded.preprocessing == vit.Preprocessing(248, (224, 224), "bicubic", (0.1, 0.2, 0.3))
    assert loaded.labels == labels


def test_nothing_in_a_config_is_as_if_it_were_not_there(tmp_path):
    PEERS["google/vit"]().save(tmp_path)
    config = json.loads((tmp_path / "config.json").read_text())
    nothing = dict.fromkeys(["id2label", "qkv_bias", "model_type", "num_channels"])
    (tmp_path / "config.json").write_text(json.dumps({**config, **nothing, "patch_size": [8, 8]}))
    assert vit.load(tmp_path).labels == ["class 0", "class 1", "class 2"]


@pytest.mark.parametrize(
    "name, labels",
    [
        ("google/vit", ["pizza", "steak", "sushi"]),
        ("google/vit-in21k", []),
        ("facebook/dino", []),
        ("timm/vit_small_patch32, three classes", ["pizza", "steak", "sushi"]),
        ("torchvision", ["class 0", "class 1", "class 2"]),
    ],
)
def test_labels_are_the_checkpoints_own(name, labels, tmp_path):
    assert vit.load(PEERS[name]().save(tmp_path)).labels == labels


def test_a_thousand_classes_without_labels_are_imagenets(tmp_path):
    labels = vit.load(PEERS["timm/vit_tiny"]().save(tmp_path)).labels
    assert (labels[0], labels[281], labels[967], labels[999]) == ("tench", "tabby", "espresso", "toilet tissue")
    synsets = timm.data.ImageNetInfo("imagenet-1k")
    for index in (0, 281, 400, 967, 999):
        assert labels[index] in synsets.index_to_description(index)


def test_timms_label_descriptions_are_read(tmp_path):
    peer = from_timm("vit_small_patch32_224", larger=(256, 320), num_classes=2)
    peer.save(tmp_path)
    config = json.loads((tmp_path / "config.json").read_text())
    config.update(label_names=["n01", "n02"], label_descriptions={"n01": "pizza", "n02": "sushi"})
    (tmp_path / "config.json").write_text(json.dumps(config))
    assert vit.load(tmp_path).labels == ["pizza", "sushi"]


def test_a_file_with_its_config_beside_it_is_the_folder(tmp_path):
    PEERS["google/vit"]().save(tmp_path)
    assert vit.load(tmp_path / "model.safetensors").model.config == vit.load(tmp_path).model.config
    assert vit.load(tmp_path).model.config.norm_eps == 1e-12


def test_half_precision_files_are_computed_in_full(tmp_path):
    PEERS["google/vit"]().save(tmp_path)
    state = load_file(tmp_path / "model.safetensors")
    save_file({name: tensor.half() for name, tensor in state.items()}, tmp_path / "model.safetensors")
    assert {parameter.dtype for parameter in vit.load(tmp_path).model.parameters()} == {torch.float32}


def test_our_own_folder(tmp_path, tiny_config, photos):
    saved = vit.Classifier(
        randomise(vit.ViT(tiny_config)), ["pizza", "steak", "sushi"], vit.Preprocessing(36, (32, 32), "bilinear")
    )
    vit.save(saved, tmp_path / "folder")
    loaded = vit.load(tmp_path / "folder")
    assert (loaded.labels, loaded.preprocessing) == (saved.labels, saved.preprocessing)
    assert loaded.model.config == saved.model.config
    assert loaded.predict(photos[0]) == saved.predict(photos[0])


def test_a_pickle_in_a_wrapper_is_opened(tmp_path):
    peer = PEERS["timm/deit_tiny"]()
    state = load_file(peer.save(tmp_path) / "model.safetensors")
    torch.save({"model": state, "epoch": 3}, tmp_path / "deit_tiny_patch16_224.pth")
    loaded = vit.load(tmp_path / "deit_tiny_patch16_224.pth")
    images = torch.randn(1, 3, 224, 224)
    torch.testing.assert_close(loaded.model(images), peer.answer(images)[0], rtol=0, atol=1e-5)


class TestEveryParameterIsAccountedFor:
    @pytest.fixture
    def broken(self, tmp_path):
        """A loader of a checkpoint whose parameters were changed in the file."""
        PEERS["google/vit"]().save(tmp_path)

        def load(change):
            state = load_file(tmp_path / "model.safetensors")
            change(state)
            save_file(state, tmp_path / "model.safetensors")
            return vit.load(tmp_path)

        return load

    def test_missing(self, broken):
        with pytest.raises(vit.CheckpointError, match=r"Missing: norm\.bias \(64,\)\."):
            broken(lambda state: state.pop("vit.layernorm.bias"))

    def test_a_missing_layer_is_missing_and_not_a_smaller_model(self, broken):
        def change(state):
            for name in [name for name in state if ".layer.2." in name]:
                del state[name]

        with pytest.raises(
            vit.CheckpointError, match=r"Missing: blocks\.2\.attention_norm\.weight.*blocks\.2\.mlp\.fc2\.bias"
        ):
            broken(change)

    def test_left_over(self, broken):
        with pytest.raises(vit.CheckpointError, match=r"Left over: vit\.extra\.weight \(5,\)\."):
            broken(lambda state: state.update({"vit.extra.weight": torch.zeros(5)}))

    def test_another_shape(self, broken):
        with pytest.raises(vit.CheckpointError, match=r"Of another shape: norm\.bias \(63,\) instead of \(64,\)\."):
            broken(lambda state: state.update({"vit.layernorm.bias": torch.zeros(63)}))

    @pytest.mark.parametrize("part", ["query", "key", "value"])
    def test_another_shape_of_one_of_query_key_and_value(self, broken, part):
        name = f"vit.encoder.layer.0.attention.attention.{part}.weight"
        with pytest.raises(vit.CheckpointError, match=rf"left over: .*blocks\.0\.attention\.{part}\.weight \(64, 60\)"):
            broken(lambda state: state.update({name: torch.zeros(64, 60)}))

    @pytest.mark.parametrize(
        "name, said",
        [
            (
                "vit.embeddings.position_embeddings",
                "'position_embedding' has the shape|position_embedding \\(5,\\) instead of",
            ),
            ("vit.embeddings.patch_embeddings.projection.weight", "'patch_embedding.projection.weight' has the shape"),
            ("classifier.weight", "'head.weight' has the shape"),
            ("vit.encoder.layer.0.output.dense.weight", "'blocks.0.mlp.fc2.weight' has the shape"),
            ("vit.encoder.layer.0.intermediate.dense.weight", r"fc1\.weight \(5,\) instead of \(128, 64\)"),
        ],
    )
    def test_another_number_of_dimensions(self, broken, name, said):
        with pytest.raises(vit.CheckpointError, match=said):
            broken(lambda state: state.update({name: torch.zeros(5)}))

    def test_a_missing_matrix_of_the_mlp(self, broken):
        with pytest.raises(vit.CheckpointError, match=r"Missing: blocks\.0\.mlp\.fc1\.weight \(128, 64\)\."):
            broken(lambda state: state.pop("vit.encoder.layer.0.intermediate.dense.weight"))

    def test_all_at_once(self, broken):
        def change(state):
            del state["classifier.bias"]
            state["vit.layernorm.bias"] = torch.zeros(63)
            state["surplus"] = torch.zeros(1)

        with pytest.raises(vit.CheckpointError) as error:
            broken(change)
        for part in ("Missing: head.bias", "left over: surplus", "of another shape: norm.bias"):
            assert part in str(error.value)


class TestWhatIsNotAPlainViTIsRefusedByName:
    @pytest.mark.parametrize(
        "config, model, name",
        [
            ("SwinConfig", "SwinModel", "a Swin Transformer"),
            ("BeitConfig", "BeitModel", "a BEiT"),
            ("ConvNextConfig", "ConvNextModel", "a ConvNeXt"),
            ("ViTMAEConfig", "ViTMAEModel", "a masked autoencoder"),
        ],
    )
    def test_transformers(self, tmp_path, config, model, name):
        made = {"embed_dim": 24, "depths": [1, 1], "num_heads": [2, 2]} if "Swin" in config else {}
        if config in ("BeitConfig", "ViTMAEConfig"):
            made = {**SIZES, "intermediate_size": 128}
        if config == "ConvNextConfig":
            made = {"hidden_sizes": [8, 8, 8, 8], "depths": [1, 1, 1, 1]}
        getattr(transformers, model)(getattr(transformers, config)(**made)).save_pretrained(tmp_path)
        with pytest.raises(vit.CheckpointError, match=f"This is {name}.*not a plain ViT"):
            vit.load(tmp_path)

    @pytest.mark.parametrize(
        "config, model", [("Dinov2Config", "Dinov2Model"), ("Dinov2WithRegistersConfig", "Dinov2WithRegistersModel")]
    )
    @pytest.mark.parametrize("with_config", [True, False])
    def test_swiglu_dinov2(self, tmp_path, config, model, with_config):
        made = getattr(transformers, config)(use_swiglu_ffn=True, **SIZES)
        getattr(transformers, model)(made).save_pretrained(tmp_path)
        if not with_config:
            (tmp_path / "config.json").unlink()
        with pytest.raises(vit.CheckpointError, match="SwiGLU in place of the MLP, such as DINOv2-giant"):
            vit.load(tmp_path)

    @pytest.mark.parametrize(
        "architecture, made, name",
        [
            ("swin_tiny_patch4_window7_224", dict(depths=(1, 1), num_heads=(1, 2), embed_dim=32), "a Swin Transformer"),
            ("beit_base_patch16_224", SMALL, "a BEiT"),
            ("vit_base_patch32_clip_224", SMALL, "a CLIP model"),
            ("vit_base_patch16_siglip_224", SMALL, "a SigLIP model"),
            ("vit_base_patch16_rpn_224", SMALL, "norms after the blocks"),
            ("vit_relpos_small_patch16_224", SMALL, "relative positions"),
            ("eva02_tiny_patch14_224", SMALL, "an EVA"),
            ("resnet18", {}, "another kind of model"),
        ],
    )
    def test_timm(self, tmp_path, architecture, made, name):
        timm.models.save_for_hf(timm.create_model(architecture, **made), tmp_path, safe_serialization=True)
        with pytest.raises(vit.CheckpointError, match=f"This is .*{name}"):
            vit.load(tmp_path)

    @pytest.mark.parametrize(
        "architecture, made, name",
        [
            ("swin_tiny_patch4_window7_224", dict(depths=(1, 1), num_heads=(1, 2), embed_dim=32), "Swin"),
            ("beit_base_patch16_224", SMALL, "BEiT"),
            ("vit_base_patch32_clip_224", SMALL, "CLIP"),
            ("vit_giant_patch14_dinov2", dict(SMALL, img_size=28, mlp_ratio=4), "SwiGLU"),
            ("vit_small_patch16_18x2_224", SMALL, "parallel blocks"),
            ("resnet18", {}, "ResNet"),
        ],
    )
    def test_a_bare_file(self, tmp_path, architecture, made, name):
        save_file(timm.create_model(architecture, **made).state_dict(), tmp_path / "weights.safetensors")
        with pytest.raises(vit.CheckpointError, match=name):
            vit.load(tmp_path / "weights.safetensors")

    def test_another_activation(self, tmp_path):
        transformers.ViTModel(vit_config(hidden_act="relu")).save_pretrained(tmp_path)
        with pytest.raises(vit.CheckpointError, match="'relu' in place of GELU"):
            vit.load(tmp_path)

    def test_a_file_of_something_else(self, tmp_path):
        save_file({"embedding.weight": torch.zeros(2, 3)}, tmp_path / "words.safetensors")
        with pytest.raises(vit.CheckpointError, match="None of its parameters is a ViT's patch projection"):
            vit.load(tmp_path / "words.safetensors")
