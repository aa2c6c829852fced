"""Run built schedules in a worker process: check their results, and time them."""

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

    If a part of its loops shows that it is clearly slower than the best schedule so far, the estimate from
    the part is its cost, and the result is not compared: such a schedule is never chosen.

    Args:
        folder: Folder of the task.
        built: The kernel.
        timing: Durations and sample counts.
        best_seconds: Seconds of the best schedule so far; inf if there is none.
    """
    task = loaded_task(folder)
    try:
        loaded = LoadedSchedule.load(task, built, timing.operand_bytes)
    except Exception as error:  # any exception is a property of the schedule
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
            outcome = task.check_outputs()
            if outcome.error is not MeasureError.OK:
                return outcome
            return Outcome(costs=time_run(loaded.call, seconds, best_seconds, timing))
        except Exception as error:  # as above
            return failure_outcome(MeasureError.RUNTIME, error)


def run_interleaved(
    folder: Path, built: Sequence[ScheduleKernel], policy: TimingPolicy, operand_bytes: int = 0
) -> list[Outcome]:
    """Time schedules interleaved; each is compared with the reference before and after.

    Args:
        folder: Folder of the task.
        built: Kernels whose results were right before.
        policy: Durations and sample counts; the time is for each kernel.
        operand_bytes: Bytes of copies of the operands; see `RunTiming.operand_bytes`.
    """
    task = loaded_task(folder)
    with ExitStack() as stack:
        loaded = [stack.enter_context(LoadedSchedule.load(task, kernel, operand_bytes)) for kernel in built]
        before = [_call_and_check(schedule) for schedule in loaded]
        right = {
            str(index): schedule.call
            for index, (schedule, outcome) in enumerate(zip(loaded, before, strict=True))
            if outcome.error is MeasureError.OK
        }
        if not right:
            return before
        timings = time_interleaved(right, policy).timings
        return [
            _outcome_after(schedule, outcome, timings[str(index)].samples if str(index) in timings else ())
            for index, (schedule, outcome) in enumerate(zip(loaded, before, strict=True))
        ]


def _call_and_check(loaded: LoadedSchedule) -> Outcome:
    loaded.task.spoil_outputs()
    loaded.call()
    return loaded.task.check_outputs()


def _outcome_after(loaded: LoadedSchedule, before: Outcome, costs: tuple[float, ...]) -> Outcome:
    """Check a schedule again after the timing; its costs count if it is still right."""
    outcome = before if before.error is not MeasureError.OK else _call_and_check(loaded)
    return Outcome(costs=costs) if outcome.error is MeasureError.OK else outcome
