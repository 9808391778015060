"""How the page goes over the wire: compressed, and with what it will need named before Gradio asks for it."""

from __future__ import annotations

import re

from starlette.datastructures import MutableHeaders
from starlette.middleware import Middleware
from starlette.middleware.gzip import GZipMiddleware
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from .scripts import PRELOAD

# The file that the page opens with, as it stands in the page.
OPENING = re.compile(rb'"url":"([^"]+/explanation\.safetensors)"')


class Compressed:
    """Compresses the page and the explorer's files; Gradio does so for scripts and styles alone."""

    def __init__(self, app: ASGIApp) -> None:
        self.app, self.compressing = app, GZipMiddleware(app, minimum_size=1000, compresslevel=4)

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        ours = scope["type"] == "http" and scope["path"].endswith(("/", ".safetensors"))
        await (self.compressing if ours else self.app)(scope, receive, send)


class Preloading:
    """Names the page's scripts, and the file that it opens with, in the head of the page: all come at once.

    What Gradio's `head` names is seen only when Gradio has started.
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


def _name(page: bytes, linked: bool) -> bytes:
    opening = None if linked else OPENING.search(page)
    file = b'<link rel="preload" as="fetch" crossorigin href="%b">' % opening[1] if opening else b""
    return page.replace(b"</head>", PRELOAD.encode() + file + b"</head>", 1)


MIDDLEWARE = [Middleware(Compressed), Middleware(Preloading)]
