"""Native with decisions on single kernels against native's rules, per pass, with all in a row, and jointly.

For each model the passes run on native alone, with a new database. Then the program by rule and the programs
of each pass, of all passes in a row, and of `TuneKernelsJointly` are measured interleaved in one process. A
ratio is the median time by rule over that with decisions: above 1 they gain. There is no ratio if a pass
decided nothing. The seconds and the CPU seconds of the last two are those of processes of their own with a
new database and an empty cache; with --quick only these two run.

Usage: python -m benchmarks.kernel_decisions [NAME or FILE.onnx ...] [--threads 2] [--race 10s] [--quick]
       [--json]

A name is one of the zoo, or grouped:CHANNELS/GROUPS for six convolutions of 3 x 3 in groups, the last three
of half the rows and columns and twice the channels and groups.
"""

from __future__ import annotations

import argparse
import json
import os
import resource
import subprocess
import sys
import time
from collections.abc import Sequence
from contextlib import ExitStack
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any, Final

import numpy as np

from intarsia.build import build
from intarsia.driver.budget import parse_budget
from intarsia.frontend.onnx import from_onnx
from intarsia.frontend.zoo import build_model
from intarsia.ir import Constant, Expr, Function, IRModule, TensorType, Var
from intarsia.measure.database import Database
from intarsia.measure.inputs import random_inputs
from intarsia.measure.measure_input import Workload
from intarsia.measure.measurer import Measurer
from intarsia.measure.testbed import LocalTestbed
from intarsia.measure.timing.interleaved import time_interleaved
from intarsia.measure.timing.timing import TimingPolicy
from intarsia.op import call
from intarsia.passes import partition_whole
from intarsia.target import Target
from intarsia.toolchain.this_host import this_host
from intarsia.transform import Sequential
from intarsia.tune import MeasuringEvaluator, Trace, TuningContext, TuningPass
from intarsia.tune.passes import (
    TuneChannelBlocks,
    TuneConvolutionForms,
    TuneConvolutions,
    TuneFusionBorders,
    TuneFusionMerges,
    TuneKernelsJointly,
    TuneKernelThreads,
    TunePacking,
)
from intarsia.tune.tuning_context import TraceRecorder

PASSES: Final[tuple[TuningPass, ...]] = (
    TuneConvolutions(),
    TuneConvolutionForms(),
    TuneChannelBlocks(),
    TunePacking(),
    TuneKernelThreads(),
    TuneFusionMerges(),
    TuneFusionBorders(),
)
RULE: Final = "rule"
ALL: Final = "all"
JOINTLY: Final = "jointly"
ROADS: Final[dict[str, tuple[TuningPass, ...]]] = {ALL: PASSES, JOINTLY: (TuneKernelsJointly(),)}
"""Passes that decide on all kernels, by name of the road."""


def grouped_network(text: str) -> IRModule:
    """Return the network of "grouped:CHANNELS/GROUPS", on images of 28 x 28."""
    channels, groups = map(int, text.partition(":")[2].split("/"))
    x = Var("x", checked_type=TensorType.of(np.zeros((1, channels, 28, 28), np.float32)))
    generator = np.random.default_rng(0)
    result: Expr = x
    for width, parts, stride in [(1, 1, 1)] * 3 + [(2, 2, 2)] + [(2, 2, 1)] * 2:
        assert isinstance(result.checked_type, TensorType)
        read = result.checked_type.static_shape[1]
        shape = (width * channels, read // (parts * groups), 3, 3)
        weight = Constant((generator.standard_normal(shape) / (9 * shape[1]) ** 0.5).astype(np.float32))
        strides, pads = (stride, stride), (1, 1, 1, 1)
        result = call("Relu", call("Conv", result, weight, pads=pads, strides=strides, group=parts * groups))
    return IRModule.from_expr(Function((x,), call("GlobalAveragePool", result)))


def model_of(name: str) -> IRModule:
    """Return the program of a name or file."""
    if name.startswith("grouped:"):
        return grouped_network(name)
    return from_onnx(name if name.endswith(".onnx") else build_model(name))


def decide(module: IRModule, target: Target, passes: Sequence[TuningPass], measurer: Measurer) -> Trace:
    """Return the trace of some passes, one after the other."""
    evaluator = MeasuringEvaluator(Workload(module), target, measurer, by_decisions=True)
    ctx = TuningContext(evaluator).recording(Trace(module))
    Sequential(passes, name="passes")(module, ctx)
    assert isinstance(ctx.trace, TraceRecorder)
    return ctx.trace.tuned


def decide_once(name: str, threads: int, road: str) -> dict[str, Any]:
    """Decide on a model's kernels with a new database; return the cost and what it took.

    The seconds begin when the program as it is was measured, which tuning does in any case.
    """
    module, target = model_of(name), Target.for_toolchain("native", threads=threads)
    with (
        LocalTestbed.open(this_host()) as testbed,
        TemporaryDirectory() as folder,
        Database.open(Path(folder) / "measurements.db") as database,
    ):
        measurer = Measurer(testbed, database)
        evaluator = MeasuringEvaluator(Workload(module), target, measurer, by_decisions=True)
        (by_rule,) = evaluator.evaluate([Trace(module)])
        begun, trials = time.perf_counter(), measurer.trials
        trace = decide(module, target, ROADS[road], measurer)
        seconds, used = time.perf_counter() - begun, measurer.trials - trials
    usage = [resource.getrusage(kind) for kind in (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN)]
    return {
        "seconds": seconds,
        "cpu": sum(item.ru_utime + item.ru_stime for item in usage),
        "measured": used,
        "ratio": by_rule.perf / trace.cost,
    }


def time_decisions(name: str, threads: int) -> dict[str, Any]:
    """Return what each road takes for a model, each in a process of its own with an empty cache."""
    result = {}
    for road in ROADS:
        with TemporaryDirectory() as folder:
            environment = {**os.environ, "XDG_CACHE_HOME": folder}
            command = [sys.executable, "-m", "benchmarks.kernel_decisions", name, f"--threads={threads}"]
            output = subprocess.run(
                [*command, f"--decide={road}"], env=environment, capture_output=True, text=True, check=True
            )
        result[road] = json.loads(output.stdout)
    return result


def measure_model(name: str, threads: int, seconds: float) -> dict[str, Any]:
    """Decide on a model's kernels, and return the record."""
    module = model_of(name)
    target = Target.for_toolchain("native", threads=threads)
    begun, traces = time.perf_counter(), {}
    with (
        LocalTestbed.open(this_host()) as testbed,
        TemporaryDirectory() as folder,
        Database.open(Path(folder) / "measurements.db") as database,
    ):
        for item in PASSES:
            traces[item.info.name] = decide(module, target, [item], Measurer(testbed, database))
        for road, passes in ROADS.items():
            traces[road] = decide(module, target, passes, Measurer(testbed, database))
    spent = time.perf_counter() - begun
    changed = {key: trace for key, trace in traces.items() if trace.out_mod is not module}
    inputs = random_inputs(module["main"])
    with ExitStack() as stack:
        programs = {RULE: stack.enter_context(build(partition_whole(module, target)))}
        for key, trace in changed.items():
            programs[key] = stack.enter_context(build(trace.out_mod))
        arrays = [inputs[info.name] for info in programs[RULE].inputs]
        calls = {
            key: (lambda program=program: program.run_flat(*arrays)) for key, program in programs.items()
        }
        timed = time_interleaved(calls, TimingPolicy(max_seconds=seconds / len(calls)))
        ratios = {key: timed.ratio(RULE, key) for key in changed}
    return {
        "model": Path(name).parent.name if name.endswith(".onnx") else name,
        "threads": threads,
        "milliseconds": 1e3 * timed.timings[RULE].median,
        "tuning_seconds": spent,
        "ratios": {key: [ratio.ratio, ratio.low, ratio.high] for key, ratio in ratios.items()},
        "decisions": {
            key: [
                f"{step.instruction.name}: {step.decision}"
                for step in trace.steps
                if step.decision != "as it is"
            ]
            for key, trace in changed.items()
        },
    }


def table_rows(record: dict[str, Any]) -> list[str]:
    """Return the lines of a model: one for each road, and for each pass that decided something."""
    roads = [
        f"  {road}: {timed['seconds']:.1f} s, {timed['cpu']:.1f} s of CPU, {timed['measured']} measured,"
        f" {timed['ratio']:.3f} by single measurements"
        for road, timed in record["roads"].items()
    ]
    if "ratios" not in record:
        return [record["model"], *roads]
    head = f"{record['model']} ({record['threads']} threads, {record['milliseconds']:.3f} ms by rule)"
    rows = [
        f"  {key}: {ratio:.3f} ({low:.3f} to {high:.3f}); {'; '.join(record['decisions'][key])}"
        for key, (ratio, low, high) in record["ratios"].items()
    ]
    return [f"{head}, decided in {record['tuning_seconds']:.0f} s", *roads, *(rows or ["  nothing decided"])]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("names", nargs="+")
    parser.add_argument("--threads", type=int, default=2)
    parser.add_argument("--race", default="10s")
    parser.add_argument("--quick", action="store_true", help="only time the decisions of all passes")
    parser.add_argument("--decide", choices=sorted(ROADS), help=argparse.SUPPRESS)
    parser.add_argument("--json", action="store_true")
    options = parser.parse_args()
    if options.decide:
        print(json.dumps(decide_once(options.names[0], options.threads, options.decide)))
        return
    records = []
    for name in options.names:
        record = {} if options.quick else measure_model(name, options.threads, parse_budget(options.race))
        records.append({"model": name, **record, "roads": time_decisions(name, options.threads)})
        if not options.json:
            print("\n".join(table_rows(records[-1])), flush=True)
    if options.json:
        print(json.dumps(records, indent=1))


if __name__ == "__main__":
    main()
