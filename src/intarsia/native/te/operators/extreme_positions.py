"""The position of the largest or least element: ArgMax, ArgMin, Hardmax."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

import numpy as np

from intarsia.ir import DType
from intarsia.native.te.combiner import Combiner, Reduction
from intarsia.native.te.compute import compute, compute_many, reduce_axis
from intarsia.native.te.expression import Expression
from intarsia.native.te.functions import (
    const,
    equal,
    highest,
    logical_and,
    logical_not,
    logical_or,
    lowest,
    reduce,
    select,
)
from intarsia.native.te.operators.compute_call import ComputeCall
from intarsia.native.te.operators.compute_rule import compute_rule
from intarsia.native.te.operators.float32_arithmetic import in_float32
from intarsia.native.te.operators.reduced_axes import normalized_axis, reduced_element
from intarsia.native.te.operators.scalar_functions import is_nan
from intarsia.native.te.tensor import Tensor

LAST = int(np.iinfo(np.int64).max)
"""A position after all others: the neutral element of a minimum of positions."""
_LAST_OF_WORDS: Final = int(np.iinfo(np.int32).max)
"""The same among positions of 32 bits, of which a vector holds as many as of float32 values."""


@compute_rule("ArgMax", "ArgMin")
@in_float32
def arg_extreme(call: ComputeCall) -> Sequence[Tensor]:
    """Declare the position of the first (or last) extreme element; NaN is more extreme than everything."""
    axis = normalized_axis(call.integer("axis"), len(call.input(0).shape))
    if call.input(0).shape[axis] == 0:
        raise call.not_covered("an axis without elements")
    positions = _positions(
        call, axis, is_least=call.op_name == "ArgMin", is_last=bool(call.integer("select_last_index"))
    )
    axes = (axis,) if call.integer("keepdims") else ()
    return [compute(call.shape, lambda *i: reduced_element(positions, i, axes), call.name)]


@compute_rule("Hardmax")
@in_float32
def hardmax(call: ComputeCall) -> Sequence[Tensor]:
    """Declare 1 at the first largest element along an axis, 0 elsewhere."""
    axis = normalized_axis(call.integer("axis"), len(call.shape))
    positions = _positions(call, axis, is_least=False, is_last=False)
    dtype = call.output_type.dtype

    def element(*indices: Expression) -> Expression:
        is_first = equal(reduced_element(positions, indices, (axis,)), indices[axis])
        return select(is_first, const(1.0, dtype), const(0.0, dtype))

    return [compute(call.shape, element, call.name)]


def extreme_combiner(
    dtype: DType, is_least: bool = False, is_last: bool = False, positions: DType = DType.INT64
) -> Combiner:
    """Return a combiner of pairs (position, value): the more extreme value wins, then the first or last."""
    after_all = LAST if positions is DType.INT64 else _LAST_OF_WORDS
    identity = (
        (-1 if is_last else after_all, positions),
        (highest(dtype) if is_least else lowest(dtype), dtype),
    )

    def combine(lhs: Sequence[Expression], rhs: Sequence[Expression]) -> Sequence[Expression]:
        takes = _beats(rhs, lhs, is_least, is_last)
        return tuple(select(takes, new, old) for new, old in zip(rhs, lhs, strict=True))

    return Combiner.of("argmin" if is_least else "argmax", identity, combine)


def _beats(new: Sequence[Expression], old: Sequence[Expression], is_least: bool, is_last: bool) -> Expression:
    (position, value), (old_position, old_value) = new, old
    better = value < old_value if is_least else value > old_value
    ties = equal(value, old_value)
    if value.dtype.is_float:
        better = logical_or(better, logical_and(is_nan(value), logical_not(is_nan(old_value))))
        ties = logical_or(ties, logical_and(is_nan(value), is_nan(old_value)))
    comes_first = position > old_position if is_last else position < old_position
    return logical_or(better, logical_and(ties, comes_first))


def _positions(call: ComputeCall, axis: int, is_least: bool, is_last: bool) -> Tensor:
    """Declare the positions of the extremes along an axis, which the result lacks."""
    x = call.input(0)
    along = reduce_axis(x.shape[axis], f"r{axis}")
    # Positions of 64 bits take twice the vectors of float32 values.
    dtype = DType.INT32 if x.shape[axis] < _LAST_OF_WORDS else DType.INT64
    combiner = extreme_combiner(x.dtype, is_least, is_last, dtype)

    def element(*indices: Expression) -> Reduction:
        at = (*indices[:axis], along.expression, *indices[axis:])
        return reduce(combiner, (along.expression.astype(dtype), x[at]), along)

    shape = (*x.shape[:axis], *x.shape[axis + 1 :])
    narrow = compute_many(shape, element, f"{call.name}.found", count=2)[0]
    return compute(shape, lambda *i: narrow[i].astype(DType.INT64), f"{call.name}.position")
