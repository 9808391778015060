"""Colours and fonts of the page: from the visitor's own system, and with enough contrast in light and dark."""

from __future__ import annotations

import gradio as gr

THEME = gr.themes.Default(
    primary_hue="blue", font=["system-ui", "sans-serif"], font_mono=["ui-monospace", "monospace"]
).set(
    button_primary_background_fill="*primary_700",
    button_primary_background_fill_hover="*primary_800",
    button_primary_background_fill_dark="*primary_700",
    body_text_color_subdued="*neutral_600",
    body_text_color_subdued_dark="*neutral_300",
    block_label_text_color="*neutral_700",
    block_label_text_color_dark="*neutral_200",
    block_title_text_color="*neutral_700",
    block_title_text_color_dark="*neutral_200",
    block_info_text_color="*neutral_600",
    block_info_text_color_dark="*neutral_300",
)
# The explorer has the window to itself; what overflows is cut off, not hidden, in which nothing could stay in sight.
CSS = """
.gradio-container { max-width: none !important; overflow: clip !important; }
.gradio-container > .main { padding: 0 !important; max-width: none !important; }
.gradio-container .html-container { padding: 0; }
"""
