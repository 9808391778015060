"""Pictures checked by places and colours worked out without the code that drew them."""

import math
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor

import matplotlib
import numpy as np
import pytest
import torch
from matplotlib.colors import Normalize
from PIL import Image

from vit.explain import drawing
from vit.photos.preprocessing import Preprocessing


def random_photo(width, height, seed=0):
    return Image.fromarray(np.random.default_rng(seed).integers(0, 256, (height, width, 3), dtype=np.uint8))


def one_hot(grid, row, column):
    map = torch.zeros(grid)
    map[row, column] = 1
    return map


def coloured(picture):
    """Which pixels are not grey."""
    pixels = np.asarray(picture).astype(int)
    return (pixels.max(axis=2) != pixels.min(axis=2)) if pixels.ndim == 3 else None


def matplotlib_colours(values, name, low, high):
    return matplotlib.colormaps[name](Normalize(low, high)(np.asarray(values, dtype=float)), bytes=True)[..., :3]


# Size of the photo, box, grid, hot patch, and by hand the pixels it covers: left, top, right, bottom.
PLACES = [
    ((60, 60), (0, 0, 60, 60), (3, 3), (1, 2), (40, 20, 60, 40)),  # square, all of it seen
    ((100, 60), (20, 0, 80, 60), (3, 3), (0, 1), (40, 0, 60, 20)),  # wide, the middle seen
    ((60, 100), (0, 20, 60, 80), (3, 3), (2, 0), (0, 60, 20, 80)),  # tall
    ((90, 40), (0, 0, 90, 40), (2, 3), (1, 1), (30, 20, 60, 40)),  # squashed: patches are not square
    ((40, 40), (-20, -20, 60, 60), (4, 4), (1, 2), (20, 0, 40, 20)),  # padded: the box reaches beyond
    ((40, 40), (-20, -20, 60, 60), (4, 4), (0, 0), (0, 0, 0, 0)),  # a patch of padding is nowhere
    ((20, 20), (0.4, 0.6, 19.4, 19.6), (1, 2), (0, 1), (10, 1, 19, 20)),  # middles from 9.9 to 19.4, from 0.6 to 19.6
]


@pytest.mark.parametrize("size, box, grid, patch, place", PLACES)
def test_a_hot_patch_colours_its_place_in_the_photo_and_nothing_else(size, box, grid, patch, place):
    picture = drawing.overlay(random_photo(*size), one_hot(grid, *patch), box, opacity=1)
    assert picture.size == size
    hottest, coldest = (np.array(matplotlib.colormaps["inferno"](end, bytes=True)[:3]) for end in (1.0, 0.0))
    pixels = np.asarray(picture)
    expected = np.zeros(size[::-1], dtype=bool)
    expected[place[1] : place[3], place[0] : place[2]] = True
    assert np.array_equal((pixels == hottest).all(axis=2), expected)
    left, top, right, bottom = (max(0, round(edge)) for edge in box)
    inside = np.zeros_like(expected)
    inside[top:bottom, left:right] = True
    assert (pixels[inside & ~expected] == coldest).all()


def test_the_box_of_a_real_preprocessing_puts_a_patch_where_the_model_saw_it():
    """A white square where the model's patch lies is what the patch shows."""
    seen = Preprocessing(resize=256, crop=(224, 224))
    photo = Image.new("RGB", (768, 512))
    picture = drawing.overlay(photo, one_hot((14, 14), 3, 9), seen.box(photo.size), opacity=1)
    hot = (np.asarray(picture) == np.array(matplotlib.colormaps["inferno"](1.0, bytes=True)[:3])).all(axis=2)
    view = np.asarray(seen.view(Image.fromarray(hot.astype(np.uint8) * 255)))[..., 0] / 255
    patches = view.reshape(14, 16, 14, 16).mean(axis=(1, 3))
    assert patches[3, 9] > 0.97
    assert np.delete(patches, 3 * 14 + 9).max() < 0.05


@pytest.mark.parametrize("smooth", [False, True])
def test_outside_the_box_nothing_is_coloured(smooth):
    picture = drawing.overlay(random_photo(100, 60), torch.rand(3, 3), (20, 0, 80, 60), smooth=smooth)
    outside = np.ones((60, 100), dtype=bool)
    outside[:, 20:80] = False
    assert not coloured(picture)[outside].any()
    assert coloured(picture)[~outside].any()


@pytest.mark.parametrize("as_tensor", [False, True])
def test_colours_are_those_of_matplotlib(as_tensor):
    values = np.random.default_rng(0).normal(size=(5, 7))
    map = torch.from_numpy(values) if as_tensor else values
    expected = matplotlib_colours(values, "inferno", values.min(), values.max())
    assert np.array_equal(drawing.heat(map), expected)
    assert np.array_equal(drawing.heat(map, scale=(-1, 1)), matplotlib_colours(values.clip(-1, 1), "inferno", -1, 1))
    end = abs(values).max()
    assert np.array_equal(drawing.heat(map, signed=True), matplotlib_colours(values, drawing.SIGNED, -end, end))


def test_zero_is_the_neutral_middle_of_signed_maps():
    neutral = np.array(matplotlib.colormaps[drawing.SIGNED](128, bytes=True)[:3])
    for map in (np.array([[0.0, 5.0]]), np.array([[0.0, -0.1]]), np.zeros((1, 2))):
        assert np.array_equal(drawing.heat(map, signed=True)[0, 0], neutral)
    assert np.array_equal(drawing.heat(np.zeros((1, 1)), scale=(-1, 9), signed=True)[0, 0], neutral)
    assert neutral.min() > 200  # light: a map of few differences is no black picture


@pytest.mark.parametrize("opacity", [0, 0.6])
def test_the_photo_below_a_signed_map_is_grey(opacity):
    photo = Image.fromarray(np.random.default_rng(0).integers(0, 255, (8, 8, 3), np.uint8))
    drawn = np.asarray(drawing.overlay(photo, np.zeros((2, 2)), (0, 0, 8, 8), opacity=opacity, signed=True))
    expected = np.asarray(photo.convert("L"))[..., None] * (1 - opacity) + 255 * opacity
    assert np.abs(drawn - expected).max() <= 2


@pytest.mark.parametrize("value", [0.0, 0.3, -2.0])
@pytest.mark.filterwarnings("error")
def test_a_constant_map_has_one_colour(value):
    colours = drawing.heat(np.full((3, 4), value))
    assert colours.shape == (3, 4, 3) and colours.dtype == np.uint8
    assert np.array_equal(
        np.unique(colours.reshape(-1, 3), axis=0), [matplotlib.colormaps["inferno"](0, bytes=True)[:3]]
    )


def test_what_is_not_a_number_is_refused():
    with pytest.raises(ValueError, match="infinite or not a number"):
        drawing.heat(np.array([[math.nan, 1.0]]))


def test_opacity_goes_from_the_photo_to_the_map():
    photo, box, map = random_photo(100, 60), (20, 0, 80, 60), torch.rand(3, 3)
    before = photo.copy()
    inside = (20, 0, 80, 60)
    assert drawing.overlay(photo, map, box, opacity=0).crop(inside).tobytes() == photo.crop(inside).tobytes()
    pure = np.asarray(drawing.overlay(photo, map, box, opacity=1).crop(inside))
    assert np.array_equal(pure, np.kron(drawing.heat(map), np.ones((20, 20, 1), dtype=np.uint8)))
    assert photo == before


def test_scale_shared_or_own_gives_other_colours():
    photo, map = random_photo(30, 30), torch.rand(3, 3)
    own, shared = (drawing.overlay(photo, map, (0, 0, 30, 30), scale) for scale in (None, (0, 5)))
    assert own != shared
    assert own == drawing.overlay(photo, map, (0, 0, 30, 30), (map.min().item(), map.max().item()))


def test_smooth_keeps_peak_and_values_within_the_patches():
    map, box = np.zeros((4, 6)), (-0.3, 0.2, 119.5, 80.1)
    map[2, 3] = 1
    pixels = (
        np.asarray(drawing.overlay(random_photo(120, 80), map, box, opacity=1, smooth=True)).astype(int).sum(axis=2)
    )
    pixels = pixels[:, :119]  # the last column is outside the box
    y, x = np.unravel_index(pixels.argmax(), pixels.shape)
    assert 45 <= y < 55 and 65 <= x < 75  # about the middle of the patch from 60 to 80 and from 40 to 60
    far = pixels[:28]  # beyond the middle of the neighbours: untouched
    assert (far == far[0, 0]).all()


def test_smooth_is_linear_between_the_middles_of_patches():
    picture = drawing.overlay(
        Image.new("RGB", (40, 10)), np.array([[0.0, 1.0]]), (0, 0, 40, 10), opacity=1, smooth=True
    )
    values = ((np.arange(40) + 0.5 - 10) / 20).clip(0, 1)
    assert np.array_equal(np.asarray(picture)[5], matplotlib_colours(values, "inferno", 0, 1))


@pytest.mark.parametrize("mode", ["L", "RGBA", "RGB"])
def test_photos_of_any_mode_and_a_box_beside_the_photo(mode):
    photo = random_photo(20, 10).convert(mode)
    assert drawing.overlay(photo, torch.rand(2, 2), (0, 0, 20, 10)).mode == "RGB"
    assert not coloured(drawing.overlay(photo, torch.rand(2, 2), (30, 0, 40, 10))).any()


@pytest.mark.parametrize("colour", ["black", "white", "grey"])
def test_the_patch_grid_is_seen_on_any_photo(colour):
    photo = Image.new("RGB", (100, 60), colour)
    changed = np.asarray(drawing.patch_grid(photo, (20, 0, 80, 60), (3, 2))) != np.asarray(photo)
    changed = changed.any(axis=2)[:, 20:80]
    assert changed[[19, 20]].mean(axis=1).max() > 0.9 and changed[[39, 40]].mean(axis=1).max() > 0.9
    assert changed[:, [29, 30]].mean(axis=0).max() > 0.9
    assert not changed[5:15, 5:25].any()


@pytest.fixture
def figures(monkeypatch):
    """The figures that are rendered, in order."""
    seen, render = [], drawing.render
    monkeypatch.setattr(drawing, "render", lambda figure: (seen.append(figure), render(figure))[1])
    return seen


def words(figure):
    axes = figure.axes
    return [text.get_text() for each in axes for text in (each.title, each.xaxis.label, *each.get_xticklabels())]


@pytest.mark.parametrize("count", [1, 3, 5, 12, 16])
def test_a_sheet_says_which_scale_it_has(figures, count):
    photo, maps = random_photo(60, 40), torch.arange(1.0, count + 1)[:, None, None] * torch.tensor([[0.001, 0.01]])
    titles = [f"layer {index + 1}" for index in range(count)]
    shared = drawing.sheet(photo, maps, titles, (10, 0, 50, 40), percent=True)
    own = drawing.sheet(photo, list(maps), titles, (10, 0, 50, 40), shared=False)
    assert "one scale for all" in words(figures[0]) and "each its own scale" not in words(figures[0])
    assert "each its own scale" in words(figures[1]) and "one scale for all" not in words(figures[1])
    for figure in figures:
        assert set(titles) <= set(words(figure))
    assert "0.10%" in words(figures[0]) or "0.1%" in words(figures[0])
    assert "0.0010 – 0.0100" in words(figures[1])
    assert shared != own


def test_sheets_share_a_scale_only_if_asked(figures):
    maps = torch.stack([torch.tensor([[0.0, 1.0]]), torch.tensor([[0.0, 2.0]])])
    for shared in (True, False):
        drawing.sheet(Image.new("RGB", (40, 20)), maps, ["a", "b"], (0, 0, 40, 20), shared=shared)
    first, second = [[np.asarray(axes.images[0].get_array()) for axes in figure.axes[:2]] for figure in figures]
    assert not np.array_equal(first[0], first[1])
    assert np.array_equal(second[0], second[1])


@pytest.mark.parametrize("size", [(60, 40), (20, 300), (300, 20), (3000, 2000)])
@pytest.mark.parametrize("shared", [True, False])
def test_nothing_on_a_sheet_is_cut_off_or_overlaps(figures, size, shared):
    titles = ["head 1 of $5 and " + "a very long title " * 10, "hippopotomonstrosesquippedaliophobia" * 3, "short", ""]
    picture = drawing.sheet(random_photo(*size), torch.rand(4, 3, 3), titles, (0, 0, *size), shared=shared)
    renderer = figures[0].canvas.get_renderer()
    boxes = [axes.get_tightbbox(renderer) for axes in figures[0].axes]
    for index, box in enumerate(boxes):
        assert box.x0 >= 0 and box.y0 >= 0 and box.x1 <= picture.width and box.y1 <= picture.height
        assert not any(box.overlaps(other) for other in boxes[:index])


def test_a_sheet_wants_a_title_for_each_map():
    with pytest.raises(ValueError, match="2 maps and 1 titles"):
        drawing.sheet(random_photo(9, 9), torch.rand(2, 3, 3), ["one"], (0, 0, 9, 9))


def test_columns_of_a_sheet(figures):
    drawing.sheet(random_photo(40, 40), torch.rand(4, 2, 2), list("abcd"), (0, 0, 40, 40), columns=2)
    places = [axes.get_position() for axes in figures[0].axes[:4]]
    assert places[0].y0 == places[1].y0 > places[2].y0 == places[3].y0
    assert places[0].x0 == places[2].x0 < places[1].x0 == places[3].x0


def test_curves_show_every_series(figures):
    drawing.curves({"relevance": [1, 0.5, 0], "random": torch.tensor([1, 0.9, 0.8])}, [0, 0.5, 1], "t", "x", "y")
    axes = figures[0].axes[0]
    assert [text.get_text() for text in axes.get_legend().get_texts()] == ["relevance", "random"]
    assert [line.get_ydata().tolist() for line in axes.lines] == [[1, 0.5, 0], pytest.approx([1, 0.9, 0.8])]
    assert len({line.get_color() for line in axes.lines}) == 2
    assert (axes.get_title(), axes.get_xlabel(), axes.get_ylabel()) == ("t", "x", "y")


def test_scatter_has_one_dot_a_head(figures):
    layers = torch.tensor([1, 1, 2, 2])
    drawing.scatter(layers, torch.tensor([10.0, 20, 30, 40]), layers, "layer", "distance", "t")
    dots = figures[0].axes[0].collections[0].get_offsets()
    assert dots.tolist() == [[1, 10], [1, 20], [2, 30], [2, 40]]
    assert len(figures[0].axes) == 1
    drawing.scatter([0.1, 0.2, 0.3, 0.4], [1, 2, 3, 4], layers, "entropy", "distance", "t")
    assert len(figures[1].axes) == 2  # the colours are explained


def test_tiles_lie_row_by_row():
    tiles = torch.rand(5, 3, 4, 4)
    picture = np.asarray(drawing.grid_of_tiles(tiles, columns=3))
    fourth = picture[4 + 68 :, 4:][:64, :64]  # below the first: 16 times 4 pixels and a gap of 4
    assert np.array_equal(fourth[::16, ::16], (tiles[3].permute(1, 2, 0).double() * 255).round().byte().numpy())
    assert picture.shape == (2 * 68 + 4, 3 * 68 + 4, 3)
    assert (picture[-64:, -64:] == 255).all()  # there is no sixth


def test_similarity_shows_each_patch_a_map_from_minus_one_to_one(figures):
    values = torch.rand(2, 3, 2, 3) * 2 - 1
    drawing.similarity(values)
    shown = figures[0].axes[0].images[0]
    mosaic = np.asarray(shown.get_array().filled(np.nan))
    assert shown.get_clim() == (-1, 1)
    assert np.array_equal(mosaic[3:5, 8:11], values[1, 2].double().numpy())
    assert np.isnan(mosaic[2]).all() and np.isnan(mosaic[:, 3]).all()


def test_threads_draw_the_same():
    photo, maps = random_photo(60, 40), torch.rand(3, 3, 3)

    def draw(_):
        return drawing.sheet(photo, maps, list("abc"), (10, 0, 50, 40))

    with ThreadPoolExecutor(4) as pool:
        pictures = list(pool.map(draw, range(8)))
    assert all(picture == pictures[0] for picture in pictures)


def test_pyplot_is_never_imported():
    code = """
import sys, numpy as np
from PIL import Image
from vit.explain import drawing
drawing.sheet(Image.new("RGB", (9, 9)), np.eye(3)[None], ["one"], (0, 0, 9, 9))
drawing.curves({"a": [1, 2]}, [0, 1], "t", "x", "y")
drawing.scatter([1, 2], [1, 2], [1, 1], "x", "y", "t")
drawing.similarity(np.ones((2, 2, 2, 2)))
sys.exit("matplotlib.pyplot" in sys.modules)
"""
    assert subprocess.run([sys.executable, "-c", code]).returncode == 0
