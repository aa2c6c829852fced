"""What deciding on the program by measuring adds to dividing it: `default_tuning` against Collage alone.

For each model `tune` runs twice, with the same budget and a new database: without tuning passes, and with
those of `--pipeline`. Then both winners are timed in turns in one process. A ratio is the median
time of the winner without by that of the winner with them: above 1 the passes gain; where both are the same
program there is nothing to compare. What is neither building nor running in workers, nor timing kernels of
the winner, is overhead, as a share of the time of the run: of the tuning passes, of the whole run with them
(importing, Collage's search, explaining and loading the winner), and of the whole run without.

Usage: python benchmarks/tuned_programs.py [NAME ...] [--budget 60s] [--race 20s] [--target T ...]
       [--pipeline default_tuning] [--results FILE] [--json] [--markdown]

Results are kept in FILE, a line of JSON a model; models that are in it are not run again.
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

from benchmarks.native_kernels import shown

import intarsia as ia
from intarsia.driver import tune_run
from intarsia.driver.budget import parse_budget
from intarsia.driver.result import TuneResult
from intarsia.driver.tuned_programs import enter_tuned_programs
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
    """How long something was built or measured."""

    seconds: float = 0.0
    depth: int = 0

    def around(self, function: Callable[..., Any]) -> Callable[..., Any]:
        """The function, timed; what it yields is timed as well."""

        @wraps(function)
        def timed(*args: Any, **named: Any) -> Any:
            found = self._timed(function, *args, **named)
            return self._each(found) if isinstance(found, Iterator) else found

        return timed

    def _each(self, found: Iterator[Any]) -> Iterator[Any]:
        while True:
            try:
                each = self._timed(next, found)
            except StopIteration:
                return
            yield each

    def _timed(self, function: Callable[..., Any], *args: Any, **named: Any) -> Any:
        begun, self.depth = time.perf_counter(), self.depth + 1
        try:
            return function(*args, **named)
        finally:
            self.depth -= 1
            self.seconds += 0.0 if self.depth else time.perf_counter() - begun


@dataclass
class PassesClock:
    """How long tuning passes ran, but for what `testbed` counts."""

    testbed: Clock
    seconds: float = 0.0

    def around(self, function: Callable[..., Any]) -> Callable[..., Any]:
        """The function that runs them, timed."""

        @wraps(function)
        def timed(*args: Any, **named: Any) -> Any:
            begun = time.perf_counter() - self.testbed.seconds
            try:
                return function(*args, **named)
            finally:
                self.seconds += time.perf_counter() - self.testbed.seconds - begun

        return timed


@contextmanager
def clocks() -> Iterator[tuple[Clock, PassesClock]]:
    """Times the testbeds of this process and its timing of kernels; and the tuning passes of a run."""
    clock = Clock()
    passes = PassesClock(clock)
    with (
        patch.object(tune_run, "enter_tuned_programs", passes.around(enter_tuned_programs)),
        patch.object(LocalTestbed, "prepare", clock.around(LocalTestbed.prepare)),
        patch.object(LocalTestbed, "measure", clock.around(LocalTestbed.measure)),
        patch.object(LocalTestbed, "race", clock.around(LocalTestbed.race)),
        patch.object(Executable, "profile", clock.around(Executable.profile)),
    ):
        yield clock, passes


def tuned(
    module: IRModule, options: argparse.Namespace, passes: list[str] | None
) -> tuple[TuneResult, list[float]]:
    """The result, and the shares of the time in which nothing was built or measured: of passes, of all."""
    begun = time.perf_counter()
    with (
        clocks() as (clock, of_passes),
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


def raced(module: IRModule, programs: dict[str, Executable], seconds: float) -> tuple[float, RatioInterval]:
    """The median time of the first, and by how much it is that of the second."""
    inputs = random_inputs(module["main"])
    first, second = programs
    arrays = [inputs[info.name] for info in programs[first].inputs]
    calls = {name: (lambda program=program: program.run_flat(*arrays)) for name, program in programs.items()}
    found = time_interleaved(calls, TimingPolicy(max_seconds=seconds / len(calls)))
    return found.timings[first].median, found.ratio(first, second)


def record_of(name: str, options: argparse.Namespace) -> dict[str, Any]:
    """What is to be told of a model."""
    module = from_onnx(build_model(name))
    without, overhead_without = tuned(module, options, [])
    result, overhead = tuned(module, options, None)
    programs = {"without": without.executable, "with": result.executable}
    seconds, ratio = raced(module, programs, parse_budget(options.race))
    explained = result.explanation
    is_same = result.plan.is_same(without.plan)
    return {
        "model": name,
        "seconds": seconds,
        "without": without.chosen.name,
        "with": result.chosen.name,
        "ratio": None if is_same else [ratio.ratio, ratio.low, ratio.high],
        "decisions": list(explained.decisions),
        "tried": sum(each.candidates for each in explained.tuning),
        "shares": [note for note in explained.notes if "slices" in note],
        "overhead": overhead,
        "overhead_without": overhead_without,
    }


def row(found: dict[str, Any]) -> tuple[str, ...]:
    """A line of the table."""
    ratio = "the same" if found["ratio"] is None else "{:.3f} ({:.3f} to {:.3f})".format(*found["ratio"])
    return (
        found["model"],
        f"{found['seconds'] * 1e3:.3f}",
        found["without"],
        found["with"],
        ratio,
        "; ".join(found["decisions"]) or "-",
        str(found["tried"]),
        ", ".join(f"{each:.1%}" for each in (*found["overhead"], found["overhead_without"][1])),
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
    known: dict[str, dict[str, Any]] = {}
    if options.results and options.results.exists():
        lines = options.results.read_text().splitlines()
        known = {each["model"]: each for each in map(json.loads, lines)}
    for name in options.names:
        if name not in known:
            known[name] = record_of(name, options)
            if options.results:
                with options.results.open("a") as file:
                    file.write(json.dumps(known[name]) + "\n")
        if not options.json:
            print(" | ".join(row(known[name])), flush=True)
    found = [known[name] for name in options.names]
    if options.json:
        print(json.dumps(found))
    else:
        print(f"\n{shown(HEADER, [row(each) for each in found], options.markdown)}")


if __name__ == "__main__":
    main()
