"""One run of `tune`: baselines, a plan, the search, the race, and the result."""

from __future__ import annotations

import math
import time
from collections.abc import Mapping, Sequence
from contextlib import nullcontext
from dataclasses import dataclass, replace
from typing import Final

from intarsia.build import build
from intarsia.driver.baselines import baselines, default_precision_entrants
from intarsia.driver.explain.run import explain_run, measure_kernel_seconds
from intarsia.driver.explain.run_facts import collect_facts
from intarsia.driver.finished_runs import FinishedRuns
from intarsia.driver.kept_run import KeptRun
from intarsia.driver.pipeline import PipelineResult
from intarsia.driver.plans import plan_entrant, winning_plan
from intarsia.driver.precision_front import front_of
from intarsia.driver.progress import Progress, TuneStage
from intarsia.driver.quantisation import quantised_entrants
from intarsia.driver.relatives import relative_entrant
from intarsia.driver.result import TuneResult
from intarsia.driver.run_search import RunSearch
from intarsia.driver.run_settings import RunSettings
from intarsia.driver.size_variants import SizeVariants
from intarsia.driver.tune_options import RunCallbacks
from intarsia.measure.candidate_kind import instantiate
from intarsia.measure.database import Database
from intarsia.measure.judge.accuracy import judged_trials
from intarsia.measure.judge.examination import examine
from intarsia.measure.judge.gate import Gate
from intarsia.measure.judge.quorum import JudgeLimits
from intarsia.measure.judge.sized_trials import sized_trials
from intarsia.measure.measure_progress import MeasureProgress
from intarsia.measure.measurer import Measurer
from intarsia.measure.sizes.tried_ranges import tried_ranges_text
from intarsia.measure.testbed import EarlyBuilder, Testbed
from intarsia.measure.work import random_text
from intarsia.report.run_records import RunRequest
from intarsia.runtime.artifact_load import load
from intarsia.runtime.executable import Executable
from intarsia.runtime.kernel import Array
from intarsia.runtime.self_test import SelfTest
from intarsia.support.errors import CompileError, ExecutionError
from intarsia.target.reference import REFERENCE_TARGET
from intarsia.toolchain.native.toolchain import Native
from intarsia.transform import PassContext
from intarsia.tune.contest.contest import EXACT, FINAL, HOPELESS, Contest
from intarsia.tune.contest.entrant import Entrant
from intarsia.tune.run_control import Skipped

SEARCH_SHARE: Final = 0.6
"""Least share of the time for the search that is left after each toolchain alone; the race needs the rest at
most."""

RACE_ROUNDS: Final = 30
"""Rounds that a race is expected to take: fewer show a difference of 3 %."""

LEAST_REPEAT_SECONDS: Final = 0.01
"""Least seconds of a repeat in a race, in which fast programs run many times."""

SPECIALIZING_SEARCH_SHARE: Final = 0.3
"""That share where named sizes get variants, which gain more."""


def expected_race_seconds(contest: Contest) -> float:
    """Return the seconds that a race of the candidates so far and of one more like the fastest may take.

    Args:
        contest: Contest in which the baselines were measured.
    """
    costs = [result.cost for result in contest.results().values() if math.isfinite(result.cost)]
    fastest = min(costs, default=math.inf)
    racing = [*(cost for cost in costs if cost <= HOPELESS * fastest), fastest]
    return RACE_ROUNDS * sum(max(cost, LEAST_REPEAT_SECONDS) for cost in racing)


@dataclass(frozen=True, slots=True, eq=False)
class TuneRun:
    """A tuning run: the question, and what measures the candidates.

    Attributes:
        settings: Settings of the run.
        testbed: Testbed that measures candidates.
        patience: Maximum seconds of one run of a candidate.
        build_patience: Maximum seconds of one build of a candidate.
        database: Database of measurements, or None.
        callbacks: Functions that the run calls; true of `should_stop` ends it with the measurements so far.
        request: Options of the run, for reports.
    """

    settings: RunSettings
    testbed: Testbed
    patience: float
    build_patience: float
    database: Database | None
    callbacks: RunCallbacks
    request: RunRequest | None = None

    def tune(self, start: float) -> TuneResult:
        """Measure all candidates, and return the winner.

        Args:
            start: Start of tuning, by `time.perf_counter`.

        Raises:
            ModelError: No candidate computes the model right.
            StoppedError: `should_stop` returned true before any candidate was measured.
            DatabaseError: A measurement cannot be stored.
        """
        self.callbacks.on_progress(Progress(TuneStage.REFERENCE))
        # A finished run has records of its candidates, but not the programs of a front.
        repeated = None if self.settings.front else self._repeat_finished(start)
        if repeated is not None:
            return repeated
        entrants = self._first_entrants()
        self._prepare(entrants)
        result = self._measure(entrants, start)
        self._store(result)
        return result

    def _prepare(self, entrants: Sequence[Entrant]) -> None:
        """Compute the reference result while the first candidates are built.

        Judges compute on one core most of the time, and compiling takes longer than judging.
        """
        measurer = self._measurer()
        able = [entrant.input for entrant in entrants if not entrant.refusal]
        new = [item for item in able if not measurer.knows(item)]
        most = int(min(len(new), self.settings.most_trials))
        # Native code takes longest to compile: the others are built beside it.
        ordered = sorted(new[:most], key=lambda item: item.target.toolchain != Native.name)
        is_stopped = self.callbacks.should_stop()
        early = self.testbed if isinstance(self.testbed, EarlyBuilder) and not is_stopped else None
        with nullcontext() if early is None else early.building(ordered):
            self.testbed.prepare(self.settings.workload)

    def _measure(self, entrants: Sequence[Entrant], start: float) -> TuneResult:
        """Measure the first candidates, search, and race the best."""
        contest = self._measure_baselines(entrants, time.perf_counter() - start)
        pipeline = self._search(contest).run()
        winner = self._decide(contest, self._seconds_left(contest))
        return self._finish(contest, winner, pipeline, start)

    def _decide(self, contest: Contest, seconds: float) -> Entrant:
        """Race the best candidates, and then the winner against itself with variants for the named sizes."""
        asked = self.settings
        if not asked.specializes:
            return contest.decide(seconds, asked.seed)
        winner = contest.decide(seconds / 6, asked.seed)  # a few rounds decide, mostly
        trials = self.testbed.prepare(asked.workload).trials()
        variants = SizeVariants(contest, asked.workload, trials, asked.targets, seconds * 2 / 3)
        if self.callbacks.should_stop() or not variants.enter(winner):
            return winner
        return contest.decide(seconds / 6, asked.seed)

    def _repeat_finished(self, start: float) -> TuneResult | None:
        """Repeat the result of an identical earlier run, if its winner is still correct.

        The winner was built and run before, so it is built in this process.
        """
        finished = self._finished_runs.find(self.settings.plan)
        if finished is None:
            return None
        run, finished_at = finished
        workload, seed = self.settings.workload, self.settings.seed
        module, target = workload.module, REFERENCE_TARGET if run.plan.whole is None else run.plan.whole
        inputs, limits = workload.inputs(seed), JudgeLimits(workload.judge_seconds)
        trials = sized_trials(module, inputs, workload.samples, limits, seed)
        try:
            # The stored result must still be correct with today's libraries; it is not measured again.
            program = instantiate(module, target, run.plan.candidate)
            executable = build(program)
            is_right = examine(executable, judged_trials(trials, program)).passed
        except (CompileError, ExecutionError):  # a full run reports the reason, and finds another winner
            return None
        if not is_right:
            return None
        return self._result(executable, run, trials[0].gate, inputs, start, finished_at)

    def _store(self, result: TuneResult) -> None:
        if not result.stopped:
            run = KeptRun(result.candidates, result.plan, result.explanation, result.schedules)
            self._finished_runs.keep(run, self.settings.plan)

    @property
    def _finished_runs(self) -> FinishedRuns:
        return FinishedRuns(self.database, self.testbed.host, self.settings)

    def _seconds_left(self, contest: Contest) -> float:
        """Return the wall time left, by measurements: a resumed run counts the same."""
        return max(0.0, self.settings.seconds + self.settings.schedule_seconds - contest.measurer.spent)

    def _search_seconds(self, contest: Contest) -> float:
        """Return the seconds for the search: those requested for schedules, and a share of the others."""
        if not self.settings.can_search:
            return 0.0
        left = self._seconds_left(contest)
        schedules = min(self.settings.schedule_seconds, left)
        rest = left - schedules
        if self.settings.specializes:
            return schedules + SPECIALIZING_SEARCH_SHARE * rest
        return schedules + max(SEARCH_SHARE * rest, rest - expected_race_seconds(contest))

    def _measurer(self, earlier: float = 0.0) -> Measurer:
        return Measurer(
            self.testbed,
            self.database,
            patience=self.patience,
            build_patience=self.build_patience,
            most_trials=self.settings.most_trials,
            earlier=earlier,
        )

    def _first_entrants(self) -> list[Entrant]:
        """Return each toolchain alone, also in integers, and the plan of an earlier run if it differs."""
        asked = self.settings
        first = baselines(asked.workload, asked.targets)
        first += default_precision_entrants(asked.workload, asked.targets)
        first += quantised_entrants(asked.workload, asked.targets, asked.passes)
        planned = None if asked.plan is None else plan_entrant(asked.workload, asked.plan, first)
        if planned is not None:
            first.append(planned)
        return first

    def _measure_baselines(self, entrants: Sequence[Entrant], elapsed: float) -> Contest:
        """Measure each toolchain alone, regardless of the time, so that the result is never slower.

        Args:
            entrants: The toolchains.
            elapsed: Seconds of the run so far, which count against its budget.
        """
        contest = Contest(
            self._measurer(elapsed),
            self.callbacks.should_stop,
            self._report_measured,
            self._report_race,
            random_text(self.settings.workload.module),
            tried_ranges_text(self.settings.workload.module),
            EXACT if self.settings.proves else FINAL,
        )
        contest.enter(entrants)
        if self.settings.plan is None and self.settings.can_search:
            self._enter_relative(contest)
        return contest

    def _enter_relative(self, contest: Contest) -> None:
        """Add the plan of a model of the same family, if there is one, to the contest.

        With a limit of trials it is left out, with a note.
        """
        if contest.random_text or self.callbacks.should_stop():
            return  # nothing is tried, and the search reports why
        plan = self._finished_runs.nearest_plan()
        entrant = None if plan is None else relative_entrant(self.settings.workload, plan)
        if entrant is None:
            return
        if self.settings.trials is None:
            contest.enter([entrant])
            return
        reason = "the trials are left to the search: without --trials it is tried"
        note = f"left out: {Skipped(entrant.name, reason)}"
        contest.notes.append(note)
        self.callbacks.on_note(note)

    def _search(self, contest: Contest) -> RunSearch:
        return RunSearch(contest, self.settings, self._search_seconds(contest), self.callbacks)

    def _report_measured(self, progress: MeasureProgress) -> None:
        share = progress.done / max(1, progress.total)
        self.callbacks.on_progress(Progress(TuneStage.MEASURE, share, progress))

    def _report_race(self, fraction: float) -> None:
        self.callbacks.on_progress(Progress(TuneStage.RACE, fraction))

    def _finish(
        self,
        contest: Contest,
        winner: Entrant,
        pipeline: PipelineResult | None,
        start: float,
    ) -> TuneResult:
        name, host = self.settings.workload.name, self.testbed.host
        folder = self.testbed.prepare(self.settings.workload)
        executable, arrays = self._load_winner(winner), folder.inputs()
        records = contest.records()
        timing = next(record.timing for record in records if record.chosen)
        latency = timing.median if timing else None
        ordered = [arrays[item.name] for item in executable.inputs]
        times = measure_kernel_seconds(executable, ordered, math.inf if latency is None else latency)
        facts = collect_facts(
            self.request,
            self.callbacks.on_progress,
            contest.measurer.events,
            winner.input,
            executable,
            folder.trials(),
        )
        run = KeptRun(
            records,
            winning_plan(winner, name, host, latency, None if pipeline is None else pipeline.searched),
            explain_run(winner, contest.entrants, records, host, pipeline, times, contest.notes, facts),
            () if pipeline is None else pipeline.schedules,
        )
        front = front_of(contest.entrants, records) if self.settings.front else ()
        return replace(self._result(executable, run, folder.gate(), arrays, start), front=front)

    def _result(
        self,
        executable: Executable,
        run: KeptRun,
        gate: Gate,
        arrays: Mapping[str, Array],
        start: float,
        finished_at: float | None = None,
    ) -> TuneResult:
        ordered = tuple(arrays[item.name].copy() for item in executable.inputs)
        return TuneResult(
            model=self.settings.workload.name,
            executable=executable,
            candidates=run.candidates,
            reference=gate.reference,
            self_test=SelfTest(ordered, tuple(array.copy() for array in gate.expected)),
            host=self.testbed.host,
            seconds=time.perf_counter() - start,
            seed=self.settings.seed,
            stopped=self.callbacks.should_stop(),
            plan=run.plan,
            explanation=run.explanation,
            schedules=run.schedules,
            finished_at=finished_at,
        )

    def _load_winner(self, winner: Entrant) -> Executable:
        """Load the winner's artifact of the race, or build the winner in this process.

        With instruments it is built here: those of this process do not watch the workers.
        """
        artifact = self.testbed.artifact(winner.input)
        if artifact is not None and not PassContext.current().instruments:
            return load(artifact)
        measured = winner.input
        return build(instantiate(measured.workload.module, measured.target, measured.candidate))
