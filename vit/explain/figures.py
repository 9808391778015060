"""Figures of matplotlib, made without pyplot, which would keep them in global state and is not thread-safe.

What draws them is imported when the first is made: it is slow to import, and the page makes none.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
from PIL import Image

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

LINES = ("#0072B2", "#D55E00", "#009E73", "#CC79A7", "#E69F00", "#56B4E9", "#000000")  # Okabe & Ito: for all eyes
STYLES = ("-", "--", ":", "-.")
DPI = 100
THUMBNAIL = 240  # pixels of a photo's longer side


def figure_of(width: float, height: float, **options: Any) -> Figure:
    """An empty figure of so many pixels."""
    from matplotlib.figure import Figure

    return Figure((width / DPI, height / DPI), dpi=DPI, **options)


def axes_at(figure: Figure, left: float, bottom: float, width: float, height: float, hide: bool = True) -> Axes:
    """Axes at a place in pixels, without ticks and frame where `hide` says so."""
    across, up = figure.get_size_inches() * DPI
    axes = figure.add_axes((left / across, bottom / up, width / across, height / up))
    if hide:
        axes.set(xticks=[], yticks=[])
        axes.spines[:].set_visible(False)
    return axes


def titled_axes(title: str, x_label: str, y_label: str) -> tuple[Figure, Axes]:
    """A figure of one plot."""
    figure = figure_of(720, 440, layout="constrained")
    axes = figure.add_subplot()
    axes.set_title(title, parse_math=False)
    axes.set(xlabel=x_label, ylabel=y_label)
    axes.grid(alpha=0.3)
    axes.spines[["top", "right"]].set_visible(False)
    return figure, axes


def thumbnail(photo: Image.Image) -> Image.Image:
    """A copy whose longer side has `THUMBNAIL` pixels."""
    times = THUMBNAIL / max(photo.size)
    return photo.convert("RGB").resize([max(1, round(side * times)) for side in photo.size], Image.Resampling.BICUBIC)


def render(figure: Figure) -> Image.Image:
    """The figure as a picture."""
    from matplotlib.backends.backend_agg import FigureCanvasAgg

    canvas = FigureCanvasAgg(figure)
    canvas.draw()
    return Image.fromarray(np.asarray(canvas.buffer_rgba())).convert("RGB")
