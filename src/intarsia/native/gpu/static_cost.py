"""A cost of kernels that is known without running them: it orders candidates, and is no time.

It is the greatest of three shares of a multiprocessor's work, arithmetic, global memory and shared memory, in
clock cycles at their peaks, times the blocks that one multiprocessor computes one after another. What hides
latency, caches and clocks are not in it: a kernel that costs half is not twice as fast, and costs of
different models of GPU do not compare.
"""

from __future__ import annotations

from dataclasses import dataclass
from math import prod
from typing import Final

from intarsia.ir.loop_walk import Event, inner_scalars, scalars, walk
from intarsia.ir.prim_func import Arith, For, Intrinsic, Mma, Scalar, Statement
from intarsia.ir.scalar_types import scalar_dtype
from intarsia.ir.warp import MMA_COLUMNS, MMA_ROWS, WARP
from intarsia.native.gpu.kernel_list import Kernel
from intarsia.native.gpu.memory_accesses import SECTOR_BYTES, memory_accesses

_REGISTERS: Final = 65536
"""Number of registers of a multiprocessor."""
_REGISTER_UNIT: Final = 256
"""Number of registers that a warp gets a multiple of."""
_THREADS: Final = 2048
"""Maximum number of threads of a multiprocessor."""
_BLOCKS: Final = 32
"""Maximum number of blocks of a multiprocessor."""
_RESERVED_BYTES: Final = 1024
"""Shared memory of each block that the system takes, in bytes."""
_USUAL_REGISTERS: Final = 64
_DEPTH: Final = 16
"""Products of 16-bit numbers in each sum of a product of a warp."""
_INTRINSIC: Final = 16
"""Operations that a mathematical function counts as."""


@dataclass(frozen=True, slots=True)
class GpuFacts:
    """Peaks of a GPU, of one multiprocessor in one clock cycle.

    Attributes:
        multiprocessors: Number of multiprocessors.
        operations: Operations in float32; a multiply-add counts as two.
        products: Operations of products of warps in 16-bit types; tf32 has half of it.
        memory_bytes: Share of the bandwidth of global memory in bytes.
        shared_bytes: Size of shared memory in bytes.
    """

    multiprocessors: int
    operations: int
    products: int
    memory_bytes: float
    shared_bytes: int


FACTS: Final = {
    "sm_80": GpuFacts(108, 128, 2048, 1555 / (1.41 * 108), 164 * 1024),
    "sm_90a": GpuFacts(132, 256, 4096, 4800 / (1.98 * 132), 228 * 1024),
}
"""Peaks from NVIDIA's data sheets of A100 (40 GB) and H200: bandwidth in GB/s by clock in GHz."""


def static_cost(kernel: Kernel, facts: GpuFacts, registers: int = _USUAL_REGISTERS) -> float:
    """Return the cost of a kernel, without a unit.

    Args:
        kernel: The kernel.
        facts: Peaks of the GPU.
        registers: Number of registers of a thread, if ptxas has counted them.

    Returns:
        The cost; infinite where not even one block fits into a multiprocessor.
    """
    resident = resident_blocks(kernel, facts, registers)
    if not resident:
        return float("inf")
    blocks = kernel.block_loop.extent
    whole, rest = divmod(blocks, facts.multiprocessors * resident)
    in_turn = whole * resident + -(-rest // facts.multiprocessors)
    return in_turn * max(_arithmetic(kernel, facts), *_memory(kernel, facts))


def resident_blocks(kernel: Kernel, facts: GpuFacts, registers: int) -> int:
    """Return how many blocks of a kernel a multiprocessor holds at once."""
    warps = -(-kernel.thread_loop.extent // WARP)
    of_warp = -(-registers * WARP // _REGISTER_UNIT) * _REGISTER_UNIT
    return min(
        _BLOCKS,
        _THREADS // (warps * WARP),
        _REGISTERS // (of_warp * warps),
        facts.shared_bytes // (kernel.shared_bytes + _RESERVED_BYTES),
    )


def _memory(kernel: Kernel, facts: GpuFacts) -> tuple[float, float]:
    """Return the cycles of global and of shared memory for a block."""
    sectors = turns = 0
    for access in memory_accesses(kernel):
        if access.is_shared:
            turns += access.units * access.count
        else:
            sectors += access.units * access.count
    return sectors * SECTOR_BYTES / facts.memory_bytes, float(turns)


def _arithmetic(kernel: Kernel, facts: GpuFacts) -> float:
    """Return the cycles of arithmetic for a block."""
    operations = products = 0.0
    extents: list[int] = []
    for visit in walk(kernel.thread_loop.body):
        statement = visit.statement
        if isinstance(statement, For) and visit.event is not Event.ELSE:
            extents.append(statement.extent) if visit.event is Event.ENTER else extents.pop()
        elif visit.event is Event.ENTER:
            runs = prod(extents) * kernel.thread_loop.extent
            if isinstance(statement, Mma):
                # Tf32 has half of the depth and of the speed of 16 bits, bytes have twice of both.
                products += runs * 2 * MMA_ROWS * MMA_COLUMNS * _DEPTH / WARP
            else:
                operations += runs * _operations(statement)
    return operations / facts.operations + products / facts.products


def _operations(statement: Statement) -> int:
    """Return the number of operations on floats of a statement itself."""
    return sum(_weight(part) for root in scalars(statement) for part in inner_scalars(root))


def _weight(scalar: Scalar) -> int:
    match scalar:
        case Intrinsic():
            return _INTRINSIC
        case Arith():
            dtype = scalar_dtype(scalar)
            return int(dtype is not None and dtype.is_float)
        case _:
            return 0
