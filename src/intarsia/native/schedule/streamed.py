"""Which buffers of a kernel come from memory, one vector after another, while it has much else to do."""

from __future__ import annotations

from math import prod
from typing import Final

from intarsia.native.dag import AccessAnalyzer, ComputeDAG, simple_access
from intarsia.native.te import ComputeOp, Operation, Tensor

_STREAMED_BYTES: Final = 128 * 1024
"""Tensors from this size on do not stay in a first-level cache."""

_FAR_BYTES: Final = 1024 * 1024
"""Tensors from this size on do not stay in a second-level cache either."""


def streamed_names(dag: ComputeDAG) -> tuple[str, ...]:
    """Names of long tensors of which a kernel needs little at a time.

    These are constants, tensors that are combined element by element with a reduction, and rows that are gone
    over more than once: no pattern of reads shows the machine early what will be needed next.
    """
    analyzer = AccessAnalyzer(dag)
    return tuple(
        tensor.op.name
        for tensor in dag.placeholders
        if _bytes(tensor) >= _STREAMED_BYTES
        and (
            tensor.op.attrs.get("constant")
            or _is_beside_reduction(analyzer, tensor.op)
            or (_bytes(tensor) >= _FAR_BYTES and _is_read_again(analyzer, tensor.op))
        )
    )


def _bytes(tensor: Tensor) -> int:
    return prod(tensor.shape) * tensor.dtype.numpy.itemsize


def _is_beside_reduction(analyzer: AccessAnalyzer, op: Operation) -> bool:
    """Whether all readers take single elements, and one of them takes results of reductions too."""
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
    """Whether reductions read it, and others do as well."""
    readers = [reader for reader in analyzer.dag.readers[op] if isinstance(reader, ComputeOp)]
    reductions = [reader for reader in readers if reader.combiner is not None]
    return 0 < len(reductions) < len(readers)


def _is_reduced(op: ComputeOp) -> bool:
    """Whether it is a reduction, or what is made of one element by element."""
    seen: list[ComputeOp] = [op]
    for each in seen:
        if each.combiner is not None:
            return True
        inputs = [tensor.op for tensor in each.inputs]
        seen += [one for one in inputs if isinstance(one, ComputeOp) and one.shape == each.shape]
    return False
