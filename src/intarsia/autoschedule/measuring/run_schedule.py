"""What a worker does to run built schedules: check their results, and time them."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import ExitStack
from pathlib import Path
from time import perf_counter

from intarsia.autoschedule.measuring.loaded_schedule import LoadedSchedule
from intarsia.autoschedule.measuring.loaded_task import loaded_task
from intarsia.autoschedule.measuring.measure_options import RunTiming
from intarsia.autoschedule.measuring.partial_timing import estimate_whole
from intarsia.autoschedule.measuring.run_timing import time_run
from intarsia.autoschedule.measuring.schedule_kernel import ScheduleKernel
from intarsia.measure.candidate_task import Outcome, failure_outcome
from intarsia.measure.measure_result import MeasureError
from intarsia.measure.timing.interleaved import time_interleaved
from intarsia.measure.timing.timing import TimingPolicy


def run_schedule(folder: Path, built: ScheduleKernel, timing: RunTiming, best_seconds: float) -> Outcome:
    """Compare the result of a schedule with the reference, and time it.

    If a part of its loops shows that it is clearly slower than the best schedule known, the estimate from the
    part is its cost, and the result is not compared: such a schedule is never chosen.

    Args:
        folder: Of the task.
        built: The kernel.
        timing: How long, how often.
        best_seconds: Of the best schedule known; inf if there is none.
    """
    task = loaded_task(folder)
    try:
        loaded = LoadedSchedule.load(task, built, timing.operand_bytes)
    except Exception as error:  # whatever it raises is a property of the schedule
        return failure_outcome(MeasureError.LOAD, error)
    with loaded:
        try:
            task.spoil_outputs()
            estimate = estimate_whole(loaded, best_seconds, timing)
            if estimate > timing.clear_ratio * best_seconds:
                return Outcome(costs=(estimate,))
            start = perf_counter()
            loaded.call()
            seconds = perf_counter() - start
            checked = task.checked()
            if checked.error is not MeasureError.OK:
                return checked
            return Outcome(costs=time_run(loaded.call, seconds, best_seconds, timing))
        except Exception as error:  # as above
            return failure_outcome(MeasureError.RUNTIME, error)


def run_in_turns(
    folder: Path, built: Sequence[ScheduleKernel], policy: TimingPolicy, operand_bytes: int = 0
) -> list[Outcome]:
    """Time schedules against one another in turns; each is compared with the reference before and after.

    Args:
        folder: Of the task.
        built: The kernels, each of which was right before.
        policy: How long, how often; the budget is of each.
        operand_bytes: As `RunTiming.operand_bytes`.
    """
    task = loaded_task(folder)
    with ExitStack() as stack:
        loaded = [stack.enter_context(LoadedSchedule.load(task, each, operand_bytes)) for each in built]
        before = [_result(each) for each in loaded]
        right = {
            str(place): each.call
            for place, (each, outcome) in enumerate(zip(loaded, before, strict=True))
            if outcome.error is MeasureError.OK
        }
        if not right:
            return before
        timings = time_interleaved(right, policy).timings
        return [
            _after(each, outcome, timings[str(place)].samples if str(place) in timings else ())
            for place, (each, outcome) in enumerate(zip(loaded, before, strict=True))
        ]


def _result(loaded: LoadedSchedule) -> Outcome:
    loaded.task.spoil_outputs()
    loaded.call()
    return loaded.task.checked()


def _after(loaded: LoadedSchedule, before: Outcome, costs: tuple[float, ...]) -> Outcome:
    """Whether what was right before the turns is so after them."""
    outcome = before if before.error is not MeasureError.OK else _result(loaded)
    return Outcome(costs=costs) if outcome.error is MeasureError.OK else outcome
