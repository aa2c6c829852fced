"""Whether a GPU can launch the kernels of a program."""

from __future__ import annotations

from typing import Final

from intarsia.autoschedule.features.lowered_state import lower_state
from intarsia.autoschedule.task.search_task import SearchTask
from intarsia.ir.loop_walk import Event, walk
from intarsia.ir.prim_func import KernelStatement, Store
from intarsia.native.gpu.estimated_registers import MOST_REGISTERS, estimated_registers
from intarsia.native.gpu.kernel_list import list_kernels
from intarsia.native.gpu.static_cost import FACTS, resident_blocks
from intarsia.native.gpu.tensorised import tensorised_tiling
from intarsia.native.loop_state import LoopState
from intarsia.support.errors import UsageError

_MODEL: Final = "sm_80"
_MOST_STATEMENTS: Final = 4096
"""Maximum number of statements of all kernels: more take long to compile, and run no faster."""
_OPERANDS: Final = 16
"""Registers that a thread may need beyond the estimate, roughly: with 88 estimated it spilled 4 of 96."""


def is_launchable(task: SearchTask, state: LoopState) -> bool:
    """Return whether kernels of a program fit: their threads, shared memory, registers, and code."""
    try:
        # Lowered states are cached by their loops, which do not show lengths beyond their extents.
        tensorised_tiling(state)
    except UsageError:
        return False
    lowered = lower_state(task, state)
    if lowered is None or lowered.kernels is None:
        return False
    statements = sum(
        isinstance(visit.statement, Store | KernelStatement) and visit.event is Event.ENTER
        for visit in walk(lowered.kernels.body)
    )
    if statements > _MOST_STATEMENTS:
        return False
    for kernel in list_kernels(lowered.kernels).kernels:
        registers = estimated_registers(kernel) + _OPERANDS
        if registers > MOST_REGISTERS or not resident_blocks(kernel, FACTS[_MODEL], registers):
            return False
    return True
