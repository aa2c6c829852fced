"""`tune`: find the fastest correct executable of a model on this machine.

Imports stand inside the functions: `import intarsia` binds `tune` without loading the compiler.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping, Sequence
from os import PathLike
from typing import TYPE_CHECKING, Any, Literal, cast

from intarsia.driver.database_argument import opens_database
from intarsia.support.callbacks import never, silent

if TYPE_CHECKING:
    from pathlib import Path

    import numpy.typing as npt
    from onnx import ModelProto

    from intarsia.driver.dynamic_mode import DynamicMode
    from intarsia.driver.error_budget import CalibrationArgument
    from intarsia.driver.progress import Progress
    from intarsia.driver.result import TuneResult
    from intarsia.driver.stream_search.objective import Objective
    from intarsia.ir import IRModule
    from intarsia.measure.database import Database
    from intarsia.measure.sizes.dim_sizes import SizesArgument
    from intarsia.target import Target
    from intarsia.transform import Pass
    from intarsia.tune.quantise.metrics import Metric


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
    name: str = "",
    seed: int = 0,
    threads: int | None = None,
    database: Database | str | PathLike[str] | Literal[False] | None = None,
    cluster: str | None = None,
    partitions: bool = True,
    exact: bool = False,
    tolerance: float | None = None,
    calibration: CalibrationArgument | None = None,
    max_drop: float | None = None,
    metric: str | Metric = "top-1",
    front: bool = False,
    pipeline: str | None = None,
    passes: Sequence[Pass | str] | None = None,
    schedules: bool | None = None,
    schedule_trials: int | None = None,
    until_proven: bool = False,
    dynamic: DynamicMode | str = "eager",
    plan: Path | None = None,
    locked: bool = False,
    objective: Objective | str = "latency",
    concurrency: int | None = None,
    batch: str | int | tuple[int, int] = 1,
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
        trials: Maximum number of measured candidates, schedules of kernels among them; None for all.
        targets: Targets to compare, as targets, their texts or names of toolchains; None for every
            registered toolchain.
        shapes: Shapes of inputs, by name; a text in them is the name of a symbolic dimension.
        dims: Sizes of symbolic dimensions, by name, or as input[axis] where the model has no name: a number
            8, a range (1, 8) or "1..512@log", or shares of calls {16: 0.5, 128: 0.5}. The result takes every
            size of the range, and is measured and checked at several. Dimensions of which nothing is said get
            a usual range, or the sizes of `inputs`.
        inputs: Input arrays for verification and measurements, by name; others are random.
        name: Name of the model in tables and reports; default: that of its file, or else of its graph.
        seed: Random seed of the inputs and of the order of measurement.
        threads: Number of threads of each candidate; None for all usable cores.
        database: Database of measurements, or its file or URL; None or False for none.
        cluster: Address of a Dask scheduler with workers that measure, such as "tcp://10.0.0.1:8786".
        partitions: Whether different toolchains may run parts of the model.
        exact: Whether sums must be computed directly, without algorithms such as Winograd's.
        tolerance: Largest allowed error of an output (RMS), as a fraction of its RMS, in place of
            the rounding error bound; narrower types and less accurate algorithms then take part.
        calibration: Input sets to quantise by: FILE.npz or a folder of such files, arrays by input name, each
            with one axis more in front, or "random". Programs in 8-bit integers then take part. Scales are
            from half of the sets, errors are measured on the others. An array `labels` has the right classes.
        max_drop: Largest allowed drop of the metric of a program in integers, on the sets held back.
        metric: "top-1", "cosine", or a function of the outputs, those of float32, and labels or None.
        front: Whether the result has the front: programs of which no other is both faster and more exact.
            With calibration inputs, programs with some layers in float32 or bfloat16 take part also where all
            may be in integers: a half, a quarter and an eighth of the error, at more time.
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
        objective: "latency" of one call on all threads; "throughput", requests per second of many clients; or
            "p99", the latency that 99 % of their requests stay within. For the latter two programs are found
            on one thread, and then measured in pools of streams, threads and batches with a part of the
            budget; the artifact contains the best numbers, and `intarsia.Pool` uses them.
        concurrency: Number of requests under way at saturation; None for 4 for each core.
        batch: Number of items, or range of it ("1..16"), of calls that are run as one, for models with a
            symbolic batch.
        on_progress: Function that is called with each progress event.
        on_note: Function that is called with notes, for example that another process keeps this machine busy.
        should_stop: Function that is called repeatedly; true ends the run with the measurements so far.

    Returns:
        The winner and all candidates. A candidate that is wrong, refuses the model or fails cannot win.

    Raises:
        UsageError: Calibration inputs without `tolerance` or `max_drop`, or that do not fit; bad budget or
            mode, or a budget of 0 without an earlier run; bad tolerance, targets, shapes or inputs; targets
            or passes that are not exact although `exact` is set; a plan that is missing, damaged or for
            another program; a choice in a locked run.
        ModelError: The model is invalid or unsupported, or no candidate computes it right.
        DatabaseError: A measurement cannot be stored.
    """
    start = time.perf_counter()
    from intarsia.driver.stream_search.objective import LoadOptions, Objective, read_batches, read_objective
    from intarsia.driver.tune_options import RunCallbacks, TuneOptions
    from intarsia.driver.tuning_job import TuningJob

    load = LoadOptions(read_objective(objective), concurrency, read_batches(batch))
    if load.objective is not Objective.LATENCY and threads is None:
        threads = 1  # streams of one thread get the most out of the cores, mostly
    options = TuneOptions(
        load=load,
        budget=budget,
        trials=trials,
        targets=targets,
        shapes=shapes or {},
        dims=dims or {},
        inputs=inputs or {},
        name=name,
        seed=seed,
        threads=threads,
        partitions=partitions,
        exact=exact,
        tolerance=tolerance,
        calibration=calibration,
        max_drop=max_drop,
        metric=metric,
        front=front,
        pipeline=pipeline,
        passes=passes,
        schedules=schedules,
        schedule_trials=schedule_trials,
        until_proven=until_proven,
        dynamic=dynamic,
        plan=plan,
        locked=locked,
    )
    callbacks = RunCallbacks(on_progress or silent, on_note or silent, should_stop or never)
    measurements = cast("Database | None", database)  # `opens_database` has opened it
    job = TuningJob(options, callbacks, measurements, cluster, start)
    return job.tune(model, example_inputs, dynamic_shapes)
