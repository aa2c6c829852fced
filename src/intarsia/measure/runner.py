"""Running built candidates in a worker process, one at a time on the host."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path

from intarsia.measure.candidate_task import Outcome, run_candidate
from intarsia.measure.measure_result import MeasureError
from intarsia.measure.race.limits import RaceLimits
from intarsia.measure.race.racing import Race
from intarsia.measure.race.result import RacedCandidate, RaceEnd, RaceResult
from intarsia.measure.race_task import leave_race, take_turn
from intarsia.measure.task_outcome import task_outcome
from intarsia.measure.timing.host_lock import exclusive_host
from intarsia.measure.timing.timing import TimingPolicy
from intarsia.measure.worker_pool import Task, WorkerPool
from intarsia.measure.workload_folder import WorkloadFolder

QUICK = TimingPolicy(warmup_seconds=0.02, repeats=10, min_repeat_seconds=0.005, max_seconds=2.0)
"""How a candidate is timed at first; leaders race afterwards."""

TURN = TimingPolicy(warmup_seconds=0.1, min_repeat_seconds=0.01, max_seconds=2.0)
"""How a candidate warms up before a race, and how long its turns last at least."""


@dataclass(frozen=True, slots=True)
class Built:
    """A built candidate.

    Attributes:
        target: Text of its target.
        artifact: Folder of the artifact.
    """

    target: str
    artifact: Path


@dataclass(frozen=True, slots=True)
class Raced:
    """A race of built candidates.

    Attributes:
        result: How it ended; None if nobody could start.
        failures: Those that could not be built, failed in it, or were wrong after it, by name.
    """

    result: RaceResult | None
    failures: Mapping[str, Outcome]

    @property
    def ranking(self) -> tuple[RacedCandidate, ...]:
        """Those that are right and have samples, the best first: who stayed to the end before who did not."""
        if self.result is None:
            return ()
        right = (each for each in self.result.candidates if each.samples and each.name not in self.failures)
        return tuple(sorted(right, key=lambda each: (each.dropped is not None, each.median)))


@dataclass(frozen=True, slots=True)
class Runner:
    """Checks and times built candidates.

    Runs are exclusive: for as long as one runs, no build and no other run of any process of the user does.

    Attributes:
        pool: Where they run; a pool of one worker, so that the candidates of a race wait in one process.
        policy: How they are timed.
        turn: How turns of races are timed.
        timeout_s: Seconds that one run or turn may take, with loading and checking.
        memory_bytes: Memory that one run may add, or None.
        on_wait: Called once, with the process that holds the host, if another process is timing.
    """

    pool: WorkerPool
    policy: TimingPolicy = QUICK
    turn: TimingPolicy = TURN
    timeout_s: float = 60.0
    memory_bytes: int | None = None
    on_wait: Callable[[str], None] | None = field(default=None, compare=False)

    def run(self, workload: WorkloadFolder, built: Built, timeout_s: float | None = None) -> Outcome:
        """Run a candidate; waits until the host is free, and for the result.

        Args:
            workload: What it computes.
            built: The candidate.
            timeout_s: Seconds that it may take; those of the runner if not given.
        """
        arguments = (workload.path, built.target, built.artifact, self.policy)
        with exclusive_host(on_wait=self.on_wait):
            return self._outcome(run_candidate, *arguments, timeout_s=timeout_s)

    def race(
        self, workload: WorkloadFolder, racers: Mapping[str, Built], limits: RaceLimits | None = None
    ) -> Raced:
        """Time candidates in turns until the best is known (see `racing`); waits until the host is free.

        Each is compared with the reference once more when the race is over. If the winner has become wrong
        meanwhile, or nobody is left, those that are right race again: they may have dropped out because they
        were slower than what does not count.

        Args:
            workload: What they compute.
            racers: By name.
            limits: When to stop; default: as the policy of races says.

        Raises:
            ValueError: There is no candidate.
        """
        limits = limits or RaceLimits()
        failures: dict[str, Outcome] = {}
        left = dict(racers)
        with exclusive_host(on_wait=self.on_wait):
            begun = limits.clock()
            while True:
                result = self._race(workload, left, limits, begun, failures)
                left = {name: built for name, built in left.items() if name not in failures}
                if result.winner in left or not left or limits.should_stop():
                    return Raced(result, failures)

    def _race(
        self,
        workload: WorkloadFolder,
        racers: Mapping[str, Built],
        limits: RaceLimits,
        begun: float,
        failures: dict[str, Outcome],
    ) -> RaceResult:
        """One race; notes who failed in it, or was wrong after it."""
        race = Race(tuple(racers), limits.policy)
        while (name := race.next_candidate()) is not None:
            outcome = self._outcome(take_turn, workload.path, racers[name].artifact, self.turn)
            if outcome.error is MeasureError.OK:
                race.record(name, outcome.costs[0])
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
            outcome = self._outcome(leave_race, workload.path, built.target, built.artifact)
            if outcome.error is not MeasureError.OK:
                failures[name] = outcome
        return race.result()

    def _outcome(
        self, function: Callable[..., Outcome], *arguments: object, timeout_s: float | None = None
    ) -> Outcome:
        limit = self.timeout_s if timeout_s is None else timeout_s
        task = Task(function, arguments, timeout_s=limit, memory_bytes=self.memory_bytes)
        return task_outcome(self.pool.submit_task(task), MeasureError.RUN_TIMEOUT)
