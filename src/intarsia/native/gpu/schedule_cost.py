"""A cost of all kernels of a schedule, to order schedules: `static_cost` of each, and what that leaves out.

It counts a launch, the few warps that hide no latency, and the memory of a thread beside its registers. As
`static_cost` it is no time: it has no unit, and no number of it is shown.
"""

from __future__ import annotations

from math import prod
from typing import Final

from intarsia.ir import PrimFunc
from intarsia.ir.loop_walk import Event, scalar_post_order, scalars, walk
from intarsia.ir.prim_func import For, Load, MemoryScope, Statement, Store
from intarsia.ir.warp import WARP
from intarsia.native.gpu.estimated_registers import MOST_REGISTERS, estimated_registers
from intarsia.native.gpu.kernel_list import Kernel, list_kernels
from intarsia.native.gpu.static_cost import GpuFacts, resident_blocks, static_cost

_LAUNCH: Final = 2000
"""Cost of a launch, in the clock cycles of `static_cost`: kernels of less work are better fused."""
_ENOUGH_WARPS: Final = 8
"""Number of warps of a multiprocessor from which on they hide each other's latency, roughly."""


def schedule_cost(kernels: PrimFunc, facts: GpuFacts) -> float:
    """Return the cost of kernels, without a unit; infinite where one does not fit into a multiprocessor.

    Args:
        kernels: Loop function of kernels.
        facts: Peaks of the GPU.
    """
    return sum(_cost(kernel, facts) for kernel in list_kernels(kernels).kernels)


def _cost(kernel: Kernel, facts: GpuFacts) -> float:
    registers = estimated_registers(kernel)
    resident = resident_blocks(kernel, facts, min(registers, MOST_REGISTERS))
    if not resident:
        return float("inf")
    blocks, warps = kernel.block_loop.extent, -(-kernel.thread_loop.extent // WARP)
    held = min(resident, -(-blocks // facts.multiprocessors)) * warps
    in_turn = -(-blocks // facts.multiprocessors)
    spilled = max(0, registers - MOST_REGISTERS)
    own_memory = in_turn * warps * (_own_accesses(kernel) + spilled)
    cost = static_cost(kernel, facts, min(registers, MOST_REGISTERS)) + own_memory
    return _LAUNCH + cost * max(1.0, _ENOUGH_WARPS / held)


def _own_accesses(kernel: Kernel) -> int:
    """Return how often a thread accesses memory of its own that is not in registers."""
    count, extents = 0, list[int]()
    for visit in walk(kernel.thread_loop.body):
        statement = visit.statement
        if isinstance(statement, For) and visit.event is not Event.ELSE:
            extents.append(statement.extent) if visit.event is Event.ENTER else extents.pop()
        elif visit.event is Event.ENTER:
            count += prod(extents) * _own_accesses_of(statement)
    return count


def _own_accesses_of(statement: Statement) -> int:
    parts = (part for root in scalars(statement) for part, _ in scalar_post_order(root))
    count = sum(isinstance(part, Load) and part.buffer.scope is MemoryScope.THREAD for part in parts)
    is_stored = isinstance(statement, Store) and statement.buffer.scope is MemoryScope.THREAD
    return count + is_stored
