"""Place parallel models, or the branches of one model, on two groups of cores by measuring.

`TuneDevicePlacement` gets cpu:0 and cpu:1 with half of the cores each, measures every operator and the time
of copies, and evaluates its candidates end to end. Three programs are then measured interleaved in one
process: the whole program as one function of the toolchain on all cores, the chosen placement, and the best
placement that uses both devices. Ratios are to the first. Independent models can keep both devices busy all
the time; branches within a model join again, and pay for copies.
Usage: python -m benchmarks.device_placement [NAME ...] [--toolchain NAME] [--seconds S] [--json]
"""

from __future__ import annotations

import argparse
import json
from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass
from functools import partial

import numpy as np

import intarsia as ia
from intarsia.collage.tune_device_placement import TuneDevicePlacement
from intarsia.frontend.onnx import from_onnx
from intarsia.frontend.zoo import build_model
from intarsia.ir import Expr, Function, IRModule, Tuple, Var, rewrite, with_fields
from intarsia.measure.inputs import random_inputs
from intarsia.measure.measure_input import Workload
from intarsia.measure.measurer import Measurer
from intarsia.measure.testbed.limits import TestbedLimits
from intarsia.measure.testbed.local import LocalTestbed
from intarsia.measure.timing.interleaved import time_interleaved
from intarsia.measure.timing.timing import TimingPolicy
from intarsia.op.infer import infer_types
from intarsia.passes import partition_whole
from intarsia.runtime.devices.core_groups import allowed_cores
from intarsia.target import Host, Target
from intarsia.tune import MeasuringEvaluator, Trace, TuningContext
from intarsia.tune.tuning_tree import TuningNode

QUICK = TimingPolicy(warmup_seconds=0.01, repeats=10, min_repeat_seconds=0.002, max_seconds=1.0)
"""Timing of single operators and candidates. The reported programs are measured interleaved at the end."""


@dataclass(frozen=True)
class Row:
    """A placement of a program: its name, its time, and the ratio to the time on one device (95 %)."""

    placement: str
    seconds: float
    ratio: float
    low: float
    high: float


def parallel_models(names: Sequence[str]) -> IRModule:
    """Join models of the zoo into one program with the inputs and outputs of all of them."""
    params: list[Var] = []
    results: list[Expr] = []
    for number, name in enumerate(names):
        main = from_onnx(build_model(name))["main"]
        renamed = {
            param: with_fields(param, name=param.name if len(names) == 1 else f"{param.name}_{number}")
            for param in main.params
        }
        body = rewrite(main.body, lambda expr, renamed=renamed: renamed.get(expr, expr))  # type: ignore[misc]  # bound now
        params += renamed.values()
        results += body.fields if isinstance(body, Tuple) else [body]
    return infer_types(IRModule.from_expr(Function(tuple(params), Tuple(tuple(results)))))


def tune_placement(mod: IRModule, toolchain: str) -> tuple[IRModule, TuningNode]:
    """Run TuneDevicePlacement on a program, and return the result with the tree of its candidates."""
    half = max(1, len(allowed_cores()) // 2)
    devices = tuple(
        f'VirtualDevice(cpu:{number}, target="cpu -toolchain={toolchain} -threads={half}")'
        for number in range(2)
    )
    limits = TestbedLimits(policy=QUICK)
    with LocalTestbed.open(Host.detect(), workers=1, limits=limits) as testbed:
        judge = MeasuringEvaluator(Workload(mod), Target.for_toolchain(toolchain), Measurer(testbed))
        ctx = TuningContext(judge)
        return TuneDevicePlacement(devices=devices)(mod, ctx), ctx.node


def best_on_both_devices(node: TuningNode) -> Trace | None:
    """Return the fastest measured placement that uses both devices, if there is one."""
    traces = [child.trace for child in node.children[0].children if child.trace is not None]
    measured = [
        (trace.perf, number)
        for number, trace in enumerate(traces)
        if trace.perf is not None and "+" in trace.steps[0].decision
    ]
    return traces[min(measured)[1]] if measured else None


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("names", nargs="*", default=["mnist", "mnist"])
    parser.add_argument("--toolchain", default="onnxruntime")
    parser.add_argument("--seconds", type=float, default=10.0)
    parser.add_argument("--json", action="store_true")
    options = parser.parse_args()
    mod = parallel_models(options.names)
    chosen, node = tune_placement(mod, options.toolchain)
    target = Target.for_toolchain(options.toolchain)
    programs = {"one device": partition_whole(mod, target), "chosen": chosen}
    if (best := best_on_both_devices(node)) is not None:
        programs["both devices"] = best.out_mod
    built = {name: ia.build(program, target) for name, program in programs.items()}
    inputs = list(random_inputs(mod["main"], 0).values())
    results = {name: exe.run_flat(*inputs) for name, exe in built.items()}
    for outputs in results.values():
        for actual, expected in zip(outputs, results["one device"], strict=True):
            np.testing.assert_allclose(np.asarray(actual), np.asarray(expected), rtol=1e-3, atol=1e-3)
    calls: dict[str, Callable[[], object]] = {n: partial(exe.run_flat, *inputs) for n, exe in built.items()}
    comparison = time_interleaved(calls, TimingPolicy(repeats=200, max_seconds=options.seconds / len(calls)))
    rows = []
    for name, timing in comparison.timings.items():
        ratio = comparison.ratio(name, "one device")
        rows.append(Row(name, timing.median, ratio.ratio, ratio.low, ratio.high))
    for exe in built.values():
        exe.close()
    if options.json:
        print(json.dumps([asdict(row) for row in rows], indent=2))
        return
    print(node)
    print(f"{' and '.join(options.names)} on {options.toolchain}; ratios to one device, interleaved")
    for row in rows:
        between = f"({row.low:.3f} to {row.high:.3f})"
        print(f"  {row.placement:13} {row.seconds * 1e3:8.3f} ms   {row.ratio:.3f} {between}")


if __name__ == "__main__":
    main()
