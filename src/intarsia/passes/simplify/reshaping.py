"""Operators that change nothing but the shape, over each other."""

from __future__ import annotations

from typing import Final

from intarsia.ir import Call, Expr
from intarsia.op import call as make_call
from intarsia.passes.rules.reshape_target import is_same_size_shape, reshaped
from intarsia.passes.rules.rule_table import RuleTable, merged, rules_for
from intarsia.passes.rules.tensor_facts import constant_ints, dims_of, int_attr, operator_name

_SHAPE_ONLY: Final = "Reshape Flatten Squeeze Unsqueeze"
_NAMES: Final = frozenset(_SHAPE_ONLY.split())


def same_shape(call: Call) -> Expr | None:
    """A Reshape to the shape that a tensor has, as the tensor."""
    x = call.args[0]
    before, after = dims_of(x), dims_of(call)
    is_same = before is not None and after is not None and is_same_size_shape(before, after)
    return x if is_same else None


def reshape_of_reshape(call: Call) -> Expr | None:
    """Two changes of shape as one Reshape, where the shape in the end can be written down."""
    inner = call.args[0]
    if operator_name(inner) not in _NAMES:
        return None
    assert isinstance(inner, Call)
    return reshaped(inner.args[0], call.checked_type)


def reshape_to_fixed_shape(call: Call) -> Expr | None:
    """A Reshape of something reshaped, as a Reshape of that, where no dimension is copied (0)."""
    inner, shape = call.args
    if operator_name(inner) not in _NAMES:
        return None
    assert isinstance(inner, Call)
    target = constant_ints(shape)
    allow_zero = int_attr(call.attrs, "allowzero", 0)
    if not allow_zero and (target is None or 0 in target):
        return None
    return make_call("Reshape", inner.args[0], shape, allowzero=allow_zero)


def unsqueeze_of_squeeze(call: Call) -> Expr | None:
    """Squeeze and Unsqueeze of the same axes, one after the other in either order, as nothing."""
    inner = call.args[0]
    pair = {operator_name(call), operator_name(inner)}
    if pair != {"Squeeze", "Unsqueeze"}:
        return None
    assert isinstance(inner, Call)
    if len(call.args) < 2 or len(inner.args) < 2:
        return None
    larger = dims_of(inner if operator_name(inner) == "Unsqueeze" else call)
    axes, inner_axes = (_axes(item.args[1], larger) for item in (call, inner))
    return inner.args[0] if axes is not None and axes == inner_axes else None


def _axes(argument: Expr, larger: tuple[object, ...] | None) -> frozenset[int] | None:
    """Axes as a set, negative ones counted from the front if the rank is known."""
    axes = constant_ints(argument)
    if axes is None:
        return None
    return frozenset(axes if larger is None else (axis % len(larger) for axis in axes))


RULES: RuleTable = merged(
    (
        rules_for(_SHAPE_ONLY, same_shape, reshape_of_reshape),
        rules_for("Reshape", reshape_to_fixed_shape),
        rules_for("Squeeze Unsqueeze", unsqueeze_of_squeeze),
    )
)
