"""Compile a state of a kernel's loops for a GPU."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from intarsia.ir import PrimFunc
from intarsia.measure.candidate_task import Outcome, failure_outcome
from intarsia.measure.measure_result import MeasureError
from intarsia.measure.schedules.kernel_folder import KernelFolder
from intarsia.measure.schedules.saved_kernel import SavedKernel
from intarsia.native.dag import ComputeDAG
from intarsia.native.gpu.default_gpu_state import default_gpu_state, gpu_kernels, lower_to_kernels
from intarsia.native.loop_state import LoopState
from intarsia.native.loop_state.step_json import step_from_json
from intarsia.native.loop_state.step_record import StepJson
from intarsia.toolchain.native.gpu.compile_program import compile_kernels
from intarsia.toolchain.native.gpu.gpu_kernel import model_here
from intarsia.toolchain.native.gpu.gpu_program import GpuProgram


@dataclass(frozen=True, slots=True, eq=False)
class GpuScheduleKernel(SavedKernel):
    """The kernels of a schedule for a GPU.

    Attributes:
        program: Program from the placeholders of the computation to its outputs.
    """

    program: GpuProgram


def compile_gpu_steps(folder: Path, steps: Sequence[StepJson]) -> GpuScheduleKernel | Outcome:
    """Return the kernels of a history on the computation of a folder, or how it has failed.

    Args:
        folder: Folder of the computation.
        steps: History in the form of the log.
    """
    dag = KernelFolder(folder).program().dag
    try:
        state = LoopState.replay(dag, map(step_from_json, steps))
        function = kernels_of(dag, state)
    except Exception as error:  # any exception is a property of the schedule
        return failure_outcome(MeasureError.INSTANTIATION, error)
    try:
        return GpuScheduleKernel(compile_kernels(dag, function, model_here()))
    except Exception as error:  # as above
        return failure_outcome(MeasureError.COMPILE, error)


def kernels_of(dag: ComputeDAG, state: LoopState) -> PrimFunc:
    """Return the kernels of a state; for that of the rules, those that a program has without a schedule log.

    Args:
        dag: DAG before any step.
        state: State with every split length chosen.

    Raises:
        UsageError: The state cannot be lowered.
    """
    if state.transform_steps == default_gpu_state(dag).transform_steps:
        return gpu_kernels(dag)
    return lower_to_kernels(dag, state)
