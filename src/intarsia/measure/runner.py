"""Run built candidates in a worker process, one at a time on the host."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path

from intarsia.measure.candidate_task import Outcome
from intarsia.measure.kernel_times import time_kernels
from intarsia.measure.measure_result import MeasureError
from intarsia.measure.race.limits import RaceLimits
from intarsia.measure.race.racing import Race
from intarsia.measure.race.result import RacedCandidate, RaceEnd, RaceResult
from intarsia.measure.race_task import leave_race
from intarsia.measure.worker_calls import DEFAULT_TIMINGS, Built, Timings, run_call, turn_call
from intarsia.measure.workers import TaskLimits, Workers


@dataclass(frozen=True, slots=True)
class Raced:
    """A race of built candidates.

    Attributes:
        result: Result of the race; None if no candidate could start.
        failures: Outcomes by name of candidates that could not be built, failed, or were wrong after the
            race.
        by_size: For each candidate the seconds of its turns by the sizes of the symbolic dimensions, as text;
            empty where one size is timed.
    """

    result: RaceResult | None
    failures: Mapping[str, Outcome]
    by_size: Mapping[str, Mapping[str, Sequence[float]]] = field(default_factory=dict)

    @property
    def ranking(self) -> tuple[RacedCandidate, ...]:
        """Right candidates with samples, the best first: those that stayed to the end before dropouts."""
        if self.result is None:
            return ()
        right = (item for item in self.result.candidates if item.samples and item.name not in self.failures)
        return tuple(sorted(right, key=lambda item: (item.dropped is not None, item.median)))


@dataclass(frozen=True, slots=True)
class Runner:
    """Checks and times built candidates.

    Runs are exclusive: for as long as one runs, no build and no other run of any process of the user does.

    Attributes:
        workers: Workers of which one runs: the candidates of a race stay loaded in its process.
        limits: Limits of one run or turn, with loading and checking.
        timings: Timing policies.
    """

    workers: Workers
    limits: TaskLimits
    timings: Timings = DEFAULT_TIMINGS

    def run(self, built: Built, timeout_s: float | None = None, best_seconds: float = math.inf) -> Outcome:
        """Run a candidate, and wait for the result; the caller holds the host (`Workers.running`).

        Args:
            built: The candidate.
            timeout_s: Seconds that it may take; those of the runner if not given.
            best_seconds: Seconds of a call of the best candidate for the same workload; see `run_call`.
        """
        function, arguments = run_call(built, self.timings, best_seconds)
        return self._outcome(function, *arguments, timeout_s=timeout_s)

    def time_kernels(self, artifacts: Sequence[Path], kernels: Sequence[str]) -> list[Outcome]:
        """Time native's kernels within built candidates, interleaved; see `kernel_times`.

        If one of them fails as it runs, each is timed by itself, and those that work interleaved once more.
        The call waits until the host is free.

        Args:
            artifacts: Folders of the candidates.
            kernels: Keys of the kernels.

        Returns:
            An outcome for each candidate, in order.
        """
        keys = tuple(kernels)
        with self.workers.running():
            timed = self._outcome(time_kernels, tuple(artifacts), keys)
            if timed.error is MeasureError.OK:
                return list(timed.parts)
            if len(artifacts) < 2:
                return [timed] * len(artifacts)
            alone = {path: self._outcome(time_kernels, (path,), keys) for path in artifacts}
            right = tuple(path for path, outcome in alone.items() if outcome.error is MeasureError.OK)
            together = self._outcome(time_kernels, right, keys) if right else timed
        parts = {path: next(iter(outcome.parts), outcome) for path, outcome in alone.items()}
        return [{**parts, **dict(zip(right, together.parts, strict=False))}[path] for path in artifacts]

    def race(self, racers: Mapping[str, Built], limits: RaceLimits | None = None) -> Raced:
        """Time candidates interleaved until the best is known (see `racing`); waits until the host is free.

        Each is compared with the reference once more after the race. If the winner is wrong then, or no
        candidate
        is left, the right ones race again: they may have dropped out against one that does not count.

        Args:
            racers: Candidates of one workload by name.
            limits: Limits of the race; default: those of the race policy.

        Raises:
            ValueError: There is no candidate.
        """
        limits = limits or RaceLimits()
        failures: dict[str, Outcome] = {}
        left = dict(racers)
        with self.workers.running():
            begun = limits.clock()
            while True:
                turns: dict[str, dict[str, list[float]]] = {}
                result = self._race(left, limits, begun, failures, turns)
                left = {name: built for name, built in left.items() if name not in failures}
                if result.winner in left or not left or limits.should_stop():
                    return Raced(result, failures, turns)

    def _race(
        self,
        racers: Mapping[str, Built],
        limits: RaceLimits,
        begun: float,
        failures: dict[str, Outcome],
        turns: dict[str, dict[str, list[float]]],
    ) -> RaceResult:
        """Run one race, and record candidates that failed in it or were wrong after it, and turns by size."""
        race = Race(tuple(racers), limits.policy)
        while (name := race.next_candidate()) is not None:
            function, arguments = turn_call(racers[name], self.timings)
            outcome = self._outcome(function, *arguments)
            if outcome.error is MeasureError.OK:
                race.record(name, outcome.costs[0])
                for part in outcome.parts:
                    turns.setdefault(name, {}).setdefault(part.message, []).append(part.costs[0])
            else:
                failures[name] = outcome
                race.withdraw(name)
            seconds = limits.clock() - begun
            limits.on_turn(race.rounds, seconds)
            if limits.should_stop():
                race.stop()
            elif seconds >= limits.seconds and race.rounds >= limits.policy.min_rounds:
                race.stop(RaceEnd.SECONDS_SPENT)
        for name, built in racers.items():
            if name in failures:
                continue
            outcome = self._outcome(leave_race, built.artifact)
            if outcome.error is not MeasureError.OK:
                failures[name] = outcome
        return race.result()

    def _outcome(
        self, function: Callable[..., Outcome], *arguments: object, timeout_s: float | None = None
    ) -> Outcome:
        limits = self.limits if timeout_s is None else replace(self.limits, seconds=timeout_s)
        return self.workers.run(function, arguments, limits)
