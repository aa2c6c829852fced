"""Short parallel loops, by which the cost of a barrier is measured.

Loops that do nothing would not show it: the caller computes what no other thread has begun yet, and would be
done before one arrives.
"""

from __future__ import annotations

from typing import Final

import numpy as np

from intarsia.ir import GlobalVar, IRModule
from intarsia.native import te
from intarsia.native.compile_kernel import compile_kernel
from intarsia.native.dag import ComputeDAG
from intarsia.native.execution.call_table import CallTable, KernelCall
from intarsia.native.loop_state import LoopState
from intarsia.native.machine.isa import Isa
from intarsia.native.schedule import ScheduledDag
from intarsia.native.tir import default_tir
from intarsia.transform import PassContext

_ELEMENTS: Final = 1 << 12
"""Number of elements of an iteration: about a thousand cycles, more than other threads take to begin."""
PARALLEL_LOOPS: Final = 256
"""Number of loops in a table: a few hundred microseconds, beside which a call from Python hardly counts."""


def parallel_loops(isa: Isa) -> CallTable:
    """Return a table of `PARALLEL_LOOPS` kernels, each with one parallel loop of an iteration for each core.

    Args:
        isa: Instruction set of this machine, with its number of cores.
    """
    x = te.placeholder((isa.cores, _ELEMENTS), name="x")
    y = te.compute(x.shape, lambda row, lane: x[row, lane] + 1.0, name="y", axis_names="re")
    dag = ComputeDAG((x, y))
    state = (
        LoopState.initial(dag)
        .split("y", "e", [isa.vector_bytes // 4])
        .vectorize("y", "e.1")
        .parallel("y", "r")
    )
    loops = IRModule({GlobalVar("step"): ScheduledDag(dag, state, ()).lowered()})
    function = default_tir(isa.vector_bytes, isa.vector_registers)(loops, PassContext()).prim_func("step")
    kernel = compile_kernel(function, isa).load()
    arrays = np.zeros(x.shape, np.float32), np.zeros(x.shape, np.float32)
    return CallTable((KernelCall(kernel, arrays),) * PARALLEL_LOOPS)
