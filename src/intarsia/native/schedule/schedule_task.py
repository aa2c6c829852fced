"""What a rule for a schedule is given."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field
from functools import cached_property
from math import prod
from typing import NamedTuple

from intarsia.native.dag import AccessAnalyzer, ComputeDAG
from intarsia.native.machine.isa import Isa
from intarsia.native.te import ComputeOp, Operation

_KEPT_FREE = 3
"""Vector registers that are left for operands."""
_LEAST_WORK = 16384
"""Elements below which threads cost more than they bring."""


class RowChoice(NamedTuple):
    """What is decided of stages that are computed by rows, or on their own.

    Attributes:
        lane_vectors: Vectors of partial results of a reduction along a row, so that one need not wait for
            the last.
        vectors: Vectors of a reduction across rows that are accumulated side by side.
        chunks: How many pieces of work each thread gets, so that a late one holds up nobody for long.
    """

    lane_vectors: int = 4
    vectors: int = 4
    chunks: int = 8


@dataclass(frozen=True, eq=False)
class ScheduleTask:
    """A DAG, and the machine that it is scheduled for.

    Attributes:
        dag: What is computed, before any step.
        isa: Its vectors and registers.
        threads: How many there are; with one no loop is parallel.
        by_rows: What is decided of stages without a rule of their own.
    """

    dag: ComputeDAG
    isa: Isa
    threads: int
    by_rows: RowChoice = field(default_factory=RowChoice)

    @cached_property
    def analyzer(self) -> AccessAnalyzer:
        """Facts about the DAG."""
        return AccessAnalyzer(self.dag)

    @property
    def accumulators(self) -> int:
        """How many vector registers results may take that stay there during a loop."""
        return self.isa.vector_registers - _KEPT_FREE

    @property
    def has_masks(self) -> bool:
        """Whether a vector of which only some lanes count is as fast as a whole one."""
        return "avx512vl" in self.isa.features

    def is_parallel(self, work: int) -> bool:
        """Whether threads are worth it for so many elements."""
        return self.threads > 1 and work >= _LEAST_WORK

    def lanes(self, op: ComputeOp) -> int:
        """How many of an operation's widest elements a vector register holds; at least 1."""
        widest = max(dtype.numpy.itemsize for dtype in op.dtypes)
        return max(1, self.isa.vector_bytes // widest)


def work_of(ops: Iterable[Operation]) -> int:
    """About how many elements operations compute, those of a reduction counted each time they change."""
    found = 0
    for op in ops:
        if isinstance(op, ComputeOp):
            found += prod(axis.extent for axis in (*op.axes, *op.reduce_axes))
        else:
            found += sum(prod(buffer.shape) for buffer in op.buffers)
    return found
