"""Fewer bits for what is predicted; what is explained, saved and trained stays float32."""

import pickle
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager

import pytest
import torch
from conftest import SKIMAGE, randomise
from PIL import Image

import vit
from benchmarks import precision as benchmark
from vit import precision
from vit.photos.examples import example_photos
from vit.precision import Int8Linear

CAT = SKIMAGE / "chelsea.png"
FEWER = ("bfloat16", "int8")


@pytest.fixture
def able(monkeypatch):
    """A CPU that has the instructions, or says so: what is computed is the same without."""
    monkeypatch.setattr(precision, "cpu_flags", lambda: frozenset({"avx512_bf16", "avx512_vnni"}))


@pytest.fixture
def tiny(tiny_config, able):
    def make(name: str, **settings) -> vit.Classifier:
        config = vit.ViTConfig(**{**tiny_config.to_dict(), **settings})
        model = randomise(vit.ViT(config))
        return vit.Classifier(model, ["pizza", "steak", "sushi"], vit.Preprocessing(36, (32, 32)), precision=name)

    return make


@pytest.mark.parametrize("bias", [True, False])
def test_int8_is_within_half_a_step_of_every_factor(bias):
    """Beside float64: each product w·x of numbers that are off by half a step at most, for a sink among tokens too."""
    linear = torch.nn.Linear(48, 40, bias=bias)
    z = torch.randn(2, 9, 48)
    z[0, 3] *= 500  # a sink
    z[1, 4] = 0
    found = Int8Linear(linear)(z).double()
    w, x = linear.weight.detach().double(), z.double()
    expected = torch.einsum("oi,bti->bto", w, x) + (linear.bias.detach().double() if bias else 0)
    w_step, x_step = w.abs().amax(1) / 127, x.abs().amax(-1, keepdim=True) / 127
    bound = x.abs().sum(-1, keepdim=True) * w_step / 2 + x_step / 2 * w.abs().sum(1) + 48 * w_step * x_step / 4
    assert found.shape == expected.shape
    assert ((found - expected).abs() <= bound * 1.001 + 1e-6).all()
    # The sink costs the others nothing: their error is theirs alone.
    alone = Int8Linear(linear)(z[:, 5:]).double()
    torch.testing.assert_close(found[:, 5:], alone, rtol=0, atol=0)


@pytest.mark.parametrize("name", FEWER)
def test_what_is_explained_is_exact(tiny, name):
    exact, fast = tiny("float32"), tiny(name)
    assert exact.predict(CAT) != fast.predict(CAT)
    ours, theirs = exact.explain(CAT), fast.explain(CAT)
    for what in ("probabilities", "attention", "tokens", "lens"):
        assert torch.equal(getattr(ours, what), getattr(theirs, what))
    assert torch.equal(ours.relevance("steak"), theirs.relevance("steak"))
    assert exact.familiarity(CAT) == fast.familiarity(CAT)


@pytest.mark.parametrize("name", FEWER)
def test_the_examples_are_named_as_before(able, name):
    exact, fast = vit.load(), vit.load(precision=name)
    for photo in example_photos():
        [(label, probability), *_] = exact.predict(photo)
        [(fast_label, fast_probability), *_] = fast.predict(photo)
        assert fast_label == label and fast_probability == pytest.approx(probability, abs=0.05)


@pytest.mark.parametrize(
    "settings", [{}, {"qkv_bias": False}, {"layer_scale": 0.5}, {"registers": 2, "register_neurons": ((0, 5),)}]
)
@pytest.mark.parametrize("name", FEWER)
def test_every_kind_of_block(tiny, name, settings):
    images = torch.randn(2, 3, 32, 48)
    exact, fast = (tiny(each, **settings).logits(images).softmax(dim=1) for each in ("float32", name))
    torch.testing.assert_close(fast, exact, rtol=0, atol=0.05)
    assert fast.dtype == torch.float32 and not torch.equal(fast, exact)


@pytest.mark.parametrize("most", [precision.MOST_LOOKS, 0], ids=["not fused", "too many looks for that"])
def test_attention_in_bfloat16_is_as_near_as_its_numbers_allow(monkeypatch, most):
    """Beside float64: what is rounded on the way is less than a hundredth of what is there."""
    monkeypatch.setattr(precision, "MOST_LOOKS", most)
    q, k, v = torch.randn(3, 2, 3, 19, 16, generator=torch.Generator().manual_seed(1))
    look = torch.einsum("bhqd,bhkd->bhqk", q.double(), k.double()) / 16**0.5
    expected = look.softmax(dim=-1) @ v.double()
    found = precision.attend_in_bfloat16(q, k, v)
    assert found.dtype == torch.float32
    torch.testing.assert_close(found.double(), expected, rtol=0, atol=0.01 * v.abs().max().item())


def test_int8_has_bfloat16_where_the_cpu_has(tiny, monkeypatch):
    """After the MLP's neurons, and in attention; elsewhere all products are of whole numbers."""
    kinds = []
    for flags in ({"avx512_vnni", "avx512_bf16"}, {"avx512_vnni"}):
        monkeypatch.setattr(precision, "cpu_flags", lambda flags=flags: frozenset(flags))
        block = precision.Encoder(tiny("int8").model, "int8").blocks[1]
        kinds.append([type(each).__name__ for each in (block.mlp.fc1, block.mlp.fc2)])
        kinds[-1].append(block.attention.fused.__name__)
    fused = torch.nn.functional.scaled_dot_product_attention.__name__
    assert kinds == [["Int8Linear", "Bfloat16Linear", "attend_in_bfloat16"], ["Int8Linear", "Int8Linear", fused]]


@pytest.mark.parametrize("most", [precision.MOST_LOOKS, 0], ids=["in one call", "too many looks for that"])
def test_a_layer_in_one_call_is_that_layer(tiny_config, monkeypatch, most):
    monkeypatch.setattr(precision, "MOST_LOOKS", most)
    block = randomise(vit.ViT(tiny_config)).blocks[0]
    z = torch.randn(2, 17, 64, generator=torch.Generator().manual_seed(1))
    with torch.inference_mode():
        torch.testing.assert_close(precision.WholeBlock(block)(z), block(z), rtol=0, atol=1e-5)


@pytest.mark.parametrize(
    "settings", [{"qkv_bias": False}, {"layer_scale": 0.5}, {"registers": 2, "register_neurons": ((0, 5),)}]
)
def test_what_pytorchs_own_layer_has_not_is_not_left_out(tiny, settings):
    plain, other = (precision.Encoder(tiny("bfloat16", **each).model, "bfloat16") for each in ({}, settings))
    assert isinstance(plain.blocks[0], precision.WholeBlock) and not isinstance(plain.blocks[1], precision.WholeBlock)
    assert not isinstance(other.blocks[0], precision.WholeBlock)


def test_a_model_that_has_learnt_answers_anew(tiny):
    fast = tiny("int8")
    before = fast.predict(CAT)
    with torch.no_grad():
        fast.model.blocks[0].mlp.fc1.weight.mul_(-1)
    assert fast.predict(CAT) != before


def test_saved_and_pickled_it_is_the_model_in_float32(tiny, tmp_path):
    fast = tiny("int8")
    answer = fast.predict(CAT)
    vit.save(fast, tmp_path)
    saved = vit.load(tmp_path)
    assert saved.precision == "float32"
    for name, weights in saved.model.state_dict().items():
        assert weights.dtype == torch.float32 and torch.equal(weights, tiny("float32").model.state_dict()[name])
    copy = pickle.loads(pickle.dumps(fast))
    assert copy.precision == "int8" and copy.predict(CAT) == answer
    assert len(pickle.dumps(fast)) < 1.1 * len(pickle.dumps(tiny("int8")))


def test_registers_keep_the_precision(imagenet, able):
    from dataclasses import replace

    given = replace(imagenet, precision="int8").with_registers()
    assert given.model.config.register_neurons and given.precision == "int8"
    assert given.predict(CAT)[0][0] == imagenet.with_registers().predict(CAT)[0][0]


def test_auto_without_instructions_is_float32_and_tries_nothing(tiny_config, monkeypatch):
    monkeypatch.setattr(precision, "cpu_flags", lambda: frozenset({"avx2", "fma"}))
    model = randomise(vit.ViT(tiny_config))
    assert precision.choose(model, lambda: pytest.fail("no trial is needed")) == "float32"
    photos = torch.zeros(1, 3, 32, 32)
    for name, flag in (("bfloat16", "avx512_bf16"), ("int8", "avx512_vnni")):
        with pytest.raises(ValueError, match=f"This CPU has no fast {name}, it would be slower than float32: choose"):
            precision.encode(model, photos, name)
        monkeypatch.setattr(precision, "cpu_flags", lambda flag=flag: frozenset({flag}))
        assert precision.encode(model, photos, name).shape == (1, 1, 64)  # what the head reads


CASES = {  # milliseconds in float32, bfloat16, int8, and what is taken
    "the fastest": ((20, 10, 5), "int8"),
    "the more exact of two alike": ((20, 10, 9.5), "bfloat16"),
    "float32 where others are no faster": ((20, 100, 19), "float32"),
    "int8 where bfloat16 is slow": ((20, 100, 9), "int8"),
}


@pytest.mark.parametrize("case", CASES)
def test_auto_takes_the_fastest_that_says_the_same(tiny, monkeypatch, case):
    milliseconds, expected = CASES[case]
    clock = iter([moment for _ in range(3) for each in milliseconds for moment in (0.0, each / 1e3)])
    monkeypatch.setattr(precision.time, "perf_counter", lambda: next(clock))
    assert precision.choose(tiny("auto").model, lambda: torch.randn(3, 3, 32, 32)) == expected


def test_auto_takes_nothing_that_says_something_else(tiny, monkeypatch):
    class Rough(Int8Linear):
        def forward(self, z):
            return super().forward(z).flip(-1)

    clock = iter([0.0, 20.0, 0.0, 10.0, 0.0, 1.0])
    monkeypatch.setattr(precision, "Int8Linear", Rough)
    monkeypatch.setattr(precision.time, "perf_counter", lambda: next(clock))
    assert precision.choose(tiny("auto").model, lambda: torch.randn(1, 3, 32, 32)) == "bfloat16"


def test_the_trial_runs_once_for_a_model(tiny, monkeypatch):
    asked = []
    monkeypatch.setattr(precision, "choose", lambda model, photos, turn: asked.append(len(photos())) or "bfloat16")
    auto, exact = tiny("auto"), tiny("bfloat16")
    with Image.open(CAT) as photo:
        assert auto.predict(photo) == auto.predict(photo) == exact.predict(photo)
    assert auto.settled().precision == "bfloat16" and auto.precision == "auto"
    assert asked == [len(example_photos())]


def test_the_trial_runs_once_though_many_ask_and_each_pass_has_a_turn(tiny, monkeypatch):
    turns, passes, choose = [], [], precision.choose

    @contextmanager
    def turn():
        turns.append(len(passes))
        yield
        assert len(passes) == turns[-1] + 1

    answer = precision._answer
    monkeypatch.setattr(precision, "_answer", lambda *given: passes.append(1) or answer(*given))
    chosen = []
    monkeypatch.setattr(precision, "choose", lambda *given: chosen.append(1) or choose(*given))
    auto = tiny("auto")
    with ThreadPoolExecutor(4) as threads:
        found = {each.precision for each in threads.map(lambda _: auto.settled(turn), range(4))}
    assert len(found) == len(chosen) == 1 and len(passes) == len(turns) >= 12
    auto.predict(CAT)
    assert len(chosen) == 1


def test_auto_takes_nothing_that_changes_one_answer_of_the_examples(able, monkeypatch):
    """With whole numbers throughout FoodVision Mini names 12 of the 14 as before: though that be the fastest."""
    monkeypatch.setattr(precision, "Bfloat16Linear", Int8Linear)
    mini = vit.load("foodvision-mini", precision="auto")
    photos = example_photos()
    expected = [mini.explain(photo).probabilities.argmax() for photo in photos]
    seconds = {"float32": 20.0, "bfloat16": 10.0, "int8": 5.0}
    monkeypatch.setattr(precision, "_fastest", lambda names: min(names, key=seconds.__getitem__))
    chosen = mini.settled()
    found = [mini.labels.index(chosen.predict(photo)[0][0]) for photo in photos]
    assert chosen.precision == "bfloat16" and found == expected


def test_a_wrong_name_gets_a_sentence(tiny):
    said = "There is no precision 'float8': choose one of float32, bfloat16, int8, auto."
    with pytest.raises(ValueError, match=said):
        vit.load("no/such-model", precision="float8")
    with pytest.raises(ValueError, match=said):
        tiny("float8").predict(CAT)


def test_the_benchmark_takes_the_examples_whose_dish_is_known_where_other_photos_are_missing(monkeypatch, tmp_path):
    monkeypatch.setattr(benchmark, "DISHES", tmp_path / "missing.zip")
    classifier = vit.load("foodvision-101")
    photos = benchmark.test_photos(tmp_path, classifier, 1)
    named = [(file.stem, classifier.labels[target]) for file, target in zip(photos.files, photos.targets)]
    assert len(named) == 6 and ("pizza", "pizza") in named and ("cup_cakes", "cup cakes") in named
