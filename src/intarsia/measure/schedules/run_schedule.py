"""Run built schedules in a worker process: check their results, and time them."""

from __future__ import annotations

from functools import partial
from pathlib import Path
from time import perf_counter

from intarsia.measure.candidate_task import Outcome, failure_outcome
from intarsia.measure.measure_result import MeasureError
from intarsia.measure.race_task import Racer, take_turn_with
from intarsia.measure.schedules.kernel_timing import KernelTiming
from intarsia.measure.schedules.loaded_schedule import LoadedSchedule
from intarsia.measure.schedules.loaded_task import loaded_task
from intarsia.measure.schedules.partial_timing import estimate_whole
from intarsia.measure.schedules.run_timing import time_run
from intarsia.measure.schedules.schedule_kernel import ScheduleKernel
from intarsia.measure.sized_calls import SizedCall, Turns
from intarsia.measure.timing.timing import TimingPolicy


def run_schedule(
    folder: Path, threads: int, artifact: Path, timing: KernelTiming, best_seconds: float
) -> Outcome:
    """Compare the result of a schedule with the reference, and time it.

    If a part of its loops shows that it is clearly slower than the best schedule so far, the estimate from
    the part is its cost, and the result is not compared: such a schedule is never chosen.

    Args:
        folder: Folder of the computation.
        threads: Number of threads that run it.
        artifact: Folder of the kernel.
        timing: Durations and sample counts.
        best_seconds: Seconds of the best schedule so far; inf if there is none.
    """
    task = loaded_task(folder, threads)
    try:
        loaded = LoadedSchedule.load(task, ScheduleKernel.read(artifact), timing.operand_bytes)
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


def take_schedule_turn(
    folder: Path, threads: int, artifact: Path, policy: TimingPolicy, operand_bytes: int = 0
) -> Outcome:
    """Take one sample of a schedule of a race; its first turn in a process loads it and warms it up.

    Args:
        folder: Folder of the computation.
        threads: Number of threads that run it.
        artifact: Folder of the kernel.
        policy: Policy of its warm-up and of the sample.
        operand_bytes: Bytes of copies of the operands; see `KernelTiming.operand_bytes`.
    """
    return take_turn_with(artifact, partial(_enter, folder, threads, artifact, policy, operand_bytes))


def _enter(folder: Path, threads: int, artifact: Path, policy: TimingPolicy, operand_bytes: int) -> Racer:
    kernel = ScheduleKernel.read(artifact)
    loaded = LoadedSchedule.load(loaded_task(folder, threads), kernel, operand_bytes)
    turns = Turns.warmed_up((SizedCall("", 1.0, loaded.call),), policy)
    return Racer(loaded, turns, loaded.checked_call)
