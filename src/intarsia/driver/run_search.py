"""The search of a run: the tuning pipeline between the baselines and the race, where it can pay."""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Final

from intarsia.autoschedule.tuning.schedule_records import ScheduleProgress, ScheduleSearchStart
from intarsia.collage.placement.placement import Placement
from intarsia.driver.baselines import engines, without_slower
from intarsia.driver.machine_bound import MachineBound, machine_bound
from intarsia.driver.pipeline import PipelineResult, run_pipeline, whole_pipeline
from intarsia.driver.progress import Progress, TuneStage
from intarsia.driver.run_settings import RunSettings
from intarsia.driver.tune_options import RunCallbacks
from intarsia.measure.candidate_kind import WHOLE
from intarsia.measure.measure_input import MeasureInput
from intarsia.measure.measure_progress import MeasureProgress
from intarsia.target import Target
from intarsia.target.cpu import usable_cores
from intarsia.tune.contest.contest import Contest
from intarsia.tune.contest.entrant import candidate_key
from intarsia.tune.run_control import RunControl

CLOSE_TO_BOUND: Final = 0.95
"""Share of the machine's bound at which nothing more is tried: less than a factor of 1.05 is left."""

MOST_OF_BOUND: Final = 1.05
"""Ratio of the bound to the time of a program above which other work has disturbed the measured rates."""

PATIENCE_SHARE: Final = 0.3
"""Seconds without a gain after which passes end, relative to those of measuring each toolchain alone: a rule
of thumb. The fastest toolchain alone is the answer for nearly all models, and takes that long to find."""

LEAST_PATIENCE: Final = 2.0
"""Minimum of these seconds: a few candidates of a small model."""

LEAST_WITHOUT_WHOLE: Final = 30.0
"""Minimum seconds of the search where no toolchain runs the whole program: without a mix nothing results."""

LEAST_TUNING_SECONDS: Final = 1.0
"""With less time for the search no tuning pass is run."""


@dataclass(frozen=True, slots=True, eq=False)
class RunSearch:
    """The search of a run.

    Attributes:
        contest: Contest in which the baselines were measured.
        settings: Settings of the run.
        seconds: Seconds for the search.
        callbacks: Functions that the run calls.
    """

    contest: Contest
    settings: RunSettings
    seconds: float
    callbacks: RunCallbacks

    def run(self) -> PipelineResult | None:
        """Run the tuning pipeline, if something can be decided, and the result can be checked.

        Raises:
            IntarsiaError: Measuring is impossible.
        """
        asked, measurer = self.settings, self.contest.measurer
        control = RunControl(
            self._search_seconds,
            max(0, asked.most_trials - measurer.trials),
            measurer,
            should_stop=self.callbacks.should_stop,
            on_progress=self._report_search,
            on_note=self.callbacks.on_note,
            proves=asked.proves,
            patience=max(LEAST_PATIENCE, PATIENCE_SHARE * measurer.measuring_seconds),
        )
        targets = self._usable_targets()
        can_place = asked.searches and len(targets) > 1
        if not targets or not (asked.passes or can_place):
            return None
        reason = self._reason_to_skip(control)
        if reason:
            control.skip("tuning passes and the placement of parts", reason)
            return PipelineResult((), tuple(f"left out: {skipped}" for skipped in control.skipped), None)
        pipeline = whole_pipeline(
            asked.passes,
            targets,
            searches_parts=can_place,
            placements=self._known_placements(),
            seed=asked.seed,
        )
        result = run_pipeline(self.contest, asked.workload, pipeline, control)
        bound, best = self._bound(), self._best()
        if not bound.seconds or not math.isfinite(best):
            return result
        return replace(result, notes=(*result.notes, f"the fastest program: {bound.text(best)}"))

    @property
    def _search_seconds(self) -> float:
        """Seconds for the search: more than requested where a mix must be found for there to be a result."""
        needs_mix = self.settings.searches and not math.isfinite(self._best())
        return max(self.seconds, LEAST_WITHOUT_WHOLE) if needs_mix else self.seconds

    def _reason_to_skip(self, control: RunControl) -> str:
        """Return why nothing beside the baselines is tried; "" if there is no reason."""
        if self.contest.random_text:
            return "the model draws random numbers, so that no result can be checked"
        if control.trials_left < 1:
            return f"the baselines have used the {self.settings.trials} trials: --trials gives more"
        if self._search_seconds < LEAST_TUNING_SECONDS:
            took = f"measuring each toolchain alone took {self.contest.measurer.spent:.1f} s"
            return f"{took}, and {self.seconds:.1f} s are too little for a search: --budget gives more"
        return "the run was stopped" if self.callbacks.should_stop() else self._reason_by_bound()

    def _reason_by_bound(self) -> str:
        """Return why no candidate can be much faster than the fastest baseline; "" if one can."""
        best = self._best()
        if self.settings.proves or not math.isfinite(best):
            return ""
        bound = self._bound()
        return bound.text(best) if bound.share(best) >= CLOSE_TO_BOUND else ""

    def _best(self) -> float:
        """Return the least seconds of a candidate, by single measurements; infinite if none works."""
        return min((result.cost for result in self.contest.results().values()), default=math.inf)

    def _bound(self) -> MachineBound:
        """Return the bound of the program; none if the rates were measured while the machine was busy."""
        cores = max(target.option("threads", usable_cores(Path("/"))) for target in self.settings.targets)
        bound = machine_bound(self.settings.workload.module, cores)
        return bound if bound.seconds <= MOST_OF_BOUND * self._best() else MachineBound(0.0)

    def _known_placements(self) -> list[Placement]:
        """Return the placement of the plan, if it is one without decisions."""
        plan = self.settings.plan
        is_known = plan is not None and plan.whole is None and not plan.decisions
        return [plan.placement] if plan is not None and is_known else []

    def _report_search(self, fraction: float, detail: object) -> None:
        if isinstance(detail, ScheduleSearchStart):
            self.callbacks.on_progress(Progress(TuneStage.SCHEDULES))
        elif isinstance(detail, ScheduleProgress):
            self.callbacks.on_progress(Progress(TuneStage.SCHEDULES, detail.fraction, scheduled=detail))
        else:
            measured = detail if isinstance(detail, MeasureProgress) else None
            self.callbacks.on_progress(Progress(TuneStage.TUNE, fraction, measured))

    def _usable_targets(self) -> list[Target]:
        """Return the targets that may run partitions: of native, the faster one with or without records."""
        measured, asked = self.contest.results(), self.settings
        wholes = {target: MeasureInput(asked.workload, target, WHOLE) for target in asked.targets}
        results = {target: measured.get(candidate_key(item)) for target, item in wholes.items()}
        costs = {target: math.inf if result is None else result.cost for target, result in results.items()}
        return without_slower(engines(asked.targets), costs.__getitem__)
