"""The command line: vit, or python -m vit."""

from __future__ import annotations

import argparse
import shlex
import sys
from collections import deque
from collections.abc import Iterable
from contextlib import nullcontext
from dataclasses import replace
from pathlib import Path

from tqdm import tqdm

from . import app, many, summary
from .checkpoints import DEFAULT, find, load
from .classifier import Answer, Classifier
from .config import VARIANTS, ViTConfig
from .explain.maps import Heads
from .explain.methods import METHODS
from .extras import MissingPackages, needs
from .finetune import command as finetune
from .hub import HubError, quiet_hub
from .memory import keep_freed_memory
from .photos.examples import example_photos
from .photos.files import PhotoError
from .photos.finding import find_photos
from .precision import AUTO, PRECISIONS
from .processes import Processes, end_together, exit_code

MODEL_HELP = "a folder, a file of weights, or a Hub id such as google/vit-base-patch16-224"
ANSWERS = "answers.csv"  # beside the folders of explained photos
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
    _add_photos(command)
    _add_model(command)
    command.add_argument("--out", type=Path, metavar="FILE", help="for the answers: .csv, or .jsonl for JSON Lines")
    command.add_argument("--top-k", type=finetune.positive, default=5, metavar="K", help="how many labels (default: 5)")
    _add_size(command)
    _add_precision(command, AUTO)
    command.set_defaults(run=_predict)

    command = commands.add_parser("explain", help="what the model looks at in photos, as pictures and arrays")
    _add_photos(command)
    command.add_argument(
        "--out",
        required=True,
        type=Path,
        metavar="FOLDER",
        help=f"each photo gets a folder in it, and a row of {ANSWERS}",
    )
    _add_model(command)
    command.add_argument(
        "--methods", nargs="+", choices=METHODS, metavar="NAME", help=f"of {', '.join(METHODS)} (default: all)"
    )
    command.add_argument("--label", help="the class to explain (default: the likeliest)")
    command.add_argument("--against", metavar="LABEL", help="a class to hold it against")
    command.add_argument("--heads", type=_heads, default="mean", metavar="mean|max|N", help="all heads in one, or one")
    command.add_argument("--patch", type=int, metavar="N", help="a patch to ask what it looks at, and what at it")
    command.add_argument("--discard", type=float, default=0.0, metavar="SHARE", help="weakest links rollout cuts")
    command.add_argument(
        "--start", type=int, default=0, metavar="LAYER", help="where rollout and relevance start, the first is 0"
    )
    command.add_argument(
        "--layer", type=int, default=-1, help="whose heads get a sheet, the first is 0 (default: the last)"
    )
    command.add_argument("--smooth", action="store_true", help="draw maps smooth instead of patch by patch")
    command.add_argument("--own-scale", action="store_true", help="a colour scale for each map, not one for a sheet")
    command.add_argument("--curves", action="store_true", help="deletion and insertion curves of each map")
    command.add_argument("--arrays-only", action="store_true", help="write maps.npz and maps.json, and no pictures")
    _add_size(command)
    _add_registers(command)
    command.add_argument("--without-outliers", action="store_true", help="leave out patches of far too large a norm")
    command.set_defaults(run=_explain)

    command = commands.add_parser("export", help="the model as ONNX", description=_export.__doc__)
    command.add_argument("model", metavar="MODEL", help=MODEL_HELP)
    command.add_argument("--revision", help="branch, tag or commit on the Hub")
    command.add_argument("--onnx", required=True, type=Path, metavar="FILE", help="the file to write")
    command.add_argument(
        "--pixels",
        nargs="?",
        const="uint8",
        choices=("uint8", "float32"),
        help="it takes pixels from 0 to 255, of this type (default: uint8), and normalises them itself",
    )
    command.set_defaults(run=_export)

    finetune.add_to(commands, _add_model, _add_registers, _add_precision)
    _add_precision(app.add_to(commands), AUTO)

    command = commands.add_parser("deploy", help="put the app on Hugging Face Spaces", description=_deploy.__doc__)
    command.add_argument("space", metavar="USER/NAME", help="the Space; created where there is none")
    command.add_argument("--model", default=DEFAULT, help=f"what it shows: {MODEL_HELP} (default: %(default)s)")
    command.add_argument("--title", help="what it is called (default: the model's name, for one of your own)")
    command.add_argument("--examples", type=Path, metavar="FOLDER", help="photos to show in place of the project's")
    command.add_argument("--other-models", action="store_true", help="beside a model of your own, offer the others too")
    command.add_argument("--private", action="store_true", help="of a new Space: others cannot see it")
    command.add_argument("--hardware", metavar="NAME", help="of a new Space, such as zero-a10g, which is ZeroGPU")
    command.add_argument("--dry-run", action="store_true", help="list what would be sent, and send nothing")
    command.set_defaults(run=_deploy)
    return parser


def _add_photos(command: argparse.ArgumentParser) -> None:
    command.add_argument(
        "photos", metavar="PHOTO", nargs="+", help="files, folders with all photos in them, patterns such as '*.jpg'"
    )


def _add_model(command: argparse.ArgumentParser) -> None:
    command.add_argument("--model", default=DEFAULT, help=f"{MODEL_HELP} (default: %(default)s)")
    command.add_argument("--revision", help="branch, tag or commit on the Hub")


def _add_size(command: argparse.ArgumentParser) -> None:
    command.add_argument(
        "--size", type=finetune.positive, metavar="PIXELS", help="the image's side (default: the checkpoint's own)"
    )
    command.add_argument("--fit", action="store_true", help="cut nothing off: the image keeps the photo's shape")


def _add_registers(command: argparse.ArgumentParser) -> None:
    command.add_argument(
        "--registers", action="store_true", help="move its sinks to test-time registers (arXiv 2506.08010)"
    )


def _add_precision(command: argparse.ArgumentParser, default: str = "float32") -> None:
    command.add_argument(
        "--precision",
        choices=PRECISIONS,
        default=default,
        help="of what is predicted; auto: the fastest here that says the same (default: %(default)s)",
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
    if options.out:
        many.check_ending(options.out)
    photos = find_photos(options.photos)
    processes = Processes.started()
    classifier = replace(_load(options), precision=options.precision)
    if options.size and not options.fit:
        classifier.model.config.check_image(options.size, options.size)
    classifier.model.to(processes.device)
    [chosen, *_] = processes.gather([classifier.settled().precision])  # one for all
    classifier = replace(classifier, precision=chosen)
    answers = many.answers(classifier, photos, options.top_k, processes, options.size, options.fit)
    if not processes.main:  # its part of the work is in the main one's answers
        deque(answers, maxlen=0)
        end_together()
        return 0
    failed = _write(answers, options, len(photos)) if options.out else _print(answers)
    end_together()
    return exit_code(failed > 0)


def _write(answers: Iterable[tuple[str, Answer | str]], options: argparse.Namespace, count: int) -> int:
    failed = 0
    with many.writer(options.out, options.top_k) as write:
        for photo, answer in tqdm(answers, total=count, unit="photo", disable=count < 2):
            write(photo, answer)
            failed += isinstance(answer, str)
    if failed:
        print(f"vit: {failed} of {count} photos could not be used: {options.out} says why.", file=sys.stderr)
    print(f"Written to {options.out}")
    return failed


def _print(answers: Iterable[tuple[str, Answer | str]]) -> int:
    failed = 0
    for photo, answer in answers:
        if isinstance(answer, str):
            print(f"vit: {answer}", file=sys.stderr)
            failed += 1
            continue
        print(photo)
        if answer.unfamiliar:
            print("  This is like nothing it was trained on. Its best guesses:")
        for label, probability in answer.predictions:
            print(f"  {probability:6.1%}  {label}")
    return failed


def _explain(options: argparse.Namespace) -> int:
    from . import export  # matplotlib is slow to import, and nothing else needs it

    folders = _folders(options.out, find_photos(options.photos))
    processes = Processes.started()
    classifier = _load(options)
    if options.registers:
        classifier = classifier.with_registers(report=print if processes.main else None)
    classifier.model.to(processes.device)
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
        pictures=not options.arrays_only,
        size=options.size,
        fit=options.fit,
    )

    def explain(photo: str) -> Answer | str:
        try:
            made = export.write(classifier, photo, folders[photo], how)
        except PhotoError as error:  # the others are not lost
            print(f"vit: {error}", file=sys.stderr)
            return str(error)
        tqdm.write(f"{photo} → {folders[photo]}")
        return Answer(made["predictions"], made["familiarity"])

    if processes.main:
        export.write_model(classifier, options.out / "model", how.pictures)
    failed = False
    with many.writer(options.out / ANSWERS, 5, "folder") if processes.main else nullcontext(None) as write:
        for together in processes.rounds(list(folders), "photo"):
            own = together[processes.index : processes.index + 1]
            for photo, answer in zip(together, processes.gather([explain(photo) for photo in own])):
                failed |= (wrong := isinstance(answer, str))
                if write:
                    write(photo, answer, "" if wrong else folders[photo].name)
    end_together()
    return exit_code(failed)


def _export(options: argparse.Namespace) -> int:
    """Write a model as ONNX, and print what ONNX Runtime says of the examples beside what the model says.

    Labels and preprocessing are in the file's metadata, as JSON.
    """
    needs("onnx")
    from . import onnx_export

    classifier = _load(options)
    onnx_export.write(classifier, options.onnx, options.pixels)
    photos = example_photos()
    differences = [0.0]
    for photo, compared in zip(photos, onnx_export.compare(classifier, options.onnx, photos)):
        differences.append(compared.difference)
        if classifier.labels:
            answers = (logits.softmax(dim=-1).max(dim=-1) for logits in (compared.ours, compared.theirs))
            ours, theirs = (f"{answer.values:.2%} {classifier.labels[answer.indices]}" for answer in answers)
            print(f"{photo.stem}: {ours}; ONNX Runtime: {theirs}")
    what = "logits" if classifier.labels else "features"
    print(f"{options.onnx}: {options.onnx.stat().st_size:,} bytes")
    print(f"Largest difference of the {what} on {len(photos)} photos: {max(differences):.1e}")
    return 0


def _deploy(options: argparse.Namespace) -> int:
    """Put the app on Hugging Face Spaces, or bring it up to date there: its code, the examples and one model.

    A model from your disk goes along, with its card; photos of its fine-tuning do not. A model of your own, from disk
    or Hub, is shown alone: the checkpoints that come with the project are not sent.
    """
    from .hub.upload import check, check_name  # the Hub's whole client is slow to import, and nothing else needs it
    from .spaces import deploy

    (check_name if options.dry_run else check)(options.space)
    plan = deploy.plan(options.model, title=options.title, examples=options.examples, other_models=options.other_models)
    sizes = plan.sizes()
    if options.dry_run:
        for name, size in sizes.items():
            print(f"{size:12,}  {name}")
    told = " ".join(f"{name}={shlex.quote(value)}" for name, value in plan.variables.items())
    print(f"{sum(sizes.values()):12,}  bytes in {len(sizes)} files; {told}")
    if plan.left_out:
        print(f"Left out of {options.model}, not needed or photos: {', '.join(plan.left_out)}")
    if not options.dry_run:
        address = deploy.deploy(plan, options.space, options.private, options.hardware)
        print(f"Sent to {address}, which is ready in a few minutes.")
    return 0


def _folders(out: Path, photos: list[str]) -> dict[str, Path]:
    """A folder for each photo, by its name; photos of the same name are numbered."""
    folders: dict[str, Path] = {}
    taken = {"model", ANSWERS}
    for photo in dict.fromkeys(photos):
        name, number = Path(photo).stem, 2
        while name in taken:
            name, number = f"{Path(photo).stem}-{number}", number + 1
        taken.add(name)
        folders[photo] = out / name
    return folders


if __name__ == "__main__":
    sys.exit(main())
