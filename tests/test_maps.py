"""Every map on examples small enough to work out by hand."""

import math

import pytest
import torch

from vit.explain import maps

# Two layers, one head, three tokens: the class token and two patches.
FIRST = torch.tensor([[0.5, 0.25, 0.25], [0.0, 1.0, 0.0], [0.0, 0.5, 0.5]])
SECOND = torch.tensor([[0.0, 0.0, 1.0], [0.5, 0.5, 0.0], [0.0, 0.0, 1.0]])
ATTENTION = torch.stack([FIRST, SECOND])[:, None]  # L, H, T, T


def random_attention(L=3, H=2, T=5):
    return torch.randn(L, H, T, T).softmax(dim=-1)


def test_heads_are_fused_by_mean_by_maximum_or_one_is_taken():
    attention = torch.stack([FIRST, SECOND])  # as two heads of one layer
    assert torch.equal(maps.fuse_heads(attention, "mean"), (FIRST + SECOND) / 2)
    assert torch.equal(maps.fuse_heads(attention, "max"), torch.maximum(FIRST, SECOND))
    assert torch.equal(maps.fuse_heads(attention, 1), SECOND)
    with pytest.raises(ValueError, match="There is no head 2: use 'mean', 'max' or a number from 0 to 1"):
        maps.fuse_heads(attention, 2)


def test_rows_are_looks_and_columns_are_onlookers():
    assert maps.looks_at(FIRST, 0).tolist() == [0.5, 0.25, 0.25]
    assert maps.looked_at_by(FIRST, 1).tolist() == [0.25, 1.0, 0.5]


def test_patches_take_their_places_row_by_row():
    values = torch.arange(2.0 + 6)
    assert maps.to_grid(values, prefix_tokens=2, grid=(2, 3)).tolist() == [[2, 3, 4], [5, 6, 7]]


def test_rollout_by_hand():
    after_first = (FIRST + torch.eye(3)) / 2
    assert after_first.tolist() == [[0.75, 0.125, 0.125], [0.0, 1.0, 0.0], [0.0, 0.25, 0.75]]
    steps = maps.rollout(ATTENTION[:, 0])
    assert torch.equal(steps[0], after_first)
    # The class token after layer two: half of itself after layer one, half of the second patch after layer one.
    assert steps[1, 0].tolist() == [0.375, 0.1875, 0.4375]
    assert steps[1, 1].tolist() == [0.1875, 0.78125, 0.03125]


def test_rollout_from_a_later_layer_is_the_rollout_of_those_layers():
    attention = random_attention()[:, 0]
    assert torch.equal(maps.rollout(attention, start=1), maps.rollout(attention[1:]))


@pytest.mark.parametrize("heads", ["mean", "max", 1])
@pytest.mark.parametrize("discard", [0.0, 0.3, 0.9, 0.999])
def test_rollout_rows_sum_to_one_at_every_step(heads, discard):
    steps = maps.rollout(maps.fuse_heads(random_attention(L=6, T=17), heads), discard)
    torch.testing.assert_close(steps.sum(-1), torch.ones(6, 17), rtol=0, atol=1e-5)
    assert (steps >= 0).all()


def test_discarding_cuts_the_weakest_links_of_each_row():
    attention = torch.tensor([[[0.5, 0.3, 0.2], [0.1, 0.3, 0.6], [0.2, 0.2, 0.6]]])
    step = maps.rollout(attention, discard=0.34)[0] * 2 - torch.eye(3)  # a third of three links is one
    torch.testing.assert_close(step[0], torch.tensor([0.625, 0.375, 0.0]))
    torch.testing.assert_close(step[1], torch.tensor([0.0, 1 / 3, 2 / 3]))


@pytest.mark.parametrize("start", [-1, 2])
def test_a_layer_that_is_not_there_is_no_start(start):
    for method in (
        lambda: maps.rollout(FIRST.expand(2, 3, 3), start=start),
        lambda: maps.relevance(ATTENTION, ATTENTION, start),
    ):
        with pytest.raises(
            ValueError, match=f"There is no layer {start} to start from: this model has the layers 0 to 1"
        ):
            method()


@pytest.mark.parametrize("discard", [-0.1, 1.0])
def test_discarding_everything_is_refused(discard):
    with pytest.raises(ValueError, match="discard is the share of links to cut"):
        maps.rollout(ATTENTION[:, 0], discard)


def test_what_a_reader_sees_is_its_look_through_the_whole_product():
    attention, gradients = random_attention(L=5, T=9), torch.randn(5, 2, 9, 9)
    reads = torch.softmax(torch.randn(9), dim=0)
    for whole, read in (
        (maps.rollout(attention[:, 0]), maps.rollout(attention[:, 0], reads=reads)),
        (maps.relevance(attention, gradients), maps.relevance(attention, gradients, reads=reads)),
    ):
        torch.testing.assert_close(read, reads @ whole)


def test_relevance_by_hand():
    gradients = torch.zeros(2, 1, 3, 3)
    gradients[0, 0] = torch.tensor([[1.0, 2.0, -4.0], [0, 0, 0], [0, 2.0, 0]])
    gradients[1, 0] = torch.tensor([[1.0, 1.0, 3.0], [0, 0, 0], [0, 0, -1.0]])
    weighted = maps.gradient_attention(ATTENTION, gradients)
    assert weighted[0].tolist() == [[0.5, 0.5, 0.0], [0, 0, 0], [0, 1.0, 0]]  # what speaks against is cut
    assert weighted[1].tolist() == [[0, 0, 3.0], [0, 0, 0], [0, 0, 0]]
    steps = maps.relevance(ATTENTION, gradients)
    assert steps[0].tolist() == weighted[0].tolist()
    # After layer two the class token has its own relevance, and three times that of the second patch.
    assert steps[1, 0].tolist() == [0.5, 0.5 + 3 * 1.0, 3.0]


def test_relevance_takes_the_layers_in_their_order():
    attention, gradients = random_attention(), torch.randn(3, 2, 5, 5)
    forwards = maps.relevance(attention, gradients)[-1]
    backwards = maps.relevance(attention.flip(0), gradients.flip(0))[-1]
    assert not torch.allclose(forwards, backwards)
    weighted = [(a * g).clamp(min=0).mean(0) + torch.eye(5) for a, g in zip(attention, gradients)]
    torch.testing.assert_close(forwards, weighted[2] @ weighted[1] @ weighted[0] - torch.eye(5))


def test_grad_cam_by_hand():
    tokens = torch.tensor([[1.0, 0.0], [0.0, 2.0], [-3.0, 1.0]])
    gradients = torch.tensor([[3.0, 0.0], [0.0, 3.0], [0.0, 0.0]])  # mean: 1, 1
    assert maps.grad_cam(tokens, gradients).tolist() == [1.0, 2.0, 0.0]


def test_attention_distance_by_hand():
    # One row of three patches, 16 pixels apart, behind a class token that does not count.
    attention = torch.zeros(1, 2, 4, 4)
    attention[0, 0, 1:, 1:] = torch.eye(3) * 0.5  # looks at itself
    attention[0, 0, 1:, 0] = 0.5
    attention[0, 1, 1, 3] = attention[0, 1, 2, 1] = attention[0, 1, 3, 1] = 1.0
    distance = maps.attention_distance(attention, prefix_tokens=1, grid=(1, 3), patch_size=16)
    assert distance.tolist() == [[0.0, pytest.approx((32 + 16 + 32) / 3)]]


def test_a_patch_that_looks_at_no_patch_looks_nowhere():
    attention = torch.zeros(1, 1, 3, 3)
    attention[..., 0] = 1
    assert maps.attention_distance(attention, 1, (1, 2), 16).item() == 0
    assert maps.attention_distance(attention.half(), 1, (1, 2), 16).item() == 0


def test_attention_distance_of_an_even_look_is_the_mean_distance():
    attention = torch.full((1, 1, 6, 6), 1 / 6)
    places = [(row, column) for row in range(2) for column in range(3)]
    expected = sum(math.dist(a, b) for a in places for b in places) / 36 * 8
    assert maps.attention_distance(attention, 0, (2, 3), 8).item() == pytest.approx(expected)


def test_entropy_in_bits():
    attention = torch.stack([torch.eye(4), torch.full((4, 4), 0.25)])[None]
    assert maps.entropy(attention).tolist() == [[0.0, 2.0]]


def test_position_similarity_is_the_cosine_with_every_other_place():
    positions = torch.tensor([[1.0, 0], [0, 2], [3, 3], [-1, 0], [0, -1], [1, 0]])
    similar = maps.position_similarity(positions, (2, 3))
    assert similar.shape == (2, 3, 2, 3)
    assert similar[0, 0].flatten().tolist() == pytest.approx([1, 0, 2**-0.5, -1, 0, 1])


def test_filter_components_find_the_directions_the_filters_were_made_of():
    directions = torch.linalg.qr(torch.randn(3 * 4 * 4, 2))[0].T  # two that are orthogonal
    filters = torch.randn(50, 2) @ torch.diag(torch.tensor([10.0, 1.0])) @ directions
    tiles = maps.filter_components(filters.view(50, 3, 4, 4), count=2)
    assert tiles.shape == (2, 3, 4, 4)
    assert tiles.amin() == 0 and tiles.amax() == 1
    match = torch.corrcoef(torch.stack([tiles[0].flatten(), directions[0]]))[0, 1].abs()
    assert match > 0.99


def test_outliers_are_flagged_where_their_norm_is_far_above_the_rest():
    tokens = torch.ones(2, 1 + 6, 4)
    tokens[:, 0] = 100  # the class token is no patch
    tokens[1, 3] = 5
    norms, flagged = maps.outliers(tokens, prefix_tokens=1)
    assert norms[1].tolist() == [2, 2, 10, 2, 2, 2]
    assert flagged.nonzero().tolist() == [[1, 2]]
    assert maps.leave_out(norms, flagged)[1].tolist() == [2, 2, 0, 2, 2, 2]


def test_the_real_models_positions_know_their_rows_and_columns(real):
    similar = real.position_similarity()
    assert similar.shape == (14, 14, 14, 14)
    middle = similar[7, 7]
    assert middle.argmax() == 7 * 14 + 7
    assert middle[7].mean() > middle.mean() and middle[:, 7].mean() > middle.mean()  # the paper's cross


def test_the_real_models_filter_components_are_the_covariances_eigenvectors(real):
    tiles = real.filter_components()
    assert tiles.shape == (28, 3, 16, 16)
    flat = real.model.patch_embedding.projection.weight.detach().flatten(1).double()
    vectors = torch.linalg.eigh(torch.cov(flat.T)).eigenvectors.flip(1)  # the largest first
    for tile, vector in zip(tiles[:5], vectors.T):
        match = torch.corrcoef(torch.stack([tile.flatten().double(), vector]))[0, 1].abs()
        assert match > 0.999
