"""One run of `tune`: baselines, a plan, a search, the race, and what came of it."""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Final

from intarsia.build import build
from intarsia.collage.placement.plan import Plan
from intarsia.driver.baselines import baselines, engines, without_slower
from intarsia.driver.contest import Contest
from intarsia.driver.entrant import Entrant
from intarsia.driver.explain.run import explain_run, kernel_seconds
from intarsia.driver.kept_run import KeptRun, family_question_digest, question_digest
from intarsia.driver.partition import LEAST_SECONDS, SearchedPartitions, enter_partitions
from intarsia.driver.plans import plan_entrant, winning_plan
from intarsia.driver.records import Progress, Stage
from intarsia.driver.relatives import layers_of, nearest_plan, relative_entrant
from intarsia.driver.result import TuneResult
from intarsia.driver.tuned_programs import LEAST_TUNING_SECONDS, TunedPrograms, enter_tuned_programs
from intarsia.measure.candidate_kind import WHOLE, instantiate
from intarsia.measure.database import Database, ModelRecord, RunRecord
from intarsia.measure.judge.accuracy import error_bound
from intarsia.measure.judge.examination import examine
from intarsia.measure.judge.gate import Gate
from intarsia.measure.judge.quorum import JudgeLimits
from intarsia.measure.judge.trials import trials_for
from intarsia.measure.measure_input import Workload
from intarsia.measure.measurer import MeasureBudget, Measurer
from intarsia.measure.testbed import Testbed
from intarsia.measure.work import random_text
from intarsia.runtime.artifact_load import load
from intarsia.runtime.executable import Executable
from intarsia.runtime.kernel import Array
from intarsia.runtime.self_test import SelfTest
from intarsia.support.errors import CompileError, ExecutionError
from intarsia.target import Target
from intarsia.target.reference import REFERENCE_TARGET
from intarsia.transform import Pass

SEARCH_SHARE = 0.6
"""Share of the budget for searching; the rest is for the race of the best."""

FREE_JUDGING: Final = 10.0
"""Seconds of judging that do not count against the budget: small models need less, even on a busy machine."""

LEAST_LEFT: Final = 0.5
"""Share of the budget that is left for searching and the race, however long judging has taken."""

TUNE_SHARE: Final = 1 / 3
"""Share of the time for searching that decisions on the program get, if partitions are searched as well."""

"""Who runs what no partition of a plan has."""


@dataclass(frozen=True, slots=True, eq=False)
class TuneRun:
    """What is tuned, with what, and how long.

    Attributes:
        workload: The model, with its inputs.
        testbed: Where candidates are measured.
        patience: Seconds that one run of a candidate may take.
        build_patience: Seconds that one build of a candidate may take.
        database: Where measurements are looked up and kept, or None.
        targets: Who is measured.
        seconds: Time for the search and for the race.
        trials: Candidates that are measured at most, or None.
        seed: Of the evolution and of the order in the race.
        searches: Whether partitions are searched.
        passes: What decides on the program before, by measuring; those that are no tuning passes just run.
        plan: What an earlier run has found, or None.
        report: Told what is being done.
        should_stop: A yes ends the run with what has been measured.
    """

    workload: Workload
    testbed: Testbed
    patience: float
    build_patience: float
    database: Database | None
    targets: Sequence[Target]
    seconds: float
    trials: int | None
    seed: int
    searches: bool
    passes: Sequence[Pass]
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
        repeated = self._repeated(start)
        if repeated is not None:
            return repeated
        begun = time.perf_counter()
        self.testbed.prepare(self.workload)
        result = self._after_judging(time.perf_counter() - begun)._measured(start)
        self._keep(result)
        return result

    def _after_judging(self, seconds: float) -> TuneRun:
        """The run with what judging has left of the budget, half of it at least."""
        counted = max(0.0, seconds - FREE_JUDGING)
        return replace(self, seconds=max(LEAST_LEFT * self.seconds, self.seconds - counted))

    def _measured(self, start: float) -> TuneResult:
        """Measure candidates, search, and hold the race."""
        contest = self._contest()
        begun = contest.measurer.spent
        tuned = self._tune(contest)
        searched = self._search(contest, self._search_seconds - (contest.measurer.spent - begun))
        winner = contest.decide(self.seconds - self._search_seconds, self.seed)
        return self._told(contest, winner, searched, tuned, start)

    def _repeated(self, start: float) -> TuneResult | None:
        """What came of the same question before, if its winner still computes the model right.

        All of it was built and run before, so this process does it itself.
        """
        found = self._kept_run()
        if found is None:
            return None
        run, finished_at = found
        module, target = self.workload.module, REFERENCE_TARGET if run.plan.whole is None else run.plan.whole
        inputs = self.workload.inputs(self.seed)
        trials = trials_for(module, inputs, JudgeLimits(self.workload.judge_seconds), self.seed)
        try:
            program = instantiate(module, target, run.plan.candidate)
            executable = build(program)
            bound = error_bound(program)
            is_right = examine(executable, [trial.loosened(bound) for trial in trials]).passed
        except (CompileError, ExecutionError):  # a whole run tells why, and finds another winner
            return None
        if not is_right:
            return None
        return self._result(executable, run, trials[0].gate, inputs, start, finished_at)

    def _kept_run(self) -> tuple[KeptRun, float] | None:
        """The finished run of the same question, and when that was.

        A plan that an earlier run without one has found adds nothing to the question.
        """
        found = self._answer(self.plan)
        if found is not None or self.plan is None:
            return found
        without = self._answer(None)
        return without if without is not None and without[0].plan.is_same(self.plan) else None

    def _answer(self, plan: Plan | None) -> tuple[KeptRun, float] | None:
        record = None if self.database is None else self.database.find_run(self._question(plan))
        if record is None:
            return None
        try:
            return KeptRun.from_text(record.outcome), record.finished_at
        except ValueError:  # of another version: it is asked again
            return None

    def _keep(self, result: TuneResult) -> None:
        if self.database is None or result.stopped:
            return
        run = KeptRun(result.candidates, result.plan, result.explanation)
        key, workload, host = self._question(self.plan), self.workload.digest, self.testbed.host.digest
        self.database.keep_run(RunRecord(key, workload, host, time.time(), run.to_text()))
        layers = " ".join(sorted(layers_of(self.workload.module)))
        self.database.keep_model(ModelRecord(key, self._family_question, layers))

    def _question(self, plan: Plan | None) -> str:
        return question_digest(
            self.workload,
            self.testbed.host,
            self.targets,
            seconds=self.seconds,
            trials=self.trials,
            seed=self.seed,
            searches=self.searches,
            passes=self.passes,
            plan=plan,
        )

    @property
    def _family_question(self) -> str:
        host = self.testbed.host
        return family_question_digest(host, self.targets, searches=self.searches, passes=self.passes)

    @property
    def _search_seconds(self) -> float:
        return self.seconds * SEARCH_SHARE if self.searches or self.passes else 0.0

    def _contest(self) -> Contest:
        """Each toolchain alone, whatever the time: the result is never worse than the best of them."""
        drawn = random_text(self.workload.module)
        measurer = Measurer(
            self.testbed, self.database, patience=self.patience, build_patience=self.build_patience
        )
        contest = Contest(measurer, self.report, self.should_stop, drawn)
        first = baselines(self.workload, self.targets)
        planned = None if self.plan is None else plan_entrant(self.workload, self.plan, first)
        first += [planned] if planned is not None else []
        contest.enter(first, MeasureBudget(trials=self.trials or math.inf))
        if self.plan is None and self._search_seconds and self._is_free(contest):
            self._enter_relative(contest)
        return contest

    def _enter_relative(self, contest: Contest) -> None:
        """What an earlier run has decided for a model of the same family, if there is one."""
        mod = self.workload.module
        plan = None if self.database is None else nearest_plan(self.database, self._family_question, mod)
        entrant = None if plan is None else relative_entrant(self.workload, plan)
        if entrant is not None:
            contest.enter([entrant], MeasureBudget())

    def _tune(self, contest: Contest) -> TunedPrograms | None:
        """Decisions on the program, if there is time, and a way to check the result."""
        seconds = self._search_seconds * (TUNE_SHARE if self.searches else 1.0)
        if not self.passes or seconds < LEAST_TUNING_SECONDS or not self._is_free(contest):
            return None
        return enter_tuned_programs(contest, self.workload, self._able(contest), self.passes, seconds)

    def _search(self, contest: Contest, seconds: float) -> SearchedPartitions | None:
        """Partitions, if there is time, something to choose, and a way to check the result."""
        able = self._able(contest)
        if not self.searches or len(able) < 2 or seconds < LEAST_SECONDS or not self._is_free(contest):
            return None
        plan = self.plan
        is_seed = plan is not None and plan.whole is None and not plan.decisions
        seeds = [plan.placement] if plan is not None and is_seed else []
        return enter_partitions(contest, self.workload, able, seconds, self.seed, seeds)

    def _is_free(self, contest: Contest) -> bool:
        """Whether there may be more candidates than toolchains alone, and their results can be checked."""
        return self.trials is None and not contest.random_text and not self.should_stop()

    def _able(self, contest: Contest) -> list[Target]:
        """Who may run parts of the model: of native with and without a schedule book the faster one."""
        found = contest.results()
        results = {target: found.get((str(target), WHOLE.digest)) for target in self.targets}
        costs = {target: math.inf if each is None else each.cost for target, each in results.items()}
        return without_slower(engines(self.targets), costs.__getitem__)

    def _told(
        self,
        contest: Contest,
        winner: Entrant,
        searched: SearchedPartitions | None,
        tuned: TunedPrograms | None,
        start: float,
    ) -> TuneResult:
        name, host = self.workload.name, self.testbed.host
        folder = self.testbed.prepare(self.workload)
        executable, arrays = self._executable(winner), folder.inputs()
        records = contest.records()
        timing = next(record.timing for record in records if record.chosen)
        given = [arrays[item.name] for item in executable.inputs]
        times = kernel_seconds(executable, given, timing.median if timing else math.inf)
        run = KeptRun(
            records,
            winning_plan(winner, name, host, timing.median if timing else None, searched),
            explain_run(winner, contest.entrants, records, host, searched, tuned, times),
        )
        return self._result(executable, run, folder.gate(), arrays, start)

    def _result(
        self,
        executable: Executable,
        run: KeptRun,
        gate: Gate,
        arrays: Mapping[str, Array],
        start: float,
        finished_at: float | None = None,
    ) -> TuneResult:
        given = tuple(arrays[item.name].copy() for item in executable.inputs)
        return TuneResult(
            model=self.workload.name,
            executable=executable,
            candidates=run.candidates,
            reference=gate.reference,
            self_test=SelfTest(given, tuple(array.copy() for array in gate.expected)),
            host=self.testbed.host,
            seconds=time.perf_counter() - start,
            seed=self.seed,
            stopped=self.should_stop(),
            plan=run.plan,
            explanation=run.explanation,
            finished_at=finished_at,
        )

    def _executable(self, winner: Entrant) -> Executable:
        """The winner, in this process: as it was built for the race, or built here."""
        artifact = self.testbed.artifact(winner.input)
        if artifact is not None:
            return load(artifact)
        measured = winner.input
        return build(instantiate(measured.workload.module, measured.target, measured.candidate))
