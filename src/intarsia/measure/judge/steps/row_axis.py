"""Values of which each row depends on one row of another value: what is gathered for each selected box.

    selected = NonMaxSuppression(boxes, scores)
    y = Mul(Gather(table, Squeeze(Slice(selected, 2, 3, axes=1))), scale)

Row i of y depends on row i of `selected` only. So y of all rows that could be selected is a table, and a
result with other rows, or in another order, can be looked up in it.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from math import prod
from typing import Final

import numpy as np

from intarsia.ir import Call, Expr, Op, TensorType, TupleGetItem, children, post_order
from intarsia.measure.judge.steps.movement import operator_name
from intarsia.op import OpPatternKind, op_pattern
from intarsia.op.known_value import known_value

_BROADCASTING: Final = frozenset({"Add", "Sub", "Mul", "Div", "Max", "Min", "Where"})


class _NotByRowsError(Exception):
    """A row of a value depends on several rows, or it is not known on which."""


def row_axis(expr: Expr, source: Expr, axis: int = 0) -> int | None:
    """Return the axis of an expression along which its rows lie; None if they are not those of a source.

    Args:
        expr: The value.
        source: Value that it is computed from: a tensor, or a tuple of tensors of one shape.
        axis: The axis of the source along which its rows lie.
    """
    axes: dict[Expr, int | None] = {source: axis}
    try:
        for node in post_order(expr, stop={source}):
            axes[node] = _axis_of(node, axes)
    except _NotByRowsError:
        return None
    return axes[expr]


def _axis_of(node: Expr, axes: Mapping[Expr, int | None]) -> int | None:
    """Return the row axis of a node from those of its children; None if it depends on no row."""
    if all(axes.get(child) is None for child in children(node)):
        return None
    match node:
        case TupleGetItem(tuple_value=value):
            return axes[value]
        case Call(op=Op() as op, args=args):
            return _call_axis(node, op, [axes.get(arg) for arg in args])
        case _:
            raise _NotByRowsError


def _call_axis(call: Call, op: Op, args: Sequence[int | None]) -> int:
    name, first = operator_name(call), args[0]
    if name in _BROADCASTING:
        return _broadcast_axis(call, args)
    if name == "Concat":
        return _concat_axis(call, args)
    if name in {"Gather", "GatherND"}:
        return _gather_axis(call, args)
    if first is None or any(axis is not None for axis in args[1:]):
        raise _NotByRowsError
    if op_pattern(op) is OpPatternKind.ELEMWISE:
        return first
    return _moved_axis(call, name, first)


def _broadcast_axis(call: Call, args: Sequence[int | None]) -> int:
    """The row axis of an elementwise operator: arguments are aligned at their last axes."""
    rank = _rank(call)
    axes = {rank - _rank(arg) + axis for arg, axis in zip(call.args, args, strict=True) if axis is not None}
    if len(axes) != 1:
        raise _NotByRowsError
    (result,) = axes
    for arg, axis in zip(call.args, args, strict=True):
        arg_axis = result - rank + _rank(arg)
        if axis is None and arg_axis >= 0 and _shape(arg)[arg_axis] != 1:
            raise _NotByRowsError
    return result


def _concat_axis(call: Call, args: Sequence[int | None]) -> int:
    axis = _attribute(call, "axis", 0) % _rank(call)
    if len(set(args)) != 1 or args[0] is None or args[0] == axis:
        raise _NotByRowsError
    return args[0]


def _gather_axis(call: Call, args: Sequence[int | None]) -> int:
    data, indices = args
    if operator_name(call) == "GatherND":
        if data is not None or indices is None or call.attrs.get("batch_dims", 0) != 0:
            raise _NotByRowsError
        if indices == _rank(call.args[1]) - 1:
            raise _NotByRowsError
        return indices
    axis = _attribute(call, "axis", 0) % _rank(call.args[0])
    if data is None and indices is not None:
        return axis + indices
    if data is None or indices is not None or data == axis:
        raise _NotByRowsError
    return data if data < axis else data - 1 + _rank(call.args[1])


def _moved_axis(call: Call, name: str, first: int) -> int:
    """The row axis of an operator that moves the elements of its first argument."""
    rank = _rank(call.args[0])
    match name:
        case "Transpose":
            perm = call.attrs.get("perm", tuple(reversed(range(rank))))
            assert isinstance(perm, tuple)
            return perm.index(first)
        case "Split":
            axes = [_attribute(call, "axis", 0)]
        case "Slice":
            axes = _integers(call, 3) if len(call.args) > 3 else list(range(rank))
        case "Squeeze":
            squeezed = {axis % rank for axis in _integers(call, 1)}
            return _unless(first in squeezed, first - sum(axis < first for axis in squeezed))
        case "Unsqueeze":
            added = {axis % _rank(call) for axis in _integers(call, 1)}
            return [axis for axis in range(_rank(call)) if axis not in added][first]
        case "Reshape":
            return _reshaped_axis(call, first)
        case _:
            raise _NotByRowsError
    return _unless(first in {axis % rank for axis in axes}, first)


def _reshaped_axis(call: Call, first: int) -> int:
    """The row axis after a Reshape that leaves rows together: nothing but ones stands before the rows."""
    before, target = _shape(call.args[0]), _integers(call, 1)
    behind = [size for size in before[first + 1 :] if isinstance(size, int)]
    result = next((axis for axis, size in enumerate(target) if size != 1), 0)
    is_open = target[result] == -1 or (target[result] == 0 and result == first)
    if any(size != 1 for size in before[:first]) or len(behind) < len(before) - first - 1:
        raise _NotByRowsError
    if not is_open or min(target[result + 1 :], default=1) < 1:
        raise _NotByRowsError
    return _unless(prod(target[result + 1 :]) != prod(behind), result)


def _unless(is_wrong: bool, axis: int) -> int:
    if is_wrong:
        raise _NotByRowsError
    return axis


def _shape(expr: Expr) -> tuple[object, ...]:
    type_ = expr.checked_type
    if not isinstance(type_, TensorType) or type_.shape is None:
        raise _NotByRowsError
    return tuple(type_.shape)


def _rank(expr: Expr) -> int:
    return len(_shape(expr))


def _attribute(call: Call, name: str, default: int) -> int:
    value = call.attrs.get(name, default)
    assert isinstance(value, int)
    return value


def _integers(call: Call, position: int) -> list[int]:
    """The numbers in an argument that is known."""
    value = known_value(call.args[position]) if position < len(call.args) else None
    if value is None:
        raise _NotByRowsError
    return [int(number) for number in np.asarray(value).reshape(-1)]
