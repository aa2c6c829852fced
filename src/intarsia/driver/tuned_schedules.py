"""Passes that tune schedules in a run: native with the best schedules as one more target."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from typing import Final

from intarsia.autoschedule.tuning.schedule_records import ScheduleRow
from intarsia.autoschedule.tuning.tune_schedule import TuneSchedule
from intarsia.driver.pipeline import PipelineResult, run_pipeline
from intarsia.driver.progress import Progress, TuneStage
from intarsia.measure.candidate_kind import WHOLE
from intarsia.measure.measure_input import MeasureInput, Workload
from intarsia.target import Target
from intarsia.toolchain.native.toolchain import Native
from intarsia.transform import Sequential
from intarsia.tune.contest.contest import HOPELESS, Contest
from intarsia.tune.contest.entrant import candidate_key
from intarsia.tune.run_control import RunControl

_LEAST_SECONDS: Final = 1.0
"""With less time no schedule is searched."""


@dataclass(slots=True)
class TunedSchedules:
    """Results of passes that tune schedules.

    Attributes:
        pipeline: Results of the passes; None if none ran.
        costs: Seconds of a run of the program on native, with and without schedule logs, by target.
        rows: Kernels of the schedule search, if there was one.
    """

    pipeline: PipelineResult | None = None
    costs: dict[Target, float] = field(default_factory=dict)
    rows: tuple[ScheduleRow, ...] = ()

    @property
    def targets(self) -> tuple[Target, ...]:
        """Native targets with schedule logs."""
        return tuple(target for target in self.costs if target.option("schedules") is not None)

    def cost(self, target: Target) -> float:
        """Return the seconds of a run of the program on a target; infinite if it is not known."""
        return self.costs.get(target, math.inf)

    def joined(self, result: PipelineResult) -> PipelineResult:
        """Return the result of another pipeline with these results before it."""
        tree = () if self.pipeline is None else self.pipeline.tree
        return replace(result, tree=(*tree, *result.tree), schedules=self.rows)


def tune_schedules(
    contest: Contest,
    workload: Workload,
    targets: Sequence[Target],
    passes: Sequence[TuneSchedule],
    control: RunControl,
    seconds: float,
    report: Callable[[Progress], object],
) -> TunedSchedules:
    """Run passes that tune schedules for native, and enter the results into a contest.

    Nothing is searched for a program that native runs far slower than another target; stored schedules are
    tried in any case.

    Args:
        contest: Contest in which the baselines were measured.
        workload: The program, with its inputs.
        targets: Targets that may run it.
        passes: Passes that tune schedules.
        control: Budget of the run, and callbacks.
        seconds: Time for the search.
        report: Function that is called with each progress event.

    Raises:
        IntarsiaError: Measuring is impossible.
    """
    native = next((target for target in targets if target.toolchain == Native.name), None)
    baseline = None if native is None else _cost(contest, workload, native)
    if native is None or baseline is None or not passes or native.option("schedules") is not None:
        return TunedSchedules()
    best = min(result.cost for result in contest.results().values() if result.is_ok)
    if baseline > HOPELESS * best:
        control.skip(
            "the search of schedules", f"native takes {baseline / best:.1f} times as long as the best"
        )
        seconds = 0.0
    tuned = TunedSchedules(costs={native: baseline})

    if seconds >= _LEAST_SECONDS:
        report(Progress(TuneStage.SCHEDULES))
    limited = [
        replace(
            item,
            target=item.target or str(native),
            seconds=min(item.seconds, seconds) if seconds >= _LEAST_SECONDS else 0.0,
        )
        for item in passes
    ]
    before = len(contest.entrants)
    tuned.pipeline = run_pipeline(contest, workload, Sequential(limited, name="schedules"), control)
    tuned.rows = tuned.pipeline.schedules
    for entrant in contest.entrants[before:]:
        cost = _cost(contest, workload, entrant.input.target)
        if entrant.input.candidate.digest == WHOLE.digest and cost is not None:
            tuned.costs[entrant.input.target] = cost
    return tuned


def _cost(contest: Contest, workload: Workload, target: Target) -> float | None:
    """Return the seconds of a run of the whole program on a target, if it was measured and works."""
    result = contest.results().get(candidate_key(MeasureInput(workload, target, WHOLE)))
    return result.cost if result is not None and result.is_ok else None
