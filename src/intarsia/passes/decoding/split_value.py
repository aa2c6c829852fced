"""Values that consist of a part of the past and a new part, which are never joined."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace

from intarsia.ir import Call, Constant, Expr
from intarsia.op import call
from intarsia.passes.rules.tensor_facts import constant_ints, ints_attr, operator_name, static_shape_of


@dataclass(frozen=True, slots=True)
class SplitValue:
    """A tensor that is Concat(past, new) on one axis, repeated for groups of heads and scaled.

    Attributes:
        past: The part of the past.
        new: The part of this call.
        axis: Axis of the parts on which they are joined.
        groups: Number of times that each index of axis 1 comes, one after the other.
        scale: Scalar that multiplies it, if any.
    """

    past: Expr
    new: Expr
    axis: int
    groups: int = 1
    scale: Expr | None = None

    def changed(self, change: Callable[[Expr], Expr], axis: int) -> SplitValue:
        """Return the value with both parts changed alike."""
        return replace(self, past=change(self.past), new=change(self.new), axis=axis)


def split_call(
    node: Call, current: Call, splits: Mapping[Expr, SplitValue], twins: Mapping[Expr, Expr]
) -> SplitValue | None:
    """Return what a call does to a split argument, None if its result is not split.

    Args:
        node: The call in the program.
        current: The call over rewritten arguments.
        splits: Split values of the program's expressions.
        twins: The program's expressions bound to some sizes, so that their shapes are known.
    """
    name = operator_name(node)
    if name == "Reshape":
        return _repeated(node, splits, twins)
    positions = [position for position, arg in enumerate(node.args) if arg in splits]
    if len(positions) != 1:
        return None
    position = positions[0]
    value = splits[node.args[position]]
    match name:
        case "Transpose":
            return _transposed(node, value)
        case "Mul" if _is_scalar(current.args[1 - position]):
            return _scaled(value, current.args[1 - position])
        case "Div" if position == 0 and _is_scalar(current.args[1]):
            return _scaled(value, call("Reciprocal", current.args[1]))
        case _:
            return None


def _transposed(node: Call, value: SplitValue) -> SplitValue | None:
    order = ints_attr(node.attrs, "perm")
    if order is None or (value.groups > 1 and order[1] != 1):
        return None
    return value.changed(lambda part: call("Transpose", part, perm=order), order.index(value.axis))


def _scaled(value: SplitValue, factor: Expr) -> SplitValue:
    return replace(value, scale=factor if value.scale is None else call("Mul", value.scale, factor))


def _is_scalar(expr: Expr) -> bool:
    return isinstance(expr, Constant) and expr.data.size == 1 and expr.data.ndim <= 1


def _repeated(node: Call, splits: Mapping[Expr, SplitValue], twins: Mapping[Expr, Expr]) -> SplitValue | None:
    """Recognise Reshape(Expand(Unsqueeze(x, 2))), which repeats each head for a group of query heads."""
    grid = node.args[0]
    if operator_name(grid) != "Expand":
        return None
    assert isinstance(grid, Call)
    column = grid.args[0]
    if operator_name(column) != "Unsqueeze":
        return None
    assert isinstance(column, Call)
    value = splits.get(column.args[0])
    if value is None or value.groups > 1 or value.axis != 2 or constant_ints(column.args[1]) != (2,):
        return None
    before, between, after = (static_shape_of(twins[item]) for item in (column.args[0], grid, node))
    if before is None or between is None or after is None or (len(before), len(after)) != (4, 4):
        return None
    groups = between[2]
    keeps = between == (*before[:2], groups, *before[2:])
    is_merged = after == (before[0], before[1] * groups, *before[2:])
    return replace(value, groups=groups) if keeps and is_merged else None
