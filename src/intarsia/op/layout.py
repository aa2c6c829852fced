"""Layouts: which operators have one, and how the others behave when the axes of their input are permuted.

An order says where axes come from, as the attribute `perm` of Transpose does: with e = Transpose(v,
perm=order), axis k of e is axis order[k] of v. For a call op(e), a rule below gives the call op' and the
order q with op(e) = Transpose(op'(v), perm=q): layout inference (DESIGN section 2), which moves a Transpose
behind an operator.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from types import MappingProxyType
from typing import TypeAlias

import numpy as np

from intarsia.ir import ABSENT, Attrs, Call, Constant, Expr, Op, TensorType, Type, with_fields
from intarsia.op.operator_facts import LayoutKind
from intarsia.op.operator_table import OPERATORS, facts_of

Order: TypeAlias = tuple[int, ...]

LAYOUT_OPERATORS = frozenset(name for name, facts in OPERATORS.items() if facts.layout is LayoutKind.IMAGE)
"""Operators of ONNX's default domain whose first argument and result are images, channels first."""


@dataclass(frozen=True, slots=True)
class Permuted:
    """An operator applied to a value whose axes are not permuted yet.

    Attributes:
        others: Its arguments behind the first.
        attrs: Its attributes.
        order: Permutation of the result's axes (of every result).
    """

    others: tuple[Expr, ...]
    attrs: Attrs
    order: Order


LayoutRule: TypeAlias = Callable[[Call, Order], Permuted | None]


def compose(first: Order, then: Order) -> Order:
    """The order of Transpose(Transpose(v, perm=first), perm=then)."""
    return tuple(first[axis] for axis in then)


def inverse(order: Order) -> Order:
    """The order that undoes another."""
    return tuple(order.index(axis) for axis in range(len(order)))


def is_identity(order: Order) -> bool:
    """Whether an order changes nothing."""
    return order == tuple(range(len(order)))


def channels_last(rank: int) -> Order:
    """The order from channels first to channels last: NCHW to NHWC is (0, 2, 3, 1)."""
    return (0, *range(2, rank), 1)


def permuted_type(own_type: Type | None, order: Order) -> Type | None:
    """The type of Transpose(v, perm=order) for a v of that type; None where it is not known."""
    match own_type:
        case TensorType(shape=shape, dtype=dtype) if shape is not None and len(shape) == len(order):
            return TensorType(tuple(shape[axis] for axis in order), dtype)
        case _:
            return None


def is_elementwise(op: Expr) -> bool:
    """Whether each element of an operator's result is made of those at the same place of its arguments."""
    return isinstance(op, Op) and facts_of(op).layout is LayoutKind.ELEMENTWISE


def permuted_call(call: Call, order: Order) -> Permuted | None:
    """What becomes of a call when its first argument is taken before the Transpose of that order.

    None for operators whose other arguments are operands as well (elementwise ones, Concat), and where the
    operator has no rule, or its axes are not known. Whether it draws random numbers is the caller's concern.
    """
    if not isinstance(call.op, Op):
        return None
    rule = LAYOUT_RULES[facts_of(call.op).layout]
    return None if rule is None else rule(call, order)


def axis_of(call: Call, order: Order, default: int) -> int | None:
    """The attribute `axis`, counted from the front; None if there is no such axis."""
    axis = call.attrs.get("axis", default)
    assert isinstance(axis, int)
    return axis % len(order) if -len(order) <= axis < len(order) else None


def _with_axis(default: int) -> LayoutRule:
    def rule(call: Call, order: Order) -> Permuted | None:
        axis = axis_of(call, order, default)
        if axis is None:
            return None
        return Permuted(call.args[1:], call.attrs.updated(axis=order[axis]), order)

    return rule


def _same_place(call: Call, order: Order) -> Permuted:
    return Permuted(call.args[1:], call.attrs, order)


def _quantization(call: Call, order: Order) -> Permuted | None:
    if call.attrs.get("block_size", 0):
        return None
    scale = call.args[1].checked_type
    is_scalar = isinstance(scale, TensorType) and scale.shape == ()
    return Permuted(call.args[1:], call.attrs, order) if is_scalar else _with_axis(1)(call, order)


def _position(call: Call, order: Order) -> Permuted | None:
    axis = axis_of(call, order, 0)
    if axis is None:
        return None
    result = order if call.attrs.get("keepdims", 1) else _without(order, (axis,))
    return Permuted(call.args[1:], call.attrs.updated(axis=order[axis]), result)


def _reduction(call: Call, order: Order) -> Permuted | None:
    keeps = bool(call.attrs.get("keepdims", 1))
    if len(call.args) < 2 or call.args[1].checked_type == ABSENT:
        is_nothing = bool(call.attrs.get("noop_with_empty_axes", 0))
        return Permuted(call.args[1:], call.attrs, order if keeps or is_nothing else ())
    axes = _axes(call.args[1], order)
    if not axes:
        return None
    result = order if keeps else _without(order, axes)
    return Permuted((_moved(call.args[1], axes, order),), call.attrs, result)


def _squeeze(call: Call, order: Order) -> Permuted | None:
    axes = _axes(call.args[1], order) if len(call.args) > 1 else None
    if not axes:
        return None
    return Permuted((_moved(call.args[1], axes, order),), call.attrs, _without(order, axes))


def _slice(call: Call, order: Order) -> Permuted | None:
    starts = call.args[1]
    if len(call.args) > 3 and call.args[3].checked_type != ABSENT:
        axes = _axes(call.args[3], order)
        if axes is None:
            return None
        moved = _moved(call.args[3], axes, order)
    else:
        count = starts.checked_type
        if not isinstance(count, TensorType) or not count.is_static:
            return None
        first = np.array(order[: count.static_shape[0]], np.int64)
        moved = Constant(first, span=call.span, virtual_device=call.virtual_device)
    return Permuted((*call.args[1:3], moved, *call.args[4:]), call.attrs, order)


def _pad(call: Call, order: Order) -> Permuted | None:
    if len(call.args) > 3 and call.args[3].checked_type != ABSENT:
        axes = _axes(call.args[3], order)
        return None if axes is None else _with_arg(call, 3, _moved(call.args[3], axes, order), order)
    pads = call.args[1]
    if not isinstance(pads, Constant) or pads.data.size != 2 * len(order):
        return None
    both = pads.data.reshape(2, -1)[:, inverse(order)].reshape(-1)
    return _with_arg(call, 1, with_fields(pads, data=both), order)


def _resize(call: Call, order: Order) -> Permuted | None:
    has_region = call.attrs.get("coordinate_transformation_mode") == "tf_crop_and_resize"
    if has_region or "axes" in call.attrs:
        return None
    others = list(call.args[1:])
    for i, arg in enumerate(others):
        if arg.checked_type == ABSENT or (isinstance(arg, Constant) and not arg.data.size):
            continue
        if i == 0:
            continue  # a region that nothing reads
        if not isinstance(arg, Constant) or arg.data.shape != (len(order),):
            return None
        others[i] = with_fields(arg, data=arg.data[list(inverse(order))])
    return Permuted(tuple(others), call.attrs, order)


def _cumulation(call: Call, order: Order) -> Permuted | None:
    axes = _axes(call.args[1], order)
    return None if axes is None else _with_arg(call, 1, _moved(call.args[1], axes, order), order)


def _with_arg(call: Call, position: int, new: Expr, order: Order) -> Permuted:
    args = (*call.args[:position], new, *call.args[position + 1 :])
    return Permuted(args[1:], call.attrs, order)


def _axes(expr: Expr, order: Order) -> tuple[int, ...] | None:
    """Constant axes, counted from the front; None if they are not known."""
    if not isinstance(expr, Constant):
        return None
    axes = tuple(int(axis) for axis in expr.data.reshape(-1))
    if not all(-len(order) <= axis < len(order) for axis in axes):
        return None
    return tuple(axis % len(order) for axis in axes)


def _moved(expr: Expr, axes: tuple[int, ...], order: Order) -> Constant:
    """The constant axes as axes of the value that is not transposed."""
    assert isinstance(expr, Constant)
    moved = np.array([order[axis] for axis in axes], expr.data.dtype).reshape(expr.data.shape)
    return expr if np.array_equal(moved, expr.data) else with_fields(expr, data=moved)


def _without(order: Order, axes: tuple[int, ...]) -> Order:
    """The order of what is left when axes of the transposed value are dropped."""
    left = [source for axis, source in enumerate(order) if axis not in axes]
    return tuple(sorted(left).index(source) for source in left)


LAYOUT_RULES: MappingProxyType[LayoutKind, LayoutRule | None] = MappingProxyType(
    {
        LayoutKind.NO_RULE: None,
        LayoutKind.ELEMENTWISE: None,
        LayoutKind.IMAGE: None,
        LayoutKind.SAME_AXES: _same_place,
        LayoutKind.LAST_AXIS: _with_axis(-1),
        LayoutKind.FIRST_AXIS: _with_axis(0),
        LayoutKind.POSITION: _position,
        LayoutKind.REDUCTION: _reduction,
        LayoutKind.CUMULATION: _cumulation,
        LayoutKind.QUANTIZATION: _quantization,
        LayoutKind.PAD: _pad,
        LayoutKind.RESIZE: _resize,
        LayoutKind.SLICE: _slice,
        LayoutKind.SQUEEZE: _squeeze,
    }
)
"""Rule by kind; None for operators with several operands, and where a Transpose cannot move behind."""
