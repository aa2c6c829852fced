"""Profile of native: kinds of kernels, their share of the time, and their share of the peak.

Kernels are timed one at a time within the network. A share is that of the sum of their times. "of peak"
counts the operations that a kernel executes, those of Winograd's transforms too.

Usage: python -m benchmarks.remaining_time [NAME ...] [--threads N [N ...]] [--repeats N] [--json]
       [--markdown]
"""

from __future__ import annotations

import argparse
import json
from collections import defaultdict
from math import prod
from typing import Any, Final

from intarsia.build import build
from intarsia.frontend.onnx import from_onnx
from intarsia.frontend.zoo import build_model
from intarsia.measure.inputs import random_inputs
from intarsia.native.dag import ComputeDAG
from intarsia.native.machine.isa import Isa
from intarsia.native.peak import measured_peak
from intarsia.native.te import ComputeOp
from intarsia.native.te.operators.blocked_layout import (
    BLOCKED,
    CHANNELWISE,
    CONVOLUTION,
    GROUPED,
    TILE,
    TRANSPOSED,
    WINOGRAD,
)
from intarsia.passes import partition_whole
from intarsia.target import Target
from intarsia.toolchain.native.kernel import NativeKernel
from intarsia.toolchain.native.plan import planned_region

MODELS: Final = ("resnet50", "vgg19", "mobilenet_v2", "densenet121", "bert_base", "convnext_tiny", "unet")
HEADER: Final = ("model", "threads", "kernels", "number", "share of time", "of peak")
_TAPS_FROM: Final = 1
"""Index of the first window axis among the reduction axes of a blocked convolution.

The axes are: blocks of channels, window axes, channels in a block.
"""


def kind_of(dag: ComputeDAG) -> str:
    """Return the kind of a kernel, as text."""
    ops = [op for op in dag.ops if isinstance(op, ComputeOp)]
    for op in ops:
        match op.attrs.get(BLOCKED):
            case str(kind) if kind == WINOGRAD:
                tile = op.attrs[TILE]
                assert isinstance(tile, int)
                return f"Winograd F({tile}, 3)"
            case str(kind) if kind == CONVOLUTION and op.reduce_axes:
                taps = prod(axis.extent for axis in op.reduce_axes[_TAPS_FROM:-1])
                return "convolutions of 1x1" if taps == 1 else "direct convolutions"
            case str(kind) if kind == TRANSPOSED:
                return "transposed convolutions"
            case str(kind) if kind == GROUPED:
                return "convolutions in groups"
            case str(kind) if kind == CHANNELWISE and op.reduce_axes:
                return "channel by channel: depthwise, pools"
    products = sum(op.name.split(".")[0].startswith("matmul") for op in ops if op.reduce_axes)
    if products:
        return "attention" if products > 1 else "matrix products"
    return "others: elementwise, normalisation, layouts"


def measure_kinds(name: str, threads: int, repeats: int) -> list[dict[str, Any]]:
    """Time the kernels of a model, and return a row for each kind, longest time first."""
    module = from_onnx(build_model(name))
    inputs = random_inputs(module["main"])
    spent: defaultdict[str, list[tuple[float, float]]] = defaultdict(list)
    with build(partition_whole(module, Target.for_toolchain("native", threads=threads))) as executable:
        (kernel,) = executable.kernels
        assert isinstance(kernel, NativeKernel), "native runs all of it"
        plan = planned_region(kernel.source).plan
        seconds = kernel.call_seconds([inputs[info.name] for info in executable.inputs], repeats)
    for planned, took in zip(plan.kernels, seconds, strict=True):
        spent[kind_of(planned.dag)].append((took, max(0, planned.dag.flop_ct)))
    whole, peak = sum(seconds), measured_peak(Isa.host(), threads)
    kinds = [
        {
            "model": name,
            "threads": threads,
            "kernels": kind,
            "number": len(kernels),
            "share": sum(took for took, _ in kernels) / whole,
            "of_peak": sum(count for _, count in kernels) / sum(took for took, _ in kernels) / peak,
        }
        for kind, kernels in spent.items()
    ]
    return sorted(kinds, key=lambda row: -row["share"])


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("names", nargs="*", default=list(MODELS))
    parser.add_argument("--threads", type=int, nargs="+", default=[1])
    parser.add_argument("--repeats", type=int, default=20)
    parser.add_argument("--json", action="store_true")
    parser.add_argument("--markdown", action="store_true")
    options = parser.parse_args()
    separator = " | " if options.markdown else "  "
    records = []
    if not options.json:
        print(separator.join(HEADER), flush=True)
        if options.markdown:
            print("|".join("---" for _ in HEADER))
    for name in options.names:
        for threads in options.threads:
            for row in measure_kinds(name, threads, options.repeats):
                records.append(row)
                cells = (name, str(threads), row["kernels"], str(row["number"]))
                shares = (f"{100 * row['share']:.0f} %", f"{100 * row['of_peak']:.0f} %")
                if not options.json:
                    print(separator.join((*cells, *shares)), flush=True)
    if options.json:
        print(json.dumps(records, indent=2))


if __name__ == "__main__":
    main()
