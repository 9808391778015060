"""Our forward pass beside transformers', timm's and torchvision's, with the same weights, in one run.

    python -m benchmarks.model

Prints medians with their quartiles, and as ratios: ours to the fastest of the three; recording the attention of all
layers and heads to not recording; ours to ONNX Runtime's float32 time of the same model; and what a prediction takes in
each precision to timm in float32. A prediction leaves out what the head does not read, and float32 uses oneDNN for it.
"""

from __future__ import annotations

import logging
import tempfile
import warnings
from collections.abc import Callable
from functools import partial
from pathlib import Path

import onnxruntime
import timm
import torch
import torchvision
import transformers
from torch import Tensor, nn

import vit
from vit.checkpoints.families.timm import TIMM
from vit.checkpoints.families.torchvision import TORCHVISION
from vit.checkpoints.renaming import rename
from vit.memory import keep_freed_memory
from vit.precision import FLAGS, encode, has_instructions

from .report import Table, arguments, machine, two_threads
from .timing import clock, side_by_side

PRECISIONS = [name for name in FLAGS if has_instructions(name, torch.device("cpu"))]
CASES = (("Ti/16", 1, 1), ("Ti/16", 8, 1), ("B/16", 1, 1), ("B/16", 8, 3))
TIMM_NAMES = {"Ti/16": "vit_tiny_patch16_224", "B/16": "vit_base_patch16_224"}


def models(variant: str) -> tuple[vit.ViT, dict[str, nn.Module]]:
    """One set of random weights in four implementations: ours, and theirs."""
    config = vit.ViTConfig.of(variant)
    hugging_face = transformers.ViTForImageClassification(
        transformers.ViTConfig(  # type: ignore[call-arg]  # what all its configs take has no types
            hidden_size=config.width,
            num_hidden_layers=config.layers,
            num_attention_heads=config.heads,
            intermediate_size=config.mlp_width,
            num_labels=config.classes,
            layer_norm_eps=config.norm_eps,
            attn_implementation="sdpa",
        )
    )
    theirs: dict[str, nn.Module] = {
        "timm": timm.create_model(TIMM_NAMES[variant]).eval(),
        "torchvision": torchvision.models.VisionTransformer(
            224, 16, config.layers, config.heads, config.width, config.mlp_width
        ).eval(),
        "transformers": hugging_face.eval(),
    }
    with tempfile.TemporaryDirectory() as folder:
        hugging_face.save_pretrained(folder)
        ours = vit.load(folder).model
    state = ours.state_dict()
    for library, key_map in (("timm", TIMM), ("torchvision", TORCHVISION)):
        their_names = {
            next(iter(rename({name: tensor}, key_map))): name for name, tensor in theirs[library].state_dict().items()
        }
        theirs[library].load_state_dict({their_names[name]: tensor for name, tensor in state.items()})
    return ours, theirs


def onnx_session(model: nn.Module, images: Tensor, folder: Path) -> Callable[[], object]:
    path = folder / f"{len(images)}.onnx"
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        torch.onnx.export(model, (images,), path, dynamo=True, verbose=False)
    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads = torch.get_num_threads()
    session = onnxruntime.InferenceSession(path, options, providers=["CPUExecutionProvider"])
    given = {session.get_inputs()[0].name: images.numpy()}
    answer = torch.from_numpy(session.run(None, given)[0])
    torch.testing.assert_close(answer, model(images), rtol=0, atol=1e-4)
    return lambda: session.run(None, given)


@torch.inference_mode()
def compare(variant: str, batch: int, rounds: int) -> list[str]:
    """One row of the table; every time that was measured is printed."""
    ours, theirs = models(variant)
    images = torch.randn(batch, 3, 224, 224)
    logits = ours(images)
    for library, model in theirs.items():
        answer = model(images)
        torch.testing.assert_close(getattr(answer, "logits", answer), logits, rtol=0, atol=1e-4, msg=library)

    contenders: dict[str, Callable[[], object]] = {"ours": partial(ours, images)}
    contenders |= {library: partial(model, images) for library, model in theirs.items()}
    contenders["recording"] = partial(ours.record, images)
    contenders |= {name: partial(answer_in, ours, images, name) for name in PRECISIONS}
    timings = side_by_side(contenders, rounds, clock=clock())
    with tempfile.TemporaryDirectory() as folder:
        # On its own: ONNX Runtime's threads keep spinning after a call and would slow down whoever comes next.
        timings |= side_by_side({"ONNX Runtime": onnx_session(ours, images, Path(folder))}, rounds, clock=clock())

    for name, timing in timings.items():
        print(f"  ViT-{variant}, batch {batch}: {name:13} {timing}", flush=True)
    times = {name: timing.median for name, timing in timings.items()}
    fastest = min(("timm", "torchvision", "transformers"), key=times.__getitem__)
    return [
        f"ViT-{variant}",
        str(batch),
        f"{times['ours'] * 1e3:.1f} ms",
        f"{times['ours'] / times[fastest]:.2f} ({fastest})",
        f"{times['recording'] / times['ours']:.2f}",
        f"{times['ours'] / times['ONNX Runtime']:.2f}",
        *(f"{times[name] / times['timm']:.2f}" for name in PRECISIONS),
    ]


def answer_in(model: vit.ViT, images: Tensor, precision: str) -> Tensor:
    return model.classify(encode(model, images, precision))


def measure(rounds: int = 60, cases: tuple[tuple[str, int, int], ...] = CASES) -> list[Table]:
    """Ours beside the others; `cases` are variant, batch, and for how many rounds one is timed."""
    transformers.logging.disable_progress_bar()
    logging.getLogger("torch.onnx").setLevel(logging.ERROR)
    peers = "fastest of timm, transformers, torchvision"
    columns = ("model", "batch", "ours", f"ours ÷ {peers}", "recording ÷ ours", "ours ÷ ONNX Runtime")
    table = Table("The model, float32", (*columns, *(f"predicted in {name} ÷ timm" for name in PRECISIONS)))
    versions = (timm, transformers, torchvision, onnxruntime)
    table.note = ", ".join(f"{library.__name__} {library.__version__}" for library in versions)
    for variant, batch, share in cases:
        table.add(*compare(variant, batch, max(3, rounds // share)))
    return [table]


def main() -> None:
    parser = arguments(__doc__)
    parser.add_argument(
        "--rounds",
        type=int,
        default=60,
        help="how often each is timed; ViT-B at batch 8 a third as often (default: %(default)s)",
    )
    parser.add_argument("--batch", type=int, metavar="N", help="this batch alone")
    options = parser.parse_args()
    cases = tuple(case for case in CASES if options.batch in (None, case[1]))
    kept = keep_freed_memory()
    two_threads(options.threads)
    print(f"{machine()}; freed memory kept: {'yes' if kept else 'no'}")
    for table in measure(options.rounds, cases):
        print(table)


if __name__ == "__main__":
    main()
