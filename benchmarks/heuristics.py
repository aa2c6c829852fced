"""Effect of a pipeline of heuristic passes on every model of the zoo: operators, and latency on each engine.

Usage: python -m benchmarks.heuristics [NAME ...] [--pipeline NAME] [--budget 10] [--json] [--markdown]

The ratio is latency after the pipeline over latency without it, with a 95 % interval, measured interleaved.
"""

from __future__ import annotations

import argparse
import json
import time
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy.typing as npt

from intarsia.build import build
from intarsia.frontend.onnx import from_onnx
from intarsia.frontend.zoo import build_model, zoo
from intarsia.ir import Call, IRModule, Op, post_order
from intarsia.measure.inputs import random_inputs
from intarsia.measure.judge.gate import Gate, run_arrays
from intarsia.measure.timing.interleaved import RatioInterval, time_interleaved
from intarsia.measure.timing.timing import TimingPolicy
from intarsia.passes import partition_whole
from intarsia.target import Target
from intarsia.transform import PassContext, Sequential, load_pass_sequence

ENGINES = ("onnxruntime", "openvino")
HEADER = (
    "model",
    "operators",
    "after",
    "seconds",
    *(f"{name}, ratio (95 %)" for name in ENGINES),
    "max error",
)


@dataclass(frozen=True, slots=True)
class Row:
    """One model before and after the pipeline."""

    model: str
    operators: int
    after: int
    seconds: float
    ratios: Mapping[str, RatioInterval]
    max_error: float

    def cells(self) -> tuple[str, ...]:
        """Return one text for each column of the header."""
        ratios = (f"{r.ratio:.3f} ({r.low:.3f} to {r.high:.3f})" for r in self.ratios.values())
        facts = (self.model, str(self.operators), str(self.after), f"{self.seconds:.2f}")
        return (*facts, *ratios, f"{self.max_error:.1e}")

    def record(self) -> dict[str, Any]:
        """Return the row as plain data."""
        ratios = {name: (r.ratio, r.low, r.high) for name, r in self.ratios.items()}
        return {
            "model": self.model,
            "operators": self.operators,
            "after": self.after,
            "seconds": self.seconds,
            "ratios": ratios,
            "max_error": self.max_error,
        }


def operator_count(mod: IRModule) -> int:
    return sum(
        isinstance(expr, Call) and isinstance(expr.op, Op)
        for function in mod.graph_functions.values()
        for expr in post_order(function)
    )


def measure(name: str, pipeline: Sequential, opt_level: int, budget: float) -> Row:
    mod = from_onnx(build_model(name))
    inputs = random_inputs(mod["main"])
    gate = Gate.for_module(mod, inputs)
    start = time.perf_counter()
    after = pipeline(mod, PassContext(opt_level=opt_level))
    seconds = time.perf_counter() - start
    ratios, errors = {}, []
    for engine in ENGINES:
        ratios[engine], error = compare(mod, after, Target.for_toolchain(engine), inputs, gate, budget)
        errors.append(error)
    return Row(name, operator_count(mod), operator_count(after), seconds, ratios, max(errors))


def compare(
    mod: IRModule,
    after: IRModule,
    target: Target,
    inputs: Mapping[str, npt.NDArray[Any]],
    gate: Gate,
    budget: float,
) -> tuple[RatioInterval, float]:
    """Return the ratio of the latency after the pipeline to that before, and the error after it."""
    old, new = build(partition_whole(mod, target)), build(partition_whole(after, target))
    report = gate.check(run_arrays(new, inputs))
    if not report.passed:
        raise SystemExit(f"wrong on {target}: {report.message}")
    arrays = list(inputs.values())
    calls = {"without": lambda: old.run_flat(*arrays), "with": lambda: new.run_flat(*arrays)}
    comparison = time_interleaved(calls, TimingPolicy(max_seconds=budget / 2))
    return comparison.ratio("with", "without"), report.max_rel_error


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("names", nargs="*", default=[model.name for model in zoo()])
    parser.add_argument("--pipeline", default="default_heuristic")
    parser.add_argument("--opt-level", type=int, default=2)
    parser.add_argument("--budget", type=float, default=10.0, help="seconds of measuring a model and engine")
    parser.add_argument("--json", action="store_true")
    parser.add_argument("--markdown", action="store_true")
    options = parser.parse_args()
    separator = " | " if options.markdown else "  "
    if not options.json:
        print(separator.join(HEADER), flush=True)
        if options.markdown:
            print("|".join("---" for _ in HEADER))
    rows = []
    for name in options.names:
        row = measure(name, load_pass_sequence(options.pipeline), options.opt_level, options.budget)
        rows.append(row)
        if not options.json:
            print(separator.join(row.cells()), flush=True)
    if options.json:
        print(json.dumps([row.record() for row in rows], indent=2))


if __name__ == "__main__":
    main()
