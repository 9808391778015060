"""The app: drop a photo into a browser and see what a Vision Transformer makes of it. Start it: python app.py"""

from __future__ import annotations

import argparse
import os
import socket
import sys
from pathlib import Path
from typing import Any

os.environ.setdefault("GRADIO_ANALYTICS_ENABLED", "False")  # read when gradio is imported: nothing leaves the machine

import gradio as gr
from PIL import Image

import vit
from vit.checkpoints import DEFAULT
from vit.hub import quiet_hub
from vit.memory import keep_freed_memory

EXAMPLES = sorted((Path(__file__).parent / "examples").glob("*.jpg"))
LAUNCH: dict[str, Any] = dict(
    footer_links=["api", "settings"],
    max_file_size="20mb",
    show_error=False,
    enable_monitoring=False,
    ssr_mode=False,
    pwa=False,
    run_history=False,
)


class PhotoInput(gr.Image):
    """An image input that opens any photo the way the model does, and says in a sentence when it cannot."""

    is_template = True  # drawn in the page as gr.Image itself

    def preprocess(self, payload: Any) -> Image.Image | None:
        if payload is None:
            return None
        try:
            return vit.images.open_photo(payload.path)
        except vit.PhotoError as error:
            raise gr.Error(str(error), print_exception=False) from None


def page(classifier: vit.Classifier) -> gr.Blocks:
    """Layout first, then wiring."""

    def predict(photo: Image.Image | None) -> dict[str, float]:
        """The five likeliest labels of a photo, each with its probability."""
        # Some checkpoints have a label twice (ImageNet's crane, a bird and a machine): the likelier one is shown.
        return {} if photo is None else dict(reversed(classifier.predict(photo)))

    with gr.Blocks(title="ViT Explorer", delete_cache=(3600, 3600)) as blocks:
        gr.Markdown(f"# ViT Explorer\nDrop a photo: a {classifier.model.config.name} says what it sees.")
        with gr.Row():
            photo = PhotoInput(label="Photo", height=360)
            predictions = gr.Label(label="Predictions")
        gr.Examples([str(path) for path in EXAMPLES], inputs=photo, examples_per_page=len(EXAMPLES))
        photo.change(predict, photo, predictions, api_name="predict", concurrency_id="model")
    return blocks


def main() -> None:
    parser = argparse.ArgumentParser(description="Serve ViT Explorer, a page to open in a browser.")
    parser.add_argument(
        "--model", default=DEFAULT, help="a folder, a file of weights or a Hub id (default: %(default)s)"
    )
    parser.add_argument(
        "--host",
        default=os.environ.get("GRADIO_SERVER_NAME", "127.0.0.1"),
        help="address to listen on (default: %(default)s)",
    )
    parser.add_argument(
        "--port",
        type=int,
        default=int(os.environ.get("GRADIO_SERVER_PORT", 7860)),
        help="port to listen on (default: %(default)s)",
    )
    options = parser.parse_args()
    keep_freed_memory()
    quiet_hub()
    try:
        with socket.socket() as listener:  # before the model: a port in use is soon told
            listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
            listener.bind((options.host, options.port))
        print(f"Loading {options.model} …", flush=True)
        classifier = vit.load(options.model)
    except (vit.CheckpointError, vit.HubError) as error:
        sys.exit(f"app.py: {error}")
    except OSError as error:
        sys.exit(
            f"app.py: port {options.port} of {options.host} is not free ({error.strerror}): choose another with --port."
        )
    except KeyboardInterrupt:
        sys.exit(130)
    if not classifier.labels:
        sys.exit(f"app.py: {options.model} has no classifier, so it predicts nothing: choose a model with labels.")
    page(classifier).queue(max_size=32).launch(server_name=options.host, server_port=options.port, **LAUNCH)


if __name__ == "__main__":
    main()
