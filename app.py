"""The app: drop a photo into a browser and see what a Vision Transformer makes of it. Start it: python app.py"""

from __future__ import annotations

import argparse
import os
import socket
import sys
from importlib.util import find_spec
from pathlib import Path

os.environ.setdefault("GRADIO_ANALYTICS_ENABLED", "False")  # read when gradio is imported: nothing leaves the machine

import vit
from vit.checkpoints import DEFAULT
from vit.hub import quiet_hub
from vit.memory import keep_freed_memory

if __name__ == "__main__":
    keep_freed_memory()  # before gradio starts a thread: each would keep memory of its own

from vit.page import Models, build, launch_options
from vit.zero_gpu import device

WAITING = 32  # visitors at once; the next are told that it is busy
FOOD = ("pizza", "sushi", "pancakes", "hamburger", "spaghetti", "cup_cakes", "grilled_salmon")  # shown first
EXAMPLES = sorted(
    (Path(__file__).parent / "examples").glob("*.jpg"),
    key=lambda photo: (FOOD.index(photo.stem) if photo.stem in FOOD else len(FOOD), photo.stem),
)


def main() -> None:
    parser = argparse.ArgumentParser(description="Serve ViT Explorer, a page to open in a browser.")
    parser.add_argument(
        "--model",
        default=os.environ.get("VIT_MODEL", DEFAULT),
        help="a folder, a file of weights or a Hub id (default: VIT_MODEL, or %(default)s)",
    )
    parser.add_argument(
        "--any-model",
        action="store_true",
        help="let visitors load any Hub id or folder: for yourself, not for the public",
    )
    parser.add_argument("--mcp", action="store_true", help="offer the endpoints to language models too, as MCP tools")
    parser.add_argument(
        "--host",
        default=os.environ.get("GRADIO_SERVER_NAME", "0.0.0.0" if "SPACE_ID" in os.environ else "127.0.0.1"),
        help="address to listen on (default: %(default)s)",
    )
    parser.add_argument(
        "--port",
        type=int,
        default=int(os.environ.get("GRADIO_SERVER_PORT", 7860)),
        help="port to listen on (default: %(default)s)",
    )
    options = parser.parse_args()
    if options.mcp and find_spec("mcp") is None:
        sys.exit("app.py: --mcp needs one more package: run pip install 'gradio[mcp]'.")
    quiet_hub()
    try:
        with socket.socket() as listener:  # before the model: a port in use is soon told
            listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
            listener.bind((options.host, options.port))
        print(f"Loading {options.model} …", flush=True)
        classifier = vit.load(options.model)
        classifier.model.to(device())
    except (vit.CheckpointError, vit.HubError) as error:
        sys.exit(f"app.py: {error}")
    except OSError as error:
        sys.exit(
            f"app.py: port {options.port} of {options.host} is not free ({error.strerror}): choose another with --port."
        )
    except KeyboardInterrupt:
        sys.exit(130)
    print(f"Open http://{options.host}:{options.port} in a browser; Ctrl + C ends it.", flush=True)
    page = build(Models(classifier, options.any_model), EXAMPLES).queue(max_size=WAITING)
    page.launch(
        server_name=options.host, server_port=options.port, mcp_server=options.mcp, quiet=True, **launch_options()
    )


if __name__ == "__main__":
    main()
