"""The page's scripts: ES modules, as they lie in `web/`, at an address that changes with them."""

from __future__ import annotations

import hashlib
import json
from pathlib import Path

from starlette.requests import Request
from starlette.responses import PlainTextResponse, Response
from starlette.routing import Route

WEB = Path(__file__).parent / "web"
MODES = "modes/"  # scripts that are loaded when they are opened
# Read once: what is served is what the version says, and nothing else of the folder can be asked for.
SCRIPTS = {
    path.relative_to(WEB).as_posix(): path.read_bytes()
    for path in sorted(WEB.rglob("*.js"))
    if "node_modules" not in path.parts
}
VERSION = hashlib.sha256(b"\0".join(part for name in SCRIPTS for part in (name.encode(), SCRIPTS[name]))).hexdigest()[
    :16
]


def start(script: str, *events: str) -> str:
    """What a component runs when it is loaded: `start` of a script. Gradio knows the events that are named in it."""
    first = [name for name in SCRIPTS if not name.startswith(MODES)]
    return f"""
// Events: {json.dumps(events)}
const address = (name) => new URL(`web/{VERSION}/${{name}}`, document.baseURI).href;
for (const name of {json.dumps(first)}) {{
  if (document.head.querySelector(`[href="${{address(name)}}"]`)) continue;
  const link = document.createElement("link");
  document.head.append(Object.assign(link, {{ rel: "modulepreload", href: address(name) }}));
}}
import(address("{script}")).then(
  (loaded) => loaded.start({{ element, props, trigger, watch, upload }}),
  () => {{ element.textContent = "A part of the page could not be loaded: reload it."; }},
);
"""


async def _serve(request: Request) -> Response:
    script = SCRIPTS.get(request.path_params["name"])
    if script is None or request.path_params["version"] != VERSION:
        return PlainTextResponse("There is no such script: reload the page.", 404)
    return Response(
        script, media_type="text/javascript", headers={"Cache-Control": "public, max-age=31536000, immutable"}
    )


ROUTE = Route("/web/{version}/{name:path}", _serve)
