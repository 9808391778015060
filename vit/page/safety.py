"""What Gradio would do for any visitor, and this page does not."""

from __future__ import annotations

from typing import Any, NoReturn

import gradio as gr
from gradio import processing_utils


def never_fetch() -> None:
    """Refuse addresses in place of files, which Gradio would fetch from this server: a photo comes as a file."""
    processing_utils.async_ssrf_protected_download = _refuse_later
    processing_utils.ssrf_protected_download = _refuse


async def _refuse_later(*arguments: Any, **options: Any) -> NoReturn:
    _refuse()


def _refuse(*arguments: Any, **options: Any) -> NoReturn:
    raise gr.Error("Photos are not fetched from an address: save the photo, and send the file.", print_exception=False)
