"""The command `vit app`: the page, for a browser."""

from __future__ import annotations

import argparse
import os
import socket
from importlib.util import find_spec

from .checkpoints import DEFAULT, load
from .extras import needs
from .memory import all_stays
from .photos.examples import example_photos

QUEUED = 128  # requests that Gradio holds in all: a bound for what never waits for a model


def add_to(commands: argparse._SubParsersAction[argparse.ArgumentParser]) -> argparse.ArgumentParser:
    """Add the command to the parser. Gradio is slow to import, and waits until it runs."""
    command = commands.add_parser("app", help="serve the page", description=_app.__doc__)
    command.add_argument(
        "--model",
        default=os.environ.get("VIT_MODEL", DEFAULT),
        help="a folder, a file of weights or a Hub id (default: VIT_MODEL, or %(default)s)",
    )
    command.add_argument(
        "--any-model",
        action="store_true",
        help="let visitors load any Hub id or folder: for yourself, not for the public",
    )
    command.add_argument(
        "--only-model",
        action="store_true",
        default=bool(os.environ.get("VIT_ONLY_MODEL")),
        help="offer no other models (default: whether VIT_ONLY_MODEL is set)",
    )
    command.add_argument(
        "--title",
        default=os.environ.get("VIT_TITLE", "ViT Explorer"),
        help="what the page is called (default: VIT_TITLE, or %(default)s)",
    )
    command.add_argument("--mcp", action="store_true", help="offer the endpoints to language models too, as MCP tools")
    command.add_argument(
        "--host",
        default=os.environ.get("GRADIO_SERVER_NAME", "0.0.0.0" if "SPACE_ID" in os.environ else "127.0.0.1"),
        help="address to listen on (default: %(default)s)",
    )
    command.add_argument(
        "--port",
        type=int,
        default=os.environ.get("GRADIO_SERVER_PORT", "7860"),
        help="port to listen on (default: %(default)s)",
    )
    command.set_defaults(run=_app)
    return command


def _app(options: argparse.Namespace) -> int:
    """Serve ViT Explorer, a page to open in a browser."""
    needs("page")
    with all_stays():
        from .page import Models, build, launch_options
        from .spaces.zero_gpu import ON_ZERO_GPU, device

        if options.mcp and find_spec("mcp") is None:
            raise ValueError("--mcp needs one more package: run pip install 'gradio[mcp]'.")
        _check_free(options.host, options.port)  # before the model: a port in use is soon told
        print(f"Loading {options.model} …", flush=True)
        # ZeroGPU runs each prediction in a process of its own, where nothing faster would be kept.
        classifier = load(options.model, precision="float32" if ON_ZERO_GPU else options.precision)
        classifier.model.to(device())
        print(f"Open http://{options.host}:{options.port} in a browser; Ctrl + C ends it.", flush=True)
        models = Models(classifier, options.any_model, options.only_model)
        page = build(models, example_photos(), options.title).queue(max_size=QUEUED)
    page.launch(
        server_name=options.host, server_port=options.port, mcp_server=options.mcp, quiet=True, **launch_options()
    )
    return 0


def _check_free(host: str, port: int) -> None:
    try:
        with socket.socket() as listener:
            listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
            listener.bind((host, port))
    except OSError as error:
        raise ValueError(
            f"Port {port} of {host} is not free ({error.strerror}): choose another with --port."
        ) from error
