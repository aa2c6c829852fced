"""Whole models on native kernels whose schedules were searched, against each engine.

For each model schedules are searched for so long; then native with what was found, native with its default
schedules, and each engine are timed in turns in one process. A ratio is that of the other's median to the
one with searched schedules: above 1 the search, or native, is ahead. Measurements are kept in the database:
the same command again goes on where it was.

Usage: python benchmarks/tuned_models.py [NAME ...] [--seconds 600] [--threads N] [--budget 40s]
       [--database tuned_models.db] [--kernels] [--json] [--markdown]
"""

from __future__ import annotations

import argparse
import json
import sys
import time
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from intarsia.build import build
from intarsia.driver.booked_targets import BookedRun
from intarsia.driver.budget import parse_budget
from intarsia.driver.records import Progress
from intarsia.driver.schedule_records import ScheduleRequest, ScheduleRow
from intarsia.frontend.onnx import from_onnx
from intarsia.frontend.zoo import build_model
from intarsia.ir import IRModule
from intarsia.measure.database import Database
from intarsia.measure.inputs import random_inputs
from intarsia.measure.timing.interleaved import Comparison, RatioInterval, time_interleaved
from intarsia.measure.timing.timing import TimingPolicy
from intarsia.passes import partition_whole
from intarsia.target import Target
from intarsia.target.cpu import usable_cores
from intarsia.toolchain.this_host import this_host

MODELS = ("resnet50", "mobilenet_v2", "squeezenet", "bert_base")
ENGINES = ("onnxruntime", "openvino")
SEARCHED, DEFAULT = "searched", "default"
HEADER = (
    *("model", "threads", "searched, s", "schedules", "faster kernels", "native, ms"),
    *(
        "default / searched (95 %)",
        *(f"{name} / searched (95 %)" for name in ENGINES),
        "best engine / searched",
    ),
)
KERNELS = ("kernel", "calls", "schedules", "default, us", "best, us", "of peak", "chosen")


def measured(module: IRModule, targets: Mapping[str, Target], seconds: float) -> Comparison:
    """All contenders in turns."""
    programs = {name: build(partition_whole(module, target)) for name, target in targets.items()}
    inputs = random_inputs(module["main"])
    arrays = [inputs[info.name] for info in programs[DEFAULT].inputs]
    calls = {name: (lambda program=program: program.run_flat(*arrays)) for name, program in programs.items()}
    return time_interleaved(calls, TimingPolicy(max_seconds=seconds / len(calls)))


def tuned(name: str, options: argparse.Namespace) -> dict[str, Any]:
    """The record of a model."""
    module = from_onnx(build_model(name))
    native = Target.for_toolchain("native", threads=options.threads)
    begin = time.perf_counter()
    with Database.open(options.database) as database:
        run = BookedRun(module, this_host(), database, 0, _silent, _told, lambda: False)
        found = run.booked([native], ScheduleRequest(options.seconds, None))
    seconds = time.perf_counter() - begin
    engines = {each: Target.for_toolchain(each, threads=options.threads) for each in ENGINES}
    contenders = {SEARCHED: found.targets[-1], DEFAULT: native, **engines}
    timings = measured(module, contenders, parse_budget(options.budget))
    ratios = {each: timings.ratio(each, SEARCHED) for each in (DEFAULT, *ENGINES)}
    return {
        "model": name,
        "threads": options.threads,
        "search_seconds": seconds,
        "native_seconds": timings.timings[SEARCHED].median,
        "ratios": {each: [ratio.ratio, ratio.low, ratio.high] for each, ratio in ratios.items()},
        "best": min(ratios[each].ratio for each in ENGINES),
        "kernels": [row.to_json() for row in found.rows],
        "lines": _lines(name, options.threads, seconds, found.rows, timings.timings[SEARCHED].median, ratios),
    }


def _lines(
    name: str,
    threads: int,
    seconds: float,
    rows: tuple[ScheduleRow, ...],
    median: float,
    ratios: Mapping[str, RatioInterval],
) -> tuple[str, ...]:
    chosen, trials = sum(row.is_chosen for row in rows), sum(row.trials for row in rows)
    best = min(ratios[each].ratio for each in ENGINES)
    shown = (f"{each.ratio:.3f} ({each.low:.3f} to {each.high:.3f})" for each in ratios.values())
    counts = (f"{seconds:.0f}", str(trials), f"{chosen} of {len(rows)}", f"{1e3 * median:.3f}")
    return (name, str(threads), *counts, *shown, f"{best:.3f}")


def _kernel(row: dict[str, Any]) -> tuple[str, ...]:
    def micro(seconds: float | None) -> str:
        return "-" if seconds is None else f"{1e6 * seconds:.1f}"

    share = row["share_of_peak"]
    times = (micro(row["default_seconds"]), micro(row["seconds"]))
    peak = "-" if share is None else f"{100 * share:.0f} %"
    return (row["name"], str(row["weight"]), str(row["trials"]), *times, peak, "yes" if row["chosen"] else "")


def _silent(_: Progress) -> None:
    return None


def _told(note: str) -> None:
    print(note, file=sys.stderr)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("names", nargs="*", default=list(MODELS))
    parser.add_argument("--seconds", type=float, default=600.0)
    parser.add_argument("--threads", type=int, default=usable_cores(Path("/")))
    parser.add_argument("--budget", default="40s")
    parser.add_argument("--database", default="tuned_models.db")
    parser.add_argument("--kernels", action="store_true", help="list the kernels of each model")
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
        record = tuned(name, options)
        line = record.pop("lines")
        records.append(record)
        if options.json:
            continue
        print(separator.join(line), flush=True)
        if options.kernels:
            print(separator.join(KERNELS))
            for row in record["kernels"]:
                print(separator.join(_kernel(row)), flush=True)
    if options.json:
        print(json.dumps(records, indent=2))


if __name__ == "__main__":
    main()
