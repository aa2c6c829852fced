"""Run built schedules on the GPU of a worker process: check their results, and time them by its events.

A kernel that faults spoils the process, which is replaced; one that hangs is ended with it after its limit.
So either loses its own schedule only, and a lack of memory does as well.
"""

from __future__ import annotations

from functools import partial
from pathlib import Path

from intarsia.measure.candidate_task import Outcome, failure_outcome
from intarsia.measure.measure_result import MeasureError
from intarsia.measure.race_task import Racer, take_turn_with
from intarsia.measure.schedules.gpu_schedule_kernel import GpuScheduleKernel
from intarsia.measure.schedules.kernel_timing import KernelTiming
from intarsia.measure.schedules.loaded_gpu_schedule import LoadedGpuSchedule, gpu_task
from intarsia.measure.schedules.run_timing import time_run
from intarsia.measure.sized_calls import SizedCall, Turns
from intarsia.measure.timing.timing import TimingPolicy


def run_gpu_schedule(folder: Path, artifact: Path, timing: KernelTiming, best_seconds: float) -> Outcome:
    """Compare the result of a schedule with the reference, and time it on the GPU.

    Args:
        folder: Folder of the computation.
        artifact: Folder of the kernels.
        timing: Durations and sample counts.
        best_seconds: Seconds of the best schedule so far; inf if there is none.
    """
    try:
        loaded = _load(folder, artifact)
    except Exception as error:  # any exception is a property of the schedule
        return failure_outcome(MeasureError.LOAD, error)
    with loaded:
        try:
            outcome = loaded.checked_call()
            if outcome.error is not MeasureError.OK:
                return outcome
            return Outcome(costs=_time(loaded, timing, best_seconds))
        except Exception as error:  # as above
            return failure_outcome(MeasureError.RUNTIME, error)


def _time(loaded: LoadedGpuSchedule, timing: KernelTiming, best_seconds: float) -> tuple[float, ...]:
    """Return the seconds of a run, a number for each sample."""
    first = loaded.time_once()
    loaded.record_batch(first)
    runs = loaded.runs
    costs = time_run(loaded.start_batch, first * runs, best_seconds * runs, timing, loaded.clock)
    return tuple(cost / runs for cost in costs)


def take_gpu_schedule_turn(folder: Path, artifact: Path, policy: TimingPolicy) -> Outcome:
    """Take one sample of a schedule of a race; its first turn in a process loads it and warms it up.

    Args:
        folder: Folder of the computation.
        artifact: Folder of the kernels.
        policy: Policy of its warm-up and of the sample.
    """
    return take_turn_with(artifact, partial(_enter, folder, artifact, policy))


def _enter(folder: Path, artifact: Path, policy: TimingPolicy) -> Racer:
    loaded = _load(folder, artifact)
    loaded.record_batch(loaded.time_once())
    # Its weight makes the time of a run of that of a batch.
    call = SizedCall("", 1 / loaded.runs, loaded.start_batch, loaded.clock)
    return Racer(loaded, Turns.warmed_up((call,), policy), loaded.checked_call)


def _load(folder: Path, artifact: Path) -> LoadedGpuSchedule:
    return LoadedGpuSchedule.load(gpu_task(folder), GpuScheduleKernel.read(artifact))
