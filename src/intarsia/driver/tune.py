"""`tune`: find the fastest right way to run a model on this machine.

Imports stand inside the functions: `import intarsia` binds `tune` without loading the compiler.
"""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Mapping, Sequence
from contextlib import closing
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from pathlib import Path

    import numpy.typing as npt
    from onnx import ModelProto

    from intarsia.driver.entrant import Entrant
    from intarsia.driver.records import Progress
    from intarsia.driver.result import TuneResult
    from intarsia.ir import IRModule
    from intarsia.measure.database import Database
    from intarsia.measure.testbed import Testbed
    from intarsia.runtime.executable import Executable
    from intarsia.target import Host, Target

SEARCH_SHARE = 0.6
"""Share of the budget for the search of partitions; the rest is for the race of the best."""


def tune(
    model: str | Path | bytes | ModelProto | IRModule,
    *,
    budget: str | float = "60s",
    trials: int | None = None,
    targets: Sequence[Target | str] | None = None,
    shapes: Mapping[str, Sequence[int | str]] | None = None,
    inputs: Mapping[str, npt.NDArray[Any]] | None = None,
    seed: int = 0,
    threads: int | None = None,
    database: Database | None = None,
    cluster: str | None = None,
    partitions: bool = True,
    plan: Path | None = None,
    locked: bool = False,
    on_progress: Callable[[Progress], object] | None = None,
    on_note: Callable[[str], None] | None = None,
    should_stop: Callable[[], bool] | None = None,
) -> TuneResult:
    """Find the fastest right way to run a model: one toolchain for all of it, or several for parts of it.

    Candidates are built and run in processes of their own: one that crashes, hangs or takes all memory
    loses only itself.

    Args:
        model: What `from_onnx` takes, or a module.
        budget: Time for searching partitions and for the race, in seconds or as text ("90s", "5m").
        trials: Candidates that are measured at most; all if not given.
        targets: Candidates; every registered toolchain if not given.
        shapes: Shapes of inputs to fix, by name.
        inputs: Arrays to verify and measure with, by name; seeded random ones for the others.
        seed: Of random inputs and of the order of measurement.
        threads: Threads of each candidate; all usable cores if not given.
        database: Where measurements are looked up and kept.
        cluster: Address of a Dask scheduler whose workers measure, such as "tcp://10.0.0.1:8786".
        partitions: Whether parts of the model may be given to different toolchains.
        plan: A file of what an earlier run has found. If it exists, it takes part, and the search goes on
            from it; the winner is written to it.
        locked: Build and verify the plan as it is, and measure nothing else: no search, no race, no database.
        on_progress: Told what is being done.
        on_note: Told on the side, when another process keeps this machine busy for example.
        should_stop: Asked again and again; a yes ends the run with what has been measured.

    Returns:
        The winner and all candidates. A candidate that is wrong, refuses the model or fails cannot win.

    Raises:
        UsageError: Bad budget, targets, shapes or inputs; a plan that is missing, damaged or for another
            program; a choice in a locked run.
        ModelError: The model is invalid or unsupported, or no candidate computes it right.
        DatabaseError: A measurement cannot be kept.
    """
    from intarsia.driver.baselines import baseline_targets, baselines, engines
    from intarsia.driver.budget import parse_budget
    from intarsia.driver.contest import Contest
    from intarsia.driver.explain_run import explain_run, kernel_seconds
    from intarsia.driver.partition import LEAST_SECONDS, enter_partitions
    from intarsia.driver.plans import kept_plan, plan_entrant, refuse_choices, winning_plan
    from intarsia.driver.records import Progress, Stage
    from intarsia.driver.result import TuneResult
    from intarsia.frontend.onnx import from_onnx
    from intarsia.ir import IRModule
    from intarsia.measure.measure_input import Workload
    from intarsia.measure.measurer import MeasureBudget, Measurer
    from intarsia.measure.work import random_operators
    from intarsia.runtime.self_test import SelfTest
    from intarsia.toolchain.this_host import this_host

    start = time.perf_counter()
    seconds = parse_budget(budget)
    if locked:
        refuse_choices(plan, targets=targets, threads=threads, trials=trials)
    chosen = () if locked else baseline_targets(targets, threads)
    report = on_progress or _silent
    report(Progress(Stage.IMPORT))
    module = model if isinstance(model, IRModule) else from_onnx(model, shapes)
    name = str(module.attrs.get("name", "model"))
    workload = Workload(module, name, dict(inputs or {}))
    host = this_host()
    kept = kept_plan(plan, module, host, on_note, must_exist=locked)
    with closing(_testbed(cluster, host, seed, on_note)) as testbed:
        report(Progress(Stage.REFERENCE))
        folder = testbed.prepare(workload)
        stop = should_stop or _never
        drawn = random_operators(module)
        contest = Contest(Measurer(testbed, None if locked else database), report, stop, drawn)
        # Each toolchain alone is measured whatever the time: the result is never worse than the best of them.
        first = baselines(workload, chosen)
        planned = None if kept is None else plan_entrant(workload, kept, first)
        first += [planned] if planned is not None else []
        contest.enter(first, MeasureBudget(trials=trials or math.inf))
        search_seconds = seconds * SEARCH_SHARE if partitions and not locked else 0.0
        able = engines(chosen)
        searched = None
        if len(able) > 1 and search_seconds >= LEAST_SECONDS and not stop() and trials is None and not drawn:
            seeds = [kept.placement] if kept is not None and kept.whole is None else []
            searched = enter_partitions(contest, workload, able, search_seconds, seed, seeds)
        winner = contest.decide(seconds - search_seconds, seed)
        executable, gate, arrays = _executable(testbed, winner), folder.gate(), folder.inputs()
        records = contest.records()
        timing = next(record.timing for record in records if record.chosen)
        found = winning_plan(winner, name, host, timing.median if timing else None, searched)
        if plan is not None and not locked:
            found.write(plan)
        given = [arrays[item.name] for item in executable.inputs]
        times = kernel_seconds(executable, given, timing.median if timing else math.inf)
        return TuneResult(
            model=name,
            executable=executable,
            candidates=records,
            reference=gate.reference,
            self_test=SelfTest(
                tuple(arrays[item.name].copy() for item in executable.inputs),
                tuple(array.copy() for array in gate.expected),
            ),
            host=host,
            seconds=time.perf_counter() - start,
            seed=seed,
            stopped=stop(),
            plan=found,
            explanation=explain_run(winner, contest.entrants, records, host, searched, times),
        )


def _testbed(cluster: str | None, host: Host, seed: int, on_note: Callable[[str], None] | None) -> Testbed:
    from intarsia.measure.testbed import LocalTestbed

    if cluster is None:
        return LocalTestbed.open(host, seed=seed, on_wait=on_note)
    from intarsia.measure.testbed.dask_cluster import connect

    return connect(cluster, host, seed=seed, on_note=on_note)


def _executable(testbed: Testbed, winner: Entrant) -> Executable:
    """The winner, in this process: as it was built for the race, or built here."""
    from intarsia.build import build
    from intarsia.measure.candidate_kind import instantiate
    from intarsia.runtime.artifact_load import load

    artifact = testbed.artifact(winner.input)
    if artifact is not None:
        return load(artifact)
    measured = winner.input
    return build(instantiate(measured.workload.module, measured.target, measured.candidate))


def _silent(_: Progress) -> None:
    return None


def _never() -> bool:
    return False
