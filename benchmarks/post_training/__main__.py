"""Post-training quantisation by `tune` beside that of ONNX Runtime and NNCF: latency against error.

Usage: python -m benchmarks.post_training [MODEL ...] [--budget 60s] [--tolerance 0.1] [--threads 1]
       [--rounds 40] [--seconds 40] [--sets 16] [--calibration FILE.npz] [--record FILE.jsonl]
       [--work FOLDER] [--prepare] [--only NAME ...] [--markdown]

A model is zoo:NAME or an .onnx file of static shapes; without models: resnet50, mobilenet_v2,
efficientnet_b0, bert_base, vit_base, gpt2, convnext_tiny and unet of the zoo. All contenders get the first
half of the calibration inputs (random without a file), and are measured on the other half: the error is the
largest RMS error of an output as a fraction of its RMS, against ONNX Runtime in float32.

onnxruntime, openvino   float32, the latter also in its default precision
static, dynamic         `quantize_static` (QDQ, per channel, U8S8) and `quantize_dynamic` of ONNX Runtime, run
                        by it and, for the static one, by OpenVINO
nncf                    `nncf.quantize` of the OpenVINO model; for transformers with its scheme for them
nncf accuracy           `nncf.quantize_with_accuracy_control`, whose drop is the error above --tolerance
intarsia                `tune(calibration=..., tolerance=...)` over all toolchains

NNCF is not in the environment of the tests: pip install nncf (Apache-2.0, a wheel of 0.8 MB that needs
scikit-learn and networkx beside what is here); without it its rows are left out with a note. Calls are
interleaved, --rounds of them or as many as fit into --seconds, but 5; times are the shortest, beside the
first quartile. A model takes 3 to 10 minutes.

A run can be made in parts. Models whose rows are in the record, with the same options, are printed from it.
With --work the quantised models are kept in FOLDER, so that an interrupted run goes on behind the last one,
and --prepare quantises without measuring: that may be done on a busy machine, the rest takes a minute a
model. --only takes contenders by name (onnxruntime in float32, which errors refer to, is always there).
"""

from __future__ import annotations

import argparse
import tempfile
from collections.abc import Sequence
from contextlib import ExitStack
from pathlib import Path
from typing import Final

import numpy as np
from benchmarks.native_kernels import format_table
from benchmarks.post_training.contenders import OURS
from benchmarks.post_training.rows import Row, compare, options_of, record, recorded
from benchmarks.post_training.task import read_task

MODELS: Final = (
    *("resnet50", "mobilenet_v2", "efficientnet_b0", "bert_base"),
    *("vit_base", "gpt2", "convnext_tiny", "unet"),
)
HEADER: Final = ("contender", "ms", "quartile", "over intarsia", "error", "dB")


def main() -> None:
    """Compare the models of the command line."""
    parser = argparse.ArgumentParser(
        prog="python -m benchmarks.post_training",
        description=__doc__,
        formatter_class=argparse.RawTextHelpFormatter,
    )
    parser.add_argument("models", nargs="*")
    parser.add_argument("--budget", default="60s")
    parser.add_argument("--tolerance", type=float, default=0.1)
    parser.add_argument("--threads", type=int, default=1)
    parser.add_argument("--rounds", type=int, default=40)
    parser.add_argument("--sets", type=int, default=16)
    parser.add_argument("--calibration", default="")
    parser.add_argument("--seconds", type=float, default=40.0)
    parser.add_argument("--record", type=Path)
    parser.add_argument("--work", type=Path)
    parser.add_argument("--prepare", action="store_true")
    parser.add_argument("--only", nargs="*", default=())
    parser.add_argument("--markdown", action="store_true")
    given = parser.parse_args()
    for name in given.models or [f"zoo:{item}" for item in MODELS]:
        print(name, flush=True)
        rows = [] if given.prepare else recorded(name, given)
        if not rows:
            with ExitStack() as stack:
                rows = compare(read_task(name, given, work_folder(name, given, stack)))
            record(rows, given)
        if rows:
            print(format_table(HEADER, _table(rows), markdown=given.markdown), flush=True)


def work_folder(name: str, given: argparse.Namespace, stack: ExitStack) -> Path:
    """Return the folder for the files of a model: one for its options below `--work`, or a temporary one."""
    if given.work is None:
        return Path(stack.enter_context(tempfile.TemporaryDirectory()))
    words = [Path(name.removeprefix("zoo:")).stem, *map(str, options_of(given).values())]
    folder: Path = given.work / "-".join(word.replace("/", "_") for word in words)
    folder.mkdir(parents=True, exist_ok=True)
    return folder


def _table(rows: Sequence[Row]) -> list[tuple[str, ...]]:
    ours = next((row.seconds for row in rows if row.name == OURS), float("nan"))
    return [
        (
            row.name,
            f"{row.seconds * 1e3:.3f}",
            f"{row.quartile * 1e3:.3f}",
            f"{row.seconds / ours:.2f}",
            f"{row.error:.2e}",
            "" if row.error <= 0 else f"{-20 * np.log10(row.error):.1f}",
        )
        for row in sorted(rows, key=lambda row: row.seconds)
    ]


if __name__ == "__main__":
    main()
