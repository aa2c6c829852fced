"""The database of measurements: commits per second, lookups, and the best of every workload.

    python -m benchmarks.database [--json] [--records 100000] [--postgresql | --place postgresql://...]

Goals, for an SQLite file: 10,000 records committed one at a time at over 1,000 per second, 1,000 lookups in
0.2 s, the best per workload of 100,000 records in 2 s. Wall time and CPU time of this process are
both printed, because other work on a busy machine adds to the wall time. Lookups and loading are the best of
several runs, commits are timed once. A database given as --place must be empty; its records stay.
--postgresql starts a server on this machine for the time of the benchmark; it writes to disk at each commit,
as servers do.
"""

from __future__ import annotations

import argparse
import contextlib
import json
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from dataclasses import asdict, dataclass, replace
from pathlib import Path

from intarsia.measure.database import Database, Measurement, MeasureRecord
from intarsia.measure.measure_input import Candidate, PlainData
from intarsia.measure.measure_result import MeasureError, MeasureResult

sys.path.insert(0, str(Path(__file__).parents[1]))

from tests.postgresql_server import programs, running_server

COMMITS, LOOKUPS, WORKLOADS = 10_000, 1_000, 200
"""Number of single commits, of lookups, and of different workloads among the records."""
TARGET, HOST = "cpu -toolchain=native", "0123456789abcdef0123456789abcdef"
REPEATS = 3


@dataclass(frozen=True, slots=True)
class Timing:
    """One line of the report.

    Attributes:
        name: Description of the measured operation.
        seconds: Wall time in seconds.
        cpu_seconds: CPU time of this process in seconds.
        goal: Largest wall time in seconds that meets the goal; None if there is no goal.
    """

    name: str
    seconds: float
    cpu_seconds: float
    goal: float | None

    def line(self) -> str:
        """Return the line of the report."""
        verdict = ""
        if self.goal is not None:
            verdict = f"  (goal {self.goal:g} s: {'missed' if self.seconds > self.goal else 'met'})"
        return f"{self.name:<52} {self.seconds:8.3f} s, CPU {self.cpu_seconds:8.3f} s{verdict}"


def records(count: int) -> Iterator[MeasureRecord]:
    """Yield records like those of schedule search: 30 decisions, ten costs; one in seven is a failure."""
    for number in range(count):
        steps: list[PlainData] = [["split", step, number % 7, 4, 8] for step in range(29)]
        trace = Candidate("schedule", [*steps, number])
        costs = tuple(1e-3 * (1 + number % 97) + 1e-7 * repeat for repeat in range(10))
        result = (
            MeasureResult((), MeasureError.RUN_TIMEOUT, "it took longer than 10 s", 12.5, 1.8e9 + number)
            if number % 7 == 3
            else MeasureResult(costs, MeasureError.OK, "", 1.25, 1.8e9 + number, 1e-6)
        )
        workload = f"{number % WORKLOADS:032x}"
        yield MeasureRecord(workload, TARGET, HOST, trace.kind, trace.text, (Measurement(result),))


def time_best(name: str, goal: float | None, function: Callable[[], object], repeats: int = 1) -> Timing:
    """Time a function several times, and return the best run."""
    times = []
    for _ in range(repeats):
        start, cpu = time.perf_counter(), time.process_time()
        function()
        times.append((time.perf_counter() - start, time.process_time() - cpu))
    return Timing(name, *min(times), goal)


def measure(url_or_path: str | Path, folder: Path, count: int) -> list[Timing]:
    """Fill an empty database, query it, and return the timings."""
    committed = list(records(COMMITS))
    candidates = [(record, record.candidate) for record in committed[:LOOKUPS]]
    with Database.open(url_or_path) as database:

        def commit() -> None:
            for record in committed:
                database.commit(record)

        def look_up() -> None:
            for record, candidate in candidates:
                assert database.find(record.workload, TARGET, candidate, HOST) is not None

        def load_best() -> None:
            assert len(database.best_per_workload(HOST)) == WORKLOADS

        def load_tops() -> None:
            for number in range(LOOKUPS):
                assert database.top_k(f"{number % WORKLOADS:032x}", TARGET, HOST, 10)

        lines = folder / "measurements.jsonl"
        return [
            time_best(f"{COMMITS:,} commits, one transaction each", COMMITS / 1000, commit),
            time_best(f"{LOOKUPS:,} lookups", 0.2, look_up, REPEATS),
            time_best(
                f"{count:,} records in one transaction", None, lambda: database.commit_many(records(count))
            ),
            time_best(f"best per workload of {count:,} records", 2.0, load_best, REPEATS),
            time_best(f"{LOOKUPS:,} times the ten best of a workload", None, load_tops),
            time_best("export as JSON lines", None, lambda: database.export_lines(lines)),
            time_best("import of the same, nothing new", None, lambda: database.import_lines(lines)),
        ]


@contextlib.contextmanager
def start_postgresql() -> Iterator[str]:
    """Start a server, and yield the URL of an empty database in it."""
    folder = programs()
    if folder is None:
        sys.exit("PostgreSQL is not installed: no initdb on PATH or in /usr/lib/postgresql")
    with running_server(folder, durable=True) as server:
        server.run("CREATE DATABASE measurements")
        yield server.url("measurements")


def main() -> None:
    parser = argparse.ArgumentParser(description="Time of commits, lookups and queries of the database.")
    parser.add_argument("--json", action="store_true", help="print one JSON list")
    parser.add_argument("--records", type=int, default=100_000, help="size of the database (default 100,000)")
    databases = parser.add_mutually_exclusive_group()
    databases.add_argument("--place", help="an empty database; a new SQLite file if not given")
    databases.add_argument("--postgresql", action="store_true", help="start a PostgreSQL server for it")
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as name, contextlib.ExitStack() as stack:
        folder = Path(name)
        url = stack.enter_context(start_postgresql()) if options.postgresql else options.place
        timings = measure(url or folder / "measurements.db", folder, max(options.records, COMMITS))
    if url:  # the goals hold for an SQLite file only
        timings = [replace(timing, goal=None) for timing in timings]
    if options.json:
        print(json.dumps([asdict(timing) for timing in timings], indent=2))
    else:
        print("\n".join(timing.line() for timing in timings))


if __name__ == "__main__":
    main()
