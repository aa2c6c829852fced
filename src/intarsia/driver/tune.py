"""`tune`: find the fastest right way to run a model on this machine.

Imports stand inside the functions: `import intarsia` binds `tune` without loading the compiler.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping, Sequence
from contextlib import closing
from dataclasses import replace
from typing import TYPE_CHECKING, Any, Final

from intarsia.support.callbacks import never, silent

if TYPE_CHECKING:
    from pathlib import Path

    import numpy.typing as npt
    from onnx import ModelProto

    from intarsia.driver.records import Progress
    from intarsia.driver.result import TuneResult
    from intarsia.driver.schedule_records import ScheduleRequest
    from intarsia.ir import IRModule
    from intarsia.measure.database import Database
    from intarsia.measure.testbed import Testbed, TestbedLimits
    from intarsia.target import Host, Target
    from intarsia.transform import Pass

JUDGE_SHARE: Final = 0.1
"""Share of the budget that onnx.reference may take as a judge for one input set, by estimate."""

SCHEDULE_SHARE: Final = 0.5
"""Share of the budget for searching schedules, where that is asked for."""


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
    exact: bool = False,
    tolerance: float | None = None,
    pipeline: str | None = None,
    passes: Sequence[Pass | str] | None = None,
    schedules: bool = False,
    schedule_trials: int | None = None,
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
        exact: Whether sums are computed as engines do, without algorithms that take fewer operations.
        tolerance: The largest error of an output allowed, as a fraction of its largest value, in place of
            what rounding explains; narrower types and less accurate algorithms then take part.
        pipeline: Name of the sequence of passes that decide on the program by measuring; "default_tuning" if
            neither this nor `passes` is given.
        passes: The passes themselves, or their names, in its place; none for no such decisions.
        schedules: Whether schedules of native kernels are searched first, with half of the budget. Those
            that earlier runs have found on this machine take part in any case.
        schedule_trials: Schedules that are measured at most, those of earlier runs counted.
        plan: A file of what an earlier run has found. If it exists, it takes part, and the search goes on
            from it; the winner is written to it.
        locked: Build and verify the plan as it is, and measure nothing else: no search, no race, no database.
        on_progress: Told what is being done.
        on_note: Told on the side, when another process keeps this machine busy for example.
        should_stop: Asked again and again; a yes ends the run with what has been measured.

    Returns:
        The winner and all candidates. A candidate that is wrong, refuses the model or fails cannot win.

    Raises:
        UsageError: Bad budget, tolerance, targets, shapes or inputs; targets or passes that are not exact
            where results are to be; a plan that is missing, damaged or for another
            program; a choice in a locked run.
        ModelError: The model is invalid or unsupported, or no candidate computes it right.
        DatabaseError: A measurement cannot be kept.
    """
    from intarsia.collage.gather_specs import gather_partition_specs
    from intarsia.driver.accuracy import Accuracy
    from intarsia.driver.baselines import baseline_targets, engines
    from intarsia.driver.budget import parse_budget
    from intarsia.driver.plans import kept_plan, refuse_choices
    from intarsia.driver.records import Progress, Stage
    from intarsia.driver.schedule_history import ScheduleHistory
    from intarsia.driver.schedule_records import BookedTargets
    from intarsia.driver.tune_run import TuneRun
    from intarsia.driver.tuning_pipelines import deciding_passes
    from intarsia.frontend.onnx import from_onnx, import_notes
    from intarsia.ir import IRModule
    from intarsia.measure.measure_input import Workload
    from intarsia.measure.testbed import TestbedLimits
    from intarsia.toolchain.this_host import this_host

    start = time.perf_counter()
    seconds = parse_budget(budget)
    if locked:
        asked = schedules or schedule_trials is not None or None
        choices = {"pipeline": pipeline, "passes": passes, "schedules": asked, "exact": exact or None}
        refuse_choices(plan, targets=targets, threads=threads, trials=trials, **choices)
    accuracy = Accuracy(exact, tolerance)
    chosen = () if locked else accuracy.targets(baseline_targets(targets, threads))
    deciding = () if locked else deciding_passes(pipeline, passes)
    deciding = accuracy.passes(deciding, are_given=locked or passes is not None)
    gather_partition_specs(engines(chosen))  # an unknown partition rule is told before anything is measured
    report = on_progress or silent
    report(Progress(Stage.IMPORT))
    module = accuracy.program(model if isinstance(model, IRModule) else from_onnx(model, shapes))
    for note in import_notes(module):
        (on_note or silent)(note)
    name = str(module.attrs.get("name", "model"))
    host = this_host()
    kept = kept_plan(plan, module, host, on_note, must_exist=locked)
    request = (
        _request(seconds, schedule_trials, cluster) if schedules or schedule_trials is not None else None
    )
    seconds -= 0.0 if request is None else request.seconds
    candidates, rows = BookedTargets(chosen)
    is_known = not ScheduleHistory(None if cluster or locked else database, host).is_empty
    if request is not None or is_known:
        from intarsia.driver.booked_targets import BookedRun

        tell, stop = on_note or silent, should_stop or never
        booking = BookedRun(module, host, database, seed, report, tell, stop)
        candidates, rows = booking.booked(chosen, request)
    limits = TestbedLimits.of_budget(seconds)
    with closing(_testbed(cluster, host, limits, seed, on_note)) as testbed:
        run = TuneRun(
            workload=Workload(module, name, dict(inputs or {}), judge_seconds=seconds * JUDGE_SHARE),
            testbed=testbed,
            patience=limits.run_seconds,
            build_patience=limits.build_seconds,
            database=None if locked else database,
            targets=candidates,
            seconds=seconds,
            trials=trials,
            seed=seed,
            searches=partitions and not locked,
            passes=deciding,
            plan=kept,
            report=report,
            should_stop=should_stop or never,
        )
        result = replace(run.result(start), schedules=rows)
    if plan is not None and not locked:
        result.plan.write(plan)
    return result


def _request(seconds: float, trials: int | None, cluster: str | None) -> ScheduleRequest:
    """That schedules are searched, with their share of the budget."""
    from intarsia.driver.schedule_records import ScheduleRequest
    from intarsia.support.errors import UsageError

    if cluster is not None:
        raise UsageError("schedules are searched on this machine", help="leave out the cluster")
    return ScheduleRequest(seconds * SCHEDULE_SHARE, trials)


def _testbed(
    cluster: str | None,
    host: Host,
    limits: TestbedLimits,
    seed: int,
    on_note: Callable[[str], None] | None,
) -> Testbed:
    from intarsia.measure.testbed import LocalTestbed

    if cluster is None:
        return LocalTestbed.open(host, limits=limits, seed=seed, on_wait=on_note)
    from intarsia.measure.testbed.dask_cluster import connect

    return connect(cluster, host, limits=limits, seed=seed, on_note=on_note)
