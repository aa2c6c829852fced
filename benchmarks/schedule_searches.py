"""Searches for schedules by native and by apache-tvm, kept in a file as they end."""

from __future__ import annotations

import json
import sys
from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass
from functools import partial
from pathlib import Path
from typing import Any

from benchmarks.native_search import SearchLog, SearchSettings, searched
from benchmarks.search_workloads import SearchWorkload
from benchmarks.tvm_environment import TvmEnvironment

from intarsia.native.dag import ComputeDAG

NATIVE, WITH_DEFAULT, TVM = "native", "native, default first", "apache-tvm"
REPEAT_MS = 10


@dataclass(frozen=True)
class Search:
    """A search that has ended.

    Attributes:
        by: Who searched.
        task: What.
        seed: Of the search.
        trials: How many were asked for.
        threads: That kernels run on.
        model: The learned model, of native.
        log: What it did.
    """

    by: str
    task: str
    seed: int
    trials: int
    threads: int
    model: str
    log: SearchLog


@dataclass(frozen=True)
class KeptSearches:
    """A file of searches that have ended, a line each."""

    path: Path

    def found(
        self, by: str, task: str, seed: int, settings: SearchSettings, search: Callable[[], SearchLog]
    ) -> Search:
        """A search that was done before, or is done now and kept.

        Args:
            by: Who searches.
            task: What.
            seed: Of the search.
            settings: How.
            search: Does it.
        """
        wanted = by, task, seed, settings.trials, settings.threads, settings.model if by != TVM else ""
        lines = self.path.read_text("utf-8").splitlines() if self.path.exists() else []
        for line in lines:
            data = json.loads(line)
            if tuple(data[name] for name in ("by", "task", "seed", "trials", "threads", "model")) == wanted:
                return Search(*wanted, SearchLog.of_json(data["log"]))
        made = Search(*wanted, search())
        with self.path.open("a", encoding="utf-8") as file:
            file.write(json.dumps(asdict(made)) + "\n")
        found = f"{1e6 * made.log.best:.0f} us, {len(made.log.points)} trials in {made.log.whole:.0f} s"
        print(f"{task}, seed {seed}, {by}: {found}", file=sys.stderr, flush=True)
        return made


def native_search(
    dag: ComputeDAG, task: str, settings: SearchSettings, seed: int, kept: KeptSearches
) -> Search:
    """A search by native."""
    by = WITH_DEFAULT if settings.has_default else NATIVE
    return kept.found(by, task, seed, settings, lambda: searched(dag, settings, seed))


def tvm_search(
    environment: TvmEnvironment, workload: SearchWorkload, settings: SearchSettings, seed: int, folder: Path
) -> SearchLog:
    """Search by MetaSchedule."""
    options = {"trials": settings.trials, "seed": seed, "threads": settings.threads, "round": settings.round}
    given = [f"--{name}={value}" for name, value in {**options, "repeat-ms": REPEAT_MS}.items()]
    points: list[tuple[float, float | None]] = []
    told: dict[str, Any] = {}
    for line in environment.search(workload.json, folder, given):
        if "trial" in line:
            points.append((float(line["seconds"]), line["cost"]))
        told.update(line)
    whole, build, run, profile = (told[key] for key in ("whole", "build", "run", "profile"))
    asked = ("MeasureCallback/UpdateCostModel", "EvoSearch/Evolve/PredictNormalizedScore")
    model = sum(profile.get(name, 0.0) for name in asked)
    found = sum(each for name, each in profile.items() if name.startswith("EvoSearch"))
    failed = {"any": sum(cost is None for _, cost in points)}
    return SearchLog(
        tuple(points), whole, build, run, found - profile.get(asked[1], 0.0), model, failed, str(folder)
    )


def searches(
    chosen: Sequence[SearchWorkload],
    seeds: int,
    own: Sequence[SearchSettings],
    environment: TvmEnvironment | None,
    folder: Path,
) -> list[Search]:
    """All searches that were asked for, done now or before: everyone takes turns, seed by seed.

    Args:
        chosen: What is searched.
        seeds: How often, each from another seed.
        own: How native searches, once each; trials and threads of the first are those of apache-tvm.
        environment: Has apache-tvm; None to leave it out.
        folder: Where searches are kept.
    """
    kept, done = KeptSearches(folder / "searches.jsonl"), []
    for seed in range(seeds):
        for each in chosen:
            done += [native_search(each.dag(), each.name, settings, seed, kept) for settings in own]
            if environment is not None:
                place = folder / f"tvm-{each.name}-{seed}-{own[0].trials}"
                search = partial(tvm_search, environment, each, own[0], seed, place)
                done.append(kept.found(TVM, each.name, seed, own[0], search))
    return done
