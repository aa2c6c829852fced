"""Whole models on native kernels with searched schedules, against each engine.

The schedules of each model are searched for SECONDS. Then native with the searched schedules, native with its
default schedules, and each engine are measured interleaved in one process. A ratio is the median of the other
contender over that of native with searched schedules; above 1 the latter is faster. Measurements are kept in
the database: the same command resumes.

Usage: python -m benchmarks.tuned_models [NAME ...] [--seconds 600] [--threads N] [--budget 40s]
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

from intarsia.autoschedule.extraction import extract_tasks
from intarsia.autoschedule.tuning.schedule_log import ScheduleLogs
from intarsia.autoschedule.tuning.schedule_records import ScheduleRow
from intarsia.build import build
from intarsia.driver.budget import parse_budget
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


def time_contenders(module: IRModule, targets: Mapping[str, Target], seconds: float) -> Comparison:
    """Build all contenders, and time them interleaved."""
    programs = {name: build(partition_whole(module, target)) for name, target in targets.items()}
    inputs = random_inputs(module["main"])
    arrays = [inputs[info.name] for info in programs[DEFAULT].inputs]
    calls = {name: (lambda program=program: program.run_flat(*arrays)) for name, program in programs.items()}
    return time_interleaved(calls, TimingPolicy(max_seconds=seconds / len(calls)))


def tune_model(name: str, options: argparse.Namespace) -> dict[str, Any]:
    """Search the schedules of a model, time it against the engines, and return the record."""
    module = from_onnx(build_model(name))
    native = Target.for_toolchain("native", threads=options.threads)
    begin = time.perf_counter()
    with Database.open(options.database) as database:
        logs = ScheduleLogs(this_host(), database, options.seconds, least_share=0.0, on_note=_print_note)
        searched = logs.make(extract_tasks(module, native))
    seconds = time.perf_counter() - begin
    engines = {contender: Target.for_toolchain(contender, threads=options.threads) for contender in ENGINES}
    log = searched.log
    scheduled = native.with_options(schedules=log.digest) if len(log) else native
    contenders = {SEARCHED: scheduled, DEFAULT: native, **engines}
    timings = time_contenders(module, contenders, parse_budget(options.budget))
    ratios = {contender: timings.ratio(contender, SEARCHED) for contender in (DEFAULT, *ENGINES)}
    return {
        "model": name,
        "threads": options.threads,
        "search_seconds": seconds,
        "native_seconds": timings.timings[SEARCHED].median,
        "ratios": {contender: [ratio.ratio, ratio.low, ratio.high] for contender, ratio in ratios.items()},
        "best": min(ratios[contender].ratio for contender in ENGINES),
        "kernels": [row.to_json() for row in searched.rows],
        "lines": _lines(
            name, options.threads, seconds, searched.rows, timings.timings[SEARCHED].median, ratios
        ),
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
    best = min(ratios[engine].ratio for engine in ENGINES)
    shown = (f"{ratio.ratio:.3f} ({ratio.low:.3f} to {ratio.high:.3f})" for ratio in ratios.values())
    counts = (f"{seconds:.0f}", str(trials), f"{chosen} of {len(rows)}", f"{1e3 * median:.3f}")
    return (name, str(threads), *counts, *shown, f"{best:.3f}")


def _kernel(row: dict[str, Any]) -> tuple[str, ...]:
    def micro(seconds: float | None) -> str:
        return "-" if seconds is None else f"{1e6 * seconds:.1f}"

    share = row["share_of_peak"]
    times = (micro(row["default_seconds"]), micro(row["seconds"]))
    peak = "-" if share is None else f"{100 * share:.0f} %"
    return (row["name"], str(row["weight"]), str(row["trials"]), *times, peak, "yes" if row["chosen"] else "")


def _print_note(note: str) -> None:
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
        record = tune_model(name, options)
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
