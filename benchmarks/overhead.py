"""Overhead of a call of `Executable` over one of the engine's own session, on squeezenet, interleaved.

The goal is at most 2 % + 30 us. Each engine's bare session runs the same ONNX model with the same options;
"bare" is the engine's usual call (`session.run`, `compiled_model(...)`).
Usage: python -m benchmarks.overhead [--json] [--model NAME] [--seconds S]
"""

from __future__ import annotations

import argparse
import json
from collections.abc import Callable
from dataclasses import asdict, dataclass
from functools import partial
from typing import Any

import intarsia as ia
from intarsia.frontend.zoo import build_model
from intarsia.measure.inputs import random_inputs
from intarsia.measure.timing.interleaved import time_interleaved
from intarsia.measure.timing.timing import TimingPolicy
from intarsia.passes import partition_whole

SHARE, FIXED = 0.02, 30e-6
"""Allowed overhead: a share of the time of the bare call, plus seconds."""


@dataclass(frozen=True)
class Row:
    """One engine: the ratio of executable to bare with its 95 % interval, and the added seconds a call."""

    toolchain: str
    bare_seconds: float
    ratio: float
    low: float
    high: float
    added_seconds: float
    allowed_seconds: float


def bare_onnxruntime(model: bytes, inputs: dict[str, Any]) -> Callable[[], object]:
    import onnxruntime

    from intarsia.toolchain.onnxruntime.session import session_options

    session = onnxruntime.InferenceSession(model, session_options(ia.Target.for_toolchain("onnxruntime")))
    return lambda: session.run(None, inputs)


def bare_openvino(model: bytes, inputs: dict[str, Any]) -> Callable[[], object]:
    import openvino

    from intarsia.toolchain.openvino.properties import model_options

    core = openvino.Core()
    compiled = core.compile_model(
        core.read_model(model), "CPU", model_options(ia.Target.for_toolchain("openvino"))
    )
    return lambda: compiled(inputs)


BARE = {"onnxruntime": bare_onnxruntime, "openvino": bare_openvino}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--json", action="store_true")
    parser.add_argument("--model", default="squeezenet")
    parser.add_argument("--seconds", type=float, default=20.0)
    options = parser.parse_args()
    module = ia.from_onnx(build_model(options.model))
    inputs = random_inputs(module["main"])
    model = ia.to_onnx(module["main"], module).SerializeToString()
    rows = []
    for name, make_bare in BARE.items():
        executable = ia.build(partition_whole(module, ia.Target.for_toolchain(name)))
        arrays = list(inputs.values())
        calls: dict[str, Callable[[], object]] = {
            "executable": partial(executable, *arrays),
            "bare": make_bare(model, inputs),
        }
        policy = TimingPolicy(repeats=200, max_seconds=options.seconds / 2)
        comparison = time_interleaved(calls, policy)
        ratio, bare = comparison.ratio("executable", "bare"), comparison.timings["bare"].median
        added, allowed = (ratio.ratio - 1) * bare, SHARE * bare + FIXED
        rows.append(Row(name, bare, ratio.ratio, ratio.low, ratio.high, added, allowed))
    if options.json:
        print(json.dumps([asdict(row) for row in rows], indent=2))
        return
    print(f"{options.model}: Executable over the bare session, interleaved (goal: at most 2 % + 30 us)")
    for row in rows:
        print(
            f"  {row.toolchain:12} bare {row.bare_seconds * 1e3:7.3f} ms   ratio {row.ratio:.4f} "
            f"({row.low:.4f} to {row.high:.4f})   added {row.added_seconds * 1e6:+6.1f} us, "
            f"allowed {row.allowed_seconds * 1e6:.1f} us"
        )


if __name__ == "__main__":
    main()
