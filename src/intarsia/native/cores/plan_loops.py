"""The loops of a plan's kernels, and the least cycles that they take."""

from __future__ import annotations

from functools import cached_property
from math import prod
from typing import Final

from intarsia.ir import PrimFunc
from intarsia.native.cores.phases import phases_of, shared_buffers
from intarsia.native.cores.touched_lines import TouchedLines
from intarsia.native.dag.flop_count import flop_count
from intarsia.native.graph.region_plan import KernelPlan, RegionPlan
from intarsia.native.machine.isa import Isa
from intarsia.native.schedule import ScheduledDag, scheduled

_FLOAT_BYTES: Final = 4


class LoopsOfKernel:
    """The loops of a computation, as several kernels of a plan may have them.

    Args:
        chosen: The computation with its schedule.
        function: Its loops.
        line_bytes: Size of a cache line, in bytes.
    """

    def __init__(self, chosen: ScheduledDag, function: PrimFunc, line_bytes: int) -> None:
        self.inputs = {tensor.buffer.name: tensor.op.name for tensor in chosen.dag.placeholders}
        self.outputs = tuple(tensor.buffer.name for tensor in chosen.dag.outputs)
        self.shared = {
            buffer.name: prod(buffer.shape) * buffer.dtype.numpy.itemsize
            for buffer in shared_buffers(function)
        }
        names = {*self.inputs, *self.outputs, *self.shared}
        self.phases = tuple(TouchedLines(phase, names, line_bytes) for phase in phases_of(function))

    @cached_property
    def work(self) -> int:
        """Number of scalar operations of all phases."""
        return max(1, sum(touched.phase.work for touched in self.phases))


def loops_of_plan(plan: RegionPlan, isa: Isa, threads: int) -> dict[int, LoopsOfKernel]:
    """Return the loops of each computation of a plan by rule, by the `id` of its DAG.

    Args:
        plan: The plan, without calls of libraries.
        isa: Instruction set of the machine.
        threads: Number of threads that the loops are for.
    """
    loops: dict[int, LoopsOfKernel] = {}
    for kernel in plan.kernels:
        assert kernel.product is None
        if id(kernel.dag) not in loops:
            chosen = scheduled(kernel.dag, isa, kernel.threads or threads)
            function = chosen.lowered(isa.caches)
            loops[id(kernel.dag)] = LoopsOfKernel(chosen, function, isa.machine.line_bytes)
    return loops


def bound_cycles(kernel: KernelPlan, plan: RegionPlan, isa: Isa) -> float:
    """Return the least cycles of a kernel on one core: of its operations, or of its bytes in the L2 cache.

    Args:
        kernel: A kernel of the plan.
        plan: The plan.
        isa: Instruction set of the machine.
    """
    per_cycle = 2 * isa.vector_bytes / _FLOAT_BYTES * isa.machine.fmas_per_cycle(isa.vector_bytes)
    values = (*kernel.inputs.values(), *kernel.outputs)
    size = sum(plan.values[value].size_bytes for value in values)
    size += sum(array.nbytes for array in kernel.constants.values())
    return max(max(0, flop_count(kernel.dag.ops)) / per_cycle, size / isa.machine.second_bandwidth)
