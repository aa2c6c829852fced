"""Stages that reduce a tensor over some of its axes, and stages that read reduced tensors."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from math import prod
from typing import Final, TypeAlias

from intarsia.ir import DType
from intarsia.native.te.combiner import Combiner, Reduction
from intarsia.native.te.compute import compute, reduce_axis
from intarsia.native.te.expression import Expression
from intarsia.native.te.functions import logical_and, logical_or, reduce
from intarsia.native.te.iter_var import IterVar
from intarsia.native.te.operators.index_arithmetic import flat, unflattened
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


_FEWEST_ROWS: Final = 16
"""Minimum number of rows that are reduced to one, for which another stage pays off."""
_MOST_COLUMNS: Final = 256
"""Maximum length of such rows, in elements, which stay in 16 vectors of 64 bytes."""
_SHORT_RUN: Final = 32
"""Length of reduced runs, in elements, below which vectors along them are not full."""
_MOST_PARTIAL: Final = 1 << 16
"""Maximum number of results of the first stage, which stay in a second-level cache: 256 KiB of float32."""


def _trailing_run(shape: Sequence[int], axes: Sequence[int]) -> int:
    """Return the first one of the last axes that are all reduced; the rank if the last axis is kept."""
    first = len(shape)
    while first - 1 in axes:
        first -= 1
    return first


def _pays_in_stages(shape: Sequence[int], axes: Sequence[int]) -> bool:
    """Return whether outer axes are reduced before the last ones, with kept axes between them.

    In one stage, each kept element would be summed over short runs that are far apart in memory.
    """
    first = _trailing_run(shape, axes)
    before = [axis for axis in axes if axis < first]
    if first == len(shape) or not before:
        return False
    rows, run = prod(shape[axis] for axis in before), prod(shape[first:])
    columns = prod(shape[max(before) + 1 :])
    results = columns * prod(extent for axis, extent in enumerate(shape[: max(before)]) if axis not in axes)
    is_long = columns > _MOST_COLUMNS and run >= _SHORT_RUN
    return columns > run > 1 and rows >= _FEWEST_ROWS and not is_long and results <= _MOST_PARTIAL


def _reduce_in_stages(
    tensor: Tensor, axes: Sequence[int], combine: Combine, name: str, prepare: Prepare
) -> Tensor:
    """Declare the sum of rows of all elements behind the outer reduced axes, then that of runs in the sum."""
    shape, first = tensor.shape, _trailing_run(tensor.shape, axes)
    before = [axis for axis in axes if axis < first]
    border, run = max(before) + 1, prod(shape[first:])
    outer = [axis for axis in range(border) if axis not in before]
    rows = {axis: reduce_axis(shape[axis], f"r{axis}") for axis in sorted(before)}

    def sum_of_column(*indices: Expression) -> Reduction:
        *kept, column = indices
        spatial = dict(zip(outer, kept, strict=True))
        front = tuple(rows[axis] if axis in rows else spatial[axis] for axis in range(border))
        return combine(prepare(tensor[(*front, *unflattened(column, shape[border:]))]), tuple(rows.values()))

    kept_shape_before = tuple(shape[axis] for axis in outer)
    partial = compute((*kept_shape_before, prod(shape[border:])), sum_of_column, f"{name}.columns")
    element = reduce_axis(run, "run")

    def total(*indices: Expression) -> Reduction:
        position = flat(indices[len(outer) :], shape[border:first])
        return combine(partial[(*indices[: len(outer)], position * run + element)], (element,))

    return compute((*kept_shape_before, *shape[border:first]), total, name)


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
    if _pays_in_stages(tensor.shape, axes):
        return _reduce_in_stages(tensor, axes, combine, name, prepare)
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
