"""The command line: vit, or python -m vit."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Callable, Iterable
from pathlib import Path

from tqdm import tqdm

from . import app, summary
from .checkpoints import DEFAULT, find, load
from .classifier import Classifier
from .config import VARIANTS, ViTConfig
from .explain.maps import Heads
from .explain.methods import METHODS
from .extras import MissingPackages
from .finetune import command as finetune
from .hub import HubError, quiet_hub
from .memory import keep_freed_memory
from .photos.files import PhotoError

MODEL_HELP = "a folder, a file of weights, or a Hub id such as google/vit-base-patch16-224"
# CheckpointError, PhotoError, UnsupportedError and wrong settings are ValueErrors.
USER_ERRORS = (HubError, MissingPackages, ValueError)


def main(arguments: list[str] | None = None) -> int:
    """Run one command; the exit code is 0 unless something was refused."""
    options = _parser().parse_args(arguments)
    keep_freed_memory()
    quiet_hub()
    try:
        return options.run(options)
    except USER_ERRORS as error:
        print(f"vit: {error}", file=sys.stderr)
        return 1
    except BrokenPipeError:  # whoever read our output has had enough of it
        sys.stdout = None
        return 0
    except OSError as error:
        print(f"vit: {error.filename or 'The output'} cannot be written: {error.strerror}.", file=sys.stderr)
        return 1
    except KeyboardInterrupt:
        return 130


def _parser() -> argparse.ArgumentParser:
    prog = "vit" if Path(sys.argv[0]).stem == "vit" else "python -m vit"
    parser = argparse.ArgumentParser(prog=prog, description="A Vision Transformer, and a view into it.")
    commands = parser.add_subparsers(required=True, metavar="COMMAND")

    command = commands.add_parser("summary", help="a model's layers, shapes and parameters")
    command.add_argument("model", metavar="MODEL", help=f"a variant such as B/16, {MODEL_HELP}")
    command.set_defaults(run=_summary)

    command = commands.add_parser("predict", help="what the model sees in photos")
    command.add_argument("photos", metavar="PHOTO", nargs="+")
    _add_model(command)
    command.add_argument("--top-k", type=finetune.positive, default=5, metavar="K", help="how many labels (default: 5)")
    command.set_defaults(run=_predict)

    command = commands.add_parser("explain", help="what the model looks at in photos, as pictures and arrays")
    command.add_argument("photos", metavar="PHOTO", nargs="+")
    command.add_argument("--out", required=True, type=Path, metavar="FOLDER", help="each photo gets a folder in it")
    _add_model(command)
    command.add_argument(
        "--methods", nargs="+", choices=METHODS, metavar="NAME", help=f"of {', '.join(METHODS)} (default: all)"
    )
    command.add_argument("--label", help="the class to explain (default: the likeliest)")
    command.add_argument("--against", metavar="LABEL", help="a class to hold it against")
    command.add_argument("--heads", type=_heads, default="mean", metavar="mean|max|N", help="all heads in one, or one")
    command.add_argument("--patch", type=int, metavar="N", help="a patch to ask what it looks at, and what at it")
    command.add_argument("--discard", type=float, default=0.0, metavar="SHARE", help="weakest links rollout cuts")
    command.add_argument("--start", type=int, default=0, metavar="LAYER", help="where rollout and relevance start")
    command.add_argument("--layer", type=int, default=-1, help="the layer whose heads get a sheet (default: the last)")
    command.add_argument("--smooth", action="store_true", help="draw maps smooth instead of patch by patch")
    command.add_argument("--own-scale", action="store_true", help="a colour scale for each map, not one for a sheet")
    command.add_argument("--curves", action="store_true", help="deletion and insertion curves of each map")
    _add_registers(command)
    command.add_argument("--without-outliers", action="store_true", help="leave out patches of far too large a norm")
    command.set_defaults(run=_explain)

    finetune.add_to(commands, _add_model, _add_registers)
    app.add_to(commands)

    command = commands.add_parser("deploy", help="put the app on Hugging Face Spaces", description=_deploy.__doc__)
    command.add_argument("space", metavar="USER/NAME", help="the Space; created where there is none")
    command.add_argument("--model", default=DEFAULT, help=f"what it shows: {MODEL_HELP} (default: %(default)s)")
    command.add_argument("--private", action="store_true", help="of a new Space: others cannot see it")
    command.add_argument("--hardware", metavar="NAME", help="of a new Space, such as zero-a10g, which is ZeroGPU")
    command.add_argument("--dry-run", action="store_true", help="list what would be sent, and send nothing")
    command.set_defaults(run=_deploy)
    return parser


def _add_model(command: argparse.ArgumentParser) -> None:
    command.add_argument("--model", default=DEFAULT, help=f"{MODEL_HELP} (default: %(default)s)")
    command.add_argument("--revision", help="branch, tag or commit on the Hub")


def _add_registers(command: argparse.ArgumentParser) -> None:
    command.add_argument(
        "--registers", action="store_true", help="move its sinks to test-time registers (arXiv 2506.08010)"
    )


def _heads(text: str) -> Heads:
    if text in ("mean", "max"):
        return text  # type: ignore[return-value]
    if not text.isdecimal():
        raise argparse.ArgumentTypeError(f"{text!r} is neither 'mean' nor 'max' nor a head's number")
    return int(text)


def _load(options: argparse.Namespace) -> Classifier:
    if find(options.model) is None:
        print(f"Loading {options.model} …", file=sys.stderr)  # the Hub may take its time
    return load(options.model, options.revision)


def _summary(options: argparse.Namespace) -> int:
    variant, _, patch = options.model.partition("/")
    if variant in VARIANTS and patch.isdecimal():
        config = ViTConfig.of(options.model)
    else:
        config = load(options.model).model.config
    print(summary.table(config))
    return 0


def _predict(options: argparse.Namespace) -> int:
    classifier = _load(options)

    def predict(photo: str) -> None:
        answer = classifier.answer(photo, options.top_k)
        print(photo)
        if answer.unfamiliar:
            print("  This is like nothing it was trained on. Its best guesses:")
        for label, probability in answer.predictions:
            print(f"  {probability:6.1%}  {label}")

    return _for_each(options.photos, predict)


def _explain(options: argparse.Namespace) -> int:
    from . import export  # matplotlib is slow to import, and nothing else needs it

    classifier = _load(options)
    if options.registers:
        classifier = classifier.with_registers(report=print)
    layers = classifier.model.config.layers
    for layer in (options.layer, options.start):
        if not -layers <= layer < layers:
            raise ValueError(f"There is no layer {layer}: this model has the layers 0 to {layers - 1}.")
    how = export.Options(
        methods=tuple(options.methods or METHODS),
        label=options.label,
        against=options.against,
        heads=options.heads,
        layer=options.layer,
        patch=options.patch,
        discard=options.discard,
        start=options.start % layers,
        smooth=options.smooth,
        shared=not options.own_scale,
        curves=options.curves,
        without_outliers=options.without_outliers,
    )
    folders = _folders(options.out, options.photos)

    def explain(photo: str) -> None:
        export.write(classifier, photo, folders[photo], how)
        tqdm.write(f"{photo} → {folders[photo]}")

    export.write_model(classifier, options.out / "model")
    photos = list(folders)
    return _for_each(tqdm(photos, unit="photo", disable=len(photos) < 2), explain)


def _deploy(options: argparse.Namespace) -> int:
    """Put the app on Hugging Face Spaces, or bring it up to date there: its code, the examples and one model.

    A model from your disk goes along, with its card; photos of its fine-tuning do not.
    """
    from .hub.upload import check, check_name  # the Hub's whole client is slow to import, and nothing else needs it
    from .spaces import deploy

    (check_name if options.dry_run else check)(options.space)
    plan = deploy.plan(options.model)
    sizes = plan.sizes()
    if options.dry_run:
        for name, size in sizes.items():
            print(f"{size:12,}  {name}")
    print(f"{sum(sizes.values()):12,}  bytes in {len(sizes)} files; {deploy.VARIABLE}={plan.model}")
    if plan.left_out:
        print(f"Left out of {options.model}, not needed or photos: {', '.join(plan.left_out)}")
    if not options.dry_run:
        address = deploy.deploy(plan, options.space, options.private, options.hardware)
        print(f"Sent to {address}, which is ready in a few minutes.")
    return 0


def _folders(out: Path, photos: list[str]) -> dict[str, Path]:
    """A folder for each photo, by its name; photos of the same name are numbered."""
    folders: dict[str, Path] = {"": out / "model"}  # which is taken
    for photo in photos:
        name, number = Path(photo).stem, 2
        while out / name in folders.values():
            name, number = f"{Path(photo).stem}-{number}", number + 1
        folders.setdefault(photo, out / name)
    del folders[""]
    return folders


def _for_each(photos: Iterable[str], do: Callable[[str], None]) -> int:
    """A photo that cannot be read gets a sentence, and the others are not lost."""
    failed = 0
    for photo in photos:
        try:
            do(photo)
        except PhotoError as error:
            print(f"vit: {error}", file=sys.stderr)
            failed += 1
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
