"""The search for schedules: candidates a second, and how soon it finds good ones, beside apache-tvm's.

Usage: python -m benchmarks.autoschedule [--tables throughput search] [--tasks NAME ...] [--seeds 3]
       [--trials 1000] [--against tvm] [--no-default] [--default-seed] [--folder F] [--json] [--markdown]

The first table is about the different convolutions of ResNet-50, `--throughput-trials` candidates each: how
many are found, built, checked and measured in a second, and where the time goes. They share the workers, as
the kernels of a model do; the first one waits for them to start. The race of the best few is apart.

The second one is about single tasks, each searched from several seeds, native and MetaSchedule of the
`apache-tvm` wheel taking turns: trials a second, and trials and seconds until something is measured that has
90 and 95 % of the speed of the best that any of these searches finds. Both declare the same tensors, build
in two processes, and run a candidate for 10 ms; both clocks begin before workers are started and after all
is imported. Native checks each result against the reference besides, and breaks off what is hopeless.
Searches are kept in `--folder` as they end: the same command goes on where it was interrupted.

The last one times the winners once more, in turns: native ones in this process, those of TVM in one of
their own that has loaded them as shared libraries, each for the same window of time while the other is idle.

Without `--default-seed` native searches what the field's sketches can make, as MetaSchedule does; with it,
the default schedule comes first, and what native's rules can make is searched too; with `--no-default` as
well, it does both, in turns, and the best is that of the others; the first table is without then.
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
from benchmarks.native_kernels import shown
from benchmarks.native_search import MODELS, SearchLog, SearchSettings, searched
from benchmarks.schedule_searches import TVM, WITH_DEFAULT, Search, searches
from benchmarks.search_winners import in_turns
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
WINNERS_HEADER = ("task", "by", "seed", "us when found", "us in turns", "of peak", "best tvm / this")


def throughput(settings: SearchSettings, trials: int, only: str) -> Rows:
    """The lines of the first table, the last one of all convolutions together."""
    logs, rows = [], []
    chosen = [case for case in CASES if case.network == "ResNet-50" and case.operator == "Conv"]
    with PoolMeasurer.open(settings.isa, workers=settings.threads) as workers:
        for case in (case for case in chosen if only in case.name):
            log = searched(dag_of(case, settings.isa), replace(settings, trials=trials), 0, workers)
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
    seconds = (f"{each:.1f}" for each in parts)
    failed, pace = sum(log.failed.values()), count / (log.build + log.measure)
    whole = f"{log.whole:.1f}", f"{count / log.whole:.1f}"
    return (str(count), str(failed), *whole, *seconds, f"{pace:.1f}")


def bars(done: Sequence[Search]) -> dict[str, float]:
    """The least cost of each task, of searches that do not begin with the default where there are any."""
    found = {}
    for task in {each.task for each in done}:
        own = [each for each in done if each.task == task]
        found[task] = min(each.log.best for each in [e for e in own if e.by != WITH_DEFAULT] or own)
    return found


def search_rows(done: Sequence[Search]) -> Rows:
    """The lines of the second table."""
    best, rows = bars(done), []
    for each in sorted(done, key=lambda search: (search.task, search.by, search.seed)):
        cells = [cell for share in SHARES for cell in _reached([each.log], best[each.task] / share)]
        cost = f"{1e6 * each.log.best:.0f}"
        rows.append((each.task, str(each.seed), each.by, *_costs(each.log), cost, *cells))
    return rows


def median_rows(done: Sequence[Search]) -> Rows:
    """For each task and searcher, medians over seeds."""
    best, rows = bars(done), []
    for task, by in sorted({(each.task, each.by) for each in done}):
        logs = [each.log for each in done if (each.task, each.by) == (task, by)]
        speed = sum(len(log.points) for log in logs) / sum(log.whole for log in logs)
        cells = [cell for share in SHARES for cell in _reached(logs, best[task] / share)]
        rows.append((task, by, str(len(logs)), f"{speed:.1f}", *cells))
    return rows


def _reached(logs: Sequence[SearchLog], cost: float) -> tuple[str, ...]:
    """Medians of trials and seconds; a search that does not get there takes for ever."""
    found = [log.reached(cost) or (math.inf, math.inf) for log in logs]
    medians = (statistics.median(each) for each in zip(*found, strict=True))
    return tuple("-" if math.isinf(value) else f"{value:.0f}" for value in medians)


def winner_rows(
    done: Sequence[Search],
    chosen: Sequence[SearchWorkload],
    settings: SearchSettings,
    environment: TvmEnvironment | None,
    rounds: int,
) -> Rows:
    """The lines of the third table."""
    rows: Rows = []
    for workload in chosen:
        found = [each for each in done if each.task == workload.name and each.log.winner]
        times, peak = in_turns(found, workload, settings, environment, rounds)
        others = [seconds for each, seconds in zip(found, times, strict=True) if each.by == TVM]
        for each, seconds in zip(found, times, strict=True):
            share = f"{100 * workload.operations / seconds / peak:.0f} %"
            ratio = f"{min(others) / seconds:.2f}" if others else ""
            measured = f"{1e6 * each.log.best:.0f}"
            rows.append(
                (workload.name, each.by, str(each.seed), measured, f"{1e6 * seconds:.0f}", share, ratio)
            )
    return rows


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument(
        "--tables", nargs="+", choices=("throughput", "search"), default=["throughput", "search"]
    )
    parser.add_argument(
        "--tasks", nargs="+", default=list(TASKS), choices=[each.name for each in workloads(16)]
    )
    parser.add_argument("--seeds", type=int, default=3)
    parser.add_argument("--trials", type=int, default=1000)
    parser.add_argument("--throughput-trials", type=int, default=64)
    parser.add_argument("--only", default="", help="convolutions of the first table whose name has this text")
    parser.add_argument("--against", choices=("tvm",))
    parser.add_argument("--no-default", action="store_true", help="native searches sketches (it does anyway)")
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
    own = [settings] if given.no_default or not given.default_seed else []
    own += [with_default] if given.default_seed else []
    tables: dict[str, tuple[tuple[str, ...], Rows]] = {}
    if "throughput" in given.tables:
        rows = throughput(own[0], given.throughput_trials, given.only)
        tables["throughput"] = THROUGHPUT_HEADER, rows
    if "search" in given.tables:
        environment = TvmEnvironment.made(given.folder / "tvm") if given.against else None
        chosen = [each for each in workloads(isa.vector_bytes // 4) if each.name in given.tasks]
        done = searches(chosen, given.seeds, own, environment, given.folder)
        tables["search"] = SEARCH_HEADER, search_rows(done)
        tables["medians"] = MEDIANS_HEADER, median_rows(done)
        tables["winners"] = WINNERS_HEADER, winner_rows(done, chosen, own[0], environment, given.rounds)
    if given.json:
        print(json.dumps({name: [list(header), *map(list, rows)] for name, (header, rows) in tables.items()}))
        return
    print(f"{given.threads} threads")
    for header, rows in tables.values():
        print(f"\n{shown(header, rows, given.markdown)}")


if __name__ == "__main__":
    main()
