"""The peak floating-point rate of this machine: the roof for compute-bound kernels."""

from __future__ import annotations

import math
import time
from collections.abc import Callable
from typing import Final

import numpy as np

from intarsia.ir import GlobalVar, IRModule
from intarsia.native import te
from intarsia.native.compile_kernel import compile_kernel
from intarsia.native.dag import ComputeDAG
from intarsia.native.execution.thread_pool import ThreadPool
from intarsia.native.loop_state import LoopState
from intarsia.native.machine.isa import Isa
from intarsia.native.schedule import ScheduledDag
from intarsia.native.tir import default_tir
from intarsia.transform import PassContext

_STEPS: Final = 1 << 17
_KEPT_FREE: Final = 4
"""Number of vector registers that hold operands, not sums."""
_RUNS: Final = 80
"""Number of runs; the system moves threads that began on one core apart within the first of them."""


def measured_peak(isa: Isa, threads: int, clock: Callable[[], float] = time.perf_counter) -> float:
    """Measure the floating-point operations per second of float32 multiply-adds with sums in registers.

    A product and a sum count as two. The result is the best of several runs, which take tens of milliseconds.

    Args:
        isa: Instruction set of the kernel.
        threads: Number of threads that run it.
        clock: Clock that returns seconds.
    """
    lanes, chains = isa.vector_bytes // 4, isa.vector_registers - _KEPT_FREE
    a, b = te.placeholder((lanes,), name="a"), te.placeholder((lanes,), name="b")
    k, shape = te.reduce_axis(_STEPS, "k"), (threads, chains, lanes)
    c = te.compute(shape, lambda *at: te.sum(a[at[2]] * b[at[2]], k), name="c", axis_names="tiv")
    dag = ComputeDAG((a, b, c))
    state = LoopState.initial(dag).reorder("c", ["t", "k", "i", "v"]).unroll("c", "i").vectorize("c", "v")
    loops = IRModule({GlobalVar("peak"): ScheduledDag(dag, state.parallel("c", "t"), ()).lowered()})
    function = default_tir(isa.vector_bytes, isa.vector_registers)(loops, PassContext()).prim_func("peak")
    kernel, best = compile_kernel(function, isa).load(), math.inf
    arrays = [np.ones(tensor.shape, np.float32) for tensor in (a, b, c)]
    with ThreadPool(threads) as pool:
        for _ in range(_RUNS):
            # The best run is the one that other processes disturb least.
            began = clock()
            kernel(*arrays, pool=pool)
            best = min(best, clock() - began)
    return 2 * threads * _STEPS * chains * lanes / best
