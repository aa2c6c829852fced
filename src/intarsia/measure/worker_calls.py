"""What workers do with candidates of each kind: programs, and schedules of kernels."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from math import inf
from pathlib import Path
from typing import Final, TypeAlias, assert_never

from intarsia.measure.candidate_task import Outcome, build_candidate, run_candidate
from intarsia.measure.measure_input import MeasureInput
from intarsia.measure.race_task import take_turn
from intarsia.measure.schedules.kernel_timing import DEFAULT_TIMING, KernelTiming
from intarsia.measure.schedules.kernel_workload import ScheduleInput
from intarsia.measure.schedules.run_gpu_schedule import run_gpu_schedule, take_gpu_schedule_turn
from intarsia.measure.schedules.run_schedule import run_schedule, take_schedule_turn
from intarsia.measure.timing.timing import TimingPolicy

AnyInput: TypeAlias = MeasureInput | ScheduleInput
"""A candidate of either kind."""

WorkerCall: TypeAlias = tuple[Callable[..., Outcome], tuple[object, ...]]
"""A function of a module, where workers find it, with its arguments."""

QUICK: Final = TimingPolicy(warmup_seconds=0.02, repeats=10, min_repeat_seconds=0.005, max_seconds=2.0)
"""Timing of a candidate's first run; leaders race afterwards."""

TURN: Final = TimingPolicy(warmup_seconds=0.1, min_repeat_seconds=0.01, max_seconds=2.0)
"""Warm-up before a race, and least duration of its turns."""


@dataclass(frozen=True, slots=True)
class Timings:
    """Timing policies of candidates.

    Attributes:
        program: Timing of single runs of programs.
        kernel: Timing of single runs of schedules.
        turn: Timing of turns of races.
    """

    program: TimingPolicy = QUICK
    kernel: KernelTiming = DEFAULT_TIMING
    turn: TimingPolicy = TURN


DEFAULT_TIMINGS: Final = Timings()


@dataclass(frozen=True, slots=True)
class Built:
    """A built candidate.

    Attributes:
        item: The candidate.
        folder: Folder of its workload.
        artifact: Folder of the artifact.
    """

    item: AnyInput
    folder: Path
    artifact: Path


def build_call(item: AnyInput, folder: Path, artifact: Path, most_stores: int | None = None) -> WorkerCall:
    """Return the call that builds a candidate.

    Args:
        item: The candidate.
        folder: Folder of its workload.
        artifact: Folder that is made.
        most_stores: Limit of the stores of a kernel (`compile_schedule`).
    """
    candidate = item.candidate
    match item:
        case MeasureInput():
            return build_candidate, (folder, str(item.target), candidate.kind, candidate.trace, artifact)
        case ScheduleInput():
            return item.workload.build, (folder, candidate.trace, artifact, most_stores)
        case _:
            assert_never(item)


def run_call(built: Built, timings: Timings, best_seconds: float = inf) -> WorkerCall:
    """Return the call that checks and times a built candidate.

    Args:
        built: The candidate.
        timings: Timing policies.
        best_seconds: Seconds of a call of the best candidate for the same workload; inf if there is none. A
            schedule that is hopelessly slower is not timed for long.
    """
    item, folder, artifact = built.item, built.folder, built.artifact
    match item:
        case MeasureInput():
            return run_candidate, (folder, str(item.target), artifact, timings.program)
        case ScheduleInput():
            if item.workload.is_for_gpu:
                return run_gpu_schedule, (folder, artifact, timings.kernel, best_seconds)
            return run_schedule, (folder, item.threads, artifact, timings.kernel, best_seconds)
        case _:
            assert_never(item)


def turn_call(built: Built, timings: Timings) -> WorkerCall:
    """Return the call that takes a turn of a candidate in a race."""
    item, folder, artifact, turn = built.item, built.folder, built.artifact, timings.turn
    match item:
        case MeasureInput():
            return take_turn, (folder, str(item.target), artifact, turn)
        case ScheduleInput():
            if item.workload.is_for_gpu:
                return take_gpu_schedule_turn, (folder, artifact, turn)
            size = timings.kernel.operand_bytes
            return take_schedule_turn, (folder, item.threads, artifact, turn, size)
        case _:
            assert_never(item)
