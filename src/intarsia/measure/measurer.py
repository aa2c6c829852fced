"""Measuring candidates: nothing twice, nothing lost, failures as values."""

from __future__ import annotations

import math
import time
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import closing
from dataclasses import dataclass, field

from intarsia.measure.database import Database, MeasureRecord
from intarsia.measure.measure_input import MeasureInput
from intarsia.measure.measure_result import MeasureError, MeasureResult
from intarsia.measure.race_limits import RaceLimits
from intarsia.measure.race_records import raced_inputs, replayed
from intarsia.measure.race_result import RaceEnd
from intarsia.measure.runner import Raced
from intarsia.measure.testbed import Measured, Testbed


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
    """Measures candidates, and keeps every result as soon as it is there.

    Attributes:
        testbed: Builds and runs them.
        database: Where results are looked up and kept, or None.
        on_progress: Told at the beginning, and after each candidate.
        should_stop: Asked before each candidate; after a yes, what is left is not measured.
        clock: Tells seconds, for budgets.
        wall_clock: Tells seconds since 1970, for timestamps.
    """

    testbed: Testbed
    database: Database | None = None
    on_progress: Callable[[MeasureProgress], object] = lambda _: None
    should_stop: Callable[[], bool] = lambda: False
    clock: Callable[[], float] = time.monotonic
    wall_clock: Callable[[], float] = time.time
    _noted: set[str] = field(default_factory=set)

    def measure(
        self,
        inputs: Sequence[MeasureInput],
        budget: MeasureBudget | None = None,
        enough: int = 1,
    ) -> list[MeasureResult | None]:
        """Measure candidates, equal ones once, and none that the database knows.

        Args:
            inputs: The candidates.
            budget: When to stop; default: never.
            enough: So many measurements are enough: candidates that have fewer, and work, get one more.

        Returns:
            A result for each, in order, over all its measurements; None for those that were not measured.

        Raises:
            IntarsiaError: A workload cannot be computed at all, or the testbed has broken down.
            DatabaseError: A result cannot be kept.
        """
        run = _Run(self, inputs, budget or MeasureBudget(), enough)
        for batch in run.batches():
            with closing(self.testbed.measure(batch)) as measured:
                for each in measured:
                    run.keep(each)
                    if run.is_over():
                        break
        found = {key: self.find(item) or run.results[key] for key, item in run.measured.items()}
        return [found.get(_key(item), run.results.get(_key(item))) for item in inputs]

    def race(self, racers: Mapping[str, MeasureInput], limits: RaceLimits) -> Raced:
        """Time candidates of one workload in turns until the best is known.

        A race that the database knows is not held again, if it was decided or had as much time as this one.

        Args:
            racers: By name.
            limits: When to stop.

        Raises:
            ValueError: There is no candidate, or they are of several workloads.
            IntarsiaError: The testbed has broken down.
            DatabaseError: A result cannot be kept.
        """
        recorded = raced_inputs(racers, limits.policy)
        known = {name: self.record(item) for name, item in recorded.items()}
        results = {
            name: record.measurements[-1].result for name, record in known.items() if record is not None
        }
        if len(results) == len(racers):
            raced = replayed(results, limits.policy)
            is_decided = raced.result is None or raced.result.end.is_decision
            if is_decided or max(each.wall_seconds for each in results.values()) >= limits.seconds:
                return raced
        start = self.clock()
        raced = self.testbed.race(racers, limits)
        if raced.result is not None and raced.result.end is RaceEnd.STOPPED:
            return raced
        seconds, now = self.clock() - start, self.wall_clock()
        for name, item in recorded.items():
            failed = raced.failures.get(name)
            if failed is not None:
                result = MeasureResult((), failed.error, failed.message, seconds, now)
            else:
                assert raced.result is not None
                samples = raced.result.candidate(name).samples
                result = MeasureResult(samples, MeasureError.OK, "", seconds, now)
            self.keep(item, result)
        return raced

    def find(self, item: MeasureInput) -> MeasureResult | None:
        """What the database knows of a candidate on this host."""
        found = self.record(item)
        return None if found is None else found.result

    def record(self, item: MeasureInput) -> MeasureRecord | None:
        """All measurements of a candidate on this host that the database knows."""
        if self.database is None:
            return None
        host = self.testbed.host.digest
        return self.database.find(item.workload.digest, item.target, item.candidate, host)

    def keep(self, item: MeasureInput, result: MeasureResult) -> None:
        """Keep a result.

        Raises:
            DatabaseError: That is impossible.
        """
        if self.database is None:
            return
        host, workload = self.testbed.host, item.workload
        if workload.digest not in self._noted:
            self._noted.add(workload.digest)
            self.database.add_host(host)
            self.database.add_workload(workload.digest, workload.name, str(workload.module))
        self.database.commit(MeasureRecord.of(item, host.digest, result))


class _Run:
    """The results of one call of `measure`."""

    def __init__(
        self, measurer: Measurer, inputs: Sequence[MeasureInput], budget: MeasureBudget, enough: int
    ) -> None:
        self._measurer = measurer
        self._budget = budget
        self._start = measurer.clock()
        self._distinct = {_key(item): item for item in inputs}
        self.measured: dict[tuple[str, str, str], MeasureInput] = {}
        found = {key: measurer.record(item) for key, item in self._distinct.items()}
        self.results = {key: record.result for key, record in found.items() if record is not None}
        self._settled = {
            key
            for key, record in found.items()
            if record is not None and (not record.is_ok or len(record.measurements) >= enough)
        }
        self._known = len(self._settled)
        measurer.on_progress(self._progress())

    def batches(self) -> Iterator[Sequence[MeasureInput]]:
        """What is to be measured, in batches; ends when the run is over."""
        waiting = [item for key, item in self._distinct.items() if key not in self._settled]
        width = self._measurer.testbed.width
        for first in range(0, len(waiting), width):
            left = self._budget.trials - self._measured
            if self.is_over() or left < 1:
                return
            yield waiting[first : first + int(min(width, left))]

    def is_over(self) -> bool:
        """Whether no further candidate is to be begun."""
        is_late = self._measurer.clock() - self._start >= self._budget.seconds
        return is_late or self._measured >= self._budget.trials or self._measurer.should_stop()

    def keep(self, measured: Measured) -> None:
        """Note a result, in the database first."""
        measurer, outcome = self._measurer, measured.outcome
        now = measurer.wall_clock()
        kind, message = outcome.error, outcome.message
        result = MeasureResult(outcome.costs, kind, message, measured.seconds, now, outcome.max_error)
        measurer.keep(measured.input, result)
        self.results[_key(measured.input)] = result
        self.measured[_key(measured.input)] = measured.input
        measurer.on_progress(self._progress())

    @property
    def _measured(self) -> int:
        return len(self.measured)

    def _progress(self) -> MeasureProgress:
        failed = Counter(result.error for result in self.results.values() if not result.is_ok)
        best = min((result.cost for result in self.results.values()), default=math.inf)
        seconds = self._measurer.clock() - self._start
        pace = seconds / max(1, self._measured)
        left = (
            min((len(self._distinct) - self._known - self._measured), self._budget.trials - self._measured)
            * pace
        )
        return MeasureProgress(
            done=self._known + self._measured,
            known=self._known,
            total=len(self._distinct),
            failed=failed,
            best=best,
            seconds=seconds,
            seconds_left=min(left, self._budget.seconds - seconds),
        )


def _key(item: MeasureInput) -> tuple[str, str, str]:
    return item.workload.digest, str(item.target), item.candidate.digest
