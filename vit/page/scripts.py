"""The page's scripts: ES modules, as they lie in `web/`, at an address that changes with them.

Forty of them would take seconds on a slow network, so all but the modes come joined, in one file: each as a function
that returns what the module exports.
"""

from __future__ import annotations

import hashlib
import json
import re
from graphlib import TopologicalSorter
from pathlib import Path
from posixpath import dirname, normpath

from starlette.requests import Request
from starlette.responses import PlainTextResponse, Response
from starlette.routing import Route

WEB = Path(__file__).parent / "web"
MODES = "modes/"  # scripts that are loaded when they are opened
JOINED = "page.js"  # all others
IMPORT = re.compile(r'^import \{([^}]*)\} from "(.+?)";$', re.MULTILINE)
LATER = re.compile(r'\bimport\("(\..+?)"\)')  # what is loaded when it is opened
EXPORT = re.compile(r"^export ((?:async )?function\*?|const|class) (\w+)", re.MULTILINE)


def read(folder: Path) -> dict[str, str]:
    """The scripts by their path in the folder."""
    paths = (path for path in sorted(folder.rglob("*.js")) if "node_modules" not in path.parts)
    return {path.relative_to(folder).as_posix(): path.read_text(encoding="utf-8") for path in paths}


def served(scripts: dict[str, str]) -> dict[str, bytes]:
    """What the page asks for: the joined file, and the modes, which take from it what they import of the others."""
    modes = {name: script for name, script in scripts.items() if name.startswith(MODES)}
    others = {name: script for name, script in scripts.items() if name not in modes}
    order = TopologicalSorter(
        {name: [_resolved(name, path) for _, path in IMPORT.findall(script)] for name, script in others.items()}
    )
    joined = "\n".join(_as_function(name, others[name]) for name in order.static_order())
    files = {JOINED: f"const page = {{}};\n{joined}\nexport default page;\n"}
    files |= {name: f'import page from "../{JOINED}";\n{_taking(name, script)}' for name, script in modes.items()}
    return {name: content.encode() for name, content in files.items()}


def _as_function(name: str, script: str) -> str:
    body = LATER.sub(lambda found: f'import("./{_resolved(name, found[1])}")', _taking(name, script))
    body = EXPORT.sub(r"\1 \2", body)
    if left := re.search(r"^(import|export)\b.*", body, re.MULTILINE):
        raise ValueError(f"{name} has a line that cannot be joined with the other scripts: {left[0]}")
    exported = ", ".join(found for _, found in EXPORT.findall(script))
    return f'page["{name}"] = (() => {{\n{body}return {{ {exported} }};\n}})();'


def _taking(name: str, script: str) -> str:
    """The script, with imports as what they take from the joined file; modes import each other as they are."""

    def take(found: re.Match[str]) -> str:
        other = _resolved(name, found[2])
        taken = found[1].replace(" as ", ": ")
        return found[0] if other.startswith(MODES) else f'const {{{taken}}} = page["{other}"];'

    return IMPORT.sub(take, script)


def _resolved(importer: str, path: str) -> str:
    return normpath(f"{dirname(importer) or '.'}/{path}")


# Read once: what is served is what the version says, and nothing else of the folder can be asked for.
SCRIPTS = served(read(WEB))
VERSION = hashlib.sha256(b"\0".join(part for name in SCRIPTS for part in (name.encode(), SCRIPTS[name]))).hexdigest()[
    :16
]


def begin(gradio: str) -> str:
    """For the head of the page: it begins with what can be shown at once, and then comes Gradio's own script."""
    return f"""<link rel="modulepreload" href="web/{VERSION}/{JOINED}"><link rel="modulepreload" href="{gradio}">
<script type="module">
import("./web/{VERSION}/{JOINED}")
  .then((loaded) => loaded.default["early.js"].begin(window.gradio_config))
  .finally(() => import("{gradio}"));
</script>"""


def start(kind: str, *events: str) -> str:
    """What a component of a kind runs when it is loaded. Gradio knows the events that are named in it."""
    return f"""
// Events: {json.dumps(events)}
import(new URL("web/{VERSION}/{JOINED}", document.baseURI)).then(
  (loaded) => loaded.default["early.js"].start("{kind}", {{ element, props, trigger, watch, upload }}),
  () => {{ element.textContent = "A part of the page could not be loaded: reload it."; }},
);
"""


_pictures: dict[str, bytes] = {}  # by the name that they are offered under


def offer(picture: bytes) -> str:
    """The address of a JPEG, for as long as the page is served."""
    name = f"{hashlib.sha256(picture).hexdigest()[:16]}.jpg"
    _pictures[name] = picture
    return f"web/pictures/{name}"


async def _serve(request: Request) -> Response:
    version, name = request.path_params["version"], request.path_params["name"]
    found = {VERSION: SCRIPTS, "pictures": _pictures}.get(version, {}).get(name)
    if found is None:
        return PlainTextResponse("There is no such file: reload the page.", 404)
    kind = "image/jpeg" if found is _pictures.get(name) else "text/javascript"
    return Response(found, media_type=kind, headers={"Cache-Control": "public, max-age=31536000, immutable"})


ROUTE = Route("/web/{version}/{name:path}", _serve)
