"""Holding transposes back: every value of a program as one that is not transposed yet, and an order."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

from intarsia.ir import (
    ABSENT,
    Attrs,
    Call,
    Constant,
    Expr,
    Function,
    Op,
    TensorType,
    Tuple,
    TupleGetItem,
    TupleType,
    Type,
    children,
    post_order,
    with_children,
    with_fields,
)
from intarsia.op.infer import typed
from intarsia.op.intarsia_ops import layout_permutation
from intarsia.op.layout import (
    Order,
    axis_of,
    channels_last,
    compose,
    inverse,
    is_elementwise,
    is_identity,
    permuted_call,
    permuted_type,
)
from intarsia.op.purity import is_random
from intarsia.passes.functions.sealed import is_sealed
from intarsia.passes.layouts.layout_operator import channels_last_call, layout_operator, layouts_of
from intarsia.target import VirtualDevice


@dataclass(frozen=True, slots=True)
class _Held:
    """A value of the program: Transpose(value, perm=order), or `value` itself if order is None.

    Attributes:
        value: The computed value.
        order: The order that is held back; never the identity. Of a tuple, that of each field.
        device: Device of the transpose.
    """

    value: Expr
    order: Order | None = None
    device: VirtualDevice | None = None


class TransposedValues:
    """Rewrites one function.

    Args:
        operators: Operators that are put into the layout.
        is_last: Whether that is channels last.

    Attributes:
        has_converted: Whether some operator has changed its layout.
        declined: Calls of the function that keep their layout, or need values as they were; with the reason.
    """

    def __init__(self, operators: frozenset[str], is_last: bool) -> None:
        self.has_converted = False
        self.declined: dict[Call, str] = {}
        self._operators, self._is_last = operators, is_last
        self._held: dict[Expr, _Held] = {}
        self._placed: dict[tuple[Expr, Order, VirtualDevice], Expr] = {}
        self._constants: dict[tuple[Constant, Order], Constant] = {}

    def function(self, root: Function) -> Function:
        """The function in the layout; sealed functions inside stay, but for those of this pass."""
        sealed = {node for node in post_order(root) if node is not root and is_sealed(node)}
        self._held = {node: _Held(node) for node in sealed}
        for node in post_order(root, stop=sealed):
            self._held[node] = self._rewritten(node)
        result = self._held[root].value
        assert isinstance(result, Function)
        return result

    def _rewritten(self, node: Expr) -> _Held:
        match node:
            case Call(op=Op()):
                return self._operator(node)
            case Call(op=Function()):
                return self._layout_function(node) or self._plain(node)
            case TupleGetItem(tuple_value=whole, index=index) if self._held[whole].order is not None:
                held = self._held[whole]
                assert held.order is not None
                item = TupleGetItem(held.value, index, span=node.span, virtual_device=node.virtual_device)
                return _Held(item, held.order, held.device)
            case _:
                return self._plain(node)

    def _plain(self, node: Expr) -> _Held:
        """The same over values as they were."""
        current = with_children(node, tuple(map(self._as_it_was, children(node))))
        return _Held(current if current is node else typed(current))

    def _as_it_was(self, node: Expr) -> Expr:
        held = self._held[node]
        if held.order is None:
            return held.value
        return self._transposed(held.value, held.order, node, node.checked_type)

    def _transposed(self, value: Expr, order: Order, like: Expr, own_type: Type | None) -> Expr:
        """The transpose of a value, placed once for each device; of a tuple, a tuple of transposes."""
        if is_identity(order):
            return value
        facts: dict[str, Any] = {"span": like.span, "virtual_device": like.virtual_device}
        if isinstance(own_type, TupleType):
            items = [TupleGetItem(value, i, **facts) for i in range(len(own_type.fields))]
            pairs = zip(items, own_type.fields, strict=True)
            return Tuple(tuple(self._transposed(item, order, like, field) for item, field in pairs), **facts)
        key = (value, order, like.virtual_device)
        if key not in self._placed:
            attrs = Attrs({"perm": order})
            self._placed[key] = typed(Call(Op("Transpose"), (value,), attrs, checked_type=own_type, **facts))
        return self._placed[key]

    def _operator(self, call: Call) -> _Held:
        assert isinstance(call.op, Op)
        order = _order_of(call)
        if order is not None:
            return self._transpose(call, order)
        if call.op.name in self._operators and not call.op.domain and self._is_last:
            converted = self._channels_last(call)
            if converted is not None:
                return converted
        if is_random(call) or not call.args:
            return self._plain(call)
        moved = self._moved(call)
        if moved is None and any(self._is_transposed(arg) for arg in call.args):
            self.declined[call] = "needs values in their layout before: a transpose stays in front of it"
        return moved or self._plain(call)

    def _is_transposed(self, arg: Expr) -> bool:
        """Whether a transpose of a value is held back that is no constant."""
        return self._held[arg].order is not None

    def _transpose(self, call: Call, order: Order) -> _Held:
        source = call.args[0]
        held = self._held[source]
        if held.order is None:
            if held.value is source:
                self._placed.setdefault((source, order, call.virtual_device), call)
            return _Held(held.value) if is_identity(order) else _Held(held.value, order, call.virtual_device)
        if held.device != call.virtual_device:
            return self._plain(call)
        both = compose(held.order, order)
        return _Held(held.value) if is_identity(both) else _Held(held.value, both, held.device)

    def _channels_last(self, call: Call) -> _Held | None:
        """An operator of ONNX as one channels last."""
        rank = _rank(call.args[0])
        if rank is None or layouts_of(rank) is None or not isinstance(call.checked_type, TensorType):
            axes = "its rank is unknown" if rank is None else f"a value of {rank} axes has none"
            reason = axes if rank is None or layouts_of(rank) is None else "its result is no single tensor"
            self.declined[call] = f"keeps its layout: {reason}"
            return None
        order = channels_last(rank)
        data = self._permuted(call.args[0], order, call)
        others = tuple(map(self._as_it_was, call.args[1:]))
        self.has_converted = True
        new = channels_last_call(with_fields(call, args=(call.args[0], *others)), data, rank)
        return _Held(new, inverse(order), call.virtual_device)

    def _layout_function(self, call: Call) -> _Held | None:
        """An operator channels last, as one of ONNX if that is requested."""
        layout = layout_operator(call)
        if layout is None or self._is_last:
            return None
        inner = layout.inner
        assert isinstance(inner.op, Op)
        if inner.op.name not in self._operators:
            return None
        data = self._permuted(call.args[0], inverse(layout.order), call)
        others = tuple(self._as_it_was(arg) if arg in self._held else arg for arg in inner.args[1:])
        self.has_converted = True
        new = typed(with_fields(inner, args=(data, *others)))
        return _Held(new, layout.order, call.virtual_device)

    def _permuted(self, node: Expr, order: Order, like: Call) -> Expr:
        """Transpose(node, perm=order), on what is held."""
        held = self._held[node]
        own_type = permuted_type(node.checked_type, order)
        if held.order is None:
            return self._transposed(held.value, order, like, own_type)
        if held.device != like.virtual_device:
            return self._transposed(self._as_it_was(node), order, like, own_type)
        return self._transposed(held.value, compose(held.order, order), like, own_type)

    def _moved(self, call: Call) -> _Held | None:
        """The call on values that are not transposed yet, if its operator can be moved in front."""
        orders = {(self._held[arg].order, self._held[arg].device) for arg in call.args}
        moved = [(order, device) for order, device in orders if order is not None]
        if len(moved) != 1 or moved[0][1] != call.virtual_device or call.checked_type is None:
            return None
        order = moved[0][0]
        assert isinstance(call.op, Op)
        if call.op.name == "Shape" and not call.op.domain and not call.attrs:
            return _Held(self._shape(call, order))
        if is_elementwise(call.op):
            return self._over_operands(call, order, self._operand, call.attrs)
        if call.op.name == "Concat" and not call.op.domain:
            axis = axis_of(call, order, 0)
            attrs = call.attrs if axis is None else call.attrs.updated(axis=order[axis])
            return None if axis is None else self._over_operands(call, order, self._part, attrs)
        return self._over_first(call, order)

    def _shape(self, call: Call, order: Order) -> Expr:
        """The shape before the transpose, permuted: a value must not be transposed to be measured."""
        facts: dict[str, Any] = {"span": call.span, "virtual_device": call.virtual_device}
        shape = typed(with_fields(call, args=(self._held[call.args[0]].value,), checked_type=None))
        axes = Constant(np.array(order, np.int64), **facts)
        return typed(Call(Op("Gather"), (shape, axes), checked_type=call.checked_type, **facts))

    def _over_first(self, call: Call, order: Order) -> _Held | None:
        """An operator with one operand, whose axes are renamed."""
        if any(self._held[arg].order is not None for arg in call.args[1:]):
            return None
        if self._held[call.args[0]].order is None:
            return None
        seen = with_fields(call, args=(call.args[0], *(self._held[arg].value for arg in call.args[1:])))
        moved = permuted_call(seen, order)
        if moved is None:
            return None
        args = (self._held[call.args[0]].value, *moved.others)
        return self._held_call(call, args, moved.attrs, moved.order)

    def _over_operands(
        self, call: Call, order: Order, operand: Callable[[Expr, Order, Call], Expr | None], attrs: Attrs
    ) -> _Held | None:
        """An operator whose arguments are all taken in the same order."""
        args = tuple(operand(arg, order, call) for arg in call.args)
        present = tuple(arg for arg in args if arg is not None)
        return self._held_call(call, present, attrs, order) if len(present) == len(args) else None

    def _held_call(self, call: Call, args: tuple[Expr, ...], attrs: Attrs, order: Order) -> _Held:
        own_type = permuted_type(call.checked_type, inverse(order))
        new = typed(with_fields(call, args=args, attrs=attrs, checked_type=own_type))
        return _Held(new) if is_identity(order) else _Held(new, order, call.virtual_device)

    def _operand(self, arg: Expr, order: Order, call: Call) -> Expr | None:
        """An argument of an elementwise operator before the transpose; None if that is not to be had free."""
        held, rank = self._held[arg], _rank(arg)
        if held.order is not None:
            return held.value
        if arg.checked_type == ABSENT or rank == 0:
            return held.value
        if rank is None or rank > len(order):
            return None
        if isinstance(held.value, Constant):
            return held.value if held.value.data.size == 1 else self._constant(held.value, order)
        return (
            self._placed.get((held.value, inverse(order), call.virtual_device))
            if rank == len(order)
            else None
        )

    def _part(self, arg: Expr, order: Order, call: Call) -> Expr | None:
        """An argument of Concat before the transpose."""
        held = self._held[arg]
        if isinstance(held.value, Constant) and held.value.data.ndim == len(order):
            return self._constant(held.value, order)
        return self._operand(arg, order, call) if _rank(arg) == len(order) or held.order is not None else None

    def _constant(self, constant: Constant, order: Order) -> Constant:
        """The constant whose transpose, broadcast to all axes, is the given one."""
        key = (constant, order)
        if key not in self._constants:
            data = constant.data.reshape((1,) * (len(order) - constant.data.ndim) + constant.data.shape)
            moved = np.ascontiguousarray(data.transpose(inverse(order)))
            self._constants[key] = with_fields(constant, data=moved, checked_type=TensorType.of(moved))
        return self._constants[key]


def _rank(expr: Expr) -> int | None:
    own_type = expr.checked_type
    return len(own_type.shape) if isinstance(own_type, TensorType) and own_type.shape is not None else None


def _order_of(call: Call) -> Order | None:
    """The order of a call that only permutes axes; None for another, or where the rank is not known."""
    assert isinstance(call.op, Op)
    if (call.op.domain, call.op.name) == ("intarsia", "layout_transform"):
        return layout_permutation(str(call.attrs["src_layout"]), str(call.attrs["dst_layout"]))
    if (call.op.domain, call.op.name) != ("", "Transpose"):
        return None
    perm, rank = call.attrs.get("perm"), _rank(call.args[0])
    if isinstance(perm, tuple):
        return tuple(axis for axis in perm if isinstance(axis, int))
    return None if rank is None else tuple(reversed(range(rank)))
