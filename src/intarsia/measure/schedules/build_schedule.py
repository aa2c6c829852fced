"""Build a schedule in a worker process."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from intarsia.measure.candidate_task import Outcome, failure_outcome
from intarsia.measure.measure_input import PlainData
from intarsia.measure.measure_result import MeasureError
from intarsia.measure.schedules.gpu_schedule_kernel import GpuScheduleKernel, compile_gpu_steps
from intarsia.measure.schedules.kernel_folder import KernelFolder
from intarsia.measure.schedules.schedule_kernel import ScheduleKernel, compile_schedule
from intarsia.native.loop_state import LoopState
from intarsia.native.loop_state.layout_rewrite import LayoutRewriteOption
from intarsia.native.loop_state.step_json import step_from_json
from intarsia.native.loop_state.step_record import StepJson
from intarsia.native.schedule import with_state
from intarsia.support.garbage_collection import pause_garbage_collection


def build_schedule(folder: Path, trace: PlainData, artifact: Path, most_stores: int | None = None) -> Outcome:
    """Replay a history on the computation of a folder, compile the resulting loops, and save the kernel.

    Args:
        folder: Folder of the computation.
        trace: Trace of a candidate (`schedule_candidate`): the history, and the layout rewrite option.
        artifact: Folder that is made for the kernel.
        most_stores: Limit of the stores after unrolling; see `compile_schedule`.

    Raises:
        OutputError: The kernel cannot be written, which is no fault of the schedule.
    """
    with pause_garbage_collection():
        steps, layout = steps_of(trace)
        is_for_gpu = KernelFolder(folder).program().is_for_gpu
        kernel: ScheduleKernel | GpuScheduleKernel | Outcome = (
            compile_gpu_steps(folder, steps)
            if is_for_gpu
            else compile_steps(folder, steps, layout, most_stores)
        )
    if isinstance(kernel, Outcome):
        return kernel
    kernel.save(artifact)
    return Outcome()


def steps_of(trace: PlainData) -> tuple[Sequence[StepJson], LayoutRewriteOption]:
    """Return the history of a candidate's trace, and its layout rewrite option."""
    assert isinstance(trace, dict)
    steps, layout = trace["steps"], trace["layout"]
    assert isinstance(steps, list)
    assert isinstance(layout, int)
    return [step for step in steps if isinstance(step, list)], LayoutRewriteOption(layout)


def compile_steps(
    folder: Path, steps: Sequence[StepJson], layout: LayoutRewriteOption, most_stores: int | None = None
) -> ScheduleKernel | Outcome:
    """Return the kernel of a history on the computation of a folder, or how it has failed.

    Args:
        folder: Folder of the computation.
        steps: History in the form of the log.
        layout: Layout rewrite option.
        most_stores: Limit of the stores after unrolling; see `compile_schedule`.
    """
    program = KernelFolder(folder).program()
    try:
        state = LoopState.replay(program.dag, map(step_from_json, steps))
        chosen = with_state(program.dag, state, layout)
    except Exception as error:  # any exception is a property of the schedule
        return failure_outcome(MeasureError.INSTANTIATION, error)
    try:
        return compile_schedule(chosen, program.isa, most_stores, program.settings.context())
    except Exception as error:  # as above
        return failure_outcome(MeasureError.COMPILE, error)
