"""The database of measurements: commits per second, lookups, and the best of every workload.

    python benchmarks/database.py [--json] [--records 100000] [--postgresql | --place postgresql://...]

Goals, for an SQLite file: 10,000 records committed one by one at over 1,000 per second, 1,000 lookups in
0.2 s, the best per workload of 100,000 records in 2 s. Beside the time that passed stands the CPU time of
this process: on a busy machine the first is about what else runs there. Lookups and loading are the best of
several, commits are timed once. A database given as --place must be empty; it is left full. --postgresql
starts a server on this machine for as long as it takes; it writes to the disk at each commit, as servers do.
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
TARGET, HOST = "cpu -toolchain=native", "0123456789abcdef0123456789abcdef"
REPEATS = 3


@dataclass(frozen=True, slots=True)
class Timing:
    """One line of the report.

    Attributes:
        name: What was measured.
        seconds: That passed.
        cpu_seconds: That this process computed.
        goal: At most so many seconds; None where it is for information.
    """

    name: str
    seconds: float
    cpu_seconds: float
    goal: float | None

    def line(self) -> str:
        """The measurement as people read it."""
        verdict = ""
        if self.goal is not None:
            verdict = f"  (goal {self.goal:g} s: {'missed' if self.seconds > self.goal else 'met'})"
        return f"{self.name:<52} {self.seconds:8.3f} s, CPU {self.cpu_seconds:8.3f} s{verdict}"


def records(count: int) -> Iterator[MeasureRecord]:
    """Records as schedule search makes them: a trace of 30 decisions, ten costs; a seventh are failures."""
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


def timed(name: str, goal: float | None, function: Callable[[], object], repeats: int = 1) -> Timing:
    """The best of several runs."""
    times = []
    for _ in range(repeats):
        start, cpu = time.perf_counter(), time.process_time()
        function()
        times.append((time.perf_counter() - start, time.process_time() - cpu))
    return Timing(name, *min(times), goal)


def measure(place: str | Path, folder: Path, count: int) -> list[Timing]:
    """Fill the database and ask it."""
    some = list(records(COMMITS))
    candidates = [(record, record.candidate) for record in some[:LOOKUPS]]
    with Database.open(place) as database:

        def commit() -> None:
            for record in some:
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
            timed(f"{COMMITS:,} commits, one transaction each", COMMITS / 1000, commit),
            timed(f"{LOOKUPS:,} lookups", 0.2, look_up, REPEATS),
            timed(
                f"{count:,} records in one transaction", None, lambda: database.commit_many(records(count))
            ),
            timed(f"best per workload of {count:,} records", 2.0, load_best, REPEATS),
            timed(f"{LOOKUPS:,} times the ten best of a workload", None, load_tops),
            timed("export as JSON lines", None, lambda: database.export_lines(lines)),
            timed("import of the same, nothing new", None, lambda: database.import_lines(lines)),
        ]


@contextlib.contextmanager
def postgresql() -> Iterator[str]:
    """The URL of an empty database of a server of its own."""
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
    places = parser.add_mutually_exclusive_group()
    places.add_argument("--place", help="an empty database; a new SQLite file if not given")
    places.add_argument("--postgresql", action="store_true", help="start a PostgreSQL server for it")
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as name, contextlib.ExitStack() as stack:
        folder = Path(name)
        place = stack.enter_context(postgresql()) if options.postgresql else options.place
        found = measure(place or folder / "measurements.db", folder, max(options.records, COMMITS))
    if place:  # the goals are those of a file
        found = [replace(one, goal=None) for one in found]
    if options.json:
        print(json.dumps([asdict(one) for one in found], indent=2))
    else:
        print("\n".join(one.line() for one in found))


if __name__ == "__main__":
    main()
