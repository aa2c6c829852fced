"""Run schedule searches by native and by apache-tvm, and save each in a file when it ends."""

from __future__ import annotations

import json
import sys
from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass
from functools import partial
from pathlib import Path
from typing import Any

from benchmarks.native_search import SearchLog, SearchSettings, search_schedule
from benchmarks.search_workloads import SearchWorkload
from benchmarks.tvm_environment import TvmEnvironment

from intarsia.native.dag import ComputeDAG

NATIVE, WITH_DEFAULT, TVM = "native", "native, default first", "apache-tvm"
REPEAT_MS = 10
"""Milliseconds for which TVM runs a candidate; native's measurer does the same."""


@dataclass(frozen=True)
class Search:
    """A finished search.

    Attributes:
        by: Searcher: NATIVE, WITH_DEFAULT or TVM.
        task: Name of the task.
        seed: Random seed.
        trials: Largest number of trials.
        threads: Number of threads that kernels run on.
        model: Name of native's cost model; "" for TVM.
        log: Log of the search.
    """

    by: str
    task: str
    seed: int
    trials: int
    threads: int
    model: str
    log: SearchLog


@dataclass(frozen=True)
class SearchFile:
    """A file of finished searches, one a line."""

    path: Path

    def load_or_run(
        self, by: str, task: str, seed: int, settings: SearchSettings, search: Callable[[], SearchLog]
    ) -> Search:
        """Return a search from the file, or run it and append it to the file.

        Args:
            by: Searcher: NATIVE, WITH_DEFAULT or TVM.
            task: Name of the task.
            seed: Random seed.
            settings: Settings of the search.
            search: Function that runs the search.
        """
        key = by, task, seed, settings.trials, settings.threads, settings.model if by != TVM else ""
        lines = self.path.read_text("utf-8").splitlines() if self.path.exists() else []
        for line in lines:
            data = json.loads(line)
            if tuple(data[name] for name in ("by", "task", "seed", "trials", "threads", "model")) == key:
                return Search(*key, SearchLog.of_json(data["log"]))
        finished = Search(*key, search())
        with self.path.open("a", encoding="utf-8") as file:
            file.write(json.dumps(asdict(finished)) + "\n")
        log = finished.log
        summary = f"{1e6 * log.best:.0f} us, {len(log.points)} trials in {log.whole:.0f} s"
        print(f"{task}, seed {seed}, {by}: {summary}", file=sys.stderr, flush=True)
        return finished


def run_native_search(
    dag: ComputeDAG, task: str, settings: SearchSettings, seed: int, file: SearchFile
) -> Search:
    """Search with native, unless the file has the search."""
    by = WITH_DEFAULT if settings.has_default else NATIVE
    return file.load_or_run(by, task, seed, settings, lambda: search_schedule(dag, settings, seed))


def run_tvm_search(
    environment: TvmEnvironment, workload: SearchWorkload, settings: SearchSettings, seed: int, folder: Path
) -> SearchLog:
    """Search with MetaSchedule, and return the log."""
    options = {"trials": settings.trials, "seed": seed, "threads": settings.threads, "round": settings.round}
    arguments = [f"--{name}={value}" for name, value in {**options, "repeat-ms": REPEAT_MS}.items()]
    points: list[tuple[float, float | None]] = []
    facts: dict[str, Any] = {}
    for line in environment.search(workload.json, folder, arguments):
        if "trial" in line:
            points.append((float(line["seconds"]), line["cost"]))
        facts.update(line)
    whole, build, run, profile = (facts[key] for key in ("whole", "build", "run", "profile"))
    model_timers = ("MeasureCallback/UpdateCostModel", "EvoSearch/Evolve/PredictNormalizedScore")
    model = sum(profile.get(name, 0.0) for name in model_timers)
    evolution = sum(seconds for name, seconds in profile.items() if name.startswith("EvoSearch"))
    failed = {"any": sum(cost is None for _, cost in points)}
    return SearchLog(
        tuple(points),
        whole,
        build,
        run,
        evolution - profile.get(model_timers[1], 0.0),
        model,
        failed,
        str(folder),
    )


def run_searches(
    chosen: Sequence[SearchWorkload],
    seeds: int,
    native_settings: Sequence[SearchSettings],
    environment: TvmEnvironment | None,
    folder: Path,
) -> list[Search]:
    """Return the searches of all tasks and seeds, from the file or run now; the searchers alternate.

    Args:
        chosen: Tasks to search.
        seeds: Number of searches of each task, with seeds from 0.
        native_settings: Settings of native's searches. TVM uses the trials and threads of the first ones.
        environment: Environment that has apache-tvm; None to leave it out.
        folder: Folder of the file and of TVM's libraries.
    """
    file, done = SearchFile(folder / "searches.jsonl"), []
    for seed in range(seeds):
        for task in chosen:
            done += [
                run_native_search(task.dag(), task.name, settings, seed, file) for settings in native_settings
            ]
            if environment is not None:
                tvm_folder = folder / f"tvm-{task.name}-{seed}-{native_settings[0].trials}"
                search = partial(run_tvm_search, environment, task, native_settings[0], seed, tvm_folder)
                done.append(file.load_or_run(TVM, task.name, seed, native_settings[0], search))
    return done
