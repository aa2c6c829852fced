"""A kernel of a program as a search task."""

from __future__ import annotations

import json
import math
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy.typing as npt

from intarsia.autoschedule.task import HardwareParams, SearchTask, SpaceOptions
from intarsia.autoschedule.task.space_options import GPU_SPACE
from intarsia.native.dag import ComputeDAG, structural_key
from intarsia.native.gpu.default_gpu_state import default_gpu_state
from intarsia.native.loop_state import LoopState
from intarsia.native.loop_state.layout_rewrite import LayoutRewriteOption
from intarsia.native.machine.isa import Isa
from intarsia.native.schedule import default_state
from intarsia.target import Target


@dataclass(frozen=True, eq=False)
class ExtractedTask:
    """The search task of a program's kernel.

    Attributes:
        task: Search task; its constants are packed ahead of time, as in a build.
        weight: Number of calls of this kernel in the program's plan.
        name: Name of the kernel: its operators, and the first characters of its key.
        isa: Instruction set that the kernel is compiled for; that of the host of a GPU.
    """

    task: SearchTask
    weight: int
    name: str
    isa: Isa

    @classmethod
    def of_kernel(
        cls,
        dag: ComputeDAG,
        target: Target,
        isa: Isa,
        hardware: HardwareParams,
        name: str,
        constants: Mapping[str, npt.NDArray[Any]],
    ) -> ExtractedTask:
        """Return the task of a kernel that is called once.

        Args:
            dag: Computation of the kernel.
            target: Native target that compiles the kernel.
            isa: Instruction set that the kernel is compiled for.
            hardware: Parameters of the machine that runs it: `isa` with its threads, or a GPU.
            name: Name of the kernel.
            constants: Contents of placeholders by name. Integer ones are kept, because they may be indices
                and times
                may depend on them.
        """
        indices = {
            tensor.buffer.name: constants[tensor.op.name].reshape(tensor.shape)
            for tensor in dag.placeholders
            if tensor.op.name in constants and not tensor.dtype.is_float
        }
        option = (
            LayoutRewriteOption.NO_REWRITE
            if hardware.is_gpu
            else LayoutRewriteOption.REWRITE_FOR_PRE_TRANSFORMED
        )
        task = SearchTask(dag, target, hardware, structural_workload_key(dag), option, indices)
        return cls(task, 1, name, isa)

    @property
    def key(self) -> str:
        """Structural key: equal for kernels that share a schedule record."""
        return structural_key(self.task.dag)

    @cached_property
    def default_state(self) -> LoopState:
        """Loops of the kernel without a schedule record."""
        if self.task.hardware.is_gpu:
            return default_gpu_state(self.task.dag)
        return default_state(self.task.dag, self.isa, self.task.hardware.num_cores)

    @property
    def space(self) -> SpaceOptions:
        """Limits of the space that is searched."""
        return GPU_SPACE if self.task.hardware.is_gpu else SpaceOptions(micro_kernels=self.isa)

    @property
    def flop_count(self) -> int:
        """Floating-point operations per call; -1 if unknown."""
        return self.task.dag.flop_ct

    @property
    def bytes_moved(self) -> int:
        """Bytes of all tensors that a call reads and writes; a small kernel has few of them and few FLOP."""
        tensors = (*self.task.dag.placeholders, *self.task.dag.outputs)
        return sum(math.prod(tensor.shape) * tensor.dtype.numpy.itemsize for tensor in tensors)


def structural_workload_key(dag: ComputeDAG) -> str:
    """Return a workload key in Ansor's form, without names: equal kernels of all models share it."""
    return json.dumps([structural_key(dag), *(list(tensor.shape) for tensor in dag.tensors)])
