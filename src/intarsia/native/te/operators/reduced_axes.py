"""Stages that reduce a tensor over some of its axes, and stages that read reduced tensors."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TypeAlias

from intarsia.ir import DType
from intarsia.native.te.combiner import Combiner, Reduction
from intarsia.native.te.compute import compute, reduce_axis
from intarsia.native.te.expression import Expression
from intarsia.native.te.functions import logical_and, logical_or, reduce
from intarsia.native.te.iter_var import IterVar
from intarsia.native.te.tensor import Tensor

Combine: TypeAlias = Callable[[Expression, Sequence[IterVar]], Reduction]
"""Function that reduces an expression over axes: `te.sum`, `te.max` and their kind."""

Prepare: TypeAlias = Callable[[Expression], Expression]
"""Function that is applied to each element before the reduction."""


def unchanged(value: Expression) -> Expression:
    """Return the element as it is."""
    return value


def normalized_axis(axis: int, rank: int) -> int:
    """Return an axis counted from the first dimension."""
    return axis + rank if axis < 0 else axis


def kept_shape(shape: Sequence[int], axes: Sequence[int]) -> tuple[int, ...]:
    """Return a shape with 1 at the reduced axes."""
    return tuple(1 if position in axes else extent for position, extent in enumerate(shape))


def reduce_over(
    tensor: Tensor, axes: Sequence[int], combine: Combine, name: str, prepare: Prepare = unchanged
) -> Tensor:
    """Declare a tensor reduced over `axes`, which the result lacks; without axes, only `prepare` is applied.

    Args:
        tensor: Tensor to reduce.
        axes: Distinct axes, counted from the first dimension.
        combine: Function that reduces an expression over axes.
        name: Name of the operation.
        prepare: Function that is applied to each element before.
    """
    rank = len(tensor.shape)
    reduced = {axis: reduce_axis(tensor.shape[axis], f"r{axis}") for axis in sorted(axes)}
    kept = [axis for axis in range(rank) if axis not in reduced]

    def element(*indices: Expression) -> Expression | Reduction:
        spatial = dict(zip(kept, indices, strict=True))
        at = tuple(reduced[axis] if axis in reduced else spatial[axis] for axis in range(rank))
        value = prepare(tensor[at])
        return combine(value, tuple(reduced.values())) if reduced else value

    return compute(tuple(tensor.shape[axis] for axis in kept), element, name)


def reduced_element(reduced: Tensor, indices: Sequence[Expression], axes: Sequence[int]) -> Expression:
    """Return the element of a tensor reduced over `axes` at an index of the unreduced tensor."""
    return reduced[tuple(index for position, index in enumerate(indices) if position not in axes)]


def keeping_dimensions(reduced: Tensor, shape: Sequence[int], axes: Sequence[int], name: str) -> Tensor:
    """Declare a reduced tensor with a dimension of extent 1 for each reduced axis."""
    return compute(shape, lambda *indices: reduced_element(reduced, indices, axes), name)


def any_of(value: Expression, axes: Sequence[IterVar]) -> Reduction:
    """Return whether a bool holds somewhere; False of nothing."""
    combiner = Combiner.of("or", [(False, DType.BOOL)], lambda lhs, rhs: (logical_or(lhs[0], rhs[0]),))
    return reduce(combiner, (value,), axes)


def all_of(value: Expression, axes: Sequence[IterVar]) -> Reduction:
    """Return whether a bool holds everywhere; True of nothing."""
    combiner = Combiner.of("and", [(True, DType.BOOL)], lambda lhs, rhs: (logical_and(lhs[0], rhs[0]),))
    return reduce(combiner, (value,), axes)
