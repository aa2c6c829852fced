"""Calls whose result has the elements of their first argument in the same order: no kernel is needed."""

from __future__ import annotations

from intarsia.ir import Call, Op, TensorType
from intarsia.op.purity import is_random

_OPERATORS = frozenset(
    {
        *("Cast", "CastLike", "Dropout", "Expand", "Flatten", "Identity", "Reshape", "Squeeze", "Transpose"),
        *("Unsqueeze", "intarsia::device_copy", "intarsia::on_device"),
    }
)


def keeps_elements(call: Call) -> bool:
    """Whether a typed call of an operator gives the elements of its first argument as they are.

    Reshapes do; Cast to the same type, Expand to the same size, Dropout in inference and Transpose that
    moves axes of extent 1 only do, too.
    """
    if not isinstance(call.op, Op) or str(call.op) not in _OPERATORS or is_random(call):
        return False
    given, made = call.args[0].checked_type, call.checked_type
    if not isinstance(given, TensorType) or not isinstance(made, TensorType):
        return False
    if given.dtype is not made.dtype or not (given.is_static and made.is_static):
        return False
    if call.op.name == "Transpose":
        return _keeps_order(call, given.static_shape)
    return call.op.name != "Expand" or _long(given.static_shape) == _long(made.static_shape)


def _keeps_order(call: Call, shape: tuple[int, ...]) -> bool:
    """Whether the axes that have more than one element stay in order."""
    order = call.attrs.get("perm", tuple(reversed(range(len(shape)))))
    assert isinstance(order, tuple)
    long = [axis for axis in order if isinstance(axis, int) and shape[axis] != 1]
    return long == sorted(long)


def _long(shape: tuple[int, ...]) -> tuple[int, ...]:
    return tuple(extent for extent in shape if extent != 1)
