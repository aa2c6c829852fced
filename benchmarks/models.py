"""Every model of the zoo: tuned, and by native kernels alone against each engine alone.

The first table says which toolchain wins, by how much, and how right each one is. The second has latencies of
native, onnxruntime and openvino, measured in turns in one process; a ratio is that of the engine's median to
native's, so that above 1 native is faster. "exact" is native without algorithms that save operations, as
`tune --exact` has it. Operations count a product and a sum as two, without what only fills blocks, as direct
sums take them; the peak is that of multiply-adds in registers on as many threads, timed just before, and the
bound the time that operations take at the peak or weights at the measured bandwidth, whichever is longer.
Errors are the largest differences from float64, relative to the largest value, medians over --seeds inputs;
float64 is computed by the reference for small models, and by native's kernels of float64 for others. With
--inductor the second table has torch.compile too; it takes a minute for each model, and counts as no engine.

Usage: python -m benchmarks.models [NAME ...] [--tables tuned native errors] [--budget 10s]
       [--threads N [N ...]] [--seeds N] [--inductor] [--json] [--markdown]
"""

from __future__ import annotations

import argparse
import json
import statistics
from collections.abc import Iterator, Sequence
from itertools import product
from pathlib import Path
from typing import Any

import numpy as np
from benchmarks.float64_models import in_float64

import intarsia as ia
from intarsia.build import build
from intarsia.driver.budget import parse_budget
from intarsia.driver.records import CandidateRecord
from intarsia.frontend.onnx import from_onnx
from intarsia.frontend.zoo import build_model, zoo
from intarsia.ir import Constant, IRModule, post_order
from intarsia.measure.inputs import random_inputs
from intarsia.measure.judge.definition_cost import is_small
from intarsia.measure.timing.interleaved import RatioInterval, time_interleaved
from intarsia.measure.timing.timing import TimingPolicy
from intarsia.native.bandwidth import measured_bandwidth
from intarsia.native.graph import PlanOptions, plan_region
from intarsia.native.machine.isa import Isa
from intarsia.native.peak import measured_peak
from intarsia.passes import FoldConstant, partition_whole
from intarsia.runtime.executable import Executable
from intarsia.support.errors import IntarsiaError
from intarsia.target import Target
from intarsia.target.cpu import usable_cores
from intarsia.toolchain.native.simplified import simplified

HEADER = ("model", "toolchain", "median, ms", "ratio to best (95 %)", "max error", "verdict")
ENGINES = ("onnxruntime", "openvino")
INDUCTOR = "inductor"
ERROR_HEADER = ("model", "native", "exact", *ENGINES)
EXACT = {"convolutions": "direct"}


def verdict(record: CandidateRecord) -> str:
    if record.chosen:
        return "chosen"
    return f"{record.status.value}: {record.reason}" if record.reason else record.status.value


def row(model: str, record: CandidateRecord) -> tuple[str, ...]:
    ratio = record.ratio
    return (
        model,
        record.name,
        f"{record.timing.median * 1e3:.3f}" if record.timing else "-",
        shown(ratio) if ratio else "-",
        f"{record.max_error:.1e}" if record.max_error is not None else "-",
        verdict(record),
    )


def shown(ratio: RatioInterval) -> str:
    return f"{ratio.ratio:.3f} ({ratio.low:.3f} to {ratio.high:.3f})"


def tuned(name: str, budget: str) -> tuple[dict[str, Any], list[tuple[str, ...]]]:
    """The record of tuning a model, and its lines of the table."""
    result = ia.tune(build_model(name), budget=budget)
    return {**result.to_json(), "model": name}, [row(name, record) for record in result.candidates]


def listed_by(options: argparse.Namespace) -> tuple[str, ...]:
    """Who stands beside native."""
    return (*ENGINES, INDUCTOR) if options.inductor else ENGINES


def native_header(listed: Sequence[str]) -> tuple[str, ...]:
    """Of the table that has these beside native."""
    ratios = (f"{name} / native (95 %)" for name in listed)
    factors = ("best engine / native", "exact / native", "best engine / exact", "of peak", "of bound")
    return ("model", "threads", "native, ms", *ratios, *factors)


def programs(name: str, threads: int) -> tuple[IRModule, dict[str, Executable]]:
    """A model built by native, by native with direct sums, and by each engine."""
    module = from_onnx(build_model(name))
    targets = {each: Target.for_toolchain(each, threads=threads) for each in ("native", *ENGINES)}
    targets["exact"] = targets["native"].with_options(**EXACT)
    return module, {each: build(partition_whole(module, target)) for each, target in targets.items()}


def by_inductor(module: IRModule, threads: int) -> Executable:
    """A model built by torch.compile, with its constant shapes computed before, as it needs them."""
    target = Target.for_toolchain("torch", threads=threads, compiled=True)
    return build(partition_whole(FoldConstant()(module), target))


def against_engines(
    name: str, budget: str, threads: int, listed: Sequence[str]
) -> tuple[dict[str, Any], list[tuple[str, ...]]]:
    """The record of native and the engines on a model, and its line of the table."""
    module, built = programs(name, threads)
    if INDUCTOR in listed:
        built[INDUCTOR] = by_inductor(module, threads)
    inputs = random_inputs(module["main"])
    arrays = [inputs[info.name] for info in built["native"].inputs]
    policy = TimingPolicy(max_seconds=parse_budget(budget) / len(built))
    most, fastest = measured_peak(Isa.host(), threads), measured_bandwidth(Isa.host(), threads)
    calls = {each: (lambda program=program: program.run_flat(*arrays)) for each, program in built.items()}
    measured = time_interleaved(calls, policy)
    ratios = {each: measured.ratio(each, "native") for each in (*listed, "exact")}
    median = measured.timings["native"].median
    best = min((ratios[each] for each in ENGINES), key=lambda ratio: ratio.ratio)
    speed = operations(module) / median
    bound = max(operations(module) / most, weight_bytes(module) / fastest)
    for program in built.values():
        program.close()
    record = {
        "model": name,
        "threads": threads,
        "native_seconds": median,
        "ratios": {each: [ratio.ratio, ratio.low, ratio.high] for each, ratio in ratios.items()},
        "best_engine": best.ratio,
        "operations_per_second": speed,
        "peak": most,
        "bandwidth": fastest,
        "bound_seconds": bound,
    }
    exact = ratios["exact"].ratio
    times = (name, str(threads), f"{median * 1e3:.3f}", *(shown(ratios[each]) for each in listed))
    factors = (f"{best.ratio:.3f}", f"{exact:.3f}", f"{best.ratio / exact:.3f}")
    return record, [(*times, *factors, f"{100 * speed / most:.0f} %", f"{100 * bound / median:.0f} %")]


def errors(name: str, threads: int, seeds: int) -> tuple[dict[str, Any], list[tuple[str, ...]]]:
    """The errors of native and the engines against float64, and the line of the table."""
    model = build_model(name)
    module, built = programs(name, threads)
    wide = from_onnx(in_float64(model))
    found: dict[str, list[float]] = {each: [] for each in built}
    judge = "reference" if is_small(module) else "native"
    with build(partition_whole(wide, Target.for_toolchain(judge))) as reference:
        for seed in range(seeds):
            inputs = random_inputs(module["main"], seed=seed)
            given = [inputs[info.name] for info in reference.inputs]
            doubles = [each.astype(np.float64) if each.dtype == np.float32 else each for each in given]
            expected = np.asarray(reference.run_flat(*doubles)[0])
            for each, program in built.items():
                result = np.asarray(program.run_flat(*given)[0])
                found[each].append(float(np.abs(result - expected).max() / np.abs(expected).max()))
    for program in built.values():
        program.close()
    medians = {each: statistics.median(values) for each, values in found.items()}
    line = (name, *(f"{medians[each]:.1e}" for each in ("native", "exact", *ENGINES)))
    return {"model": name, "errors": found, "medians": medians}, [line]


def weight_bytes(module: IRModule) -> int:
    """Of the constants that a program reads at least once."""
    arrays = {id(each.data): each.data for each in post_order(module["main"]) if isinstance(each, Constant)}
    return sum(array.nbytes for array in arrays.values())


def summary(records: Sequence[dict[str, Any]]) -> Iterator[str]:
    """For each number of threads the geometric mean of the best engine's ratio, and the least."""
    missing = [each["model"] for each in records if "error" in each]
    if missing:
        yield f"not measured: {', '.join(missing)}"
    for threads in sorted({each["threads"] for each in records if "best_engine" in each}):
        ratios = {each["model"]: each["best_engine"] for each in records if each.get("threads") == threads}
        mean, least = statistics.geometric_mean(ratios.values()), min(ratios, key=ratios.__getitem__)
        head = f"{threads} threads, {len(ratios)} models"
        yield f"{head}: geometric mean {mean:.3f}, least {ratios[least]:.3f} ({least})"


def operations(module: IRModule) -> float:
    """How many operations on numbers a program asks for."""
    plan = plan_region(simplified(module["main"]), Isa.host(), PlanOptions(blocked=False))
    return sum(max(0, kernel.dag.flop_ct) for kernel in plan.kernels)


def measured(
    table: str, name: str, threads: int, options: argparse.Namespace
) -> tuple[dict[str, Any], list[tuple[str, ...]]]:
    """The record of a model for a table, and its lines; what is wrong, if it cannot be measured."""
    try:
        if table == "tuned":
            return tuned(name, options.budget)
        if table == "errors":
            return errors(name, options.threads[-1], options.seeds)
        return against_engines(name, options.budget, threads, listed_by(options))
    except IntarsiaError as error:
        return {"model": name, "error": str(error)}, [(name, str(error))]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("names", nargs="*", default=[model.name for model in zoo()])
    tables = ("tuned", "native", "errors")
    parser.add_argument("--tables", nargs="+", choices=tables, default=["tuned", "native"])
    parser.add_argument("--budget", default="10s")
    parser.add_argument("--threads", type=int, nargs="+", default=[usable_cores(Path("/"))])
    parser.add_argument("--seeds", type=int, default=5)
    parser.add_argument("--inductor", action="store_true")
    parser.add_argument("--json", action="store_true")
    parser.add_argument("--markdown", action="store_true")
    options = parser.parse_args()
    results: list[dict[str, Any]] = []
    separator = " | " if options.markdown else "  "
    headers = {"tuned": HEADER, "native": native_header(listed_by(options)), "errors": ERROR_HEADER}
    for table in options.tables:
        if not options.json:
            print(separator.join(headers[table]), flush=True)
            if options.markdown:
                print("|".join("---" for _ in headers[table]))
        for name, threads in product(options.names, options.threads if table == "native" else [0]):
            record, lines = measured(table, name, threads, options)
            results.append({**record, "table": table})
            if not options.json:
                print("\n".join(map(separator.join, lines)), flush=True)
        if not options.json:
            print()
    if options.json:
        print(json.dumps(results, indent=2))
    else:
        print("\n".join(summary(results)))


if __name__ == "__main__":
    main()
