"""Explaining a model by what is known of it, without measuring anything."""

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
from intarsia.driver.baselines import baseline_targets, engines, whole_name
from intarsia.driver.explain.explanation import ContestRecord, Explanation
from intarsia.driver.explain.function import ChosenPartition
from intarsia.driver.explain.run import borders, explain_functions
from intarsia.driver.partition import SearchedPartitions
from intarsia.driver.records import STATUS_OF, Status
from intarsia.frontend.onnx import import_notes
from intarsia.ir import IRModule
from intarsia.measure.candidate_kind import WHOLE
from intarsia.measure.database import Database
from intarsia.measure.measure_input import MeasureInput, Workload
from intarsia.measure.measure_result import MeasureResult
from intarsia.measure.measurer import Measurer
from intarsia.measure.race.limits import RaceLimits
from intarsia.measure.runner import Raced
from intarsia.measure.testbed import Measured
from intarsia.measure.workload_folder import WorkloadFolder
from intarsia.support.errors import UnsupportedModelError
from intarsia.target import Host, Target
from intarsia.target.reference import REFERENCE_TARGET


@dataclass(frozen=True, slots=True)
class NoTestbed:
    """Stands for a machine on which nothing is to be measured."""

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
) -> Explanation:
    """What the database knows of a model on a machine, and what follows from it.

    Args:
        module: The model.
        name: What it is called.
        database: What was measured.
        host: The machine.
        targets: Who may run parts of it; every toolchain if not given.
        threads: Of each of them; all usable cores if not given.
        inputs: Arrays that it was measured with, by name, if they were not random.

    Raises:
        UsageError: Bad targets.
        DatabaseError: It cannot be read.
    """
    chosen = baseline_targets(targets, threads)
    measurer = Measurer(NoTestbed(host), database, should_stop=lambda: True)  # what is not known stays so
    workload = Workload(module, name, dict(inputs or {}))
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
        found = collage(module, specs, estimator, bounds, options)
    except UnsupportedModelError as error:
        return replace(bare, functions=explain_functions(module, (), None), notes=(error.problem,))
    functions = tuple(_with_all_known(each, estimator) for each in found.functions)
    found = replace(found, functions=functions)
    searched = SearchedPartitions(found, bounds)
    parts = [ChosenPartition(each) for each in found.best.partitions]
    unknown = sum(each.best.unmeasured for each in found.functions)
    known = sum(estimate.was_known for each in found.functions for estimate in each.estimates.values())
    return replace(
        bare,
        functions=explain_functions(module, parts, searched),
        borders=borders(bounds),
        run_seconds=bounds.run_seconds,
        notes=(*import_notes(module), *_notes(unknown, known, len(parts))),
    )


def _with_all_known(cover: FunctionCover, estimator: MeasuredCostEstimator) -> FunctionCover:
    """With what is known of candidates that the search did not ask for."""
    left = [each for each in cover.candidates if each.spec.name != HOST and each not in cover.estimates]
    known = {
        each: estimate
        for each, estimate in zip(left, estimator.estimate(left), strict=True)
        if not estimate.cost.is_unknown
    }
    return replace(cover, estimates={**cover.estimates, **known})


def _notes(unknown: int, known: int, parts: int) -> tuple[str, ...]:
    """How far what is known goes."""
    if not known:
        return ("no part of this model has been measured on this machine: what is shown is a guess",)
    if unknown:
        return (f"parts that have not been measured: {unknown} of {parts}; they are a guess",)
    return ("the parts that are shown are the cheapest by what has been measured of each alone",)


def _contest(workload: Workload, targets: Sequence[Target], measurer: Measurer) -> tuple[ContestRecord, ...]:
    """The whole model on each target, and the placements of it that are known."""
    found: list[tuple[str, MeasureResult | None, bool]] = [
        (whole_name(each), measurer.find(MeasureInput(workload, each, WHOLE)), True) for each in targets
    ]
    if measurer.database is not None:
        records = measurer.database.records_of(workload.digest)
        found += [
            (Placement.of_candidate(each.candidate).summary, each.result, False)
            for each in records
            if each.kind == KIND and each.host == measurer.testbed.host.digest
        ]
    rows = [_contest_record(*each) for each in found]
    return tuple(sorted(rows, key=lambda each: (each.seconds is None, each.seconds or 0.0)))


def _contest_record(name: str, result: MeasureResult | None, is_whole: bool) -> ContestRecord:
    status = Status.NOT_MEASURED if result is None else STATUS_OF[result.error]
    seconds = result.cost if result is not None and result.is_ok else None
    reason = "" if result is None else result.message
    return ContestRecord(name, status.value, reason, seconds, None, None, None, None, is_whole, False)


def _refuse(what: object) -> NoReturn:
    raise AssertionError(f"nothing is to be measured, but {what} was asked for")
