"""The photos that come with the page, as small pictures to click."""

from __future__ import annotations

import base64
import html
import io
from collections.abc import Sequence
from pathlib import Path

import gradio as gr
from PIL import Image

SIDE = 144  # pixels of a small picture's longer side: twice what is shown, for fine screens
CSS = """
h3 { margin: 0 0 6px; font-size: 14px; font-weight: 600; }
div { display: flex; flex-wrap: wrap; gap: 8px; }
button { padding: 0; border: 2px solid transparent; border-radius: 8px; cursor: pointer; line-height: 0; }
button:hover, button:focus-visible { border-color: var(--primary-500); }
img { width: 72px; height: 72px; object-fit: cover; border-radius: 6px; margin: 0; }
@media (max-width: 900px) { div { flex-wrap: nowrap; overflow-x: auto; padding-bottom: 6px; } button { flex: none; } }
"""
SCRIPT = """
element.addEventListener("click", (event) => {
  const button = event.target.closest("button");
  if (button) trigger("pick", { name: button.dataset.name });
});
"""


class Examples(gr.HTML):
    """Event: `pick` (name). Gradio's own have no names that a screen reader could say, and load each photo whole."""

    def __init__(self, photos: Sequence[Path]) -> None:
        buttons = "".join(_button(photo) for photo in photos)
        super().__init__(
            html_template=f"<h3>Examples</h3><div class='examples'>{buttons}</div>",
            css_template=CSS,
            js_on_load=SCRIPT,
        )


def _button(photo: Path) -> str:
    with Image.open(photo) as small:
        small.thumbnail((SIDE, SIDE))
        small.save(content := io.BytesIO(), "JPEG", quality=80)
    name, data = html.escape(photo.stem), base64.b64encode(content.getvalue()).decode()
    title = name.replace("_", " ")
    return (
        f'<button type="button" data-name="{name}" title="{title}">'
        f'<img alt="{title}" src="data:image/jpeg;base64,{data}"></button>'
    )
