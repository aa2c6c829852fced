"""Measuring candidates: nothing twice, nothing lost, failures as values."""

from __future__ import annotations

import math
import time
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import closing
from dataclasses import dataclass, field, replace
from typing import Final

from intarsia.measure.database import Database, MeasureRecord
from intarsia.measure.measure_input import MeasureInput
from intarsia.measure.measure_result import MeasureError, MeasureResult
from intarsia.measure.race.limits import RaceLimits
from intarsia.measure.race.result import RaceEnd
from intarsia.measure.race_records import raced_inputs, replayed
from intarsia.measure.runner import Raced
from intarsia.measure.testbed import Measured, Testbed
from intarsia.support.callbacks import never, silent

_TOO_SOON: Final = 0.5
"""Share of the patience: a limit that follows the best candidate may be somewhat shorter than it."""


@dataclass(frozen=True, slots=True)
class MeasureBudget:
    """When to stop.

    Attributes:
        seconds: No candidate is begun after so much of `Measurer.spent`.
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

    Time budgets count what measuring took when it was done, in this run or in one before: what the database
    knows costs no time, but counts as it did for who measured it. So a run that was ended by its budget does
    the same when it is repeated, and measures nothing. For the same reason a candidate's second measurement
    is not seen by who is content with one, though the database has it.

    Attributes:
        testbed: Builds and runs them.
        database: Where results are looked up and kept, or None.
        on_progress: Told at the beginning, and after each candidate.
        should_stop: Asked before each candidate; after a yes, what is left is not measured.
        clock: Tells seconds, for progress and races.
        wall_clock: Tells seconds since 1970, for timestamps.
        patience: Seconds that a run may take in this run. A time-out that came much sooner, in an earlier
            run with a smaller budget, is no result: the candidate is measured again.
        build_patience: The same for a build.
    """

    testbed: Testbed
    database: Database | None = None
    on_progress: Callable[[MeasureProgress], object] = silent
    should_stop: Callable[[], bool] = never
    clock: Callable[[], float] = time.monotonic
    wall_clock: Callable[[], float] = time.time
    patience: float = 0.0
    build_patience: float = 0.0
    spent: float = field(default=0.0, init=False)
    """Seconds that all measurements have taken whose results were used, each once."""
    _used: dict[tuple[str, str, str], int] = field(default_factory=dict)
    """How many measurements of a candidate were used."""
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
        return [run.results.get(_key(item)) for item in inputs]

    def race(self, racers: Mapping[str, MeasureInput], limits: RaceLimits) -> Raced:
        """Time candidates of one workload in turns until the best is known.

        A race that the database knows is not held again, if it came to its end or had as much time as this
        one.

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
            is_final = raced.result is None or raced.result.end.is_final
            if is_final or max(each.wall_seconds for each in results.values()) >= limits.seconds:
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

    def find(self, item: MeasureInput, enough: int = 1) -> MeasureResult | None:
        """What the database knows of a candidate on this host: so many measurements, or a failure.

        None if it knows fewer. More are used if more were used before in this run.
        """
        seen = self._sufficient(item, enough)
        return None if seen is None else self._use(item, seen)

    def knows(self, item: MeasureInput, enough: int = 1) -> bool:
        """Whether `find` would find something; it counts for nothing."""
        return self._sufficient(item, enough) is not None

    def _sufficient(self, item: MeasureInput, enough: int) -> MeasureRecord | None:
        record = self.record(item)
        if record is None or self._came_too_soon(record.result):
            return None
        seen = self._seen(item, record, enough)
        return None if seen.is_ok and len(seen.measurements) < enough else seen

    def _came_too_soon(self, result: MeasureResult) -> bool:
        if result.error is MeasureError.BUILD_TIMEOUT:
            return result.wall_seconds < self.build_patience
        return result.error is MeasureError.RUN_TIMEOUT and result.wall_seconds < _TOO_SOON * self.patience

    def record(self, item: MeasureInput) -> MeasureRecord | None:
        """All measurements of a candidate on this host that the database knows."""
        if self.database is None:
            return None
        host = self.testbed.host.digest
        return self.database.find(item.workload.digest, item.target, item.candidate, host)

    def use(self, item: MeasureInput, result: MeasureResult, enough: int = 1) -> MeasureResult:
        """Keep a new result, and count its time; what it gives together with those before.

        Raises:
            DatabaseError: It cannot be kept.
        """
        self.keep(item, result)
        record = self.record(item)
        if record is not None:
            return self._use(item, self._seen(item, record, enough))
        self.spent += self._share(result)
        return result

    def _seen(self, item: MeasureInput, record: MeasureRecord, enough: int) -> MeasureRecord:
        """So many measurements, the oldest, or as many as were used before."""
        count = max(self._used.get(_key(item), 0), enough)
        return replace(record, measurements=record.measurements[:count])

    def _use(self, item: MeasureInput, seen: MeasureRecord) -> MeasureResult:
        used = self._used.get(_key(item), 0)
        self.spent += sum(self._share(each.result) for each in seen.measurements[used:])
        self._used[_key(item)] = len(seen.measurements)
        return seen.result

    def _share(self, result: MeasureResult) -> float:
        """Seconds of a measurement, of which several are made at a time."""
        return result.wall_seconds / max(1, self.testbed.lanes)

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
        self._enough = enough
        self._start, self._spent = measurer.clock(), measurer.spent
        self._distinct = {_key(item): item for item in inputs}
        self._measured = 0
        found = {key: measurer.find(item, enough) for key, item in self._distinct.items()}
        self._settled = {key for key, result in found.items() if result is not None}
        found |= {key: measurer.find(self._distinct[key]) for key in found if key not in self._settled}
        self.results = {key: result for key, result in found.items() if result is not None}
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
        is_late = self._spent_here >= self._budget.seconds
        return is_late or self._measured >= self._budget.trials or self._measurer.should_stop()

    def keep(self, measured: Measured) -> None:
        """Note a result, in the database first."""
        measurer, outcome = self._measurer, measured.outcome
        now = measurer.wall_clock()
        kind, message = outcome.error, outcome.message
        result = MeasureResult(outcome.costs, kind, message, measured.seconds, now, outcome.max_error)
        self.results[_key(measured.input)] = measurer.use(measured.input, result, self._enough)
        self._measured += 1
        measurer.on_progress(self._progress())

    @property
    def _spent_here(self) -> float:
        return self._measurer.spent - self._spent

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
            seconds_left=max(0.0, min(left, self._budget.seconds - self._spent_here)),
        )


def _key(item: MeasureInput) -> tuple[str, str, str]:
    return item.workload.digest, str(item.target), item.candidate.digest
