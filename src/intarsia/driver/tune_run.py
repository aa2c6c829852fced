"""One run of `tune`: baselines, a plan, the search, the race, and the result."""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Mapping, Sequence
from contextlib import nullcontext
from dataclasses import dataclass
from typing import Final

from intarsia.build import build
from intarsia.collage.placement.plan import Plan
from intarsia.driver.baselines import baselines, default_precision_entrants
from intarsia.driver.dynamic_mode import DynamicMode
from intarsia.driver.explain.run import explain_run, measure_kernel_seconds
from intarsia.driver.explain.run_facts import collect_facts
from intarsia.driver.finished_runs import FinishedRuns
from intarsia.driver.kept_run import KeptRun
from intarsia.driver.pipeline import PipelineResult
from intarsia.driver.plans import plan_entrant, winning_plan
from intarsia.driver.progress import Progress, TuneStage
from intarsia.driver.quantisation import quantised_entrants
from intarsia.driver.relatives import relative_entrant
from intarsia.driver.result import TuneResult
from intarsia.driver.run_search import RunSearch
from intarsia.driver.size_variants import SizeVariants
from intarsia.measure.candidate_kind import instantiate
from intarsia.measure.database import Database
from intarsia.measure.judge.accuracy import judged_trials
from intarsia.measure.judge.examination import examine
from intarsia.measure.judge.gate import Gate
from intarsia.measure.judge.quorum import JudgeLimits
from intarsia.measure.judge.sized_trials import sized_trials
from intarsia.measure.measure_input import Workload
from intarsia.measure.measure_progress import MeasureProgress
from intarsia.measure.measurer import Measurer
from intarsia.measure.testbed import EarlyBuilder, Testbed
from intarsia.measure.work import random_text
from intarsia.report.run_records import RunRequest
from intarsia.runtime.artifact_load import load
from intarsia.runtime.executable import Executable
from intarsia.runtime.kernel import Array
from intarsia.runtime.self_test import SelfTest
from intarsia.support.errors import CompileError, ExecutionError
from intarsia.target import Target
from intarsia.target.reference import REFERENCE_TARGET
from intarsia.toolchain.native.toolchain import Native
from intarsia.transform import Pass, PassContext
from intarsia.tune.contest.contest import EXACT, FINAL, Contest
from intarsia.tune.contest.entrant import Entrant
from intarsia.tune.run_control import Skipped

SEARCH_SHARE = 0.6
"""Share of the time for the search that is left after each toolchain alone; the race has the rest."""

SPECIALIZING_SEARCH_SHARE: Final = 0.3
"""That share where named sizes get variants, which gain more."""


@dataclass(frozen=True, slots=True, eq=False)
class TuneRun:
    """A tuning run: the model, the candidates and the limits.

    Attributes:
        workload: The model, with its inputs.
        testbed: Testbed that measures candidates.
        patience: Maximum seconds of one run of a candidate.
        build_patience: Maximum seconds of one build of a candidate.
        database: Database of measurements, or None.
        targets: Targets of the baselines.
        seconds: Wall time of the run, from its start; each toolchain alone is measured in any case.
        trials: Maximum number of measured candidates, or None.
        seed: Random seed of the evolution and of the order in the race.
        searches: Whether partitions are searched.
        passes: Tuning passes that run before the search for partitions; other passes are just applied.
        plan: Plan of an earlier run, or None.
        report: Function that is called with each progress event.
        on_note: Function that is called with sentences for people.
        should_stop: Function that returns true to end the run with the measurements so far.
        proves: Whether the search goes on until nothing is left to try, however little is expected of it.
        schedule_seconds: Seconds of a requested search of schedules, which come on top of `seconds`.
        request: Options of the run, for reports.
        dynamic: Mode of specializing the program for sizes of symbolic dimensions.
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
    on_note: Callable[[str], object]
    should_stop: Callable[[], bool]
    proves: bool = False
    schedule_seconds: float = 0.0
    request: RunRequest | None = None
    dynamic: DynamicMode = DynamicMode.EAGER

    def tune(self, start: float) -> TuneResult:
        """Measure all candidates, and return the winner.

        Args:
            start: Start of tuning, by `time.perf_counter`.

        Raises:
            ModelError: No candidate computes the model right.
            StoppedError: `should_stop` returned true before any candidate was measured.
            DatabaseError: A measurement cannot be stored.
        """
        self.report(Progress(TuneStage.REFERENCE))
        repeated = self._repeat_finished(start)
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
        most = len(new) if self.trials is None else self.trials
        # Native code takes longest to compile: the others are built beside it.
        ordered = sorted(new[:most], key=lambda item: item.target.toolchain != Native.name)
        early = self.testbed if isinstance(self.testbed, EarlyBuilder) and not self.should_stop() else None
        with nullcontext() if early is None else early.building(ordered):
            self.testbed.prepare(self.workload)

    def _measure(self, entrants: Sequence[Entrant], start: float) -> TuneResult:
        """Measure the first candidates, search, and race the best."""
        contest = self._measure_baselines(entrants, time.perf_counter() - start)
        pipeline = self._search(contest).run()
        winner = self._decide(contest, self._seconds_left(contest))
        return self._finish(contest, winner, pipeline, start)

    def _decide(self, contest: Contest, seconds: float) -> Entrant:
        """Race the best candidates, and then the winner against itself with variants for the named sizes."""
        if not self._specializes:
            return contest.decide(seconds, self.seed)
        winner = contest.decide(seconds / 6, self.seed)  # a few rounds decide, mostly
        trials = self.testbed.prepare(self.workload).trials()
        variants = SizeVariants(contest, self.workload, trials, self.targets, seconds * 2 / 3)
        if self.should_stop() or not variants.enter(winner):
            return winner
        return contest.decide(seconds / 6, self.seed)

    def _repeat_finished(self, start: float) -> TuneResult | None:
        """Repeat the result of an identical earlier run, if its winner is still correct.

        The winner was built and run before, so it is built in this process.
        """
        finished = self._finished_runs.find(self.plan)
        if finished is None:
            return None
        run, finished_at = finished
        module, target = self.workload.module, REFERENCE_TARGET if run.plan.whole is None else run.plan.whole
        inputs = self.workload.inputs(self.seed)
        limits = JudgeLimits(self.workload.judge_seconds)
        trials = sized_trials(module, inputs, self.workload.samples, limits, self.seed)
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
            self._finished_runs.keep(run, self.plan)

    @property
    def _finished_runs(self) -> FinishedRuns:
        return FinishedRuns(
            self.database,
            self.workload,
            self.testbed.host,
            self.targets,
            self.seconds,
            self.trials,
            self.seed,
            self.searches,
            self.passes,
            self.proves,
            self._specializes,
        )

    @property
    def _can_search(self) -> bool:
        return bool(self.seconds and (self.searches or self.passes))

    @property
    def _specializes(self) -> bool:
        return self.dynamic is not DynamicMode.NONE and any(item.is_named for item in self.workload.samples)

    def _seconds_left(self, contest: Contest) -> float:
        """Return the wall time left, by measurements: a resumed run counts the same."""
        return max(0.0, self.seconds + self.schedule_seconds - contest.measurer.spent)

    def _search_seconds(self, contest: Contest) -> float:
        """Return the seconds for the search: those requested for schedules, and a share of the others."""
        if not self._can_search:
            return 0.0
        schedules = min(self.schedule_seconds, left := self._seconds_left(contest))
        share = SPECIALIZING_SEARCH_SHARE if self._specializes else SEARCH_SHARE
        return schedules + share * (left - schedules)

    def _measurer(self, earlier: float = 0.0) -> Measurer:
        return Measurer(
            self.testbed,
            self.database,
            patience=self.patience,
            build_patience=self.build_patience,
            most_trials=math.inf if self.trials is None else self.trials,
            earlier=earlier,
        )

    def _first_entrants(self) -> list[Entrant]:
        """Return each toolchain alone, also in integers, and the plan of an earlier run if it differs."""
        first = baselines(self.workload, self.targets)
        first += default_precision_entrants(self.workload, self.targets)
        first += quantised_entrants(self.workload, self.targets, self.passes)
        if self.plan is not None and (planned := plan_entrant(self.workload, self.plan, first)) is not None:
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
            self.should_stop,
            self._report_measured,
            self._report_race,
            random_text(self.workload.module),
            EXACT if self.proves else FINAL,
        )
        contest.enter(entrants)
        if self.plan is None and self._can_search:
            self._enter_relative(contest)
        return contest

    def _enter_relative(self, contest: Contest) -> None:
        """Add the plan of a model of the same family, if there is one, to the contest.

        With a limit of trials it is left out, with a note.
        """
        if contest.random_text or self.should_stop():
            return  # nothing is tried, and the search reports why
        plan = self._finished_runs.nearest_plan()
        entrant = None if plan is None else relative_entrant(self.workload, plan)
        if entrant is None:
            return
        if self.trials is None:
            contest.enter([entrant])
            return
        reason = "the trials are left to the search: without --trials it is tried"
        note = f"left out: {Skipped(entrant.name, reason)}"
        contest.notes.append(note)
        self.on_note(note)

    def _search(self, contest: Contest) -> RunSearch:
        return RunSearch(
            contest=contest,
            workload=self.workload,
            targets=self.targets,
            seconds=self._search_seconds(contest),
            trials=self.trials,
            seed=self.seed,
            searches=self.searches,
            passes=self.passes,
            plan=self.plan,
            proves=self.proves,
            report=self.report,
            on_note=self.on_note,
            should_stop=self.should_stop,
        )

    def _report_measured(self, progress: MeasureProgress) -> None:
        share = progress.done / max(1, progress.total)
        self.report(Progress(TuneStage.MEASURE, share, progress))

    def _report_race(self, fraction: float) -> None:
        self.report(Progress(TuneStage.RACE, fraction))

    def _finish(
        self,
        contest: Contest,
        winner: Entrant,
        pipeline: PipelineResult | None,
        start: float,
    ) -> TuneResult:
        name, host = self.workload.name, self.testbed.host
        folder = self.testbed.prepare(self.workload)
        executable, arrays = self._load_winner(winner), folder.inputs()
        records = contest.records()
        timing = next(record.timing for record in records if record.chosen)
        latency = timing.median if timing else None
        ordered = [arrays[item.name] for item in executable.inputs]
        times = measure_kernel_seconds(executable, ordered, math.inf if latency is None else latency)
        facts = collect_facts(
            self.request, self.report, contest.measurer.events, winner.input, executable, folder.trials()
        )
        run = KeptRun(
            records,
            winning_plan(winner, name, host, latency, None if pipeline is None else pipeline.searched),
            explain_run(winner, contest.entrants, records, host, pipeline, times, contest.notes, facts),
            () if pipeline is None else pipeline.schedules,
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
        ordered = tuple(arrays[item.name].copy() for item in executable.inputs)
        return TuneResult(
            model=self.workload.name,
            executable=executable,
            candidates=run.candidates,
            reference=gate.reference,
            self_test=SelfTest(ordered, tuple(array.copy() for array in gate.expected)),
            host=self.testbed.host,
            seconds=time.perf_counter() - start,
            seed=self.seed,
            stopped=self.should_stop(),
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
