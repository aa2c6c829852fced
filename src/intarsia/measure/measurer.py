"""Measuring candidates: nothing twice, nothing lost, failures as values."""

from __future__ import annotations

import math
import shutil
import time
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import Future
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final

from intarsia.measure.builder import Builder
from intarsia.measure.candidate_task import Outcome
from intarsia.measure.database import Database, MeasureRecord
from intarsia.measure.measure_input import MeasureInput, Workload
from intarsia.measure.measure_result import MeasureError, MeasureResult
from intarsia.measure.runner import Runner
from intarsia.measure.workload_folder import WorkloadFolder
from intarsia.target import Host

BATCH: Final = 16
"""Candidates that are built before they are run, so that no build disturbs a run."""


@dataclass(frozen=True, slots=True)
class MeasureBudget:
    """When to stop.

    Attributes:
        seconds: No candidate is begun after so much time.
        trials: So many candidates are measured, those that the database knew not counted.
    """

    seconds: float = math.inf
    trials: float = math.inf


@dataclass(frozen=True, slots=True)
class MeasureProgress:
    """How far measuring has come.

    Attributes:
        done: Candidates with a result.
        known: Those of them that the database knew.
        total: Candidates in all.
        failed: Failures by kind.
        best: The least cost so far in seconds, or infinite.
        seconds: Time used.
        seconds_left: Time that the rest will take at this pace, or until the budget ends, in seconds.
    """

    done: int
    known: int
    total: int
    failed: Mapping[MeasureError, int]
    best: float
    seconds: float
    seconds_left: float


@dataclass(eq=False)
class Measurer:
    """Builds and runs candidates, and keeps every result as soon as it is there.

    Attributes:
        builder: Builds them.
        runner: Runs them.
        folder: Holds the workloads that workers read.
        host: This machine; costs of another are never used.
        database: Where results are looked up and kept, or None.
        on_progress: Told after each candidate.
        should_stop: Asked before each candidate; after a yes, what is left is not measured.
        clock: Tells seconds, for budgets.
        wall_clock: Tells seconds since 1970, for timestamps.
    """

    builder: Builder
    runner: Runner
    folder: Path
    host: Host
    database: Database | None = None
    on_progress: Callable[[MeasureProgress], object] = lambda _: None
    should_stop: Callable[[], bool] = lambda: False
    clock: Callable[[], float] = time.monotonic
    wall_clock: Callable[[], float] = time.time
    _workloads: dict[str, WorkloadFolder] = field(default_factory=dict)

    def measure(
        self, inputs: Sequence[MeasureInput], budget: MeasureBudget | None = None
    ) -> list[MeasureResult | None]:
        """Measure candidates, equal ones once.

        Args:
            inputs: The candidates.
            budget: When to stop; default: never.

        Returns:
            A result for each, in order; None for those that were not measured.

        Raises:
            UsageError, ExecutionError: A workload cannot be computed at all.
            DatabaseError: A result cannot be kept.
        """
        run = _Run(self, inputs, budget or MeasureBudget())
        for batch in run.batches():
            self._measure_batch(run, batch)
        return [run.results.get(_key(item)) for item in inputs]

    def _measure_batch(self, run: _Run, batch: Sequence[MeasureInput]) -> None:
        started = [(item, self.clock(), self._submit(item)) for item in batch]
        built = [(item, start, self.builder.outcome(future)) for item, start, future in started]
        for item, start, outcome in built:
            if run.is_over():
                return
            workload = self._workload(item.workload)
            artifact = self.builder.artifact(item, workload)
            is_built = outcome.error is MeasureError.OK
            result = self.runner.run(workload, artifact) if is_built else outcome
            shutil.rmtree(artifact, ignore_errors=True)
            run.keep(item, result, self.clock() - start)

    def _submit(self, item: MeasureInput) -> Future[Outcome]:
        return self.builder.submit(item, self._workload(item.workload))

    def _workload(self, workload: Workload) -> WorkloadFolder:
        if workload.digest not in self._workloads:
            self._workloads[workload.digest] = WorkloadFolder.write(workload, self.folder)
            if self.database is not None:
                self.database.add_workload(workload.digest, workload.name, str(workload.module))
                self.database.add_host(self.host)
        return self._workloads[workload.digest]


class _Run:
    """The results of one call of `measure`."""

    def __init__(self, measurer: Measurer, inputs: Sequence[MeasureInput], budget: MeasureBudget) -> None:
        self._measurer = measurer
        self._budget = budget
        self._start = measurer.clock()
        self._distinct = {_key(item): item for item in inputs}
        self.results: dict[tuple[str, str, str], MeasureResult] = {}
        self._find_known()
        self._known = len(self.results)

    def batches(self) -> Iterator[Sequence[MeasureInput]]:
        """What is to be measured, in batches; ends when the run is over."""
        waiting = [item for key, item in self._distinct.items() if key not in self.results]
        for first in range(0, len(waiting), BATCH):
            left = self._budget.trials - self._measured
            if self.is_over() or left < 1:
                return
            yield waiting[first : first + int(min(BATCH, left))]

    def is_over(self) -> bool:
        """Whether no further candidate is to be begun."""
        is_late = self._measurer.clock() - self._start >= self._budget.seconds
        return is_late or self._measured >= self._budget.trials or self._measurer.should_stop()

    def keep(self, item: MeasureInput, outcome: Outcome, seconds: float) -> None:
        """Note a result, in the database first."""
        measurer = self._measurer
        now = measurer.wall_clock()
        result = MeasureResult(outcome.costs, outcome.error, outcome.message, seconds, now)
        if measurer.database is not None:
            record = MeasureRecord.of(item, measurer.host.digest, result, outcome.max_error)
            measurer.database.commit(record)
        self.results[_key(item)] = result
        measurer.on_progress(self._progress())

    def _find_known(self) -> None:
        database = self._measurer.database
        if database is None:
            return
        for key, item in self._distinct.items():
            found = database.find(
                item.workload.digest, item.target, item.candidate, self._measurer.host.digest
            )
            if found is not None:
                self.results[key] = found.result

    @property
    def _measured(self) -> int:
        return len(self.results) - self._known

    def _progress(self) -> MeasureProgress:
        failed = Counter(result.error for result in self.results.values() if not result.is_ok)
        best = min((result.cost for result in self.results.values()), default=math.inf)
        seconds = self._measurer.clock() - self._start
        pace = seconds / max(1, self._measured)
        left = min((len(self._distinct) - len(self.results)), self._budget.trials - self._measured) * pace
        return MeasureProgress(
            done=len(self.results),
            known=self._known,
            total=len(self._distinct),
            failed=failed,
            best=best,
            seconds=seconds,
            seconds_left=min(left, self._budget.seconds - seconds),
        )


def _key(item: MeasureInput) -> tuple[str, str, str]:
    return item.workload.digest, str(item.target), item.candidate.digest
