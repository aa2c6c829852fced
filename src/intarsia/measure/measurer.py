"""Measure candidates: nothing twice, nothing lost, failures as values."""

from __future__ import annotations

import math
import statistics
import time
from collections.abc import Callable, Generator, Mapping, Sequence
from contextlib import closing
from dataclasses import dataclass, field, replace
from typing import Final

from intarsia.measure.database import Database, MeasureRecord
from intarsia.measure.kernel_times import timed_inputs
from intarsia.measure.measure_event import RACE, MeasureEvent
from intarsia.measure.measure_input import MeasureInput
from intarsia.measure.measure_leases import MeasureLeases
from intarsia.measure.measure_progress import MeasureProgress
from intarsia.measure.measure_result import MeasureError, MeasureResult
from intarsia.measure.race.limits import RaceLimits
from intarsia.measure.race.result import RaceEnd
from intarsia.measure.race_records import race_results, raced_inputs, replay_race
from intarsia.measure.runner import Raced
from intarsia.measure.testbed import KernelTestbed, Measured, Testbed
from intarsia.measure.wall_account import WallAccount
from intarsia.support.callbacks import never, silent

_TOO_SOON: Final = 0.5
"""Share of the patience: a limit that follows the best candidate may be somewhat shorter than it."""


@dataclass(eq=False)
class Measurer:
    """Measures candidates, and stores every result at once.

    Time budgets count wall time: each measurement counts with the time that had passed since the one before
    it (`WallAccount`). A stored result costs no time, but counts with the time of its measurement, in this
    run or an earlier one. So a run that its budget ended gives the same results when it is repeated, without
    a measurement. For the same reason a caller that needs one measurement of a candidate does not get a
    stored second one.

    Attributes:
        testbed: Testbed that builds and runs candidates.
        database: Database of results, or None.
        on_progress: Called with the progress at the beginning, and after each candidate.
        should_stop: Called before each candidate; returns true to stop measuring.
        clock: Function that returns seconds, for progress and races.
        wall_clock: Function that returns seconds since 1970, for timestamps.
        patience: Time limit of a candidate's run in seconds. A stored time-out after a much shorter time, of
            a run with a smaller budget, does not count: the candidate is measured again.
        build_patience: Time limit of a build in seconds, used likewise.
        most_trials: Value of `trials` at which no further candidate is started.
        earlier: Seconds of the run before this measurer was made, which its first measurement counts.
    """

    testbed: Testbed
    database: Database | None = None
    on_progress: Callable[[MeasureProgress], object] = silent
    should_stop: Callable[[], bool] = never
    clock: Callable[[], float] = time.monotonic
    wall_clock: Callable[[], float] = time.time
    patience: float = 0.0
    build_patience: float = 0.0
    most_trials: float = math.inf
    earlier: float = 0.0
    spent: float = field(default=0.0, init=False)
    """Total seconds of all measurements with used results, with what went before each, counted once."""
    measuring_seconds: float = field(default=0.0, init=False)
    """Those of them that the measurements themselves took."""
    trials: int = field(default=0, init=False)
    """Number of all measurements with used results, of any run, each once; also those of other work."""
    candidates: int = field(default=0, init=False)
    """Number of those of them that measured candidates of this measurer."""
    events: list[MeasureEvent] = field(default_factory=list, init=False)
    """Measurements with used results in order, each once, and races."""
    _used: dict[tuple[str, str, str], int] = field(default_factory=dict)
    """Number of used measurements of each candidate."""
    _records: dict[tuple[str, str, str], MeasureRecord] = field(default_factory=dict)
    """Measurements of this run by candidate, where there is no database."""
    _noted: set[str] = field(default_factory=set)
    _account: WallAccount = field(init=False)
    _leases: MeasureLeases = field(init=False)

    def __post_init__(self) -> None:
        # Not the clock itself: it may be replaced later.
        self._account = WallAccount(lambda: self.clock(), self.earlier)  # noqa: PLW0108
        self._leases = MeasureLeases(self.database, self.testbed.host.digest)

    @property
    def elapsed(self) -> float:
        """Seconds as `spent`, with those that have passed since the last measurement."""
        return self.spent + self._account.uncharged

    def count_work(self, trials: int, charge: float | None = None) -> float:
        """Count other work that measures, which ends now, and return its charge in seconds.

        Args:
            trials: Number of its measurements.
            charge: Stored charge of the same work in an earlier run, which is counted in place of the time;
                None for the time since the last measurement.
        """
        if charge is None:
            charge = self._account.charge(0.0)
        else:
            self._account.skip()
        self.spent += charge
        self.trials += trials
        return charge

    def measure(
        self,
        inputs: Sequence[MeasureInput],
        *,
        seconds: float = math.inf,
        trials: float = math.inf,
        enough: int = 1,
    ) -> list[MeasureResult | None]:
        """Measure candidates without stored results, equal ones once.

        Args:
            inputs: The candidates.
            seconds: Seconds of measuring, as `spent` counts them, after which no candidate is started.
            trials: Maximum number of new measurements; stored results do not count.
            enough: Number of measurements per candidate: working candidates with fewer get one more.

        Returns:
            A result for each, in order, over all its measurements; None for those that were not measured.

        Raises:
            IntarsiaError: A workload cannot be computed at all, or the testbed has broken down.
            DatabaseError: A result cannot be kept.
        """
        run = _Run(self, inputs, seconds, trials, enough)
        with closing(run.batches(self._leases)) as batches:
            for batch in batches:
                with closing(self.testbed.measure(batch)) as measured:
                    for measured_item in measured:
                        run.keep(measured_item)
                        if run.is_over():
                            break
        return [run.results.get(_key(item)) for item in inputs]

    def race(self, racers: Mapping[str, MeasureInput], limits: RaceLimits) -> Raced:
        """Time candidates of one workload interleaved until the best is known.

        A stored race is not repeated if it was decided or had as much time as this one.

        Args:
            racers: Candidates by name.
            limits: Limits of the race.

        Raises:
            ValueError: There is no candidate, or they are of several workloads.
            IntarsiaError: The testbed has broken down.
            DatabaseError: A result cannot be kept.
        """
        recorded = raced_inputs(racers, limits.policy)
        with self._leases.holding(recorded.values(), limits.should_stop):
            return self._race(racers, recorded, limits)

    def _race(
        self, racers: Mapping[str, MeasureInput], recorded: Mapping[str, MeasureInput], limits: RaceLimits
    ) -> Raced:
        records = {name: self.record(item) for name, item in recorded.items()}
        results = {
            name: record.measurements[-1].result for name, record in records.items() if record is not None
        }
        if len(results) == len(racers):
            raced = replay_race(results, limits.policy)
            is_final = raced.result is None or raced.result.end.is_final
            stored_seconds = max(result.wall_seconds for result in results.values())
            if is_final or stored_seconds >= limits.seconds:
                self._note_race(racers, raced, stored_seconds)
                return raced
        start = self.clock()
        raced = self.testbed.race(racers, limits)
        if raced.result is not None and raced.result.end is RaceEnd.STOPPED:
            return raced
        seconds, now = self.clock() - start, self.wall_clock()
        self._note_race(racers, raced, seconds)
        for item, result in race_results(raced, recorded, seconds, now):
            self.keep(item, result)
        return raced

    def _note_race(self, racers: Mapping[str, MeasureInput], raced: Raced, seconds: float) -> None:
        """Record a race as one event, with the least median of those that finished."""
        samples = () if raced.result is None else tuple(item.samples for item in raced.result.candidates)
        best = min((statistics.median(item) for item in samples if item), default=math.inf)
        self._note(next(iter(racers.values())), RACE, best, MeasureError.OK, seconds)

    def time_kernels(
        self, inputs: Sequence[MeasureInput], kernels: Sequence[str]
    ) -> list[MeasureResult] | None:
        """Time native's kernels within candidates of one workload, or return the stored times.

        Args:
            inputs: The candidates; they are timed interleaved.
            kernels: Keys of the timed kernels (`measure.kernel_times`).

        Returns:
            For each candidate a result whose costs are the seconds of each kernel in one run, in order; None
            if this testbed times no kernels.

        Raises:
            IntarsiaError: The testbed has broken down.
            DatabaseError: A result cannot be kept.
        """
        keys = timed_inputs(inputs, kernels)
        with self._leases.holding(keys, self.should_stop):
            stored = [self.find(key) for key in keys]
            if all(result is not None for result in stored):
                return [result for result in stored if result is not None]
            if not isinstance(self.testbed, KernelTestbed):
                return None
            start = self.clock()
            outcomes = self.testbed.time_kernels(inputs, kernels)
            seconds, now = (self.clock() - start) / len(inputs), self.wall_clock()
            return [
                self.use(key, MeasureResult(outcome.costs, outcome.error, outcome.message, seconds, now))
                for key, outcome in zip(keys, outcomes, strict=True)
            ]

    def find(self, item: MeasureInput, enough: int = 1) -> MeasureResult | None:
        """Return the stored result of a candidate on this host: of `enough` measurements, or a failure.

        It is None if fewer are stored. More are used if more were used before in this run.
        """
        seen = self._sufficient(item, enough)
        return None if seen is None else self._use(item, seen)

    def knows(self, item: MeasureInput, enough: int = 1) -> bool:
        """Return whether `find` would return a result, without counting its time."""
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
        """Return all stored measurements of a candidate on this host; of this run without a database."""
        if self.database is None:
            return self._records.get(_key(item))
        host = self.testbed.host.digest
        return self.database.find(item.workload.digest, item.target, item.candidate, host)

    def use(self, item: MeasureInput, result: MeasureResult, enough: int = 1) -> MeasureResult:
        """Store a new result, count its time, and return it pooled with earlier ones.

        Raises:
            DatabaseError: It cannot be kept.
        """
        result = replace(result, charged_seconds=self._account.charge(self._share(result)))
        self.keep(item, result)
        record = self.record(item)
        if record is not None:
            return self._use(item, self._seen(item, record, enough))
        self._count(item, result)
        return result

    def _seen(self, item: MeasureInput, record: MeasureRecord, enough: int) -> MeasureRecord:
        """Return a record of the `enough` oldest measurements, or of as many as were used before."""
        count = max(self._used.get(_key(item), 0), enough)
        return replace(record, measurements=record.measurements[:count])

    def _use(self, item: MeasureInput, seen: MeasureRecord) -> MeasureResult:
        used = self._used.get(_key(item), 0)
        new = seen.measurements[used:]
        for measurement in new:
            self._count(item, measurement.result)
        if new:
            self._account.skip()
        self._used[_key(item)] = len(seen.measurements)
        return seen.result

    def _count(self, item: MeasureInput, result: MeasureResult) -> None:
        share = self._share(result)
        self.spent += share if result.charged_seconds is None else result.charged_seconds
        self.measuring_seconds += share
        self.trials += 1
        self.candidates += 1
        self._note(item, item.candidate.kind, result.cost, result.error, self._share(result))

    def _note(self, item: MeasureInput, kind: str, cost: float, error: MeasureError, seconds: float) -> None:
        workload, target = item.workload.digest, str(item.target)
        self.events.append(MeasureEvent(self.spent, seconds, workload, target, kind, cost, error.value))

    def _share(self, result: MeasureResult) -> float:
        """Return the seconds that a measurement counts, as several run at a time."""
        return result.wall_seconds / max(1, self.testbed.lanes)

    def keep(self, item: MeasureInput, result: MeasureResult) -> None:
        """Store a result.

        Raises:
            DatabaseError: It cannot be stored.
        """
        if self.database is None:
            new, known = MeasureRecord.of(item, "this run", result), self._records.get(_key(item))
            earlier = () if known is None else known.measurements
            self._records[_key(item)] = replace(new, measurements=(*earlier, *new.measurements))
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
        self,
        measurer: Measurer,
        inputs: Sequence[MeasureInput],
        seconds: float,
        trials: float,
        enough: int,
    ) -> None:
        self._measurer = measurer
        self._seconds, self._trials = seconds, trials
        self._enough = enough
        self._start, self._spent = measurer.clock(), measurer.spent
        self._distinct = {_key(item): item for item in inputs}
        self._measured = 0
        stored = {key: measurer.find(item, enough) for key, item in self._distinct.items()}
        self._finished = {key for key, result in stored.items() if result is not None}
        stored |= {key: measurer.find(self._distinct[key]) for key in stored if key not in self._finished}
        self.results = {key: result for key, result in stored.items() if result is not None}
        self._stored = len(self._finished)
        measurer.on_progress(self._progress())

    def batches(self, leases: MeasureLeases) -> Generator[list[MeasureInput], None, None]:
        """Yield the candidates to measure in batches, until the run is over."""
        waiting = [item for key, item in self._distinct.items() if key not in self._finished]
        return leases.batches(waiting, self._left, self._find_stored, self._measurer.testbed)

    def _left(self, waited: float) -> int:
        """Return the size of the next batch after a wait for another tuner, in seconds; 0 if it is over."""
        measurer = self._measurer
        left = min(self._trials - self._measured, measurer.most_trials - measurer.trials)
        if self.is_over() or self._spent_here + waited >= self._seconds:
            return 0
        return max(0, int(min(measurer.testbed.width, left)))

    def _find_stored(self, item: MeasureInput) -> bool:
        """Return whether another tuner has measured a candidate by now, and use its result."""
        result = self._measurer.find(item, self._enough)
        if result is not None:
            self.results[_key(item)] = result
            self._stored += 1
            self._measurer.on_progress(self._progress())
        return result is not None

    def is_over(self) -> bool:
        """Return whether no further candidate is to be started."""
        measurer = self._measurer
        is_late = self._spent_here >= self._seconds
        is_spent = self._measured >= self._trials or measurer.trials >= measurer.most_trials
        return is_late or is_spent or measurer.should_stop()

    def keep(self, measured: Measured) -> None:
        """Store a result in the database, then here."""
        measurer, outcome = self._measurer, measured.outcome
        now = measurer.wall_clock()
        costs, failure = outcome.costs, (outcome.error, outcome.message)
        result = MeasureResult(
            costs, *failure, measured.seconds, now, outcome.max_error, errors=outcome.errors
        )
        self.results[_key(measured.input)] = measurer.use(measured.input, result, self._enough)
        self._measured += 1
        measurer.on_progress(self._progress())

    @property
    def _spent_here(self) -> float:
        return self._measurer.spent - self._spent

    def _progress(self) -> MeasureProgress:
        return MeasureProgress.of_results(
            self.results.values(),
            stored=self._stored,
            measured=self._measured,
            total=len(self._distinct),
            trials_left=self._trials - self._measured,
            seconds=self._measurer.clock() - self._start,
            budget_left=self._seconds - self._spent_here,
        )


def _key(item: MeasureInput) -> tuple[str, str, str]:
    return item.workload.digest, str(item.target), item.candidate.digest
