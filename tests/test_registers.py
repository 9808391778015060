"""Registers in place of sinks: models whose one sink is planted by hand, then a real one.

The functions are asked for as `registers.…`, for pytest would take `test_time_registers` for a test.
"""

import copy
import json
from contextlib import contextmanager
from dataclasses import replace

import numpy as np
import pytest
import safetensors.torch
import torch
from conftest import SKIMAGE, randomise
from PIL import Image

import vit
from vit import registers
from vit.__main__ import main
from vit.familiarity import TrainingFeatures
from vit.finetune.objective import Objective
from vit.finetune.recipe import Recipe
from vit.model import RegisterNeurons
from vit.photos.examples import example_photos

CAT = SKIMAGE / "chelsea.png"
EXAMPLES = example_photos()
SINK, CONTENT = 9, 4  # of the patches of a 4 × 4 grid
LAYER, NEURON = 1, 5  # what makes the sink
QUICK = ["--workers", "0"]
ALL = ["--train", "all", "--batch-size", "16", "--epochs", "1"]


def sink_classifier(places=(SINK,), labels=("bright", "dark"), by_neuron=True, **options) -> vit.Classifier:
    """Weights set by hand: the places become sinks, and the last layer's class token looks at these alone.

    In the first layer it looks at patch CONTENT, by whose brightness it decides.
    """
    sizes = dict(image_size=32, patch_size=8, width=16, heads=1, mlp_width=8, layers=3, classes=len(labels))
    model = vit.ViT(vit.ViTConfig(**{**sizes, **options})).eval()
    first = model.config.placed_tokens
    with torch.no_grad():
        for name, parameter in model.named_parameters():
            parameter.copy_(torch.ones_like(parameter) if "norm.weight" in name else torch.zeros_like(parameter))
        # Channel 0 marks the class token, 1 the sinks, 2 other patches, 6 CONTENT; 3 carries a patch's brightness.
        model.position_embedding[0, :first, 0] = 4
        model.position_embedding[0, first:, 2] = 4
        model.position_embedding[0, first + CONTENT, 6] = 4
        model.position_embedding[0, first:, 8:] = torch.linspace(-0.2, 0.2, 128).view(16, 8)  # no two are alike
        for place in places:
            model.position_embedding[0, first + place, 1:3] = torch.tensor([4.0, 0.0])
            if not by_neuron:
                model.position_embedding[0, first + place, 4] = 200
        model.patch_embedding.projection.weight[3] = 1 / (3 * 8 * 8)
        mlp = model.blocks[LAYER].mlp
        if by_neuron:
            mlp.fc1.weight[NEURON, 1], mlp.fc1.bias[NEURON] = 2, -4
            mlp.fc2.weight[4, NEURON] = 50
        mlp.fc1.weight[2, 2], mlp.fc2.weight[5, 2] = 2, 3  # a neuron that writes to all patches
        for attention, key in ((model.blocks[0].attention, 6), (model.blocks[-1].attention, 4)):
            attention.qkv.weight[0, 0] = attention.qkv.weight[16, key] = 2
            attention.qkv.weight[32 + 3, 3] = 1
            attention.out.weight.copy_(torch.eye(16))
        if labels:
            model.head.weight[:, 3] = torch.linspace(1, -1, len(labels))
    return vit.Classifier(model, list(labels), vit.Preprocessing((32, 32)))


@pytest.fixture(scope="module")
def noise() -> list[Image.Image]:
    generator = torch.Generator().manual_seed(4)
    return [
        Image.fromarray(torch.randint(0, 256, (32, 32, 3), generator=generator, dtype=torch.uint8).numpy())
        for _ in range(5)
    ]


def images_of(classifier, photos):
    return torch.stack([classifier.preprocessing(photo) for photo in photos])


def given_registers(classifier, photos):
    """The classifier with registers, and what was reported."""
    reports = []
    result = classifier.with_registers(photos, reports.append)
    [report] = reports
    return result, report


def test_a_planted_sink_is_found_and_is_gone(noise):
    plain = sink_classifier()
    mended, report = given_registers(plain, noise)
    assert report.neurons == mended.model.config.register_neurons == ((LAYER, NEURON),)
    assert report.sinks == (1, 0) and report.look[0] > 0.99 and report.look[1] < 0.01
    for photo in noise:
        assert plain.explain(photo).outliers(4)[1].flatten(1).any(0).nonzero().tolist() == [[SINK]]
        assert not mended.explain(photo).outliers(4)[1].any()
    assert str(report).startswith("Sinks a photo: 1.0, with registers 0.0; look at their places: ")
    assert mended.labels == plain.labels and mended.preprocessing == plain.preprocessing


def test_each_photos_pass_of_the_search_has_a_turn(noise, monkeypatch):
    """Visitors who want an answer come in between."""
    turns, passes, record = [], [], vit.ViT.record

    @contextmanager
    def turn():
        turns.append(True)
        yield
        turns.append(False)

    def watched(self, images, layers=None):
        passes.append((len(images), turns[-1]))
        return record(self, images, layers)

    monkeypatch.setattr(vit.ViT, "record", watched)
    mended = sink_classifier().with_registers(noise, turn=turn)
    assert mended.model.config.register_neurons == ((LAYER, NEURON),)
    assert set(passes) == {(1, True)} and len(passes) == 9 * len(noise)


def test_the_registers_hold_what_the_sink_held(noise):
    plain = sink_classifier()
    mended = plain.with_registers(noise)
    before, after = plain.explain(noise[0]), mended.explain(noise[0])
    assert after.prefix == ("class", "register 1", "register 2", "register 3", "register 4")
    largest = before.tokens[-1, 1 + SINK].norm()
    for register in after.tokens[-1, 1:5]:
        torch.testing.assert_close(register.norm(), largest, rtol=1e-2, atol=0)
    torch.testing.assert_close(after.attention.sum(-1), torch.ones(3, 1, 21), rtol=0, atol=1e-5)
    assert before.class_attention()[-1].flatten()[SINK] > 0.99
    elsewhere = after.class_attention_elsewhere()
    assert sum(elsewhere[name][-1] for name in after.prefix[1:]) > 0.99


def test_relevance_finds_its_way_through_the_registers(noise):
    plain = sink_classifier()
    mended = plain.with_registers(noise)
    before, after = (one.explain(noise[0]).relevance("dark").flatten() for one in (plain, mended))
    assert after.argmax() == CONTENT and after[SINK] < 1e-3 * after[CONTENT]
    assert before[SINK] > 10 * after[SINK]
    assert all(weights.grad is None for weights in mended.model.parameters())


def test_the_plain_model_is_left_as_it_was(noise):
    plain = sink_classifier()
    state, images = copy.deepcopy(plain.model.state_dict()), images_of(plain, noise)
    config, logits = plain.model.config, plain.model(images)
    mended = plain.with_registers(noise)
    mended.explain(noise[0]).relevance()
    assert mended is not plain and mended.model is not plain.model and plain.model.config is config
    assert not config.registers and not config.register_neurons
    for name, weights in plain.model.state_dict().items():
        assert torch.equal(weights, state.pop(name)), name
    assert not state
    assert torch.equal(plain.model(images), logits) and not torch.equal(mended.model(images), logits)
    for model in (plain.model, mended.model):
        assert not any(module._forward_hooks or module._forward_pre_hooks for module in model.modules())


def test_neurons_write_the_largest_of_the_patches_to_the_registers():
    config = vit.ViTConfig(
        **dict(image_size=(8, 24), patch_size=8, width=4, heads=1, mlp_width=4, layers=1, classes=2),
        **dict(distillation=True, registers=2, register_neurons=((0, 1), (0, 3))),
    )
    activation = torch.tensor(
        [
            [1.0, 2.0, 3.0, 4.0],  # the class token
            [5.0, 6.0, 7.0, 8.0],  # the distillation token
            [0.1, 0.2, 0.3, 0.4],  # two registers
            [0.5, 0.6, 0.7, 0.8],
            [1.0, -1.0, 2.0, 9.0],  # three patches
            [3.0, -5.0, 4.0, 7.0],
            [5.0, -2.0, 6.0, 8.0],
        ]
    )
    expected = torch.tensor(
        [
            [1.0, 2.0, 3.0, 4.0],
            [5.0, 6.0, 7.0, 8.0],
            [0.1, -1.0, 0.3, 9.0],
            [0.5, -1.0, 0.7, 9.0],
            [1.0, 0.0, 2.0, 0.0],
            [3.0, 0.0, 4.0, 0.0],
            [5.0, 0.0, 6.0, 0.0],
        ]
    )
    given = torch.stack([activation, 2 * activation])
    untouched = given.clone()
    assert torch.equal(RegisterNeurons(config, [1, 3])(given), torch.stack([expected, 2 * expected]))
    assert torch.equal(given, untouched)
    [block] = vit.ViT(config).blocks
    assert block.mlp.to_registers.neurons == [1, 3]


def test_only_the_layer_that_a_neuron_is_in_writes_to_registers(noise):
    blocks = sink_classifier().with_registers(noise).model.blocks
    assert [isinstance(block.mlp.to_registers, RegisterNeurons) for block in blocks] == [False, True, False]


def test_a_model_without_sinks_is_left_as_it_is(noise):
    plain = sink_classifier(places=())
    result, report = given_registers(plain, noise)
    assert result is plain and report.model is plain.model
    assert str(report) == "This checkpoint has no sinks (0.0 a photo): it is left as it is."


def test_a_model_that_has_registers_is_left_as_it_is(noise):
    plain = sink_classifier(registers=2)
    result, report = given_registers(plain, noise)
    assert result is plain and report.sinks == (1, 1)
    assert str(report) == "This checkpoint has registers already: it is left as it is."


def test_sinks_that_no_neuron_makes_are_left_alone(noise):
    plain = sink_classifier(by_neuron=False)
    result, report = given_registers(plain, noise)
    assert result is plain and report.sinks == (1, 1) and report.look[0] > 0.9
    assert str(report) == (
        "The sinks of this checkpoint (1.0 a photo) are not made by a few neurons: it is left alone."
    )


def test_what_was_found_is_saved(noise, tmp_path):
    mended = sink_classifier().with_registers(noise)
    vit.save(mended, tmp_path)
    loaded = vit.load(tmp_path)
    assert loaded.model.config == mended.model.config
    assert loaded.model.config.register_neurons == ((LAYER, NEURON),)
    images = images_of(mended, noise)
    assert torch.equal(loaded.model(images), mended.model(images))
    assert loaded.with_registers(noise) is loaded


def test_a_checkpoint_without_a_classifier_gets_registers_too(noise):
    plain = sink_classifier(labels=())
    mended, report = given_registers(plain, noise)
    assert report.neurons == ((LAYER, NEURON),) and report.sinks == (1, 0)
    images = images_of(plain, noise)
    turned = 1 - torch.nn.functional.cosine_similarity(plain.model(images), mended.model(images)).mean().item()
    assert report.change == pytest.approx(turned, abs=1e-6)


def test_without_a_class_token_the_look_is_that_of_all_tokens(noise):
    plain = sink_classifier(class_token=False, pool="mean")
    with torch.no_grad():
        plain.model.blocks[-1].attention.qkv.weight[0, 5] = 2  # the other patches look at the sink
    mended, report = given_registers(plain, noise)
    assert report.neurons == ((LAYER, NEURON),) and report.sinks == (1, 0)
    attention = torch.stack([plain.explain(photo).attention[-1, 0] for photo in noise])  # B, T, T
    assert report.look[0] == pytest.approx(attention[:, :, SINK].mean().item(), abs=1e-6)
    assert report.look[0] > 0.8 and report.look[1] < 0.1 * report.look[0]
    assert mended.explain(noise[0]).prefix == ("register 1", "register 2", "register 3", "register 4")


def test_the_report_says_what_moved(noise):
    plain = sink_classifier()
    mended, report = given_registers(plain, noise)
    images = images_of(plain, noise)
    with torch.no_grad():
        p, q = (one.model(images).softmax(1).numpy() for one in (plain, mended))
    assert report.change == pytest.approx(np.maximum(p - q, 0).sum(1).mean(), abs=1e-6)
    assert report.change > 1e-4


def test_the_model_with_registers_can_be_copied_and_trained(noise):
    model = sink_classifier().with_registers(noise).model
    copied = copy.deepcopy(model)
    images = images_of(sink_classifier(), noise)
    assert torch.equal(copied(images), model(images))
    copied(images)[:, 0].sum().backward()
    assert copied.head.weight.grad.abs().max() > 0
    assert copied.patch_embedding.projection.weight.grad.abs().max() > 0


def test_the_model_with_registers_can_be_frozen_and_freed(noise):
    model = sink_classifier().with_registers(noise).model
    model.requires_grad_(False).requires_grad_(True)


def test_what_the_plain_model_knew_of_its_training_photos_is_left_behind(noise):
    """Their features are not the same with registers."""
    known = TrainingFeatures(torch.zeros(2, 16), torch.eye(16), torch.arange(20.0))
    plain = replace(sink_classifier(), training_features=known)
    assert plain.with_registers(noise).training_features is None and plain.training_features is known


@pytest.mark.parametrize(
    "options, sentence",
    [
        (dict(register_neurons=((0, 1),)), "register_neurons write to registers: set registers as well."),
        (dict(registers=1, register_neurons=((2, 1),)), "There is no neuron 1 in layer 2: register_neurons names one."),
        (
            dict(registers=1, register_neurons=((0, 128),)),
            "There is no neuron 128 in layer 0: register_neurons names one.",
        ),
        (dict(registers=1, register_neurons=((0, -1),)), "There is no neuron -1 in layer 0: register_neurons names"),
    ],
)
def test_neurons_that_cannot_be_get_a_sentence(tiny_config, options, sentence):
    with pytest.raises(ValueError, match=f"^{sentence}"):
        replace(tiny_config, **options)


def test_a_config_from_json_has_the_same_neurons(tiny_config):
    config = replace(tiny_config, registers=1, register_neurons=((1, 7), (0, 3)))
    assert vit.ViTConfig(**json.loads(json.dumps(config.to_dict()))) == config


@pytest.fixture(scope="module")
def mended_imagenet(imagenet):
    return given_registers(imagenet, None)


def test_the_sinks_of_a_real_model_are_gone(imagenet, mended_imagenet):
    """Counted on the tokens and the attention of each photo's own explanation."""
    mended, _ = mended_imagenet
    sinks, before, after = [], [], []
    for photo in EXAMPLES:
        plain, with_registers = imagenet.explain(photo), mended.explain(photo)
        places = plain.outliers(4)[1].any(0)
        before.append(plain.class_attention()[-1][places].sum().item())
        after.append(with_registers.class_attention()[-1][places].sum().item())
        sinks.append([places.sum().item(), with_registers.outliers(4)[1].any(0).sum().item()])
    counts = np.mean(sinks, axis=0)
    assert counts[0] >= 1 and counts[1] <= 0.2
    assert np.mean(before) > 0.2 and np.mean(after) <= 0.02


def test_a_real_model_answers_nearly_as_before(imagenet, mended_imagenet):
    mended, report = mended_imagenet
    assert report.change < 0.1
    firsts = [[one.predict(photo, 1)[0][0] for photo in EXAMPLES] for one in (imagenet, mended)]
    assert sum(a == b for a, b in zip(*firsts)) >= 13


@pytest.fixture
def saved(tmp_path):
    """A folder with a sink's classifier that knows the discs."""
    vit.save(sink_classifier(labels=("blue disc", "green disc", "red disc")), tmp_path / "sink")
    return tmp_path / "sink"


def test_explain_with_registers_says_what_it_did(saved, tmp_path, capsys):
    assert main(["explain", str(CAT), "--model", str(saved), "--registers", "--out", str(tmp_path / "maps")]) == 0
    text = capsys.readouterr().out
    assert text.startswith("Sinks a photo: 1.0, with registers 0.0; ")
    made = json.loads((tmp_path / "maps" / "chelsea" / "maps.json").read_text())
    assert made["tokens_before_patches"] == ["class", "register 1", "register 2", "register 3", "register 4"]
    assert made["architecture"]["register_neurons"] == [[LAYER, NEURON]]


def test_evaluate_with_registers_says_what_it_did(saved, discs, capsys):
    assert main(["evaluate", str(discs), "--model", str(saved), "--registers", "--workers", "0"]) == 0
    text = capsys.readouterr().out
    assert text.startswith("Sinks a photo: 1.0, with registers 0.0; ") and "/24" in text
    assert main(["evaluate", str(discs), "--model", str(saved), "--workers", "0"]) == 0
    assert "Sinks" not in capsys.readouterr().out


def test_a_head_is_trained_on_a_model_with_test_time_registers(discs, noise, tmp_path):
    vit.save(sink_classifier().with_registers(noise), tmp_path / "base")
    command = ["finetune", str(discs), "--base", str(tmp_path / "base"), "--out", str(tmp_path / "out"), *QUICK]
    assert main(command) == 0
    tuned = vit.load(tmp_path / "out")
    assert tuned.model.config.register_neurons == ((LAYER, NEURON),)
    assert not tuned.explain(noise[0]).outliers(4)[1].any()


AROUND = {
    (0, 10): {0: (1, 4), 10: (6, 9, 11, 14)},  # a corner has two neighbours
    (5, 6): {5: (1, 4, 9), 6: (2, 7, 10)},  # sinks side by side are no neighbours
}


@pytest.mark.parametrize("places", AROUND)
def test_registers_take_over_the_places_of_sinks(noise, places):
    plain = sink_classifier(places)
    images = images_of(plain, noise)
    placed = registers.place_registers(plain.model, images.split(2), 2)
    assert placed.from_sinks == 2
    positions = plain.model.position_embedding.detach()[0, 1:]
    moved = placed.model.position_embedding.detach()[0, 1:]
    for register, place in enumerate(places):
        row, column = divmod(place, 4)
        cut = images[:, :, 8 * row : 8 * row + 8, 8 * column : 8 * column + 8]
        expected = positions[place].clone()
        expected[3] += cut.mean()  # the projection is the brightness, in channel 3
        torch.testing.assert_close(placed.model.register_tokens.detach()[0, register], expected, rtol=0, atol=1e-5)
        neighbours = positions[list(AROUND[places][place])].mean(0)
        torch.testing.assert_close(moved[place], neighbours, rtol=0, atol=1e-6)
    others = [place for place in range(16) if place not in places]
    assert torch.equal(moved[others], positions[others])
    assert torch.equal(placed.model.position_embedding[0, 0], plain.model.position_embedding[0, 0])


def test_the_registers_become_the_sinks_instead(noise):
    plain = sink_classifier((0, 10))
    images = images_of(plain, noise)
    state, logits = copy.deepcopy(plain.model.state_dict()), plain.model(images)
    given = registers.place_registers(plain.model, [images], 2).model
    assert registers.find_sinks(plain.model, images).sum(1).tolist() == [2] * 5
    assert not registers.find_sinks(given, images).any()
    tokens = given.record(images, layers=()).tokens[-1].norm(dim=-1)
    assert tokens[:, 1:3].min() > 4 * tokens[:, 3:].median()
    assert all(torch.equal(weights, state[name]) for name, weights in plain.model.state_dict().items())
    assert torch.equal(plain.model(images), logits) and not plain.model.config.registers
    shared = {weights.data_ptr() for weights in plain.model.parameters()}
    assert not any(weights.data_ptr() in shared for weights in given.parameters())


def test_a_place_counts_where_half_of_the_photos_have_a_sink():
    """White patches are the sinks: at 3 in two photos of four, at 7 in one, at 12 in all."""
    classifier = sink_classifier(places=())
    with torch.no_grad():
        mlp = classifier.model.blocks[LAYER].mlp
        classifier.model.patch_embedding.projection.weight[3] = 4 / (3 * 8 * 8)
        mlp.fc1.weight[NEURON, 3], mlp.fc1.bias[NEURON], mlp.fc2.weight[4, NEURON] = 20, -20, 50
    images = torch.zeros(4, 3, 32, 32)
    for photo, whites in enumerate([(3, 12), (3, 12), (7, 12), (12,)]):
        for row, column in (divmod(place, 4) for place in whites):
            images[photo, :, 8 * row : 8 * row + 8, 8 * column : 8 * column + 8] = 1
    assert registers.find_sinks(classifier.model, images).sum(0).nonzero().flatten().tolist() == [3, 7, 12]
    placed = registers.place_registers(classifier.model, images[:, None], 3)
    assert placed.from_sinks == 2
    started, positions = placed.model.register_tokens.detach()[0], classifier.model.position_embedding.detach()[0, 1:]
    white = torch.eye(16)[3] * 4
    torch.testing.assert_close(started[0], positions[3] + white / 2, rtol=0, atol=1e-5)  # grey in half of the photos
    torch.testing.assert_close(started[1], positions[12] + white, rtol=0, atol=1e-5)  # in the order of the places
    assert 0 < started[2].abs().max() < 0.1  # at random


def test_without_sinks_all_registers_start_at_random(tiny_config):
    model = randomise(vit.ViT(tiny_config))
    for batches in ([torch.rand(3, 3, 32, 32)], []):
        placed = registers.place_registers(model, batches, 3)
        assert placed.from_sinks == 0
        tokens = placed.model.register_tokens[0]
        assert tokens.shape == (3, 64) and tokens.unique().numel() == 192 and tokens.abs().max() < 0.2
        assert torch.equal(placed.model.position_embedding, model.position_embedding)


def test_the_penalty_on_sinks_by_hand():
    """Two layers, two photos of four patches, after two tokens that do not count."""
    norms = np.array(
        [
            [[1.0, 1.0, 2.0, 9.0], [2.0, 4.0, 4.0, 7.0]],
            [[1.0, 1.0, 1.0, 1.0], [1.0, 3.0, 3.0, 6.0]],
        ]
    )
    # torch's median of four is the second: 1 and 4, then 1 and 3. Excess over 1.5 times it:
    excess = np.array([[[0, 0, 0.5, 7.5], [0, 0, 0, 0.25]], [[0, 0, 0, 0], [0, 0, 0, 0.5]]])
    tokens = []
    for layer in norms:
        patches = torch.tensor(layer, dtype=torch.float32)[..., None] * torch.tensor([0.6, 0.8])
        tokens.append(torch.cat([torch.full((2, 2, 2), 100.0), patches], dim=1))
    expected = (excess**2).mean()
    assert registers.sink_penalty(tokens, prefix_tokens=2).item() == pytest.approx(expected, rel=1e-5)
    assert registers.sink_penalty(tokens, prefix_tokens=2, margin=9).item() == 0


def penalised(classifier, images):
    """The loss with the penalty on sinks, and without it."""
    targets = torch.tensor([0, 1, 0, 1, 0])
    return [
        Objective(classifier.model, targets, 2, Recipe(sink_penalty=weight))(images, targets)[0]
        for weight in (0.2, 0.0)
    ]


def test_the_loss_of_a_model_with_registers_has_the_penalty_of_its_later_half(noise):
    classifier = sink_classifier(registers=2)
    images = images_of(classifier, noise)
    squares = []
    for tokens in classifier.model.record(images).tokens[1:]:
        norms = tokens[:, 3:].norm(dim=-1).detach().numpy()
        squares.append(np.maximum(norms / np.sort(norms, axis=1)[:, 7:8] - 1.5, 0) ** 2)
    penalty, loss = 0.2 * 5 * np.mean(squares), penalised(classifier, images)
    assert (loss[0] - loss[1]).item() == pytest.approx(penalty, rel=1e-4) and penalty > 1
    loss[0].backward()
    assert classifier.model.blocks[LAYER].mlp.fc2.weight.grad[4, NEURON] > 0  # less of the sink would be better


def test_the_loss_of_a_model_without_registers_has_no_penalty(noise):
    classifier = sink_classifier()
    loss = penalised(classifier, images_of(classifier, noise))
    assert torch.equal(loss[0], loss[1])


@pytest.fixture
def finetune(discs, tmp_path):
    """Runs the command on the discs; the exit code."""

    def run(base, *arguments, out="out"):
        command = ["finetune", str(discs), "--out", str(tmp_path / out), *QUICK]
        return main([*command, *(["--base", str(base)] if base else []), *arguments])

    return run


@pytest.mark.parametrize("train", ["head", "all"])
def test_finetune_gives_a_base_registers(finetune, saved, tmp_path, train):
    assert finetune(saved, *(ALL if train == "all" else []), "--registers", "2") == 0
    tuned = vit.load(tmp_path / "out")
    assert tuned.model.config.registers == 2 and not tuned.model.config.register_neurons
    assert tuned.explain(CAT).prefix == ("class", "register 1", "register 2")
    started = safetensors.torch.load_file(tmp_path / "out" / "model.safetensors")["register_tokens"][0]
    assert started[0, 1] == pytest.approx(4, abs=0.1) and started[1].abs().max() < 0.2  # one sink there was
    assert vit.load(saved).explain(CAT).outliers(4)[1].any()
    assert not tuned.explain(CAT).outliers(4)[1].any()


def test_finetune_from_scratch_has_the_registers_that_it_is_asked_for(finetune, tmp_path, monkeypatch, tiny_config):
    monkeypatch.setattr(
        vit.ViTConfig, "of", lambda name, **options: vit.ViTConfig(**{**tiny_config.to_dict(), **options})
    )
    assert finetune(None, "--from-scratch", "--batch-size", "16", "--epochs", "1", "--registers", "2") == 0
    assert vit.load(tmp_path / "out").model.config.registers == 2


def test_registers_for_a_base_that_has_some_get_a_sentence(finetune, tmp_path, capsys, tiny_config):
    base = vit.Classifier(vit.ViT(replace(tiny_config, registers=3)), ["a", "b", "c"], vit.Preprocessing((32, 32)))
    vit.save(base, tmp_path / "base")
    assert finetune(tmp_path / "base", "--registers", "2") == 1
    assert capsys.readouterr().err == f"vit: {tmp_path / 'base'} has 3 registers of its own: leave --registers out.\n"
    assert not (tmp_path / "out").exists()


def test_one_seed_gives_the_same_registers(finetune, tiny_base, tmp_path):
    for out in ("a", "b"):
        assert finetune(tiny_base, "--registers", "2", out=out) == 0
    a, b = (safetensors.torch.load_file(tmp_path / out / "model.safetensors") for out in "ab")
    assert all(torch.equal(a[name], b[name]) for name in a)


def test_without_registers_a_model_is_what_it_was(tiny_config):
    model = randomise(vit.ViT(tiny_config))
    image = torch.randn(1, 3, 32, 32)
    given = registers.add_register_neurons(model, ((0, 3), (1, 7)))
    assert torch.equal(registers.without_registers(given)(image), model(image))
    own = randomise(vit.ViT(replace(tiny_config, registers=2)))
    z = own.embed(image)[:, [0, *range(3, 19)]]
    for block in own.blocks:
        z = block(z)
    assert torch.allclose(registers.without_registers(own)(image), own.classify(z), atol=1e-5)
