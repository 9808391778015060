"""The command line: python -m vit."""

from __future__ import annotations

import argparse
import sys

from . import summary
from .checkpoints import DEFAULT, CheckpointError, load
from .config import VARIANTS, ViTConfig
from .hub import HubError, quiet_hub
from .images import PhotoError
from .memory import keep_freed_memory

MODEL_HELP = "a folder, a file of weights, or a Hub id such as google/vit-base-patch16-224"
SENTENCES = (HubError, ValueError)  # CheckpointError, PhotoError and wrong settings are ValueErrors: all are sentences


def main(arguments: list[str] | None = None) -> int:
    """Run one command; the exit code is 0 unless something was refused."""
    options = _parser().parse_args(arguments)
    keep_freed_memory()
    quiet_hub()
    try:
        return options.run(options)
    except SENTENCES as error:
        print(f"vit: {error}", file=sys.stderr)
        return 1
    except BrokenPipeError:  # whoever read our output has had enough of it
        sys.stdout = None  # type: ignore[assignment]
        return 0
    except KeyboardInterrupt:
        return 130


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="python -m vit", description="A Vision Transformer, and a view into it.")
    commands = parser.add_subparsers(required=True, metavar="COMMAND")

    command = commands.add_parser("summary", help="a model's layers, shapes and parameters")
    command.add_argument("model", metavar="MODEL", help=f"a variant such as B/16, {MODEL_HELP}")
    command.set_defaults(run=_summary)

    command = commands.add_parser("predict", help="what the model sees in photos")
    command.add_argument("photos", metavar="PHOTO", nargs="+")
    command.add_argument("--model", default=DEFAULT, help=f"{MODEL_HELP} (default: %(default)s)")
    command.add_argument("--revision", help="branch, tag or commit on the Hub")
    command.add_argument("--top-k", type=_positive, default=5, metavar="K", help="how many labels (default: 5)")
    command.set_defaults(run=_predict)
    return parser


def _positive(text: str) -> int:
    if not text.isdecimal() or int(text) < 1:
        raise argparse.ArgumentTypeError(f"{text!r} is not a whole number from 1 up")
    return int(text)


def _summary(options: argparse.Namespace) -> int:
    variant, _, patch = options.model.partition("/")
    if variant in VARIANTS and patch.isdecimal():
        config = ViTConfig.of(options.model)
    else:
        config = load(options.model).model.config
    print(summary.table(config))
    return 0


def _predict(options: argparse.Namespace) -> int:
    classifier = load(options.model, options.revision)
    if not classifier.labels:
        raise CheckpointError(f"{options.model} has no classifier, so it predicts nothing: choose one with labels.")
    failed = 0
    for photo in options.photos:
        try:
            predictions = classifier.predict(photo, options.top_k)
        except PhotoError as error:
            print(f"vit: {error}", file=sys.stderr)
            failed += 1
            continue
        print(photo)
        for label, probability in predictions:
            print(f"  {probability:6.1%}  {label}")
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
