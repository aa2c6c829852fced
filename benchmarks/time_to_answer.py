"""Wall time of `tune`, and the time at which its final answer was first known, beside an earlier source tree.

Each run is a process of its own with a new database and a new cache folder, as on a new machine: it imports
Intarsia, builds the model, tunes it, and then waits. With --against the same happens with the sources of
another tree, before or after, in turn. Then the winners of both are timed interleaved, in their processes.

*Answer* is the second at which the program that was chosen, or a whole-program candidate that the final race
has found within 2 % of it, was measured for the first time: later work has changed nothing. *Total* is the
second at which `tune` returned. Both count from the start of the process. *CPU* is the time of all its
processes until then, which other work on the machine disturbs less. *Time* is the time of one run of the
earlier tree's winner over that of this tree's: below 0.98 the answer has become worse.

A name is one of the zoo, or grouped:SEED for a network of `grouped_convolutions`.

Usage: python -m benchmarks.time_to_answer [NAME or FILE.onnx ...] [--budget 20s] [--against TREE]
       [--seconds S] [--markdown] [--json]

TREE is the root of another checkout, such as a git worktree.
"""

from __future__ import annotations

import argparse
import json
import os
import statistics
import subprocess
import sys
import time
from collections.abc import Mapping, Sequence
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any, Final, Self

import onnx
from benchmarks.grouped_convolutions import build_network
from benchmarks.native_kernels import format_table

TREE: Final = Path(__file__).parents[1]
MODELS: Final = (
    "mnist",
    "bert_tiny",
    "gpt2_tiny",
    "squeezenet",
    "mobilenet_v2",
    "shufflenet",
    "inception_v1",
    "efficientnet_b0",
    "resnet50",
    "densenet121",
    "dcgan",
    "grouped:1",
)
EQUAL: Final = 1.02
"""Ratio to the winner up to which another candidate is the same answer."""

BEFORE: Final = "before"
AFTER: Final = "now"
ROUND_SECONDS: Final = 0.02
"""Seconds of one round of a winner in the comparison, about."""
LEAST_ROUNDS: Final = 7
GROUPED: Final = (8, 28)
"""Layers of a generated network, and height of its images."""

RUN: Final = r"""
import json, resource, sys, time
from pathlib import Path
import intarsia as ia
from intarsia.frontend.zoo import build_model
from intarsia.measure.candidate_kind import WHOLE
from intarsia.measure.database import Database
from intarsia.measure.measurer import Measurer

name, budget, folder, started = sys.argv[1], sys.argv[2], Path(sys.argv[3]), float(sys.argv[4])

def cpu_seconds():
    used = [resource.getrusage(kind) for kind in (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN)]
    return sum(item.ru_utime + item.ru_stime for item in used)

measured = {}
keep = Measurer.keep

def keep_with_time(self, item, result):
    if result.is_ok:
        key = item.workload.digest, str(item.target), item.candidate.digest
        measured.setdefault(key, time.time() - started)
    return keep(self, item, result)

Measurer.keep = keep_with_time
model = name if name.endswith(".onnx") else build_model(name)
notes = []
with Database.open(folder / "measurements.db") as database:
    result = ia.tune(model, budget=budget, database=database, on_note=notes.append)
total = time.time() - started
plan = result.plan
chosen = str(result.chosen.target), plan.candidate.digest
same = {chosen}
for record in result.candidates:
    if record.is_whole and record.ratio is not None and record.ratio.ratio <= float(sys.argv[5]):
        same.add((record.target, WHOLE.digest))
times = [seconds for (_, *key), seconds in measured.items() if tuple(key) in same]
print(json.dumps({
    "total": total, "answer": min(times, default=total), "winner": result.chosen.name,
    "cpu": cpu_seconds(), "seconds": result.chosen.timing.median, "measured": len(measured),
    "reasons": [note for note in notes if "left out" in note],
}), flush=True)
arrays = result.self_test.inputs
for line in sys.stdin:
    calls, begun = int(line), time.perf_counter()
    for _ in range(calls):
        result.executable.run_flat(*arrays)
    print((time.perf_counter() - begun) / calls, flush=True)
"""


@dataclass(eq=False)
class TimedTune:
    """A process that has tuned a model, and can run the winner.

    Attributes:
        report: Report of the run that the process has printed.
        process: The process; it waits for numbers of calls.
    """

    report: Mapping[str, Any]
    process: subprocess.Popen[str]

    @classmethod
    def run(cls, tree: Path, name: str, budget: str, folder: Path) -> Self:
        """Tune a model with the sources of a tree.

        Args:
            tree: Root of the tree.
            name: Name of a model of the zoo, or path of a file.
            budget: The budget of `tune`.
            folder: Empty folder for the database and the caches.

        Raises:
            RuntimeError: The process has failed.
        """
        environment = {**os.environ, "PYTHONPATH": str(tree / "src"), "XDG_CACHE_HOME": str(folder)}
        environment.pop("PYTHONDONTWRITEBYTECODE", None)  # else each process compiles the sources
        process = subprocess.Popen(
            [sys.executable, "-c", RUN, name, budget, str(folder), repr(time.time()), str(EQUAL)],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            env=environment,
            text=True,
            cwd=folder,
        )
        assert process.stdout is not None
        line = process.stdout.readline()
        if not line:
            raise RuntimeError(f"tuning {name} with {tree} has failed: exit status {process.wait()}")
        return cls(json.loads(line), process)

    def seconds(self, calls: int) -> float:
        """Return the mean seconds of some calls of the winner in a row."""
        assert self.process.stdin is not None
        assert self.process.stdout is not None
        print(calls, file=self.process.stdin, flush=True)
        return float(self.process.stdout.readline())

    def close(self) -> None:
        """End the process."""
        assert self.process.stdin is not None
        self.process.stdin.close()
        self.process.wait()


def ratio_of_winners(before: TimedTune, after: TimedTune, seconds: float) -> float:
    """Return the time of one winner over that of another, interleaved: the median over rounds."""
    calls = max(1, round(ROUND_SECONDS / after.report["seconds"]))
    for run in (before, after):
        run.seconds(calls)
    ratios, end = list[float](), time.monotonic() + seconds
    while len(ratios) < LEAST_ROUNDS or time.monotonic() < end:
        first, second = (before, after) if len(ratios) % 2 else (after, before)
        times = {id(run): run.seconds(calls) for run in (first, second)}
        ratios.append(times[id(before)] / times[id(after)])
    return statistics.median(ratios)


def compare(
    name: str, budget: str, trees: Mapping[str, Path], order: Sequence[str], seconds: float
) -> dict[str, Any]:
    """Tune a model with each tree, and compare the winners."""
    with ExitStack() as stack:
        folder = Path(stack.enter_context(TemporaryDirectory()))
        model = name
        if name.startswith("grouped:"):
            model = str(folder / "grouped.onnx")
            onnx.save(build_network(int(name.removeprefix("grouped:")), *GROUPED), model)
        elif name.endswith(".onnx"):
            model = str(Path(name).resolve())
        runs: dict[str, TimedTune] = {}
        for label in order:
            (folder / label).mkdir()
            runs[label] = TimedTune.run(trees[label], model, budget, folder / label)
            stack.callback(runs[label].close)
        row: dict[str, Any] = {"model": name, **{label: dict(runs[label].report) for label in trees}}
        if len(runs) > 1:
            row["ratio"] = ratio_of_winners(runs[BEFORE], runs[AFTER], seconds)
    return row


def cells(row: Mapping[str, Any], labels: Sequence[str]) -> list[str]:
    """Return the cells of a row of the table."""
    shown = [row["model"]]
    for key in ("answer", "total", "cpu"):
        shown += [f"{row[label][key]:.1f}" for label in labels]
    if len(labels) > 1:
        shown += [f"{row[AFTER][key] / row[BEFORE][key]:.2f}" for key in ("answer", "total", "cpu")]
        shown.append(f"{row['ratio']:.3f}")
    return [*shown, " / ".join(row[label]["winner"] for label in labels)]


def header(labels: Sequence[str]) -> list[str]:
    """Return the names of the columns."""
    names = [f"{key}, s ({label})" for key in ("answer", "total", "CPU") for label in labels]
    if len(labels) > 1:
        names += ["answer", "total", "CPU", "time"]
    return ["model", *names, "winner"]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("names", nargs="*", default=MODELS)
    parser.add_argument("--budget", default="20s")
    parser.add_argument("--against", type=Path)
    parser.add_argument("--seconds", type=float, default=1.5)
    parser.add_argument("--markdown", action="store_true")
    parser.add_argument("--json", action="store_true")
    options = parser.parse_args()
    trees = {AFTER: TREE}
    if options.against is not None:
        trees = {BEFORE: options.against.resolve(), AFTER: TREE}
    labels, rows = list(trees), list[dict[str, Any]]()
    for number, name in enumerate(options.names):
        order = labels if number % 2 else labels[::-1]
        rows.append(compare(name, options.budget, trees, order, options.seconds))
        if options.json:
            continue
        print("  ".join(cells(rows[-1], labels)), file=sys.stderr, flush=True)
    if options.json:
        print(json.dumps(rows, indent=2))
        return
    print(format_table(header(labels), [cells(row, labels) for row in rows], options.markdown))
    for key in ("answer", "total", "cpu") if len(labels) > 1 else ():
        ratio = statistics.geometric_mean(row[AFTER][key] / row[BEFORE][key] for row in rows)
        print(f"{key}: {ratio:.2f} times as long as before (geometric mean)")


if __name__ == "__main__":
    main()
