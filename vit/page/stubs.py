"""Importing Gradio without the stubs of components that it writes for editors.

For each component's class Gradio parses the source again and writes a `.pyi` file beside it, at every start: that is
four tenths of the time that its import takes, and files in folders of others. It writes none where a class has no file:
`create_or_modify_pyi` takes the OSError for that, and so does `get_component_class_id`, which names a class instead.
"""

from __future__ import annotations

import inspect
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any


@contextmanager
def no_stubs() -> Iterator[None]:
    """Components that are imported or defined inside get no stubs."""
    getfile = inspect.getfile

    def of_others(thing: Any) -> str:
        if type(thing).__name__ == "ComponentMeta":
            raise OSError("A component has no file here, so that no stub is written beside it.")
        return getfile(thing)

    inspect.getfile = of_others  # type: ignore[assignment]
    try:
        yield
    finally:
        inspect.getfile = getfile
