"""Build a schedule in a worker process."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from time import perf_counter
from typing import TypeAlias

from intarsia.autoschedule.measuring.schedule_kernel import ScheduleKernel, compile_schedule
from intarsia.autoschedule.measuring.task_folder import TaskFolder
from intarsia.measure.candidate_task import Outcome, failure_outcome
from intarsia.measure.measure_result import MeasureError
from intarsia.native.loop_state import LoopState
from intarsia.native.loop_state.step_json import step_from_json
from intarsia.native.loop_state.step_record import StepJson
from intarsia.native.schedule import with_state
from intarsia.support.garbage_collection import pause_garbage_collection


@dataclass(frozen=True, slots=True, eq=False)
class BuiltSchedule:
    """The outcome of a build.

    Attributes:
        outcome: OK, or what went wrong.
        kernel: The kernel; None after a failure.
        seconds: Seconds that the build took in the worker.
    """

    outcome: Outcome
    kernel: ScheduleKernel | None = None
    seconds: float = 0.0


BuildFunction: TypeAlias = Callable[[Path, Sequence[StepJson], int | None], BuiltSchedule]
"""Function of a module, called with a task's folder, a history and a limit of stores (None: no limit)."""


def build_schedule(folder: Path, steps: Sequence[StepJson], most_stores: int | None = None) -> BuiltSchedule:
    """Replay a history on the task of a folder, and compile the resulting loops.

    Args:
        folder: Folder of the task.
        steps: History in the form of the log.
        most_stores: Limit of the stores after unrolling; see `compile_schedule`.
    """
    with pause_garbage_collection():
        return _build(folder, steps, most_stores)


def _build(folder: Path, steps: Sequence[StepJson], most_stores: int | None) -> BuiltSchedule:
    start = perf_counter()
    program = TaskFolder(folder).program()
    try:
        state = LoopState.replay(program.dag, map(step_from_json, steps))
        chosen = with_state(program.dag, state, program.option)
    except Exception as error:  # any exception is a property of the schedule
        return _failed(MeasureError.INSTANTIATION, error, start)
    try:
        kernel = compile_schedule(chosen, program.isa, most_stores, program.settings.context())
    except Exception as error:  # as above
        return _failed(MeasureError.COMPILE, error, start)
    return BuiltSchedule(Outcome(), kernel, perf_counter() - start)


def _failed(kind: MeasureError, error: Exception, start: float) -> BuiltSchedule:
    return BuiltSchedule(failure_outcome(kind, error), None, perf_counter() - start)
