"""Generate the contents of a computation's placeholders, on which its kernels are run."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from types import MappingProxyType
from typing import Any, Final

import numpy as np
import numpy.typing as npt

from intarsia.ir import DType
from intarsia.ir.loop_walk import Event, scalar_post_order, scalars, walk
from intarsia.ir.prim_func import Load, Scalar
from intarsia.native.dag import ComputeDAG
from intarsia.native.te import ComputeOp, ExternOp, Operation

Array = npt.NDArray[Any]

_INTEGERS: Final = 8
"""Upper limit (exclusive) of random integers; it is less where they index a shorter axis."""


def kernel_contents(
    dag: ComputeDAG, given: Mapping[str, Array] = MappingProxyType({}), seed: int = 0
) -> dict[str, Array]:
    """Return arrays for all placeholders of a computation, by name.

    Other floats than the given ones are standard normal, booleans are true half of the time, and integers are
    from 0 to 7, or less where they index a shorter axis.

    Args:
        dag: The computation.
        given: Contents of some placeholders by name.
        seed: Seed; equal seeds give equal arrays in every process.
    """
    generator = np.random.default_rng(seed)
    below = min(_INTEGERS, smallest_indexed(dag))
    arrays = {
        tensor.buffer.name: _random(tensor.shape, tensor.dtype, below, generator)
        for tensor in dag.placeholders
    }
    return arrays | dict(given)


def smallest_indexed(dag: ComputeDAG) -> int:
    """Return the smallest extent of an axis whose index is read from a tensor; very large without any."""
    extents = [
        extent
        for op in dag.ops
        for root in _values(op)
        for scalar, _ in scalar_post_order(root)
        if isinstance(scalar, Load)
        for extent, index in zip(scalar.buffer.shape, scalar.indices, strict=True)
        if _reads(index)
    ]
    return max(1, min(extents, default=np.iinfo(np.int64).max))


def _values(op: Operation) -> Iterator[Scalar]:
    match op:
        case ComputeOp():
            yield from op.bodies
        case ExternOp():
            for visit in walk(op.body):
                if visit.event is Event.ENTER:
                    yield from scalars(visit.statement)


def _reads(index: Scalar) -> bool:
    return any(isinstance(scalar, Load) for scalar, _ in scalar_post_order(index))


def _random(shape: Iterable[int], dtype: DType, below: int, generator: np.random.Generator) -> Array:
    size = tuple(shape)
    if dtype is DType.BOOL:
        return np.asarray(generator.integers(0, 2, size=size)).astype(np.bool_)
    if dtype.is_integer:
        return np.asarray(generator.integers(0, below, size=size)).astype(dtype.numpy)
    return np.asarray(generator.standard_normal(size)).astype(dtype.numpy)
