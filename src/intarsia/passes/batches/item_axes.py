"""The axis in which a value carries the batch, and what rules about it read.

A tensor *carries* the batch in an axis if item i of the tensor is a slice of this axis: the first of as many
equal pieces as there are items, the second, and so on.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, Final, TypeAlias

import numpy.typing as npt

from intarsia.ir import ABSENT, Call, Expr, TensorType, TupleType
from intarsia.op.known_value import known_value

ITEMS: Final = 1_000_003
"""A prime number of items by which programs are examined; its multiples are sizes of the batch."""

BatchAxis: TypeAlias = "int | tuple[int, ...] | None"
"""The axis in which a value carries the batch, that of each field for a tuple; None if it does not."""

ItemRule: TypeAlias = Callable[[Call, Sequence[int | None]], BatchAxis]
"""Given a call and the axes of its arguments, returns those of its results; None if it mixes items.

Item i of the results must depend on item i of the arguments that carry the batch, and on nothing else of
them.
"""


def shape_of(expr: Expr) -> tuple[int, ...]:
    """Return the static shape of a value; that of the first field for a tuple."""
    type_ = expr.checked_type
    if isinstance(type_, TupleType):
        type_ = type_.fields[0]
    assert isinstance(type_, TensorType)
    return type_.static_shape


def axis_of_first(axes: Sequence[int | None]) -> int | None:
    """Return the axis of the first argument if no other one carries the batch."""
    return axes[0] if all(axis is None for axis in axes[1:]) else None


def rank_of(call: Call, position: int = 0) -> int:
    """Return the number of axes of an argument."""
    return len(shape_of(call.args[position]))


def of_each_result(call: Call, axis: int | None) -> BatchAxis:
    """Return the axis, for each result if there are several."""
    type_ = call.checked_type
    return (axis,) * len(type_.fields) if axis is not None and isinstance(type_, TupleType) else axis


def extent_from_end(arg: Expr, from_end: int) -> int:
    """Return the extent of an axis counted from the end; 1 where the argument has no such axis."""
    shape = shape_of(arg)
    return shape[from_end] if -from_end <= len(shape) else 1


def attribute_axis(call: Call, default: int, rank: int) -> int:
    """Return the axis that the attribute `axis` names, counted from the front."""
    axis = call.attrs.get("axis", default)
    assert isinstance(axis, int)
    return axis % max(rank, 1)


def has_argument(call: Call, position: int) -> bool:
    """Return whether a call has an argument at a position."""
    return position < len(call.args) and call.args[position].checked_type != ABSENT


def value_of(call: Call, position: int) -> npt.NDArray[Any] | None:
    """Return the value of an argument if it is known."""
    return known_value(call.args[position]) if has_argument(call, position) else None


def sized_axis(call: Call) -> int | None:
    """Return the one axis whose extent is a multiple of the items."""
    sized = [at for at, extent in enumerate(shape_of(call)) if extent and extent % ITEMS == 0]
    return sized[0] if len(sized) == 1 else None


def from_end(axis: int | None, rank: int) -> int | None:
    """Return an axis counted from the end, as a negative number."""
    return None if axis is None else axis - rank
