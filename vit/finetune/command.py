"""The commands `vit finetune` and `vit evaluate`."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Callable
from pathlib import Path
from typing import get_args

from ..extras import needs
from ..hub import HubError
from ..processes import end_together, on_cpus
from .recipe import BASE, NOT_FOR, Recipe, Train, choices

DATA_HELP = "a folder of class folders, or of train and test folders that hold them; food101; or a Hub data set"


def add_to(
    commands: argparse._SubParsersAction[argparse.ArgumentParser],
    add_model: Callable[[argparse.ArgumentParser], None],
    add_registers: Callable[[argparse.ArgumentParser], None],
    add_precision: Callable[[argparse.ArgumentParser], None],
) -> None:
    """Add both commands to the parser. What is slow to import waits until one runs."""
    command = commands.add_parser("finetune", help="train on your own photos", description=_finetune.__doc__)
    command.add_argument("data", metavar="DATA", help=DATA_HELP)
    command.add_argument("--out", required=True, type=Path, metavar="FOLDER", help="for the model; vit.load takes it")
    command.add_argument("--base", default=BASE, metavar="MODEL", help="what to start from (default: %(default)s)")
    command.add_argument("--train", choices=("head", "all"), default="head", help="the head alone (default), or all")
    command.add_argument(
        "--from-scratch", nargs="?", const="Ti/16", metavar="VARIANT", help="start from nothing (default: Ti/16)"
    )
    command.add_argument(
        "--keep-classes", action="store_true", help="keep the classes of the base; the new ones join them"
    )
    command.add_argument("--teacher", metavar="MODEL", help="with --keep-classes: keep this model's instead")
    command.add_argument(
        "--teacher-photos",
        metavar="FOLDER",
        help="with --keep-classes: photos without labels to ask it about",
    )
    command.add_argument("--resume", action="store_true", help="go on with the unfinished run in --out")
    command.add_argument(
        "--held-out",
        type=_share,
        metavar="SHARE",
        help="photos not trained on, to calibrate by (default: 0.1 where that is enough; none for a head)",
    )
    command.add_argument(
        "--test",
        type=_share,
        metavar="SHARE",
        help="photos put aside to test on, where DATA has no test folder (default: 0.2; a head is cross-validated)",
    )
    command.add_argument(
        "--only-copies",
        action="store_true",
        help="of photos that are nearly the same use all, as of a series from a fixed camera",
    )
    command.add_argument(
        "--size", type=positive, metavar="N", help="side of the images in pixels (default: the base's)"
    )
    command.add_argument("--half", action="store_true", help="write float16: half the size")
    command.add_argument(
        "--accumulate", type=positive, default=1, metavar="N", help="passes for one batch, to save memory"
    )
    command.add_argument("--workers", type=int, metavar="N", help="processes that read photos")
    command.add_argument(
        "--log-to", choices=("tensorboard", "trackio", "wandb"), help="show the figures as they come there, too"
    )
    command.add_argument("--push-to-hub", metavar="NAME", help="upload the model to the Hugging Face Hub")
    command.add_argument("--private", action="store_true", help="with --push-to-hub: others cannot see the upload")
    recipe = command.add_argument_group("recipe", "defaults for --train head, --train all and --from-scratch")
    for name, kind in choices().items():
        if name != "train":
            values = " | ".join(
                "–" if name in NOT_FOR[train] else f"{getattr(Recipe.of(train), name):g}" for train in get_args(Train)
            )
            flag, form = f"--{name.replace('_', '-')}", kind.__origin__
            recipe.add_argument(flag, type=form, metavar="N", help=f"{kind.__metadata__[0]} ({values})")
    command.set_defaults(run=_finetune)

    command = commands.add_parser("evaluate", help="how good a model is", description=_evaluate.__doc__)
    command.add_argument("data", metavar="DATA", help=DATA_HELP)
    add_model(command)
    add_registers(command)
    add_precision(command)
    command.add_argument("--part", choices=("test", "train"), default="test", help="of the data (default: test)")
    command.add_argument(
        "--out", type=Path, metavar="FOLDER", help="for the confusion matrix and the most wrong photos"
    )
    command.add_argument("--workers", type=int, metavar="N", help="processes that read photos")
    command.set_defaults(run=_evaluate)


def positive(text: str) -> int:
    """A whole number from 1 up, for the parser."""
    if not text.isdecimal() or int(text) < 1:
        raise argparse.ArgumentTypeError(f"{text!r} is not a whole number from 1 up")
    return int(text)


def _share(text: str) -> float:
    try:
        share = float(text)
    except ValueError:
        share = -1
    if not 0 <= share < 1:
        raise argparse.ArgumentTypeError(f"{text!r} is not a share from 0 up to 1")
    return share


def _finetune(options: argparse.Namespace) -> int:
    """Train a model on your own photos: a new head in minutes, or all weights, or a model from scratch.

    A run may be stopped at any moment and goes on with --resume. On many GPUs or machines:
    accelerate launch -m vit finetune ...
    """
    needs("finetune")
    from .. import checkpoints
    from ..hub.upload import check, upload
    from .run import finetune
    from .start import UNFINISHED, WORKERS, Run
    from .trackers import tracking

    train: Train = "scratch" if options.from_scratch else options.train
    given = {name: getattr(options, name) for name in choices() if name != "train"}
    run = Run(
        data=options.data,
        base=options.from_scratch or options.base,
        recipe=Recipe.of(train, **{name: value for name, value in given.items() if value is not None}),
        held_out=options.held_out,
        test=options.test,
        half=options.half,
        only_copies=options.only_copies,
        size=options.size,
        accumulate=options.accumulate,
        workers=WORKERS if options.workers is None else options.workers,
        keep_classes=options.keep_classes,
        teacher=options.teacher,
        teacher_photos=options.teacher_photos,
    )
    if train != "scratch" and checkpoints.find(run.base) is None:
        print(f"Loading {run.base} …", flush=True)  # the Hub may take its time
    if options.push_to_hub:
        check(options.push_to_hub)
    try:
        with tracking(options.log_to, options.out) as watch:
            result = finetune(run, options.out, options.resume, watch, options.push_to_hub)
    except KeyboardInterrupt:
        begun = (options.out / UNFINISHED / "settings.json").exists()
        print(f"vit: Stopped. Run the same command again{' with --resume' * begun} to go on.", file=sys.stderr)
        return 130
    end_together()
    if not result.main_process:
        return 0
    if result.test is None:
        print("Each photo answered by a head that had not learnt from it (cross-validation):")
    print(result.figures.summary())
    print(f"Written to {options.out}: {', '.join(sorted(path.name for path in options.out.iterdir()))}")
    print(f"Look at it: {Path(sys.executable).name} -m vit app --model {options.out}")
    if options.push_to_hub:
        try:
            address = upload(options.out, options.push_to_hub, options.private, leave_out=UNFINISHED)
        except HubError as error:
            again = f"hf upload {options.push_to_hub} {options.out}"
            raise HubError(f"{error} The model is in {options.out}; to upload it later: {again}") from error
        print(f"Uploaded to {address}")
    return 0


def _evaluate(options: argparse.Namespace) -> int:
    """How many photos of the data the model gets right: in all, among its first five, class by class."""
    needs("finetune")
    from accelerate import Accelerator

    from ..checkpoints import load
    from . import report
    from .accounts import LEFT_OUT, TEST, account, learnt_from
    from .accounts import write as write_accounts
    from .data import known_to
    from .run import evaluate
    from .sources import open_data
    from .start import WORKERS

    data = open_data(options.data)
    photos = data.test if options.part == "test" else data.train
    if photos is None:
        if data.train is None:
            raise ValueError(f"{options.data} has no training photos: leave --part out.")
        photos = data.train
        print(f"There is no test part: all {len(photos)} photos count.")
    classifier = load(options.model, options.revision, precision=options.precision)
    if options.registers:
        classifier = classifier.with_registers(report=print)
    photos = known_to(photos, classifier.labels)
    if known := learnt_from(options.model, photos):
        print(
            f"The model has learnt from {known} of these {len(photos)} photos: what is new to it, it may answer worse."
        )
    workers = WORKERS if options.workers is None else options.workers
    accelerator = Accelerator(cpu=on_cpus())
    evaluation, readable, familiarity, problems = evaluate(classifier, photos, accelerator, workers)
    end_together()
    accelerator.print(evaluation.summary())
    if options.out and accelerator.is_main_process:
        report.write(options.out, [], evaluation, readable, familiarity, options.data)
        accounts = account(readable, TEST, options.data, evaluation, familiarity)
        write_accounts(accounts + account(photos, LEFT_OUT, options.data, notes=problems), options.out)
        print(f"Written to {options.out}: {', '.join(sorted(path.name for path in options.out.iterdir()))}")
    return 0
