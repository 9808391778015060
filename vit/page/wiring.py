"""The page put together: which event of which component sets off which handler."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import gradio as gr
from gradio.processing_utils import move_files_to_cache

from ..spaces.zero_gpu import gpu
from .explorer import MODE_EVENTS, QUESTIONS, Answers, Explorer
from .handlers import Handlers
from .layout import Components, arrange
from .models import Models
from .modes import ModeHandlers
from .safety import never_fetch

# Files of visitors are looked for every ten minutes, and go when they are 50 minutes old: after an hour none is left.
DELETE_CACHE = (600, 3000)
LOADS_AT_ONCE = 16  # models on their way
PRIVATE: dict[str, Any] = dict(api_visibility="private")


def build(models: Models, examples: Sequence[Path] = (), title: str = "ViT Explorer") -> gr.Blocks:
    """The page, which opens with the first example explained. Public are /predict, /familiarity and /explain."""
    never_fetch()
    handlers = Handlers(models, examples)
    with gr.Blocks(title=title, delete_cache=DELETE_CACHE, fill_width=True) as blocks:
        page = arrange(models, examples, title)
        if examples:  # explained here and now, before anybody asks
            opened = handlers.open(str(examples[0]), models.first.name).model_dump()
            page.explorer.value = move_files_to_cache(opened, page.explorer, postprocess=True, keep_in_cache=True)
        _wire(page, handlers)
    return blocks


def _wire(page: Components, handlers: Handlers) -> None:
    photo, explorer, chosen, current = page.photo, page.explorer, page.chosen, page.current
    # All may wait at once, as many as `Handlers.crowd` lets in: turns are the models' own.
    runs: dict[str, Any] = dict(concurrency_limit=None, show_progress="hidden")
    page.button.click(handlers.predict, [photo, chosen], page.label, api_name="predict", **runs)
    page.button.click(handlers.familiarity, [photo, chosen], page.familiarity, api_name="familiarity", **runs)
    page.button.click(gpu(handlers.explain), [photo, chosen], explorer, api_name="explain", **runs)

    photo.pick(handlers.pick, None, photo, queue=False, **PRIVATE)
    answer_questions(explorer, handlers, **runs)

    # A load of one visitor holds up nobody else's, or a link.
    several: dict[str, Any] = dict(trigger_mode="multiple", show_progress="hidden")
    loads: dict[str, Any] = dict(concurrency_limit=LOADS_AT_ONCE, **several, **PRIVATE)
    load = explorer.choose_model(handlers.choose_model, current, [current, Answers(explorer.slot)], **loads)
    link = explorer.follow_link(handlers.follow_link, current, [photo, current, Answers(explorer.slot)], **loads)
    # The model that is there, not one that is still being fetched. After a load, and not when the model changes: a link
    # changes both, and the old photo with the new model would be asked for at the same time.
    latest: dict[str, Any] = dict(trigger_mode="always_last", **runs, **PRIVATE)
    for changed in (photo.change, load.success, link.success):
        shown = changed(handlers.show, [photo, current, explorer], explorer, **latest)
        shown.failure(handlers.put_back, explorer, photo, queue=False, **PRIVATE)
    explorer.cancel_load(None, None, None, cancels=[load, link], **PRIVATE)
    explorer.nudge(_nothing, None, None, trigger_mode="multiple", **runs, **PRIVATE)


def answer_questions(explorer: Explorer, handlers: Handlers, **runs: Any) -> None:
    """What an explorer asks about the photo that it shows, with the settings of events that run the model."""
    modes = ModeHandlers(handlers)
    asked = {}
    for owner, names in ((handlers, QUESTIONS), (modes, MODE_EVENTS)):
        for name in names:
            # One component for each: of two answers at once, one would replace the other. The page asks one by one
            # itself: "always_last" would ask the last question with the first one's words.
            asked[name] = getattr(explorer, name)(
                getattr(owner, name), explorer, Answers(explorer.slot), trigger_mode="multiple", **runs, **PRIVATE
            )
    explorer.cancel_curves(None, None, None, cancels=[asked["ask_curves"]], **PRIVATE)


def _nothing() -> None:
    pass
