"""The memory bandwidth of this machine: the roof for kernels that are bound by reading weights."""

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
from intarsia.support.aligned_memory import allocate_aligned
from intarsia.transform import PassContext

_BYTES: Final = 1 << 28
"""Bytes read in a run, 256 MiB: more than last-level caches hold."""
_CHUNKS: Final = 64
"""Number of pieces of each thread; each is read sequentially."""
_CHAINS: Final = 8
"""Number of independent sums, which hide the latency of an addition."""
_RUNS: Final = 12


def measured_bandwidth(isa: Isa, threads: int, clock: Callable[[], float] = time.perf_counter) -> float:
    """Measure the bytes per second of sequential reads from memory that are summed up as float32.

    The result is the best of several runs over a quarter of a gigabyte. The array counts as a weight, so that
    it is prefetched like weights.

    Args:
        isa: Instruction set of the kernel.
        threads: Number of threads, each of which reads a part.
        clock: Clock that returns seconds.
    """
    lanes, pieces = isa.vector_bytes // 4, threads * _CHUNKS  # float32 has 4 bytes
    steps = _BYTES // (4 * pieces * _CHAINS * lanes)
    x = te.placeholder((pieces, steps, _CHAINS, lanes), name="x", attrs={"constant": 1})
    k, shape = te.reduce_axis(steps, "k"), (pieces, _CHAINS, lanes)
    sums = te.compute(shape, lambda p, i, v: te.sum(x[p, k, i, v], k), name="sums", axis_names="piv")
    dag = ComputeDAG((x, sums))
    state = (
        LoopState.initial(dag)
        .reorder("sums", ["p", "k", "i", "v"])
        .unroll("sums", "i")
        .vectorize("sums", "v")
    )
    loops = IRModule({GlobalVar("read"): ScheduledDag(dag, state.parallel("sums", "p"), ()).lowered()})
    function = default_tir(isa.vector_bytes, isa.vector_registers)(loops, PassContext()).prim_func("read")
    kernel, best = compile_kernel(function, isa).load(), math.inf
    given = allocate_aligned(math.prod(x.shape) * 4).view(np.float32).reshape(x.shape)
    given.fill(1)
    results = np.empty(shape, np.float32)
    with ThreadPool(threads) as pool:
        for _ in range(_RUNS):
            began = clock()
            kernel(given, results, pool=pool)
            best = min(best, clock() - began)
    return given.nbytes / best
