"""What a run was started with, what its time was spent on, and the errors and remarks of its winner."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Final

from intarsia.driver.explain.output_errors import output_errors
from intarsia.driver.explain.pass_remarks import instantiate_with_remarks
from intarsia.driver.progress import Progress
from intarsia.driver.stage_clock import StageClock
from intarsia.measure.judge.accuracy import judged_trials
from intarsia.measure.judge.trials import Trial
from intarsia.measure.measure_event import MeasureEvent
from intarsia.measure.measure_input import MeasureInput
from intarsia.report.run_records import OutputDeviation, RemarkRecord, RunRequest, StageSeconds
from intarsia.runtime.executable import Executable


@dataclass(frozen=True, slots=True)
class RunFacts:
    """What a run was started with, and what its time was spent on.

    Attributes:
        request: Options of the run.
        stages: Wall-clock seconds of its stages.
        events: Measurements that it used, in order.
        errors: Errors of the winner by output and input set.
        remarks: Remarks of the passes that made the winner's program.
    """

    request: RunRequest | None = None
    stages: tuple[StageSeconds, ...] = ()
    events: tuple[MeasureEvent, ...] = ()
    errors: tuple[OutputDeviation, ...] = ()
    remarks: tuple[RemarkRecord, ...] = ()


NO_FACTS: Final = RunFacts()
"""Facts of a run that recorded none."""


def collect_facts(
    request: RunRequest | None,
    report: Callable[[Progress], object],
    events: Sequence[MeasureEvent],
    winner: MeasureInput,
    executable: Executable,
    trials: Sequence[Trial],
) -> RunFacts:
    """Return the facts of a run; the winner is run on each input set.

    Args:
        request: Options of the run.
        report: Function that got the progress events; a `StageClock` has the seconds of the stages.
        events: Measurements that the run used, in order.
        winner: Measure input of the winner.
        executable: The winner, built.
        trials: Input sets with the gates of their results.
    """
    stages = report.records() if isinstance(report, StageClock) else ()
    program, remarks = instantiate_with_remarks(winner)
    errors = output_errors(executable, judged_trials(trials, program))
    return RunFacts(request, stages, tuple(events), errors, remarks)
