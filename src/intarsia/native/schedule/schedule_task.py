"""The task of a schedule rule: a DAG and a machine."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field
from functools import cached_property
from math import ceil, prod
from typing import NamedTuple

from intarsia.ir.loop_walk import scalar_post_order
from intarsia.ir.prim_func import Intrinsic
from intarsia.native.dag import AccessAnalyzer, ComputeDAG
from intarsia.native.machine.isa import Isa
from intarsia.native.machine.relative_costs import RelativeCosts, relative_costs
from intarsia.native.te import ComputeOp, Operation

_KEPT_FREE = 3
"""Number of vector registers that are left for operands."""
_PARTS = 4
"""Number of vector registers for parts of factors of products of bytes, by measurement on AVX2: tiles of
4 x 16 instead of 6 x 16, whose parts did not fit, take 0.6 of the time."""
_ELEMENTS_OF_BARRIER = 32
"""Number of elements for each cycle of a barrier from which threads pay off: a simple kernel computes two
vectors of 8 in a cycle, and two threads save half of its time."""


class RowChoice(NamedTuple):
    """Choice for stages that are computed by rows, or separately.

    Attributes:
        lane_vectors: Number of vectors of partial results of a reduction along a row, which hide its latency.
        vectors: Number of vectors that a reduction across rows accumulates side by side.
        chunks: Number of chunks of work per thread, so that a late chunk delays the others only briefly.
    """

    lane_vectors: int = 4
    vectors: int = 4
    chunks: int = 8


@dataclass(frozen=True, eq=False)
class ScheduleTask:
    """A DAG, and the machine that it is scheduled for.

    Attributes:
        dag: DAG before any step.
        isa: Instruction set of the machine, with its caches.
        threads: Number of threads; with one no loop is parallel.
        by_rows: Choice for stages without a special rule.
    """

    dag: ComputeDAG
    isa: Isa
    threads: int
    by_rows: RowChoice = field(default_factory=RowChoice)

    @cached_property
    def analyzer(self) -> AccessAnalyzer:
        """Facts about the DAG."""
        return AccessAnalyzer(self.dag)

    @cached_property
    def costs(self) -> RelativeCosts:
        """Costs of the machine, with all threads."""
        return relative_costs(self.isa, self.threads)

    @property
    def accumulators(self) -> int:
        """Number of vector registers for accumulators."""
        return self.isa.vector_registers - _KEPT_FREE

    def accumulators_of(self, op: ComputeOp) -> int:
        """Return `accumulators`, less those that products of words need for their parts.

        Without an instruction for them, both halves of both factors are registers of their own.
        """
        return self.accumulators - (_PARTS if self.splits_words(op) else 0)

    def product_registers(self, op: ComputeOp) -> int:
        """Return the number of registers for a product before it is added: 1 if no instruction does both."""
        is_apart = any(
            isinstance(part, Intrinsic) and part.name == "dot_s16"
            for body in op.bodies
            for part, _ in scalar_post_order(body)
        )
        return int(is_apart)

    def splits_words(self, op: ComputeOp) -> bool:
        """Return whether an operator multiplies words of which the machine has no products."""
        is_instruction = {"dot_u8s8": self.isa.has_int8_dot, "dot_bf16": self.isa.has_bf16_dot}
        return any(
            isinstance(part, Intrinsic) and not is_instruction.get(part.name, True)
            for body in op.bodies
            for part, _ in scalar_post_order(body)
        )

    @property
    def has_masks(self) -> bool:
        """Whether masked vectors are as fast as whole ones."""
        return "avx512vl" in self.isa.features

    @property
    def loads_masked(self) -> bool:
        """Whether loads take masks, with AVX2 as well, whose masked stores are slow."""
        return self.has_masks or "avx2" in self.isa.features

    def is_parallel(self, work: int) -> bool:
        """Return whether threads pay off for a number of elements."""
        return threads_pay(self.isa, self.threads, work)

    def lanes(self, op: ComputeOp) -> int:
        """Return how many of an operation's widest elements a vector register contains; at least 1."""
        widest = max(dtype.numpy.itemsize for dtype in op.dtypes)
        return max(1, self.isa.vector_bytes // widest)


def threads_pay(isa: Isa, threads: int, work: int) -> bool:
    """Return whether threads pay off for a number of elements."""
    return threads > 1 and work >= least_shared_work(isa)


def least_shared_work(isa: Isa) -> int:
    """Return the number of elements from which on threads pay off."""
    return ceil(_ELEMENTS_OF_BARRIER * isa.machine.barrier_cycles)


def work_of(ops: Iterable[Operation]) -> int:
    """Estimate the work of operations in elements; each update of a reduction counts as one."""
    work = 0
    for op in ops:
        if isinstance(op, ComputeOp):
            work += prod(axis.extent for axis in (*op.axes, *op.reduce_axes))
        else:
            work += sum(prod(buffer.shape) for buffer in op.buffers)
    return work
