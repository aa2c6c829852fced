"""Latency of every model of the zoo: tuned, and native alone against each engine alone.

The first table lists the winning toolchain, the ratios of the others to it, and the error of each. The second
has latencies of native, onnxruntime and openvino, measured interleaved in one process; a ratio is the
engine's median over native's, so that above 1 native is faster. "exact" is native without Winograd's
algorithm, as in `tune --exact`. A multiply-add counts as two operations; operations are those of direct
convolutions, without padding of blocks. The peak is that of multiply-adds in registers on as many threads,
timed just before. The bound is the roofline: the time of the operations at the peak or of reading the weights
at the measured bandwidth, whichever is longer. Errors are the largest differences from float64, relative to
the largest value, medians over --seeds inputs; float64 is computed by the reference for small models, and by
native's float64 kernels for others. With --inductor the second table has torch.compile too; compiling takes a
minute for each model, and the best engine is chosen without it.

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
from intarsia.tune.contest.candidate_record import CandidateRecord

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
        format_ratio(ratio) if ratio else "-",
        f"{record.max_error:.1e}" if record.max_error is not None else "-",
        verdict(record),
    )


def format_ratio(ratio: RatioInterval) -> str:
    return f"{ratio.ratio:.3f} ({ratio.low:.3f} to {ratio.high:.3f})"


def tune_model(name: str, budget: str) -> tuple[dict[str, Any], list[tuple[str, ...]]]:
    """Tune a model, and return its record and its rows of the first table."""
    result = ia.tune(build_model(name), budget=budget)
    return {**result.to_json(), "model": name}, [row(name, record) for record in result.candidates]


def contenders(options: argparse.Namespace) -> tuple[str, ...]:
    """Return the engines that native is compared with."""
    return (*ENGINES, INDUCTOR) if options.inductor else ENGINES


def native_header(listed: Sequence[str]) -> tuple[str, ...]:
    """Return the header of the second table."""
    ratios = (f"{name} / native (95 %)" for name in listed)
    factors = ("best engine / native", "exact / native", "best engine / exact", "of peak", "of bound")
    return ("model", "threads", "native, ms", *ratios, *factors)


def build_programs(name: str, threads: int) -> tuple[IRModule, dict[str, Executable]]:
    """Build a model with native, with native without Winograd, and with each engine."""
    module = from_onnx(build_model(name))
    names = ("native", *ENGINES)
    targets = {toolchain: Target.for_toolchain(toolchain, threads=threads) for toolchain in names}
    targets["exact"] = targets["native"].with_options(**EXACT)
    return module, {key: build(partition_whole(module, target)) for key, target in targets.items()}


def build_with_inductor(module: IRModule, threads: int) -> Executable:
    """Build a model with torch.compile. It needs constant shapes, so constants are folded first."""
    target = Target.for_toolchain("torch", threads=threads, compiled=True)
    return build(partition_whole(FoldConstant()(module), target))


def compare_with_engines(
    name: str, budget: str, threads: int, listed: Sequence[str]
) -> tuple[dict[str, Any], list[tuple[str, ...]]]:
    """Time native and the engines on a model, and return the record and the row of the second table."""
    module, built = build_programs(name, threads)
    if INDUCTOR in listed:
        built[INDUCTOR] = build_with_inductor(module, threads)
    inputs = random_inputs(module["main"])
    arrays = [inputs[info.name] for info in built["native"].inputs]
    policy = TimingPolicy(max_seconds=parse_budget(budget) / len(built))
    peak, bandwidth = measured_peak(Isa.host(), threads), measured_bandwidth(Isa.host(), threads)
    calls = {key: (lambda program=program: program.run_flat(*arrays)) for key, program in built.items()}
    comparison = time_interleaved(calls, policy)
    ratios = {contender: comparison.ratio(contender, "native") for contender in (*listed, "exact")}
    median = comparison.timings["native"].median
    best = min((ratios[contender] for contender in ENGINES), key=lambda ratio: ratio.ratio)
    speed = count_operations(module) / median
    bound = max(count_operations(module) / peak, count_weight_bytes(module) / bandwidth)
    for program in built.values():
        program.close()
    record = {
        "model": name,
        "threads": threads,
        "native_seconds": median,
        "ratios": {contender: [ratio.ratio, ratio.low, ratio.high] for contender, ratio in ratios.items()},
        "best_engine": best.ratio,
        "operations_per_second": speed,
        "peak": peak,
        "bandwidth": bandwidth,
        "bound_seconds": bound,
    }
    exact = ratios["exact"].ratio
    times = (
        name,
        str(threads),
        f"{median * 1e3:.3f}",
        *(format_ratio(ratios[contender]) for contender in listed),
    )
    factors = (f"{best.ratio:.3f}", f"{exact:.3f}", f"{best.ratio / exact:.3f}")
    return record, [(*times, *factors, f"{100 * speed / peak:.0f} %", f"{100 * bound / median:.0f} %")]


def measure_errors(name: str, threads: int, seeds: int) -> tuple[dict[str, Any], list[tuple[str, ...]]]:
    """Measure the errors of native and the engines against float64; return the record and the row."""
    model = build_model(name)
    module, built = build_programs(name, threads)
    float64_module = from_onnx(in_float64(model))
    errors: dict[str, list[float]] = {contender: [] for contender in built}
    judge = "reference" if is_small(module) else "native"
    with build(partition_whole(float64_module, Target.for_toolchain(judge))) as reference:
        for seed in range(seeds):
            inputs = random_inputs(module["main"], seed=seed)
            arrays = [inputs[info.name] for info in reference.inputs]
            doubles = [array.astype(np.float64) if array.dtype == np.float32 else array for array in arrays]
            expected = np.asarray(reference.run_flat(*doubles)[0])
            for contender, program in built.items():
                result = np.asarray(program.run_flat(*arrays)[0])
                errors[contender].append(float(np.abs(result - expected).max() / np.abs(expected).max()))
    for program in built.values():
        program.close()
    medians = {contender: statistics.median(values) for contender, values in errors.items()}
    line = (name, *(f"{medians[contender]:.1e}" for contender in ("native", "exact", *ENGINES)))
    return {"model": name, "errors": errors, "medians": medians}, [line]


def count_weight_bytes(module: IRModule) -> int:
    """Return the size of all constants of a program in bytes; shared constants count once."""
    arrays = {id(expr.data): expr.data for expr in post_order(module["main"]) if isinstance(expr, Constant)}
    return sum(array.nbytes for array in arrays.values())


def summary(records: Sequence[dict[str, Any]]) -> Iterator[str]:
    """Yield the geometric mean and the minimum of the best engine's ratio for each number of threads."""
    missing = [record["model"] for record in records if "error" in record]
    if missing:
        yield f"not measured: {', '.join(missing)}"
    for threads in sorted({record["threads"] for record in records if "best_engine" in record}):
        ratios = {
            record["model"]: record["best_engine"] for record in records if record.get("threads") == threads
        }
        mean, least = statistics.geometric_mean(ratios.values()), min(ratios, key=ratios.__getitem__)
        head = f"{threads} threads, {len(ratios)} models"
        yield f"{head}: geometric mean {mean:.3f}, least {ratios[least]:.3f} ({least})"


def count_operations(module: IRModule) -> float:
    """Return the number of arithmetic operations of a program."""
    plan = plan_region(simplified(module["main"]), Isa.host(), PlanOptions(blocked=False))
    return sum(max(0, kernel.dag.flop_ct) for kernel in plan.kernels)


def measure(
    table: str, name: str, threads: int, options: argparse.Namespace
) -> tuple[dict[str, Any], list[tuple[str, ...]]]:
    """Return the record of a model for a table, and its rows; or the error, if it cannot be measured."""
    try:
        if table == "tuned":
            return tune_model(name, options.budget)
        if table == "errors":
            return measure_errors(name, options.threads[-1], options.seeds)
        return compare_with_engines(name, options.budget, threads, contenders(options))
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
    headers = {"tuned": HEADER, "native": native_header(contenders(options)), "errors": ERROR_HEADER}
    for table in options.tables:
        if not options.json:
            print(separator.join(headers[table]), flush=True)
            if options.markdown:
                print("|".join("---" for _ in headers[table]))
        for name, threads in product(options.names, options.threads if table == "native" else [0]):
            record, lines = measure(table, name, threads, options)
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
