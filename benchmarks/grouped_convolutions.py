"""Generated networks of grouped convolutions: native by rule and after default tuning, beside the engines.

A network is drawn from a seed: grouped convolutions with 4, 8, 16 or 32 groups, an odd number of channels for
each group, and windows of 1, 3 or 5. No rule for schedules foresaw such shapes. The network is tuned with the
default options and each budget, each time with a new database, as on a new machine. Then native by rule,
native with the schedules of each tune, and the engines are measured interleaved in one process. Kernels are
those whose schedules are faster than by rule. A ratio is the contender's median over that of native by rule;
below 1 the contender is faster.

Usage: python -m benchmarks.grouped_convolutions [--seeds N [N ...]] [--budgets 20s 60s] [--layers N]
       [--size N] [--threads N] [--seconds S] [--kernels] [--json]
"""

from __future__ import annotations

import argparse
import json
import random
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any, Final

from onnx import ModelProto

import intarsia as ia
from intarsia.autoschedule.extraction import extract_tasks
from intarsia.autoschedule.tuning.schedule_history import ScheduleHistory
from intarsia.build import build
from intarsia.driver.budget import parse_budget
from intarsia.driver.result import TuneResult
from intarsia.frontend.onnx import from_onnx
from intarsia.frontend.zoo.graph_writer import GraphWriter
from intarsia.ir import IRModule
from intarsia.measure.database import Database
from intarsia.measure.inputs import random_inputs
from intarsia.measure.timing.interleaved import Comparison, time_interleaved
from intarsia.measure.timing.timing import TimingPolicy
from intarsia.passes import partition_whole
from intarsia.target import Target
from intarsia.target.cpu import usable_cores
from intarsia.toolchain.this_host import this_host

GROUPS: Final = (4, 8, 16, 32)
CHANNELS: Final = (3, 5, 7, 9, 11, 13)
"""Channels for each group of the larger of the numbers of groups around a tensor."""
WINDOWS: Final = (1, 3, 5)
ENGINES: Final = ("onnxruntime", "openvino")
BY_RULE: Final = "native by rule"
HEADER: Final = (
    "seed",
    "contender",
    "median, ms",
    "ratio (95 %)",
    "faster kernels",
    "tune took, s",
    "winner",
)


@dataclass(frozen=True)
class TunedNative:
    """Result of a tune, and native with its schedules.

    Attributes:
        result: Result of the tune.
        target: Native with the schedules that the tune found.
        kernels: Number of kernels with faster schedules.
        seconds: Wall time of the tune.
    """

    result: TuneResult
    target: Target
    kernels: int
    seconds: float


def build_network(seed: int, layers: int, size: int) -> ModelProto:
    """Generate a network of grouped convolutions.

    Args:
        seed: Seed of shapes and weights.
        layers: Number of grouped convolutions.
        size: Height and width of the input.
    """
    rng = random.Random(seed)
    groups = [rng.choice(GROUPS) for _ in range(layers)]
    net = GraphWriter(f"grouped{seed}")
    channels = groups[0] * rng.choice(CHANNELS)
    x = net.relu(net.conv(net.input("image", (1, 3, size, size)), (3, channels), 3, pad=1, bias=True))
    for number, count in enumerate(groups):
        after = max(count, *groups[number + 1 : number + 2], 1)
        out_channels, window = after * rng.choice(CHANNELS), rng.choice(WINDOWS)
        stride = 2 if number in {layers // 3, 2 * layers // 3} else 1
        with net.scope(f"layer{number}"):
            shape, pad = (channels, out_channels), window // 2
            x = net.relu(net.conv(x, shape, window, stride=stride, pad=pad, groups=count, bias=True))
        channels = out_channels
    net.classifier(x, channels, 100)
    return net.finish(seed)


def tune_network(model: IRModule, native: Target, budget: str) -> TunedNative:
    """Tune a network with a new database, and return native with the schedules that were found."""
    with TemporaryDirectory() as folder, Database.open(Path(folder) / "tuned.db") as database:
        begun = time.perf_counter()
        result = ia.tune(model, budget=budget, threads=int(native.option("threads") or 1), database=database)
        seconds = time.perf_counter() - begun
        log = ScheduleHistory(database, this_host()).make_log(extract_tasks(model, native))
    target = native.with_options(schedules=log.digest) if len(log) else native
    return TunedNative(result, target, len(log), seconds)


def time_contenders(module: IRModule, targets: Mapping[str, Target], seconds: float) -> Comparison:
    """Build all contenders, and time them interleaved."""
    programs = {name: build(partition_whole(module, target)) for name, target in targets.items()}
    inputs = random_inputs(module["main"])
    arrays = [inputs[info.name] for info in programs[BY_RULE].inputs]
    calls = {name: (lambda program=program: program.run_flat(*arrays)) for name, program in programs.items()}
    return time_interleaved(calls, TimingPolicy(max_seconds=seconds / len(calls)))


def compare(seed: int, options: argparse.Namespace) -> list[dict[str, Any]]:
    """Tune a network with each budget, and return a record for each contender."""
    module = from_onnx(build_network(seed, options.layers, options.size))
    native = Target.for_toolchain("native", threads=options.threads)
    tuned = {f"native tuned {budget}": tune_network(module, native, budget) for budget in options.budgets}
    targets = {BY_RULE: native} | {name: item.target for name, item in tuned.items()}
    targets |= {name: Target.for_toolchain(name, threads=options.threads) for name in ENGINES}
    timings = time_contenders(module, targets, options.seconds)
    records = []
    for name in targets:
        record: dict[str, Any] = {"seed": seed, "contender": name, "median": timings.timings[name].median}
        if name != BY_RULE:
            ratio = timings.ratio(name, BY_RULE)
            record["ratio"] = [ratio.ratio, ratio.low, ratio.high]
        if name in tuned:
            tuned_native = tuned[name]
            record |= {"faster": tuned_native.kernels, "seconds": tuned_native.seconds}
            record["winner"] = next(item.name for item in tuned_native.result.candidates if item.chosen)
            record["kernels"] = [row.to_json() for row in tuned_native.result.schedules]
        records.append(record)
    return records


def _lines(records: Sequence[dict[str, Any]], separator: str, *, show_kernels: bool) -> list[str]:
    lines = []
    for record in records:
        ratio = record.get("ratio")
        cells = (
            str(record["seed"]),
            record["contender"],
            f"{1e3 * record['median']:.3f}",
            "-" if ratio is None else f"{ratio[0]:.3f} ({ratio[1]:.3f} to {ratio[2]:.3f})",
            str(record.get("faster", "-")),
            f"{record['seconds']:.0f}" if "seconds" in record else "-",
            record.get("winner", "-"),
        )
        lines.append(separator.join(cells))
        if show_kernels:
            lines += [f"    {_kernel_text(row)}" for row in record.get("kernels", ())]
    return lines


def _kernel_text(row: Mapping[str, Any]) -> str:
    times = ["-" if row[key] is None else f"{1e6 * row[key]:.0f}" for key in ("default_seconds", "seconds")]
    share = "-" if row["share_of_peak"] is None else f"{row['share_of_peak']:.0%}"
    count = f"{row['trials']} schedules"
    return f"{row['name']}: {times[0]} -> {times[1]} us, {share} of peak, {count}; {row['reason']}"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("--seeds", type=int, nargs="+", default=[20261125, 71])
    parser.add_argument("--budgets", nargs="+", default=["20s", "60s"])
    parser.add_argument("--layers", type=int, default=12)
    parser.add_argument("--size", type=int, default=56)
    parser.add_argument("--threads", type=int, default=usable_cores(Path("/")))
    parser.add_argument("--seconds", type=parse_budget, default=30.0)
    parser.add_argument("--kernels", action="store_true", help="list the kernels of each tune")
    parser.add_argument("--json", action="store_true")
    options = parser.parse_args()
    records = []
    if not options.json:
        print("  ".join(HEADER), flush=True)
    for seed in options.seeds:
        records += compare(seed, options)
        if not options.json:
            print("\n".join(_lines(records[-3 - len(options.budgets) :], "  ", show_kernels=options.kernels)))
    if options.json:
        print(json.dumps(records, indent=1))


if __name__ == "__main__":
    main()
