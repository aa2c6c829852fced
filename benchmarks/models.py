"""Every model of the zoo: tuned, and by native kernels alone against each engine alone.

The first table says which toolchain wins, by how much, and how right each one is. The second has latencies of
native, onnxruntime and openvino, measured in turns in one process; a ratio is that of the engine's median to
native's, so that above 1 native is faster. Operations count a product and a sum as two, without what only
fills blocks; the peak is that of multiply-adds in registers on as many threads, timed just before.

Usage: python benchmarks/models.py [NAME ...] [--tables tuned native] [--budget 10s] [--threads N]
       [--json] [--markdown]
"""

from __future__ import annotations

import argparse
import json
from pathlib import Path
from typing import Any

import intarsia as ia
from intarsia.build import build
from intarsia.driver.budget import parse_budget
from intarsia.driver.records import CandidateRecord
from intarsia.frontend.onnx import from_onnx
from intarsia.frontend.zoo import build_model, zoo
from intarsia.ir import IRModule
from intarsia.measure.inputs import random_inputs
from intarsia.measure.interleaved import RatioInterval, time_interleaved
from intarsia.measure.timing import TimingPolicy
from intarsia.native.graph import PlanOptions, plan_region
from intarsia.native.llvm.isa import Isa
from intarsia.native.peak import measured_peak
from intarsia.passes import partition_whole
from intarsia.support.errors import IntarsiaError
from intarsia.target import Target
from intarsia.target.cpu import usable_cores
from intarsia.toolchain.native_simplified import simplified

HEADER = ("model", "toolchain", "median, ms", "ratio to best (95 %)", "max error", "verdict")
ENGINES = ("onnxruntime", "openvino")
NATIVE_HEADER = (
    *("model", "threads", "native, ms", *(f"{name} / native (95 %)" for name in ENGINES)),
    *("best engine / native", "GFLOP/s", "of peak"),
)


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


def against_engines(name: str, budget: str, threads: int) -> tuple[dict[str, Any], list[tuple[str, ...]]]:
    """The record of native and the engines on a model, and its line of the table."""
    module = from_onnx(build_model(name))
    targets = {each: Target.for_toolchain(each, threads=threads) for each in ("native", *ENGINES)}
    programs = {each: build(partition_whole(module, target)) for each, target in targets.items()}
    inputs = random_inputs(module["main"])
    arrays = [inputs[info.name] for info in programs["native"].inputs]
    policy = TimingPolicy(max_seconds=parse_budget(budget) / len(programs))
    most = measured_peak(Isa.host(), threads)
    calls = {each: (lambda program=program: program.run_flat(*arrays)) for each, program in programs.items()}
    measured = time_interleaved(calls, policy)
    ratios = {each: measured.ratio(each, "native") for each in ENGINES}
    median = measured.timings["native"].median
    best, speed = min(ratios.values(), key=lambda ratio: ratio.ratio), operations(module) / median
    record = {
        "model": name,
        "threads": threads,
        "native_seconds": median,
        "ratios": {each: [ratio.ratio, ratio.low, ratio.high] for each, ratio in ratios.items()},
        "operations_per_second": speed,
        "peak": most,
    }
    times = (name, str(threads), f"{median * 1e3:.3f}", *map(shown, ratios.values()))
    return record, [(*times, f"{best.ratio:.3f}", f"{speed / 1e9:.1f}", f"{100 * speed / most:.0f} %")]


def operations(module: IRModule) -> float:
    """How many operations on numbers a program asks for."""
    plan = plan_region(simplified(module["main"]), Isa.host(), PlanOptions(blocked=False))
    return sum(max(0, kernel.dag.flop_ct) for kernel in plan.kernels)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("names", nargs="*", default=[model.name for model in zoo()])
    parser.add_argument("--tables", nargs="+", choices=("tuned", "native"), default=["tuned", "native"])
    parser.add_argument("--budget", default="10s")
    parser.add_argument("--threads", type=int, default=usable_cores(Path("/")))
    parser.add_argument("--json", action="store_true")
    parser.add_argument("--markdown", action="store_true")
    options = parser.parse_args()
    results: list[dict[str, Any]] = []
    separator = " | " if options.markdown else "  "
    for table in options.tables:
        header = HEADER if table == "tuned" else NATIVE_HEADER
        if not options.json:
            print(separator.join(header), flush=True)
            if options.markdown:
                print("|".join("---" for _ in header))
        for name in options.names:
            try:
                if table == "tuned":
                    record, lines = tuned(name, options.budget)
                else:
                    record, lines = against_engines(name, options.budget, options.threads)
            except IntarsiaError as error:
                record, lines = {"model": name, "error": str(error)}, [(name, str(error))]
            results.append({**record, "table": table})
            if not options.json:
                print("\n".join(map(separator.join, lines)), flush=True)
        if not options.json:
            print()
    if options.json:
        print(json.dumps(results, indent=2))


if __name__ == "__main__":
    main()
