import pytest
import torch
from conftest import randomise
from torch import nn

from vit import ViT, ViTConfig
from vit.model import MultiheadSelfAttention, PatchEmbedding, TransformerEncoderBlock

IMAGE = torch.randn(2, 3, 32, 32, generator=torch.Generator().manual_seed(2))

OPTIONS = {
    "plain": {},
    "layer scale": dict(layer_scale=0.5),
    "registers": dict(registers=3),
    "no head": dict(classes=0),
    "mean": dict(pool="mean"),
    "mean without class token": dict(pool="mean", class_token=False),
    "mean of norm": dict(pool="mean of norm"),
    "class + mean": dict(pool="class + mean", registers=2),
    "distilled": dict(distillation=True, distillation_head=True),
    "no qkv bias": dict(qkv_bias=False),
    "stem": dict(stem=(1, 1), image_size=32),
    "register neurons": dict(registers=2, register_neurons=((0, 5), (1, 7))),  # in the last layer, too
}


@pytest.fixture(scope="module", params=OPTIONS, ids=str)
def model(request, tiny_config):
    settings = {**tiny_config.to_dict(), **OPTIONS[request.param]}
    return randomise(ViT(ViTConfig(**settings)))


def test_what_the_head_does_not_read_changes_nothing_and_is_not_computed(model):
    whole, read = model.encode(IMAGE), model.encode_read(IMAGE)
    torch.testing.assert_close(model.classify(read), model.classify(whole), rtol=0, atol=1e-5)
    kept = read.shape[1]
    torch.testing.assert_close(read, whole[:, :kept], rtol=0, atol=1e-5)
    noise = torch.randn_like(whole)
    noise[:, :kept] = whole[:, :kept]
    assert torch.equal(model.classify(noise), model.classify(whole))  # so many are enough
    if kept < whole.shape[1]:
        noise = whole.clone()
        noise[:, kept - 1] += 1
        assert not torch.equal(model.classify(noise), model.classify(whole))  # and none is too many


@pytest.mark.parametrize("name, parameters", [("B/16", 86_567_656), ("L/16", 304_326_632), ("H/14", 632_045_800)])
def test_the_papers_models_have_as_many_parameters_as_published(name, parameters):
    with torch.device("meta"):
        model = ViT(ViTConfig.of(name, classes=1000))
    assert sum(parameter.numel() for parameter in model.parameters()) == parameters


def test_patches_are_cut_row_by_row_and_projected(tiny_config):
    embedding = randomise(PatchEmbedding(tiny_config))
    patches = embedding(IMAGE)
    weight, bias = embedding.projection.weight.flatten(1), embedding.projection.bias
    for number in range(16):
        row, column = divmod(number, 4)
        pixels = IMAGE[:, :, 8 * row : 8 * row + 8, 8 * column : 8 * column + 8].flatten(1)
        torch.testing.assert_close(patches[:, number], pixels @ weight.T + bias, rtol=0, atol=1e-5)


def test_attention_is_what_pytorchs_own_module_computes(tiny_config):
    ours = randomise(MultiheadSelfAttention(tiny_config))
    theirs = nn.MultiheadAttention(tiny_config.width, tiny_config.heads, batch_first=True).eval()
    theirs.load_state_dict(
        {
            "in_proj_weight": ours.qkv.weight,
            "in_proj_bias": ours.qkv.bias,
            "out_proj.weight": ours.out.weight,
            "out_proj.bias": ours.out.bias,
        }
    )
    z = torch.randn(2, 5, tiny_config.width)
    out, attention = theirs(z, z, z, average_attn_weights=False)
    recorded: list[torch.Tensor] = []
    torch.testing.assert_close(ours(z, recorded), out, rtol=0, atol=1e-5)
    torch.testing.assert_close(recorded, [attention], rtol=0, atol=1e-6)
    torch.testing.assert_close(ours(z), out, rtol=0, atol=1e-5)


@pytest.mark.parametrize("record", [False, True])
def test_an_encoder_block_is_pytorchs_own_layer_with_the_norm_first(tiny_config, record):
    ours = randomise(TransformerEncoderBlock(tiny_config, layer=0))
    theirs = nn.TransformerEncoderLayer(
        tiny_config.width,
        tiny_config.heads,
        tiny_config.mlp_width,
        dropout=0.0,
        activation="gelu",
        layer_norm_eps=tiny_config.norm_eps,
        batch_first=True,
        norm_first=True,
    ).eval()
    names = {
        "attention.qkv.": "self_attn.in_proj_",
        "attention.out.": "self_attn.out_proj.",
        "mlp.fc1.": "linear1.",
        "mlp.fc2.": "linear2.",
        "attention_norm.": "norm1.",
        "mlp_norm.": "norm2.",
    }
    state = {}
    for name, tensor in ours.state_dict().items():
        start = next(start for start in names if name.startswith(start))
        state[name.replace(start, names[start])] = tensor
    theirs.load_state_dict(state)
    z = torch.randn(2, 7, tiny_config.width)
    torch.testing.assert_close(ours(z, [] if record else None), theirs(z), rtol=0, atol=1e-5)


@pytest.mark.parametrize("size", [(32, 32), (48, 80)])
def test_recording_gives_the_same_logits_and_rows_that_sum_to_one(model, size):
    images = torch.randn(2, 3, *size)
    recording = model.record(images)
    config = model.config
    T = config.prefix_tokens + size[0] // 8 * (size[1] // 8)
    torch.testing.assert_close(recording.logits, model(images), rtol=0, atol=1e-5)
    assert recording.logits.shape == (2, config.classes or config.width)
    assert recording.layers == (0, 1)
    assert [tuple(a.shape) for a in recording.attention] == [(2, config.heads, T, T)] * 2
    assert [tuple(z.shape) for z in recording.tokens] == [(2, T, config.width)] * 2
    for attention in recording.attention:
        torch.testing.assert_close(attention.sum(-1), torch.ones(2, config.heads, T), rtol=0, atol=1e-5)


def test_recorded_tokens_are_those_of_each_block(model):
    z = model.embed(IMAGE)
    recording = model.record(IMAGE)
    for block, tokens in zip(model.blocks, recording.tokens):
        z = block(z)
        torch.testing.assert_close(tokens, z, rtol=0, atol=1e-5)


def test_recording_only_some_layers(tiny_config):
    model = randomise(ViT(ViTConfig(**{**tiny_config.to_dict(), "layers": 4})))
    whole = model.record(IMAGE)
    some = model.record(IMAGE, layers=[-1, 1])
    assert some.layers == (1, 3) and len(some.attention) == 2 and len(some.tokens) == 4
    torch.testing.assert_close(some.attention[0], whole.attention[1], rtol=0, atol=1e-5)
    torch.testing.assert_close(some.attention[1], whole.attention[3], rtol=0, atol=1e-5)
    torch.testing.assert_close(some.logits, whole.logits, rtol=0, atol=1e-5)
    assert model.record(IMAGE, layers=[]).attention == ()
    with pytest.raises(ValueError, match="There is no layer 4: this model has the layers 0 to 3"):
        model.record(IMAGE, layers=[4])


def test_layers_may_come_from_a_generator(tiny_config):
    model = randomise(ViT(tiny_config))
    assert len(model.record(IMAGE, layers=(layer for layer in [1])).attention) == 1


def test_half_precision_at_another_size(tiny_config):
    model = randomise(ViT(ViTConfig(**{**tiny_config.to_dict(), "position_resampling": "antialias"}))).half()
    assert model(torch.randn(1, 3, 48, 64).half()).dtype == torch.float16


def test_the_model_can_be_exported_with_a_free_batch(tiny_config):
    model = randomise(ViT(tiny_config))
    program = torch.export.export(model, (IMAGE,), dynamic_shapes=({0: torch.export.Dim("batch")},))
    images = torch.randn(5, 3, 32, 32)
    torch.testing.assert_close(program.module()(images), model(images), rtol=0, atol=1e-5)


@pytest.mark.parametrize("resampling", ["bicubic", "antialias", "align corners"])
@pytest.mark.parametrize("example", [(32, 32), (32, 64), (48, 64)])
def test_the_model_can_be_exported_with_free_sides(tiny_config, example, resampling):
    """From an image of any size, for images of any size, the model's own among them."""
    model = randomise(ViT(ViTConfig(**{**tiny_config.to_dict(), "position_resampling": resampling})))
    side = {
        axis: model.config.patch_size * torch.export.Dim(name, min=2) for axis, name in ((2, "rows"), (3, "columns"))
    }
    free = {0: torch.export.Dim("batch"), **side}
    program = torch.export.export(model, (torch.randn(2, 3, *example),), dynamic_shapes=(free,)).module()
    for shape in ((2, 3, 32, 32), (1, 3, 64, 48), (3, 3, 32, 80)):
        images = torch.randn(shape)
        torch.testing.assert_close(program(images), model(images), rtol=0, atol=1e-5)


def test_recording_leaves_nothing_behind(tiny_config):
    model = randomise(ViT(tiny_config))

    def everything():
        return {
            (name, key): value if isinstance(value, int | float | bool | str) else id(value)
            for name, module in model.named_modules()
            for key, value in vars(module).items()
        }

    before, state = everything(), {name: tensor.clone() for name, tensor in model.state_dict().items()}
    model.record(IMAGE)
    assert everything() == before
    assert not any(module._forward_hooks or module._forward_pre_hooks for module in model.modules())
    assert all(torch.equal(tensor, state[name]) for name, tensor in model.state_dict().items())


def test_gradients_reach_the_recorded_attention(tiny_config):
    recording = randomise(ViT(tiny_config)).record(IMAGE)
    gradients = torch.autograd.grad(recording.logits[:, 0].sum(), recording.attention)
    assert all(gradient.abs().max() > 0 for gradient in gradients)


def test_the_class_token_does_not_bake_in_the_batch_and_images_do_not_mix(model):
    both = model(IMAGE)
    torch.testing.assert_close(torch.cat([model(IMAGE[:1]), model(IMAGE[1:])]), both, rtol=0, atol=1e-5)


def test_positions_of_another_grid_are_interpolated_by_their_place(tiny_config):
    model = ViT(tiny_config)
    rows = torch.arange(4.0).repeat_interleave(4)
    with torch.no_grad():
        model.position_embedding[0, 1:] = rows[:, None]
    placed, patches = model.positions((8, 6))
    grid = patches[0, :, 0].unflatten(0, (8, 6))
    assert torch.equal(placed, model.position_embedding[:, :1])
    torch.testing.assert_close(grid, grid[:, :1].expand(-1, 6))  # columns do not matter
    assert (grid[:, 0].diff() > 0).all()  # rows rise from top to bottom
    torch.testing.assert_close(grid + grid.flip(0), torch.full((8, 6), 3.0))  # and are symmetric


def test_stochastic_depth_and_dropout_act_in_training_only(tiny_config):
    settings = {**tiny_config.to_dict(), "stochastic_depth": 0.9, "dropout": 0.5}
    model = randomise(ViT(ViTConfig(**settings)))
    assert [block.skip.p for block in model.blocks] == [0.0, 0.9]
    assert torch.equal(model(IMAGE), model(IMAGE))
    model.train()
    assert not torch.equal(model(IMAGE), model(IMAGE))


def test_a_new_model_starts_undecided(tiny_config):
    assert torch.equal(ViT(tiny_config)(IMAGE), torch.zeros(2, 3))


@pytest.mark.parametrize(
    "shape, said",
    [
        ((1, 3, 30, 32), "make it 32 × 32"),
        ((1, 1, 32, 32), "The images have 1 channels, but this model takes 3: convert them"),
        ((3, 32, 32), r"add a batch dimension to a single image with image\[None\]"),
    ],
)
def test_wrong_images_say_what_to_change(tiny_config, shape, said):
    model = ViT(tiny_config)
    for way in (model, model.record):
        with pytest.raises(ValueError, match=said):
            way(torch.zeros(shape))
