"""One run of `tune`: baselines, a plan, a search, the race, and what came of it."""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass

from intarsia.build import build
from intarsia.collage.placement.plan import Plan
from intarsia.driver.baselines import baselines, engines
from intarsia.driver.contest import Contest
from intarsia.driver.entrant import Entrant
from intarsia.driver.explain_run import explain_run, kernel_seconds
from intarsia.driver.partition import LEAST_SECONDS, SearchedPartitions, enter_partitions
from intarsia.driver.plans import plan_entrant, winning_plan
from intarsia.driver.records import Progress, Stage
from intarsia.driver.result import TuneResult
from intarsia.measure.candidate_kind import instantiate
from intarsia.measure.database import Database
from intarsia.measure.measure_input import Workload
from intarsia.measure.measurer import MeasureBudget, Measurer
from intarsia.measure.testbed import Testbed
from intarsia.measure.work import random_operators
from intarsia.runtime.artifact_load import load
from intarsia.runtime.executable import Executable
from intarsia.runtime.self_test import SelfTest
from intarsia.target import Target

SEARCH_SHARE = 0.6
"""Share of the budget for the search of partitions; the rest is for the race of the best."""


@dataclass(frozen=True, slots=True, eq=False)
class TuneRun:
    """What is tuned, with what, and how long.

    Attributes:
        workload: The model, with its inputs.
        testbed: Where candidates are measured.
        database: Where measurements are looked up and kept, or None.
        targets: Who is measured.
        seconds: Time for the search and for the race.
        trials: Candidates that are measured at most, or None.
        seed: Of the evolution and of the order in the race.
        searches: Whether partitions are searched.
        plan: What an earlier run has found, or None.
        report: Told what is being done.
        should_stop: A yes ends the run with what has been measured.
    """

    workload: Workload
    testbed: Testbed
    database: Database | None
    targets: Sequence[Target]
    seconds: float
    trials: int | None
    seed: int
    searches: bool
    plan: Plan | None
    report: Callable[[Progress], object]
    should_stop: Callable[[], bool]

    def result(self, start: float) -> TuneResult:
        """Find the winner.

        Args:
            start: When tuning began, by `time.perf_counter`.

        Raises:
            ModelError: No candidate computes the model right.
            StoppedError: There was a wish to stop before any candidate was measured.
            DatabaseError: A measurement cannot be kept.
        """
        self.report(Progress(Stage.REFERENCE))
        self.testbed.prepare(self.workload)
        contest = self._contest()
        searched = self._search(contest)
        winner = contest.decide(self.seconds - self._search_seconds, self.seed)
        return self._told(contest, winner, searched, start)

    @property
    def _search_seconds(self) -> float:
        return self.seconds * SEARCH_SHARE if self.searches else 0.0

    def _contest(self) -> Contest:
        """Each toolchain alone, whatever the time: the result is never worse than the best of them."""
        drawn = random_operators(self.workload.module)
        contest = Contest(Measurer(self.testbed, self.database), self.report, self.should_stop, drawn)
        first = baselines(self.workload, self.targets)
        planned = None if self.plan is None else plan_entrant(self.workload, self.plan, first)
        first += [planned] if planned is not None else []
        contest.enter(first, MeasureBudget(trials=self.trials or math.inf))
        return contest

    def _search(self, contest: Contest) -> SearchedPartitions | None:
        """Partitions, if there is time, something to choose, and a way to check the result."""
        able, seconds = engines(self.targets), self._search_seconds
        is_free = self.trials is None and not contest.random_operators and not self.should_stop()
        if len(able) < 2 or seconds < LEAST_SECONDS or not is_free:
            return None
        plan = self.plan
        seeds = [plan.placement] if plan is not None and plan.whole is None else []
        return enter_partitions(contest, self.workload, able, seconds, self.seed, seeds)

    def _told(
        self, contest: Contest, winner: Entrant, searched: SearchedPartitions | None, start: float
    ) -> TuneResult:
        name, host = self.workload.name, self.testbed.host
        folder = self.testbed.prepare(self.workload)
        executable, gate, arrays = self._executable(winner), folder.gate(), folder.inputs()
        records = contest.records()
        timing = next(record.timing for record in records if record.chosen)
        given = [arrays[item.name] for item in executable.inputs]
        times = kernel_seconds(executable, given, timing.median if timing else math.inf)
        return TuneResult(
            model=name,
            executable=executable,
            candidates=records,
            reference=gate.reference,
            self_test=SelfTest(
                tuple(array.copy() for array in given), tuple(array.copy() for array in gate.expected)
            ),
            host=host,
            seconds=time.perf_counter() - start,
            seed=self.seed,
            stopped=self.should_stop(),
            plan=winning_plan(winner, name, host, timing.median if timing else None, searched),
            explanation=explain_run(winner, contest.entrants, records, host, searched, times),
        )

    def _executable(self, winner: Entrant) -> Executable:
        """The winner, in this process: as it was built for the race, or built here."""
        artifact = self.testbed.artifact(winner.input)
        if artifact is not None:
            return load(artifact)
        measured = winner.input
        return build(instantiate(measured.workload.module, measured.target, measured.candidate))
