"""The peak rates of this machine: the roofs for compute-bound kernels."""

from __future__ import annotations

import math
import time
from collections.abc import Callable
from enum import Enum
from typing import Final

import numpy as np

from intarsia.ir import DType, GlobalVar, IRModule
from intarsia.native import te
from intarsia.native.compile_kernel import compile_kernel
from intarsia.native.dag import ComputeDAG
from intarsia.native.execution.thread_pool import ThreadPool
from intarsia.native.loop_state import LoopState
from intarsia.native.machine.isa import Isa
from intarsia.native.schedule import ScheduledDag
from intarsia.native.te.operators.bfloat_sums import dot_of_pairs
from intarsia.native.te.operators.integer_sums import dot
from intarsia.native.tir import default_tir
from intarsia.transform import PassContext

_STEPS: Final = 1 << 17
_KEPT_FREE: Final = 4
"""Number of vector registers that hold operands, not sums."""
_RUNS: Final = 80
"""Number of runs; the system moves threads that began on one core apart within the first of them."""


class DotKind(Enum):
    """What one lane of a vector multiplies and adds; the value is the number of products."""

    FLOATS = 1
    BFLOATS = 2
    BYTES = 4

    @property
    def dtype(self) -> DType:
        """Element type of the factors."""
        return DType.FLOAT32 if self is DotKind.FLOATS else DType.INT32

    def product(self, left: te.Expression, right: te.Expression) -> te.Expression:
        """Return the products of one lane, added up."""
        match self:
            case DotKind.FLOATS:
                return left * right
            case DotKind.BFLOATS:
                return dot_of_pairs(left, right)
            case DotKind.BYTES:
                return dot(left, right)


def measured_peak(
    isa: Isa,
    threads: int,
    clock: Callable[[], float] = time.perf_counter,
    kind: DotKind = DotKind.FLOATS,
) -> float:
    """Measure the operations per second of multiply-adds with sums in registers.

    A product and a sum count as two. The result is the best of several runs, which take tens of milliseconds.

    Args:
        isa: Instruction set of the kernel.
        threads: Number of threads that run it.
        clock: Clock that returns seconds.
        kind: Kind of the factors.
    """
    lanes, chains = isa.vector_bytes // 4, isa.vector_registers - _KEPT_FREE
    a, b = (te.placeholder((lanes,), kind.dtype, name) for name in "ab")
    k, shape = te.reduce_axis(_STEPS, "k"), (threads, chains, lanes)
    c = te.compute(shape, lambda *at: te.sum(kind.product(a[at[2]], b[at[2]]), k), name="c", axis_names="tiv")
    dag = ComputeDAG((a, b, c))
    state = LoopState.initial(dag).reorder("c", ["t", "k", "i", "v"]).unroll("c", "i").vectorize("c", "v")
    loops = IRModule({GlobalVar("peak"): ScheduledDag(dag, state.parallel("c", "t"), ()).lowered()})
    function = default_tir(isa.vector_bytes, isa.vector_registers)(loops, PassContext()).prim_func("peak")
    kernel, best = compile_kernel(function, isa).load(), math.inf
    # Zeros are as fast as other numbers.
    arrays = [np.zeros(tensor.shape, tensor.dtype.numpy) for tensor in (a, b, c)]
    with ThreadPool(threads) as pool:
        for _ in range(_RUNS):
            # The best run is the one that other processes disturb least.
            began = clock()
            kernel(*arrays, pool=pool)
            best = min(best, clock() - began)
    return 2 * kind.value * threads * _STEPS * chains * lanes / best
