"""`tune`: find the fastest correct executable of a model on this machine.

Imports stand inside the functions: `import intarsia` binds `tune` without loading the compiler.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping, Sequence
from contextlib import closing
from os import PathLike
from typing import TYPE_CHECKING, Any, Final, cast

from intarsia.driver.database_argument import opens_database
from intarsia.support.callbacks import never, silent

if TYPE_CHECKING:
    from pathlib import Path

    import numpy.typing as npt
    from onnx import ModelProto

    from intarsia.driver.dynamic_mode import DynamicMode
    from intarsia.driver.progress import Progress
    from intarsia.driver.result import TuneResult
    from intarsia.ir import IRModule
    from intarsia.measure.database import Database
    from intarsia.measure.sizes.dim_sizes import SizesArgument
    from intarsia.measure.testbed import Testbed, TestbedLimits
    from intarsia.target import Host, Target
    from intarsia.transform import Pass

JUDGE_SHARE: Final = 0.1
"""Share of the budget that onnx.reference may take to compute the reference of one input set, by estimate."""

SCHEDULE_SHARE: Final = 0.5
"""Share of the budget for tuning schedules, if requested."""


@opens_database
def tune(
    model: str | Path | bytes | ModelProto | IRModule | Any,
    example_inputs: Any = None,
    *,
    dynamic_shapes: Any = None,
    budget: str | float = "60s",
    trials: int | None = None,
    targets: Sequence[Target | str] | Target | str | None = None,
    shapes: Mapping[str, Sequence[int | str]] | None = None,
    dims: Mapping[str, SizesArgument] | None = None,
    inputs: Mapping[str, npt.NDArray[Any]] | None = None,
    seed: int = 0,
    threads: int | None = None,
    database: Database | str | PathLike[str] | None = None,
    cluster: str | None = None,
    partitions: bool = True,
    exact: bool = False,
    tolerance: float | None = None,
    pipeline: str | None = None,
    passes: Sequence[Pass | str] | None = None,
    schedules: bool | None = None,
    schedule_trials: int | None = None,
    until_proven: bool = False,
    dynamic: DynamicMode | str = "eager",
    plan: Path | None = None,
    locked: bool = False,
    on_progress: Callable[[Progress], object] | None = None,
    on_note: Callable[[str], None] | None = None,
    should_stop: Callable[[], bool] | None = None,
) -> TuneResult:
    """Find the fastest correct executable of a model: one toolchain for all of it, or several for its parts.

    Candidates are built and run in separate processes: one that crashes, hangs or exhausts the memory
    does not affect the others.

    Args:
        model: ONNX model as `from_onnx` takes it, "zoo:NAME" for a built-in one, model of PyTorch as
            `from_torch` takes it, or a program.
        example_inputs: Inputs of a model of PyTorch, as for `from_torch`; candidates are verified and
            measured on them.
        dynamic_shapes: Dynamic dimensions of a model of PyTorch, as for `from_torch`.
        budget: Wall time of the run, in seconds or as text ("90s", "5m"). Each toolchain alone is measured
            in any case; the search and the race get what is left then. With 0 nothing is searched: the model
            gets the best decisions that an earlier run with this database has found for it, or for the same
            model with other weights.
        trials: Maximum number of measured candidates; None for all.
        targets: Targets to compare, as targets, their texts or names of toolchains; None for every
            registered toolchain.
        shapes: Shapes of inputs, by name; a text in them is the name of a symbolic dimension.
        dims: Sizes of symbolic dimensions, by name, or as input[axis] where the model has no name: a number
            8, a range (1, 8) or "1..512@log", or shares of calls {16: 0.5, 128: 0.5}. The result takes every
            size of the range, and is measured and checked at several. Dimensions of which nothing is said get
            a usual range, or the sizes of `inputs`.
        inputs: Input arrays for verification and measurements, by name; others are random.
        seed: Random seed of the inputs and of the order of measurement.
        threads: Number of threads of each candidate; None for all usable cores.
        database: Database of measurements, or its file or URL; None for none.
        cluster: Address of a Dask scheduler with workers that measure, such as "tcp://10.0.0.1:8786".
        partitions: Whether different toolchains may run parts of the model.
        exact: Whether sums must be computed directly, without algorithms such as Winograd's.
        tolerance: Largest allowed error of an output, as a fraction of its largest value, in place of
            the rounding error bound; narrower types and less accurate algorithms then take part.
        pipeline: Name of a pipeline of tuning passes; "default_tuning" if
            neither this nor `passes` is given.
        passes: Tuning passes, or their names, in place of a pipeline; an empty list for none.
        schedules: True to search schedules of all native kernels, with half of the budget; False for no
            searched schedules; None to search where it can pay, if the passes tune schedules. Schedules that
            earlier runs found on this machine are used unless it is False.
        schedule_trials: Maximum number of measured schedules, earlier runs included.
        until_proven: Whether the search goes on until nothing is left to try or the budget ends, however
            little is expected of it.
        dynamic: For a model with symbolic dimensions: "eager" to add variants for the sizes that `dims` names
            with shares, each compiled by the toolchain that is fastest at that size; "none" for one program
            for all sizes.
        plan: Plan file of an earlier run. If it exists, the plan is a candidate, and the search continues
            from it; the winner is written to the file.
        locked: Whether to build and verify the plan as it is, without search, race and database.
        on_progress: Function that is called with each progress event.
        on_note: Function that is called with notes, for example that another process keeps this machine busy.
        should_stop: Function that is called repeatedly; true ends the run with the measurements so far.

    Returns:
        The winner and all candidates. A candidate that is wrong, refuses the model or fails cannot win.

    Raises:
        UsageError: Bad budget or mode, or a budget of 0 without an earlier run; bad tolerance, targets,
            shapes or inputs; targets or passes that are not exact although `exact` is set; a plan that is
            missing, damaged or for another program; a choice in a locked run.
        ModelError: The model is invalid or unsupported, or no candidate computes it right.
        DatabaseError: A measurement cannot be stored.
    """
    from intarsia.collage.gather_specs import gather_partition_specs
    from intarsia.driver.accuracy import Accuracy
    from intarsia.driver.baselines import baseline_targets, engines
    from intarsia.driver.budget import parse_budget
    from intarsia.driver.dynamic_mode import read_dynamic
    from intarsia.driver.import_model import import_model
    from intarsia.driver.plans import read_plan, refuse_choices
    from intarsia.driver.progress import Progress, TuneStage
    from intarsia.driver.run_request import run_request
    from intarsia.driver.shape_samples import shapes_of, sized_program
    from intarsia.driver.stage_clock import StageClock
    from intarsia.driver.tune_run import TuneRun
    from intarsia.driver.tuning_history import PREDICTION_SECONDS, TuningHistory, refuse_searches
    from intarsia.driver.tuning_pipelines import deciding_passes, with_schedules
    from intarsia.frontend.onnx import import_notes
    from intarsia.measure.measure_input import Workload
    from intarsia.measure.testbed import TestbedLimits
    from intarsia.op.operator_sources import check_workers_find
    from intarsia.toolchain.this_host import this_host

    measurements = cast("Database | None", database)  # `opens_database` has opened it
    start = time.perf_counter()
    seconds, mode = parse_budget(budget), read_dynamic(dynamic)
    request = run_request(
        budget=budget,
        seed=seed,
        trials=trials,
        targets=targets,
        threads=threads,
        shapes=shapes,
        dims=dims,
        pipeline=pipeline,
        passes=passes,
        tolerance=tolerance,
        inputs=inputs,
        partitions=partitions,
        exact=exact,
        schedules=schedules,
        schedule_trials=schedule_trials,
        until_proven=until_proven,
        locked=locked,
        plan=plan,
        dynamic=mode.value,
    )
    if seconds == 0:
        refuse_searches(plan, trials=trials, schedules=schedules or None, schedule_trials=schedule_trials)
    if locked:
        requested = schedules if schedule_trials is None else True
        choices = {"pipeline": pipeline, "passes": passes, "schedules": requested, "exact": exact or None}
        refuse_choices(plan, targets=targets, threads=threads, trials=trials, **choices)
    accuracy = Accuracy(exact, tolerance)
    chosen = () if locked else accuracy.targets(baseline_targets(targets, threads))
    deciding = () if locked else deciding_passes(pipeline, passes)
    deciding = accuracy.passes(deciding, are_given=locked or passes is not None)
    gather_partition_specs(engines(chosen))  # fails for an unknown partition rule before anything is measured
    report = StageClock(on_progress or silent)
    report(Progress(TuneStage.IMPORT))
    imported = import_model(model, shapes, inputs, example_inputs, dynamic_shapes)
    module = accuracy.program(imported.module)
    check_workers_find(module)
    for note in import_notes(module):
        (on_note or silent)(note)
    fixing, examples = shapes_of(inputs or {}), shapes_of(imported.inputs)
    sized = sized_program(module, dims or {}, fixing, on_note or silent, examples)
    module = sized.module
    name = str(module.attrs.get("name", "model"))
    host = this_host()
    kept = read_plan(plan, module, host, on_note, must_exist=locked)
    history = TuningHistory(None if locked else measurements, host, chosen, accuracy)
    if seconds == 0:
        kept, chosen, deciding, locked = history.plan_of(module, on_note or silent), (), (), True
        seconds = PREDICTION_SECONDS
    schedule_seconds = None
    if not locked:
        is_requested = schedules or schedule_trials is not None
        schedule_seconds = seconds * SCHEDULE_SHARE if is_requested else None
        deciding = with_schedules(deciding, schedules, schedule_seconds, schedule_trials, cluster, chosen)
        seconds -= schedule_seconds or 0.0
    limits = TestbedLimits.of_budget(seconds)
    with closing(_testbed(cluster, host, limits, seed, on_note)) as testbed:
        run = TuneRun(
            workload=Workload(
                module,
                name,
                dict(imported.inputs),
                judge_seconds=seconds * JUDGE_SHARE,
                samples=sized.samples,
            ),
            testbed=testbed,
            patience=limits.run_seconds,
            build_patience=limits.build_seconds,
            database=None if locked else measurements,
            targets=chosen,
            seconds=seconds,
            trials=trials,
            seed=seed,
            searches=partitions and not locked,
            passes=deciding,
            plan=kept,
            report=report,
            on_note=on_note or silent,
            should_stop=should_stop or never,
            proves=until_proven,
            schedule_seconds=schedule_seconds or 0.0,
            request=request,
            dynamic=mode,
        )
        result = run.tune(start)
    if not locked and not result.stopped:
        history.keep(module, result.plan)
    if plan is not None and not locked:
        result.plan.write(plan)
    return result


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
