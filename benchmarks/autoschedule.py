"""Compare the schedule search with apache-tvm's: candidates a second, and time to good schedules.

Usage: python -m benchmarks.autoschedule [--tables throughput search] [--tasks NAME ...] [--seeds 3]
       [--trials 1000] [--against tvm] [--no-default] [--default-seed] [--folder F] [--json] [--markdown]

The first table lists the distinct convolutions of ResNet-50, `--throughput-trials` candidates each: how many
are generated, built, verified and measured in a second, and where the time goes. The tasks share one pool of
workers, as the kernels of a model do; the time of the first one includes starting the workers. The final
re-measurement of the best candidates has a column of its own.

The second table lists single tasks, each searched with several seeds, alternating between native and
MetaSchedule of the `apache-tvm` wheel: trials a second, and trials and seconds until a schedule reaches 90
and 95 % of the speed of the best one that any of these searches measured. Both declare the same tensors,
build in two processes, and run a candidate for 10 ms; both clocks start after all imports and before the
workers start. Native also verifies each result against the reference, and stops measuring hopeless candidates
early. Each search is saved in `--folder` when it ends: the same command resumes after an interruption.

The last table times the winners again, interleaved: native's in this process, TVM's in a process that has
loaded them as shared libraries, each for the same window of time while the other process is idle.

Without `--default-seed` native searches the sketches of Ansor only, as MetaSchedule does. With it, the
default schedule is the first candidate, and the micro-kernels of native's own rules are searched too.
With both `--default-seed` and `--no-default` native is searched in both ways; the best cost is then
that of the searches without the default schedule, and so is the first table.
"""

from __future__ import annotations

import argparse
import json
import math
import statistics
import tempfile
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

from benchmarks.native_convolutions import CASES, dag_of
from benchmarks.native_kernels import format_table
from benchmarks.native_search import MODELS, SearchLog, SearchSettings, search_schedule
from benchmarks.schedule_searches import TVM, WITH_DEFAULT, Search, run_searches
from benchmarks.search_winners import time_winners
from benchmarks.search_workloads import SearchWorkload, workloads
from benchmarks.tvm_environment import TvmEnvironment

from intarsia.autoschedule.measuring.pool_measurer import PoolMeasurer
from intarsia.native.machine.isa import Isa

TASKS = ("convolution", "dense", "depthwise")
SHARES = (0.90, 0.95)
Rows = list[tuple[str, ...]]
THROUGHPUT_HEADER = (
    *("task", "candidates", "failed", "s", "a second", "build s", "measure s", "search s", "model s"),
    *("race s", "built and measured a second", "best, GFLOP/s"),
)
SEARCH_HEADER = (
    *("task", "seed", "by", "trials", *THROUGHPUT_HEADER[2:-1]),
    *("best us", "90 %: trials", "s", "95 %: trials", "s"),
)
MEDIANS_HEADER = (
    *("task", "by", "seeds", "trials a second"),
    *("90 %: trials", "s", "95 %: trials", "s"),
)
WINNERS_HEADER = ("task", "by", "seed", "us when found", "us, interleaved", "of peak", "best tvm / this")


def measure_throughput(settings: SearchSettings, trials: int, only: str) -> Rows:
    """Search the convolutions, and return the rows of the first table; the last row sums them up."""
    logs, rows = [], []
    chosen = [case for case in CASES if case.network == "ResNet-50" and case.operator == "Conv"]
    with PoolMeasurer.open(settings.isa, workers=settings.threads) as workers:
        for case in (case for case in chosen if only in case.name):
            log = search_schedule(dag_of(case, settings.isa), replace(settings, trials=trials), 0, workers)
            logs.append(log)
            rows.append((case.name, *_costs(log), f"{case.operations / log.best / 1e9:.0f}"))
            print(" | ".join(rows[-1]), flush=True)
    parts = ("whole", "build", "measure", "search", "model", "race")
    sums = {part: sum(getattr(log, part) for log in logs) for part in parts}
    failed = {"any": sum(sum(log.failed.values()) for log in logs)}
    points = tuple(point for log in logs for point in log.points)
    return [*rows, ("all", *_costs(SearchLog(points, **sums, failed=failed, winner="")), "")]


def _costs(log: SearchLog) -> tuple[str, ...]:
    count, parts = len(log.points), (log.build, log.measure, log.search, log.model, log.race)
    seconds = (f"{part:.1f}" for part in parts)
    failed, pace = sum(log.failed.values()), count / (log.build + log.measure)
    whole = f"{log.whole:.1f}", f"{count / log.whole:.1f}"
    return (str(count), str(failed), *whole, *seconds, f"{pace:.1f}")


def lowest_costs(done: Sequence[Search]) -> dict[str, float]:
    """Return the lowest cost of each task.

    Searches that begin with the default schedule count only for tasks that have no other searches.
    """
    lowest = {}
    for task in {search.task for search in done}:
        of_task = [search for search in done if search.task == task]
        without_default = [search for search in of_task if search.by != WITH_DEFAULT]
        lowest[task] = min(search.log.best for search in without_default or of_task)
    return lowest


def search_rows(done: Sequence[Search]) -> Rows:
    """Return the rows of the second table."""
    best, rows = lowest_costs(done), []
    for search in sorted(done, key=lambda item: (item.task, item.by, item.seed)):
        cells = [
            cell for share in SHARES for cell in _medians_to_reach([search.log], best[search.task] / share)
        ]
        cost = f"{1e6 * search.log.best:.0f}"
        rows.append((search.task, str(search.seed), search.by, *_costs(search.log), cost, *cells))
    return rows


def median_rows(done: Sequence[Search]) -> Rows:
    """Return a row of medians over seeds for each task and searcher."""
    best, rows = lowest_costs(done), []
    for task, by in sorted({(search.task, search.by) for search in done}):
        logs = [search.log for search in done if (search.task, search.by) == (task, by)]
        speed = sum(len(log.points) for log in logs) / sum(log.whole for log in logs)
        cells = [cell for share in SHARES for cell in _medians_to_reach(logs, best[task] / share)]
        rows.append((task, by, str(len(logs)), f"{speed:.1f}", *cells))
    return rows


def _medians_to_reach(logs: Sequence[SearchLog], cost: float) -> tuple[str, ...]:
    """Return the median trials and seconds until a cost is reached, as text; "-" if it mostly is not."""
    reached = [log.reached(cost) or (math.inf, math.inf) for log in logs]
    medians = (statistics.median(values) for values in zip(*reached, strict=True))
    return tuple("-" if math.isinf(value) else f"{value:.0f}" for value in medians)


def time_winner_rows(
    done: Sequence[Search],
    chosen: Sequence[SearchWorkload],
    settings: SearchSettings,
    environment: TvmEnvironment | None,
    rounds: int,
) -> Rows:
    """Time the winners of all searches interleaved, and return the rows of the third table."""
    rows: Rows = []
    for workload in chosen:
        with_winner = [search for search in done if search.task == workload.name and search.log.winner]
        times, peak = time_winners(with_winner, workload, settings, environment, rounds)
        others = [seconds for search, seconds in zip(with_winner, times, strict=True) if search.by == TVM]
        for search, seconds in zip(with_winner, times, strict=True):
            share = f"{100 * workload.operations / seconds / peak:.0f} %"
            ratio = f"{min(others) / seconds:.2f}" if others else ""
            measured = f"{1e6 * search.log.best:.0f}"
            rows.append(
                (workload.name, search.by, str(search.seed), measured, f"{1e6 * seconds:.0f}", share, ratio)
            )
    return rows


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument(
        "--tables", nargs="+", choices=("throughput", "search"), default=["throughput", "search"]
    )
    parser.add_argument(
        "--tasks", nargs="+", default=list(TASKS), choices=[workload.name for workload in workloads(16)]
    )
    parser.add_argument("--seeds", type=int, default=3)
    parser.add_argument("--trials", type=int, default=1000)
    parser.add_argument("--throughput-trials", type=int, default=64)
    parser.add_argument(
        "--only", default="", help="convolutions of the first table that have this text in their names"
    )
    parser.add_argument("--against", choices=("tvm",))
    parser.add_argument(
        "--no-default",
        action="store_true",
        help="search sketches only, without the default schedule (the default)",
    )
    parser.add_argument("--default-seed", action="store_true", help="native begins with the default schedule")
    parser.add_argument("--model", choices=tuple(MODELS), default="trees")
    parser.add_argument("--threads", type=int, default=2)
    parser.add_argument("--rounds", type=int, default=20, help="turns of each winner")
    parser.add_argument("--folder", type=Path, default=Path(tempfile.gettempdir()) / "intarsia-autoschedule")
    parser.add_argument("--json", action="store_true")
    parser.add_argument("--markdown", action="store_true")
    given = parser.parse_args()
    given.folder.mkdir(parents=True, exist_ok=True)
    isa = Isa.host()
    settings = SearchSettings(isa, given.threads, given.trials, has_default=False, model=given.model)
    with_default = replace(settings, has_default=True)
    native_settings = [settings] if given.no_default or not given.default_seed else []
    native_settings += [with_default] if given.default_seed else []
    tables: dict[str, tuple[tuple[str, ...], Rows]] = {}
    if "throughput" in given.tables:
        rows = measure_throughput(native_settings[0], given.throughput_trials, given.only)
        tables["throughput"] = THROUGHPUT_HEADER, rows
    if "search" in given.tables:
        environment = TvmEnvironment.install(given.folder / "tvm") if given.against else None
        chosen = [task for task in workloads(isa.vector_bytes // 4) if task.name in given.tasks]
        done = run_searches(chosen, given.seeds, native_settings, environment, given.folder)
        tables["search"] = SEARCH_HEADER, search_rows(done)
        tables["medians"] = MEDIANS_HEADER, median_rows(done)
        tables["winners"] = (
            WINNERS_HEADER,
            time_winner_rows(done, chosen, native_settings[0], environment, given.rounds),
        )
    if given.json:
        print(json.dumps({name: [list(header), *map(list, rows)] for name, (header, rows) in tables.items()}))
        return
    print(f"{given.threads} threads")
    for header, rows in tables.values():
        print(f"\n{format_table(header, rows, given.markdown)}")


if __name__ == "__main__":
    main()
