"""Explanation of a model from the database, without measurements."""

from __future__ import annotations

from collections.abc import Generator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, NoReturn

import numpy.typing as npt

from intarsia.collage.collage import collage
from intarsia.collage.conflicts import declared_conflicts
from intarsia.collage.costs.captured_values import CapturedValues
from intarsia.collage.costs.measure_boundaries import measure_boundaries
from intarsia.collage.costs.measured_cost_estimator import MeasuredCostEstimator
from intarsia.collage.function_cover import FunctionCover
from intarsia.collage.function_search import CollageOptions
from intarsia.collage.gather_specs import HOST, gather_partition_specs
from intarsia.collage.placement.placement import KIND, Placement
from intarsia.collage.search_by_measured_sums import SearchedPartitions
from intarsia.driver.baselines import baseline_targets, engines, whole_name
from intarsia.driver.explain.function import ChosenPartition
from intarsia.driver.explain.run import borders, explain_functions
from intarsia.driver.shape_samples import shapes_of, sized_program
from intarsia.frontend.onnx import import_notes
from intarsia.ir import IRModule
from intarsia.measure.candidate_kind import WHOLE
from intarsia.measure.database import Database
from intarsia.measure.measure_input import MeasureInput, Workload
from intarsia.measure.measure_result import MeasureResult
from intarsia.measure.measurer import Measurer
from intarsia.measure.race.limits import RaceLimits
from intarsia.measure.runner import Raced
from intarsia.measure.sizes.dim_sizes import SizesArgument
from intarsia.measure.testbed import Measured
from intarsia.measure.workload_folder import WorkloadFolder
from intarsia.report.explanation import ContestRecord, Explanation
from intarsia.support.callbacks import silent
from intarsia.support.errors import UnsupportedModelError
from intarsia.target import Host, Target
from intarsia.target.reference import REFERENCE_TARGET
from intarsia.tune.contest.candidate_record import STATUS_OF, Status


@dataclass(frozen=True, slots=True)
class NoTestbed:
    """A testbed that refuses to measure."""

    host: Host
    width: int = 1
    lanes: int = 1
    on_wait: None = None

    def prepare(self, workload: Workload) -> WorkloadFolder:
        """See Testbed.prepare."""
        _refuse(workload)

    def measure(self, inputs: Sequence[MeasureInput]) -> Generator[Measured, None, None]:
        """See Testbed.measure."""
        _refuse(inputs)

    def forget(self, workload: Workload) -> None:
        """See Testbed.forget."""

    def race(self, racers: Mapping[str, MeasureInput], limits: RaceLimits) -> Raced:
        """See Testbed.race."""
        _refuse((racers, limits))

    def artifact(self, measured: MeasureInput) -> Path | None:  # noqa: ARG002 - there is none
        """See Testbed.artifact."""
        return None

    def close(self) -> None:
        """See Testbed.close."""


def explain_model(
    module: IRModule,
    name: str,
    database: Database,
    host: Host,
    targets: Sequence[Target | str] | None = None,
    threads: int | None = None,
    inputs: Mapping[str, npt.NDArray[Any]] | None = None,
    dims: Mapping[str, SizesArgument] | None = None,
) -> Explanation:
    """Explain a model from the measurements that the database contains for a machine.

    Args:
        module: The model.
        name: Name of the model.
        database: Database of measurements.
        host: The machine.
        targets: Targets that may run partitions; None for every toolchain.
        threads: Number of threads of each target; None for all usable cores.
        inputs: Input arrays of the measurements by name, if they were not random.
        dims: Sizes of symbolic dimensions of the measurements, as `tune` takes them.

    Raises:
        UsageError: Bad targets or sizes.
        DatabaseError: The database cannot be read.
    """
    chosen = baseline_targets(targets, threads)
    measurer = Measurer(NoTestbed(host), database, should_stop=lambda: True)  # nothing is measured
    sized = sized_program(module, dims or {}, shapes_of(inputs or {}), silent)
    module = sized.module
    workload = Workload(module, name, dict(inputs or {}), samples=sized.samples)
    contest = _contest(workload, chosen, measurer)
    bare = Explanation(
        name, host.digest, host.cpu_model, host.cores, "", (), (), 0.0, contest, None, (), (), ()
    )
    able = engines(chosen)
    if not able:
        return replace(bare, functions=explain_functions(module, (), None), notes=("no engine works here",))
    bounds = measure_boundaries(measurer, list(dict.fromkeys((*able, REFERENCE_TARGET))))
    estimator = MeasuredCostEstimator(measurer, module, CapturedValues(), bounds.run_seconds)
    specs = gather_partition_specs(able)
    options = CollageOptions(conflicts=declared_conflicts())
    try:
        collaged = collage(module, specs, estimator, bounds, options)
    except UnsupportedModelError as error:
        return replace(bare, functions=explain_functions(module, (), None), notes=(error.problem,))
    functions = tuple(_with_known_estimates(function, estimator) for function in collaged.functions)
    collaged = replace(collaged, functions=functions)
    searched = SearchedPartitions(collaged, bounds)
    parts = [ChosenPartition(partition) for partition in collaged.best.partitions]
    unmeasured_count = sum(function.best.unmeasured for function in collaged.functions)
    measured_count = sum(
        estimate.was_known for function in collaged.functions for estimate in function.estimates.values()
    )
    return replace(
        bare,
        functions=explain_functions(module, parts, searched),
        borders=borders(bounds),
        run_seconds=bounds.run_seconds,
        notes=(*import_notes(module), *_notes(unmeasured_count, measured_count, len(parts))),
    )


def _with_known_estimates(cover: FunctionCover, estimator: MeasuredCostEstimator) -> FunctionCover:
    """Return a cover with the known estimates of candidates that the search did not need."""
    others = [
        candidate
        for candidate in cover.candidates
        if candidate.spec.name != HOST and candidate not in cover.estimates
    ]
    known_estimates = {
        candidate: estimate
        for candidate, estimate in zip(others, estimator.estimate(others), strict=True)
        if not estimate.cost.is_unknown
    }
    return replace(cover, estimates={**cover.estimates, **known_estimates})


def _notes(unknown: int, known: int, parts: int) -> tuple[str, ...]:
    """Return a note about how much of the model was measured."""
    if not known:
        return ("no part of this model has been measured on this machine: what is shown is a guess",)
    if unknown:
        return (f"parts that have not been measured: {unknown} of {parts}; they are a guess",)
    return ("the parts that are shown are the cheapest by what has been measured of each alone",)


def _contest(workload: Workload, targets: Sequence[Target], measurer: Measurer) -> tuple[ContestRecord, ...]:
    """Return records of the whole model on each target, and of its measured placements."""
    results: list[tuple[str, MeasureResult | None, bool]] = [
        (whole_name(record), measurer.find(MeasureInput(workload, record, WHOLE)), True) for record in targets
    ]
    if measurer.database is not None:
        records = measurer.database.records_of(workload.digest)
        results += [
            (Placement.of_candidate(record.candidate).summary, record.result, False)
            for record in records
            if record.kind == KIND and record.host == measurer.testbed.host.digest
        ]
    rows = [_contest_record(*record) for record in results]
    return tuple(sorted(rows, key=lambda record: (record.seconds is None, record.seconds or 0.0)))


def _contest_record(name: str, result: MeasureResult | None, is_whole: bool) -> ContestRecord:
    status = Status.NOT_MEASURED if result is None else STATUS_OF[result.error]
    seconds = result.cost if result is not None and result.is_ok else None
    reason = "" if result is None else result.message
    return ContestRecord(name, status.value, reason, seconds, None, None, None, None, is_whole, False)


def _refuse(what: object) -> NoReturn:
    raise AssertionError(f"nothing may be measured here, but {what} was requested")
