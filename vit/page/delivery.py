"""How the page goes over the wire: compressed, and with what it will need named before Gradio asks for it."""

from __future__ import annotations

import re
from pathlib import Path

import gradio
from starlette.datastructures import MutableHeaders
from starlette.middleware import Middleware
from starlette.middleware.gzip import GZipMiddleware
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from .scripts import begin

# Gradio's own scripts, and what one of them names that it cannot do without.
ASSETS = Path(gradio.__file__).parent / "templates" / "frontend" / "assets"
IMPORTED = re.compile(r'(?:from|import)"\./([\w.-]+\.js)"')
# The file that the page opens with, as it stands in the page.
OPENING = re.compile(rb'"url":"([^"]+/explanation\.safetensors)"')
# The theme's version, and Gradio's own script, likewise.
THEME = re.compile(rb'"theme_hash":"(\w+)"')
GRADIO = re.compile(rb'<script type="module"[^>]* src="([^"]+)"></script>')


class Compressed:
    """Compresses the page and the explorer's files; Gradio does so for scripts and styles alone."""

    def __init__(self, app: ASGIApp) -> None:
        self.app, self.compressing = app, GZipMiddleware(app, minimum_size=1000, compresslevel=4)

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        ours = scope["type"] == "http" and scope["path"].endswith(("/", ".safetensors"))
        await (self.compressing if ours else self.app)(scope, receive, send)


class Preloading:
    """Names the page's scripts, and the file that it opens with, in the head of the page: all come at once.

    What Gradio's `head` names is seen only when Gradio has started. Gradio asks for its own scripts in three turns, as
    each finds out which are next: they are named, too.
    """

    def __init__(self, app: ASGIApp) -> None:
        self.app = app

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http" or not scope["path"].endswith("/"):
            return await self.app(scope, receive, send)
        start: Message = {}

        async def send_named(message: Message) -> None:
            if message["type"] == "http.response.start":
                start.update(message)
                return
            if start:
                message["body"] = _name(message["body"], linked=bool(scope["query_string"]))
                MutableHeaders(raw=start["headers"])["content-length"] = str(len(message["body"]))
                await send(dict(start))
                start.clear()
            await send(message)

        await self.app(scope, receive, send_named)


def needed() -> list[str]:
    """Gradio's scripts for a page of HTML components: nothing where it has other names for them than today."""
    found = [path.name for part in ("Blocks", "HTML") for path in ASSETS.glob(f"{part}-*.js")]
    for path in ASSETS.glob("Index-*.js"):  # of the page and of each component
        text = path.read_text(encoding="utf-8")
        if any(f'"./{name}"' in text for name in found[:2]):
            found.append(path.name)
    for name in found:  # which grows meanwhile
        imported = IMPORTED.findall((ASSETS / name).read_text(encoding="utf-8"))
        found += [each for each in dict.fromkeys(imported) if each not in found]
    return [name for name in found if not name.startswith("index-")]  # the page names it itself


NEEDED = "".join(f'<link rel="modulepreload" fetchpriority="low" href="assets/{name}">' for name in needed())


def _name(page: bytes, linked: bool) -> bytes:
    opening = None if linked else OPENING.search(page)
    file = f'<link rel="preload" as="fetch" crossorigin href="{opening[1].decode()}">' if opening else ""
    theme = THEME.search(page)  # which Gradio will ask for by the same address
    style = f'<link rel="stylesheet" href="theme.css?v={theme[1].decode()}">' if theme else ""
    page = GRADIO.sub(lambda found: (file + style + begin(found[1].decode())).encode(), page, count=1)
    return page.replace(b"</head>", NEEDED.encode() + b"</head>", 1)


MIDDLEWARE = [Middleware(Compressed), Middleware(Preloading)]
