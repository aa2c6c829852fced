"""Streamed buffers: those for which a kernel issues software prefetches."""

from __future__ import annotations

from math import prod
from typing import Final

from intarsia.ir.loop_walk import scalar_post_order
from intarsia.ir.prim_func import Load
from intarsia.native.dag import AccessAnalyzer, ComputeDAG, simple_access
from intarsia.native.schedule.lane_reduction import runs_along_rows
from intarsia.native.te import ComputeOp, Operation, Tensor
from intarsia.target.cache_sizes import CacheSizes

_FIRST_CACHES: Final = 4
"""Number of first-level caches from which on tensors do not stay in one: the core prefetches fewer bytes."""

_SECOND_CACHES: Final = 2
"""Number of second-level caches from which on tensors do not stay in one."""

_LINE: Final = 64
"""Bytes of a cache line."""

_LEAST_RUN: Final = 512
"""Minimum number of neighbours that a sum reads.

With prefetches runs of 60 to 200 take 1.02 to 1.15 of the time, longer ones 0.70 to 0.94 (14 reductions with
AVX-512; with AVX2 as long as without).
"""


def streamed_names(dag: ComputeDAG, caches: CacheSizes, vector_bytes: int = 0) -> tuple[str, ...]:
    """Return the names of long tensors of which a kernel needs little at a time.

    These are constants, tensors that are combined elementwise with a reduction, rows that are read more than
    once, and rows that are only summed: the hardware prefetcher does not recognise these patterns in time.

    Args:
        dag: DAG of the kernel.
        caches: Sizes of a core's caches.
        vector_bytes: Size of a vector; 0 if it is not known. There is a prefetch for each vector, so that of
            narrow ones a line has several.
    """
    has_lines = vector_bytes >= _LINE
    analyzer = AccessAnalyzer(dag)
    return tuple(
        tensor.op.name
        for tensor in dag.placeholders
        if _bytes(tensor) >= _FIRST_CACHES * caches.first
        and not _is_looked_up(analyzer, tensor.op)
        and (
            tensor.op.attrs.get("constant")
            or _is_beside_reduction(analyzer, tensor.op)
            or (
                _bytes(tensor) >= _SECOND_CACHES * caches.second
                and (_is_read_again(analyzer, tensor.op) or (has_lines and _is_summed(analyzer, tensor.op)))
            )
        )
    )


def _is_looked_up(analyzer: AccessAnalyzer, op: Operation) -> bool:
    """Return whether indices from another tensor select elements: what follows in memory is not read next."""
    return any(
        isinstance(part, Load)
        for reader in analyzer.dag.readers[op]
        if isinstance(reader, ComputeOp)
        for indices in analyzer.read_from[reader][op]
        for index in indices
        for part, _ in scalar_post_order(index)
    )


def _bytes(tensor: Tensor) -> int:
    return prod(tensor.shape) * tensor.dtype.numpy.itemsize


def _is_beside_reduction(analyzer: AccessAnalyzer, op: Operation) -> bool:
    """Return whether all readers are elementwise, and one of them also reads the result of a reduction."""
    readers = [reader for reader in analyzer.dag.readers[op] if isinstance(reader, ComputeOp)]
    plain = all(
        reader.combiner is None
        and all(simple_access(reader, indices) is not None for indices in analyzer.read_from[reader][op])
        for reader in readers
    )
    return plain and any(
        isinstance(tensor.op, ComputeOp) and _is_reduced(tensor.op)
        for reader in readers
        for tensor in reader.inputs
    )


def _is_read_again(analyzer: AccessAnalyzer, op: Operation) -> bool:
    """Return whether both reductions and other operations read an operation."""
    readers = [reader for reader in analyzer.dag.readers[op] if isinstance(reader, ComputeOp)]
    reductions = [reader for reader in readers if reader.combiner is not None]
    return 0 < len(reductions) < len(readers)


def _is_summed(analyzer: AccessAnalyzer, op: Operation) -> bool:
    """Return whether only reductions along its rows read an operation: they wait for each line once.

    Sums of rows, one below the other, read several rows at a time and are slower with prefetches.
    """
    readers = [reader for reader in analyzer.dag.readers[op] if isinstance(reader, ComputeOp)]
    return bool(readers) and all(
        len(reader.inputs) == 1 and runs_along_rows(reader) and reader.reduce_axes[-1].extent >= _LEAST_RUN
        for reader in readers
    )


def _is_reduced(op: ComputeOp) -> bool:
    """Return whether an operation is a reduction, or an elementwise function of one."""
    seen: list[ComputeOp] = [op]
    for reached in seen:
        if reached.combiner is not None:
            return True
        inputs = [tensor.op for tensor in reached.inputs]
        seen += [
            source for source in inputs if isinstance(source, ComputeOp) and source.shape == reached.shape
        ]
    return False
