"""Gain of tuning passes over partitioning alone: `default_tuning` against Collage alone.

For each model `tune` runs twice, with the same budget and a new database: without tuning passes, and with
those of `--pipeline`. Then both winners are measured interleaved in one process. A ratio is the median time
of the winner without the passes over that of the winner with them: above 1 the passes gain. There is no ratio
if both are the same program. Overhead is the time in which nothing is built, run in workers, or profiled, as
a share of the time of the run: of the tuning passes, of the whole run with them (importing, Collage's search,
explaining and loading the winner), and of the whole run without them.

Usage: python benchmarks/tuned_programs.py [NAME ...] [--budget 60s] [--race 20s] [--target T ...]
       [--pipeline default_tuning] [--results FILE] [--json] [--markdown]

Results are kept in FILE, one line of JSON for each model; models in it are not run again.
"""

from __future__ import annotations

import argparse
import json
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from functools import wraps
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any
from unittest.mock import patch

from benchmarks.native_kernels import format_table

import intarsia as ia
from intarsia.driver import tune_run
from intarsia.driver.budget import parse_budget
from intarsia.driver.pipeline import run_pipeline
from intarsia.driver.result import TuneResult
from intarsia.frontend.onnx import from_onnx
from intarsia.frontend.zoo import build_model, zoo
from intarsia.ir import IRModule
from intarsia.measure.database import Database
from intarsia.measure.inputs import random_inputs
from intarsia.measure.testbed import LocalTestbed
from intarsia.measure.timing.interleaved import RatioInterval, time_interleaved
from intarsia.measure.timing.timing import TimingPolicy
from intarsia.runtime.executable import Executable

TARGETS = ("onnxruntime", "openvino", "native")
HEADER = (
    *("model", "without, ms", "winner without", "winner with", "without / with (95 %)"),
    *("decided", "tried", "overhead: passes, whole, without"),
)


@dataclass
class Clock:
    """Clock of the time in which something is built or measured.

    Attributes:
        seconds: Seconds counted so far.
        depth: Number of timed calls that are running; only the outermost one counts.
    """

    seconds: float = 0.0
    depth: int = 0

    def wrap(self, function: Callable[..., Any]) -> Callable[..., Any]:
        """Return the function with its calls timed; for a generator each item is timed."""

        @wraps(function)
        def timed_function(*args: Any, **named: Any) -> Any:
            result = self._time_call(function, *args, **named)
            return self._time_items(result) if isinstance(result, Iterator) else result

        return timed_function

    def _time_items(self, items: Iterator[Any]) -> Iterator[Any]:
        while True:
            try:
                item = self._time_call(next, items)
            except StopIteration:
                return
            yield item

    def _time_call(self, function: Callable[..., Any], *args: Any, **named: Any) -> Any:
        begun, self.depth = time.perf_counter(), self.depth + 1
        try:
            return function(*args, **named)
        finally:
            self.depth -= 1
            self.seconds += 0.0 if self.depth else time.perf_counter() - begun


@dataclass
class PassesClock:
    """Clock of the tuning passes, without the time that `testbed` counts.

    Attributes:
        testbed: Clock of building and measuring.
        seconds: Seconds counted so far.
    """

    testbed: Clock
    seconds: float = 0.0

    def wrap(self, function: Callable[..., Any]) -> Callable[..., Any]:
        """Return the function with its calls timed."""

        @wraps(function)
        def timed_function(*args: Any, **named: Any) -> Any:
            begun = time.perf_counter() - self.testbed.seconds
            try:
                return function(*args, **named)
            finally:
                self.seconds += time.perf_counter() - self.testbed.seconds - begun

        return timed_function


@contextmanager
def install_clocks() -> Iterator[tuple[Clock, PassesClock]]:
    """Time the testbeds and kernel profiles of this process, and the tuning passes of a run."""
    clock = Clock()
    passes = PassesClock(clock)
    with (
        patch.object(tune_run, "run_pipeline", passes.wrap(run_pipeline)),
        patch.object(LocalTestbed, "prepare", clock.wrap(LocalTestbed.prepare)),
        patch.object(LocalTestbed, "measure", clock.wrap(LocalTestbed.measure)),
        patch.object(LocalTestbed, "race", clock.wrap(LocalTestbed.race)),
        patch.object(Executable, "profile", clock.wrap(Executable.profile)),
    ):
        yield clock, passes


def tune_model(
    module: IRModule, options: argparse.Namespace, passes: list[str] | None
) -> tuple[TuneResult, list[float]]:
    """Tune a model, and return the result with the overheads: of the passes, and of the whole run."""
    begun = time.perf_counter()
    with (
        install_clocks() as (clock, of_passes),
        TemporaryDirectory() as folder,
        Database.open(Path(folder) / "measurements.db") as database,
    ):
        result = ia.tune(
            module,
            budget=options.budget,
            targets=[f"cpu -toolchain={name}" for name in options.targets],
            database=database,
            passes=passes,
            pipeline=None if passes is not None else options.pipeline,
        )
    whole = time.perf_counter() - begun
    return result, [of_passes.seconds / whole, 1 - clock.seconds / whole]


def time_winners(
    module: IRModule, programs: dict[str, Executable], seconds: float
) -> tuple[float, RatioInterval]:
    """Time two programs interleaved; return the median of the first, and its ratio to the second."""
    inputs = random_inputs(module["main"])
    first, second = programs
    arrays = [inputs[info.name] for info in programs[first].inputs]
    calls = {name: (lambda program=program: program.run_flat(*arrays)) for name, program in programs.items()}
    comparison = time_interleaved(calls, TimingPolicy(max_seconds=seconds / len(calls)))
    return comparison.timings[first].median, comparison.ratio(first, second)


def measure_model(name: str, options: argparse.Namespace) -> dict[str, Any]:
    """Tune a model without and with tuning passes, and return the record."""
    module = from_onnx(build_model(name))
    without, overhead_without = tune_model(module, options, [])
    result, overhead = tune_model(module, options, None)
    programs = {"without": without.executable, "with": result.executable}
    seconds, ratio = time_winners(module, programs, parse_budget(options.race))
    explained = result.explanation
    is_same = result.plan.is_same(without.plan)
    return {
        "model": name,
        "seconds": seconds,
        "without": without.chosen.name,
        "with": result.chosen.name,
        "ratio": None if is_same else [ratio.ratio, ratio.low, ratio.high],
        "decisions": list(explained.decisions),
        "tried": sum(tuning.candidates for tuning in explained.tuning),
        "shares": [note for note in explained.notes if "slices" in note],
        "overhead": overhead,
        "overhead_without": overhead_without,
    }


def table_row(record: dict[str, Any]) -> tuple[str, ...]:
    """Return the cells of a row of the table."""
    ratio = "the same" if record["ratio"] is None else "{:.3f} ({:.3f} to {:.3f})".format(*record["ratio"])
    return (
        record["model"],
        f"{record['seconds'] * 1e3:.3f}",
        record["without"],
        record["with"],
        ratio,
        "; ".join(record["decisions"]) or "-",
        str(record["tried"]),
        ", ".join(f"{share:.1%}" for share in (*record["overhead"], record["overhead_without"][1])),
    )


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("names", nargs="*", default=[model.name for model in zoo()])
    parser.add_argument("--budget", default="60s")
    parser.add_argument("--race", default="20s")
    parser.add_argument("--target", dest="targets", action="append")
    parser.add_argument("--pipeline", default="default_tuning")
    parser.add_argument("--results", type=Path)
    parser.add_argument("--json", action="store_true")
    parser.add_argument("--markdown", action="store_true")
    options = parser.parse_args()
    options.targets = options.targets or list(TARGETS)
    records: dict[str, dict[str, Any]] = {}
    if options.results and options.results.exists():
        lines = options.results.read_text().splitlines()
        records = {record["model"]: record for record in map(json.loads, lines)}
    for name in options.names:
        if name not in records:
            records[name] = measure_model(name, options)
            if options.results:
                with options.results.open("a") as file:
                    file.write(json.dumps(records[name]) + "\n")
        if not options.json:
            print(" | ".join(table_row(records[name])), flush=True)
    listed = [records[name] for name in options.names]
    if options.json:
        print(json.dumps(listed))
    else:
        print(f"\n{format_table(HEADER, [table_row(record) for record in listed], options.markdown)}")


if __name__ == "__main__":
    main()
