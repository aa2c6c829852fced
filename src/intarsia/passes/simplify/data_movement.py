"""Operators that copy a tensor as it is, and copies that the operator around them makes anyway."""

from __future__ import annotations

from typing import Final

import numpy as np

from intarsia.ir import ABSENT, Call, Dim, Expr, Op, SymbolicDim, TupleGetItem, with_fields
from intarsia.op import call as make_call
from intarsia.passes.rules.rule_table import IsPrivate, RuleTable, SharingRuleTable, merged, rules_for
from intarsia.passes.rules.tensor_facts import (
    constant_ints,
    dims_of,
    has_same_shape,
    int_attr,
    keeps_shape,
    operator_name,
    static_shape_of,
)

_TO_THE_END: Final = 2**31 - 1
"""An end of a slice from which it means "to the end", whatever the size."""
_MOST_CONCATENATED: Final = 256
"""Arguments up to which nested concatenations are merged, so that a long nest costs linear time."""
_BROADCASTING: Final = """
    Add Sub Mul Div Pow Max Min And Or Xor Equal Greater GreaterOrEqual Less LessOrEqual Where
"""


def whole_slice(call: Call) -> Expr | None:
    """A Slice of everything, as its argument."""
    x, *ranges = call.args
    before, after = dims_of(x), dims_of(call)
    starts, ends = constant_ints(ranges[0]), constant_ints(ranges[1])
    axes = _optional_ints(ranges, 2, range(_length(ranges[0])))
    if before is None or after is None or not axes:
        return None
    steps = _optional_ints(ranges, 3, (1,) * len(axes))
    if steps is None or any(step != 1 for step in steps):
        return None
    for position, axis in enumerate(axes):
        is_full = (
            starts is not None and ends is not None and not starts[position] and ends[position] >= _TO_THE_END
        )
        if not is_full and not _is_same_number(before[axis], after[axis]):
            return None
    return x


def _length(starts: Expr) -> int:
    """How many axes a Slice cuts that does not name them; 0 if that is not known."""
    shape = static_shape_of(starts)
    return shape[0] if shape else 0


def _optional_ints(
    args: list[Expr], position: int, default: range | tuple[int, ...]
) -> tuple[int, ...] | None:
    if len(args) <= position or args[position].checked_type == ABSENT:
        return tuple(default)
    return constant_ints(args[position])


def _is_same_number(left: Dim, right: Dim) -> bool:
    return left == right and not isinstance(left, SymbolicDim)


def empty_pad(call: Call) -> Expr | None:
    """A Pad by nothing, as its argument."""
    pads = constant_ints(call.args[1])
    return call.args[0] if pads is not None and not any(pads) else None


def expand_to_own_shape(call: Call) -> Expr | None:
    """An Expand that repeats nothing, as its argument."""
    x, shape = call.args
    target = constant_ints(shape)
    is_kept = target is not None and keeps_shape(x, target)
    return x if is_kept or has_same_shape(x, call) else None


def tile_once(call: Call) -> Expr | None:
    """A Tile with one of each, as its argument."""
    repeats = constant_ints(call.args[1])
    return call.args[0] if repeats is not None and all(item == 1 for item in repeats) else None


def operand_expanded(call: Call) -> Expr | None:
    """`x + expand(y)` as `x + y`, where the sum is as large."""
    if not any(operator_name(arg) == "Expand" for arg in call.args):
        return None
    args = tuple(
        arg.args[0] if isinstance(arg, Call) and operator_name(arg) == "Expand" else arg for arg in call.args
    )
    shapes = [shape for arg in args if (shape := static_shape_of(arg)) is not None]
    is_same = len(shapes) == len(args) and np.broadcast_shapes(*shapes) == static_shape_of(call)
    return with_fields(call, args=args) if is_same else None


def concat_of_one(call: Call) -> Expr | None:
    """A Concat of one tensor, as the tensor."""
    return call.args[0] if len(call.args) == 1 else None


def concat_with_empty(call: Call) -> Expr | None:
    """A Concat without those of its arguments that have no elements along its axis."""
    axis = int_attr(call.attrs, "axis", 0)
    kept = tuple(arg for arg in call.args if _size_along(arg, axis) != 0)
    return with_fields(call, args=kept) if 0 < len(kept) < len(call.args) else None


def concat_of_all_parts(call: Call) -> Expr | None:
    """A Concat of all parts of a Split in order, along the same axis, as what was split."""
    match call.args[0]:
        case TupleGetItem(tuple_value=Call(op=Op(name="Split", domain="")) as split, index=0):
            pass
        case _:
            return None
    is_complete = len(call.args) == split.attrs["outputs"] and all(
        isinstance(arg, TupleGetItem) and arg.tuple_value is split and arg.index == index
        for index, arg in enumerate(call.args)
    )
    axis, split_axis = (_axis(item, int_attr(item.attrs, "axis", 0)) for item in (call, split))
    return split.args[0] if is_complete and axis == split_axis else None


def _axis(call: Call, axis: int) -> int:
    """Counted from the front, where the rank is known."""
    dims = dims_of(call.args[0] if operator_name(call) == "Split" else call)
    return axis if dims is None else axis % len(dims)


def _size_along(expr: Expr, axis: int) -> Dim | None:
    dims = dims_of(expr)
    return None if dims is None else dims[axis]


def nested_concat(call: Call, is_private: IsPrivate) -> Expr | None:
    """`concat(concat(a, b), c)` as `concat(a, b, c)`, where the inner one is not needed otherwise."""
    axis = _axis(call, int_attr(call.attrs, "axis", 0))

    def parts(arg: Expr) -> tuple[Expr, ...]:
        if operator_name(arg) != "Concat" or not is_private(arg):
            return (arg,)
        assert isinstance(arg, Call)
        return arg.args if _axis(arg, int_attr(arg.attrs, "axis", 0)) == axis else (arg,)

    args = tuple(part for arg in call.args for part in parts(arg))
    if len(args) == len(call.args) or len(args) > _MOST_CONCATENATED:
        return None
    return make_call("Concat", *args, axis=axis)


def part_of_one(expr: TupleGetItem) -> Expr | None:
    """The only part of a Split into one, as what was split."""
    match expr.tuple_value:
        case Call(op=Op(name="Split", domain=""), args=(x, *_), attrs={"outputs": 1}):
            return x
        case _:
            return None


RULES: RuleTable = merged(
    (
        rules_for("Slice", whole_slice),
        rules_for("Pad", empty_pad),
        rules_for("Expand", expand_to_own_shape),
        rules_for("Tile", tile_once),
        rules_for("Concat", concat_of_one, concat_with_empty, concat_of_all_parts),
        rules_for(_BROADCASTING, operand_expanded),
    )
)
SHARING_RULES: SharingRuleTable = {"Concat": (nested_concat,)}
