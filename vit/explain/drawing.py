"""Pictures from arrays: maps over photos, sheets of maps, curves. Nothing here knows of models.

Maps have the shape of the grid (R, C). A box is the part of the photo that the model saw: left, top, right, bottom in
the photo's pixels.
"""

from __future__ import annotations

import math
import textwrap
from collections.abc import Mapping, Sequence
from functools import cache
from typing import TYPE_CHECKING

import matplotlib
import numpy as np
from PIL import Image, ImageDraw
from torch import Tensor

from .figures import LINES, STYLES, axes_at, figure_of, render, thumbnail, titled_axes

if TYPE_CHECKING:
    from matplotlib.figure import Figure

Map = Tensor | np.ndarray  # R, C
Values = Map | Sequence[float]
Box = tuple[float, float, float, float]
Scale = tuple[float, float]  # the values of the first and of the last colour

LOW_TO_HIGH = "inferno"
SIGNED = "bwr"  # white in the middle, so that what makes no difference leaves the photo light
LEAST_CELL = 150  # a sheet's pixels for each map, to have room for a title
FOOT, LEAST_WIDTH = 80, 360  # a sheet's pixels for the colour bar and its words


def heat(map: Map, scale: Scale | None = None, signed: bool = False) -> np.ndarray:
    """The colours of a map (R, C, 3), from its lowest to its highest value or along a given scale.

    Where signed, 0 has the neutral middle of the colours, whatever the scale.
    """
    return _colours(_steps(_array(map), scale, signed), signed)


def overlay(
    photo: Image.Image,
    map: Map,
    box: Box,
    scale: Scale | None = None,
    opacity: float = 0.6,
    smooth: bool = False,
    signed: bool = False,
) -> Image.Image:
    """The whole photo with each patch's colour where the patch lies; what the model did not see is grey and dim.

    A pixel belongs to the patch under its middle. Smooth goes evenly from the middle of a patch to the next, by the
    values and not the colours; it is bilinear, for bicubic would invent values that no patch has. The more opaque the
    map, the paler the photo below, so that its own colours are not taken for the map's; grey below a signed one, as
    photos are red and blue themselves.
    """
    steps = _steps(_array(map), scale, signed)
    left, columns = _places(box[0], box[2], photo.width, steps.shape[1])
    top, rows = _places(box[1], box[3], photo.height, steps.shape[0])
    grey = photo.convert("L")
    picture = _unseen(grey)
    if not len(rows) or not len(columns):
        return picture
    if smooth:
        colours = _colours(_between(_between(steps.T, columns).T.copy(), rows), signed)
    else:
        colours = _colours(steps, signed).take(columns.astype(int), axis=1).take(rows.astype(int), axis=0)
    area = (left, top, left + len(columns), top + len(rows))
    seen = Image.blend(photo.crop(area).convert("RGB"), grey.crop(area).convert("RGB"), 1 if signed else opacity)
    picture.paste(Image.blend(seen, Image.fromarray(colours), opacity), area)
    return picture


def patch_grid(photo: Image.Image, box: Box, grid: tuple[int, int]) -> Image.Image:
    """The lines between the patches of a grid (R, C) over the photo, dark beside light to be seen on any photo."""
    left, columns = _places(box[0], box[2], photo.width, grid[1])
    top, rows = _places(box[1], box[3], photo.height, grid[0])
    right, bottom = left + len(columns) - 1, top + len(rows) - 1
    picture = _unseen(photo.convert("L"))
    if not len(columns) or not len(rows):
        return picture  # so thin that no pixel's middle was seen
    picture.paste(photo.crop((left, top, right + 1, bottom + 1)).convert("RGB"), (left, top))
    draw = ImageDraw.Draw(picture)
    width = max(1, round(max(photo.size) / 800))
    for colour, shift in (("black", 0), ("white", -width)):  # a line's left half is light
        for x in np.linspace(box[0], box[2], grid[1] + 1).round().astype(int) + shift:
            draw.rectangle((x, top, x + width - 1, bottom), fill=colour)
        for y in np.linspace(box[1], box[3], grid[0] + 1).round().astype(int) + shift:
            draw.rectangle((left, y, right, y + width - 1), fill=colour)
    return picture


def sheet(
    photo: Image.Image,
    maps: Sequence[Map] | Map,
    titles: Sequence[str],
    box: Box,
    shared: bool = True,
    columns: int | None = None,
    smooth: bool = False,
    signed: bool = False,
    percent: bool = False,
) -> Image.Image:
    """All maps (n, R, C) over small copies of the photo, each with its title, and how to read the colours.

    Shared: one colour is one value everywhere. Otherwise each map spans all colours, and its own numbers stand below.
    `percent` writes the numbers so, for maps that are shares.
    """
    arrays = [_array(map) for map in maps]
    if not arrays or len(arrays) != len(titles):
        raise ValueError(f"There are {len(arrays)} maps and {len(titles)} titles: give one title for each map.")
    columns = columns or _columns(len(arrays))
    rows = math.ceil(len(arrays) / columns)
    small = thumbnail(photo)
    x, y = small.width / photo.width, small.height / photo.height
    small_box = box[0] * x, box[1] * y, box[2] * x, box[3] * y
    lines = [textwrap.wrap(title, max(small.width, LEAST_CELL) // 7, max_lines=3, placeholder=" …") for title in titles]
    above, below = 12 + 16 * max(len(title) for title in lines), 8 if shared else 24
    cell_width, cell_height = max(small.width, LEAST_CELL) + 12, above + small.height + below
    width, height = max(LEAST_WIDTH, columns * cell_width + 12), rows * cell_height + FOOT
    figure = figure_of(width, height)
    scale = _scale(np.stack(arrays), None, signed) if shared else None
    margin = (width - columns * cell_width) / 2
    for index, (array, title) in enumerate(zip(arrays, lines)):
        x = margin + index % columns * cell_width + (cell_width - small.width) / 2
        y = height - index // columns * cell_height - above - small.height
        axes = axes_at(figure, x, y, small.width, small.height)
        axes.imshow(overlay(small, array, small_box, scale, smooth=smooth, signed=signed), aspect="auto")
        axes.set_title("\n".join(title), fontsize=9.5, pad=4, parse_math=False)
        if not shared:
            numbers = _numbers(_scale(array, None, signed), percent)
            axes.set_xlabel(" – ".join(numbers), fontsize=8.5, labelpad=3)
    _colour_bar(figure, width, _numbers((scale[0], sum(scale) / 2, scale[1]), percent) if scale else None, signed)
    return render(figure)


def curves(series: Mapping[str, Values], x: Values, title: str, x_label: str, y_label: str) -> Image.Image:
    """Lines with a legend, told apart by colour and by style."""
    figure, axes = titled_axes(title, x_label, y_label)
    for index, (name, values) in enumerate(series.items()):
        axes.plot(
            _array(x), _array(values), STYLES[index % 4], color=LINES[index % len(LINES)], linewidth=2, label=name
        )
    for text in axes.legend(frameon=False).get_texts() if series else ():
        text.set_parse_math(False)
    return render(figure)


def scatter(x: Values, y: Values, layers: Values, x_label: str, y_label: str, title: str) -> Image.Image:
    """One dot a head, coloured by its layer. The paper's Figure 7, right, has the layers as x, the distance as y."""
    figure, axes = titled_axes(title, x_label, y_label)
    x, y, layers = _array(x), _array(y), _array(layers)
    dots = axes.scatter(x, y, c=layers, cmap="viridis", s=36, edgecolors="black", linewidths=0.4)
    axes.set_ylim(bottom=min(0, y.min()))
    if np.array_equal(x, layers):
        axes.set_xticks(np.unique(x))
    else:
        figure.colorbar(dots, ax=axes, label="layer")
    return render(figure)


def grid_of_tiles(tiles: Map, columns: int = 7) -> Image.Image:
    """Tiles (n, 3, P, P) from 0 to 1 side by side, such as the patch filters: the paper's Figure 7, left."""
    pixels = (_array(tiles).clip(0, 1) * 255).round().astype(np.uint8).transpose(0, 2, 3, 1)  # n, P, P, 3
    times, gap = max(1, 64 // pixels.shape[1]), 4
    pixels = pixels.repeat(times, axis=1).repeat(times, axis=2)
    step, columns = pixels.shape[1] + gap, min(columns, len(pixels))
    picture = Image.new("RGB", (columns * step + gap, math.ceil(len(pixels) / columns) * step + gap), "white")
    for index, tile in enumerate(pixels):
        picture.paste(Image.fromarray(tile), (gap + index % columns * step, gap + index // columns * step))
    return picture


def similarity(values: Map) -> Image.Image:
    """For each patch a small map of its likeness to all patches (R, C, R, C), from -1 to 1: Figure 7, middle.

    In the paper's colours, to be held beside it.
    """
    values = _array(values)
    rows, columns = values.shape[:2]
    gaps = np.pad(values, ((0, 0), (0, 0), (0, 1), (0, 1)), constant_values=np.nan)  # nothing is drawn there
    mosaic = gaps.transpose(0, 2, 1, 3).reshape(rows * (rows + 1), columns * (columns + 1))[:-1, :-1]
    times = max(1, 640 // max(mosaic.shape))
    height, width = (side * times for side in mosaic.shape)
    figure = figure_of(width + 170, height + 110)
    axes = axes_at(figure, 60, 60, width, height, hide=False)
    shown = axes.imshow(mosaic, cmap="viridis", vmin=-1, vmax=1, aspect="auto", interpolation="nearest")
    for axis, count in ((axes.xaxis, columns), (axes.yaxis, rows)):
        chosen = np.arange(0, count, math.ceil(count / 16))
        axis.set_ticks(chosen * (count + 1) + (count - 1) / 2, [str(index + 1) for index in chosen])
    axes.tick_params(length=0)
    axes.set(xlabel="patch column", ylabel="patch row", title="Similarity of position embeddings", frame_on=False)
    figure.colorbar(shown, cax=axes_at(figure, width + 76, 60, 16, height, hide=False), label="cosine similarity")
    return render(figure)


def _array(values: Values) -> np.ndarray:
    values = values.detach().cpu().double().numpy() if isinstance(values, Tensor) else np.asarray(values, dtype=float)
    if not np.isfinite(values).all():
        raise ValueError("Some values to draw are infinite or not a number: replace them first.")
    return values


def _scale(values: np.ndarray, scale: Scale | None, signed: bool) -> Scale:
    low, high = scale or (float(values.min()), float(values.max()))
    if signed:
        high = max(abs(low), abs(high))
        low = -high
    return low, high


def _steps(values: np.ndarray, scale: Scale | None, signed: bool) -> np.ndarray:
    """Where among 256 colours the values are; in a scale without extent at its start, or in the middle if signed."""
    low, high = _scale(values, scale, signed)
    return (values - low) / (high - low) * 256 if high > low else np.full(values.shape, 128.0 * signed)


def _colours(steps: np.ndarray, signed: bool) -> np.ndarray:
    return _table(SIGNED if signed else LOW_TO_HIGH).take(np.clip(steps, 0, 255).astype(np.uint8), axis=0)


def colour_tables() -> np.ndarray:
    """The 256 colours from low to high, and those of signed maps, for others to draw with (2, 256, 3)."""
    return np.stack([_table(LOW_TO_HIGH), _table(SIGNED)])


@cache
def _table(name: str) -> np.ndarray:
    """256 colours (256, 3)."""
    return matplotlib.colormaps[name](np.arange(256), bytes=True)[:, :3].copy()


def _places(start: float, end: float, size: int, cells: int) -> tuple[int, np.ndarray]:
    """The first pixel whose middle lies in the box, and for it and the next ones where in the grid they are."""
    first, last = max(0, math.ceil(start - 0.5)), min(size, math.ceil(end - 0.5))
    places = (np.arange(first, last) + 0.5 - start) / (end - start) * cells
    return first, places.clip(0, np.nextafter(cells, 0))


def _between(values: np.ndarray, places: np.ndarray) -> np.ndarray:
    """The rows at places among them, linear between the rows' middles."""
    last = len(values) - 1
    middles = (places - 0.5).clip(0, last)
    first = middles.astype(int)
    share = (middles - first)[:, None]
    return values[first] * (1 - share) + values[np.minimum(first + 1, last)] * share


def _unseen(grey: Image.Image) -> Image.Image:
    return grey.point([value * 4 // 10 + 20 for value in range(256)]).convert("RGB")


def _columns(count: int) -> int:
    """As many beside each other as fill all rows, where that can be."""
    return count if count <= 4 else next((columns for columns in (4, 3, 5) if count % columns == 0), 4)


def _numbers(values: Sequence[float], percent: bool) -> list[str]:
    """Numbers to stand beside each other: as many decimals as give the greatest three digits."""
    values = [value * (100 if percent else 1) for value in values]
    decimals = 2 - int(f"{max(map(abs, values)):.2e}".split("e")[1])
    style = f".{max(0, decimals)}f" if decimals < 7 else ".2e"
    return [f"{value:{style}}{'%' * percent}" for value in values]


def _colour_bar(figure: Figure, width: int, ends: list[str] | None, signed: bool) -> None:
    """How to read a sheet's colours: with numbers where all maps share them, else in words."""
    axes = axes_at(figure, width / 2 - 130, 38, 260, 12)
    axes.imshow(_colours(np.arange(256)[None], signed), aspect="auto", extent=(0, 1, 0, 1))
    middle = "0" if signed else ""
    axes.set_xticks([0, 0.5, 1], ends or ["each map's lowest", middle, "highest"], fontsize=8.5)
    axes.set_title("one scale for all" if ends else "each its own scale", fontsize=9.5, pad=4)
