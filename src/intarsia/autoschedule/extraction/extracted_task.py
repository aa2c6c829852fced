"""A kernel of a program as a task of the search."""

from __future__ import annotations

import json
import math
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy.typing as npt

from intarsia.autoschedule.task import HardwareParams, SearchTask
from intarsia.native.dag import ComputeDAG, structural_key
from intarsia.native.loop_state import LoopState
from intarsia.native.loop_state.layout_rewrite import LayoutRewriteOption
from intarsia.native.machine.isa import Isa
from intarsia.native.schedule import default_state
from intarsia.target import Target


@dataclass(frozen=True, eq=False)
class ExtractedTask:
    """What a program's kernel computes, to find a schedule for.

    Attributes:
        task: The search; constants are packed ahead of it, as a build packs them.
        weight: How many calls of the program's plan run such a kernel.
        name: Of the kernel: its operators, and the beginning of its key.
        isa: What the kernel will run on.
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
        threads: int,
        name: str,
        constants: Mapping[str, npt.NDArray[Any]],
    ) -> ExtractedTask:
        """The task of a kernel that is called once.

        Args:
            dag: What it computes.
            target: Who compiles it.
            isa: What it will run on.
            threads: On how many.
            name: Of the kernel.
            constants: Contents of placeholders by name. Those that indices may be made of are kept, as times
                depend on them.
        """
        indices = {
            tensor.buffer.name: constants[tensor.op.name].reshape(tensor.shape)
            for tensor in dag.placeholders
            if tensor.op.name in constants and not tensor.dtype.is_float
        }
        hardware, option = (
            HardwareParams.of_isa(isa, threads),
            LayoutRewriteOption.REWRITE_FOR_PRE_TRANSFORMED,
        )
        task = SearchTask(dag, target, hardware, structural_workload_key(dag), option, indices)
        return cls(task, 1, name, isa)

    @property
    def key(self) -> str:
        """Equal for kernels that a schedule book does not tell apart."""
        return structural_key(self.task.dag)

    @cached_property
    def default_state(self) -> LoopState:
        """The loops of the kernel without a schedule book."""
        return default_state(self.task.dag, self.isa, self.task.hardware.num_cores)

    @property
    def flop_count(self) -> int:
        """Floating-point operations of a call; -1 if not known."""
        return self.task.dag.flop_ct

    @property
    def bytes_moved(self) -> int:
        """Bytes of all tensors that a call reads and writes: little work, if there are few FLOP either."""
        tensors = (*self.task.dag.placeholders, *self.task.dag.outputs)
        return sum(math.prod(tensor.shape) * tensor.dtype.numpy.itemsize for tensor in tensors)


def structural_workload_key(dag: ComputeDAG) -> str:
    """A workload key in the field's form, in which no name counts: equal kernels of all models share it."""
    return json.dumps([structural_key(dag), *(list(tensor.shape) for tensor in dag.tensors)])
