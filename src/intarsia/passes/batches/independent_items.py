"""Whether a program computes each item of a batch by itself."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from types import MappingProxyType
from typing import Final

from intarsia.ir import (
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
    Var,
    post_order,
)
from intarsia.ir.rule_errors import expression_name
from intarsia.op.known_value import known_value
from intarsia.op.purity import is_random
from intarsia.passes.batches.item_axes import ITEMS, BatchAxis
from intarsia.passes.batches.item_rules import item_rule
from intarsia.passes.batches.provided_items import is_provided_for, provided_axis

SHAPE_ARGUMENTS: Final[Mapping[str, tuple[int, ...]]] = {
    "ConstantOfShape": (0,),
    "Expand": (1,),
    "Reshape": (1,),
    "Resize": (3,),
    "Tile": (1,),
}
"""Arguments that may hold the number of items: they say how large a result is, not what is in it."""


def independence_obstacle(
    function: Function,
    carrying: Mapping[str, int],
    *,
    accepts: Callable[[Expr, BatchAxis], bool] | None = None,
    examined: Mapping[Expr, int | None] = MappingProxyType({}),
) -> str | None:
    """Return why a program mixes the items of its batch; None if it computes each by itself.

    Linear in the program. Sound, not complete: an operator of which nothing is known counts as mixing.

    Args:
        function: Typed program of static shapes for a batch of `ITEMS` items.
        carrying: The axis of the batch by the name of the parameters that have it.
        examined: Axes of expressions that are examined already: None for what is the same for all items.
        accepts: Function from a result and its axis to whether that may be so; without it, it has to be the
            first.
    """
    axes: dict[Expr, BatchAxis] = {}
    for expr in post_order(function):
        if expr in examined or (expr is function.body and isinstance(expr, Tuple)):
            axes[expr] = examined.get(expr)
            continue
        reason = _examine(expr, carrying, axes)
        if reason is not None:
            return reason
    results = function.body.fields if isinstance(function.body, Tuple) else (function.body,)
    for result in results:
        axis = axes[result]
        if axis not in {0, (0,)} and (accepts is None or not accepts(result, axis)):
            return f"a result, {expression_name(result)}, does not have the items in its first axis"
    return None


def is_behind_units(result: Expr, axis: BatchAxis) -> bool:
    """Return whether the items of a result lie one behind another: only axes of extent 1 are in front."""
    if not isinstance(axis, int):
        return axis == (0,)
    (shape,) = _shapes(result.checked_type)
    return shape is not None and all(extent == 1 for extent in shape[:axis])


def _examine(expr: Expr, carrying: Mapping[str, int], axes: dict[Expr, BatchAxis]) -> str | None:
    """Note in which axis an expression carries the batch; return why it mixes items, if it does."""
    match expr:
        case Var():
            axes[expr] = carrying.get(expr.name)
            return _misplaced(expr, f"parameter {expr.name!r}", axes[expr])
        case Constant() | Op() | Function():
            axes[expr] = None
        case Tuple():
            fields = tuple(axes[item] for item in expr.fields)
            plain = tuple(axis for axis in fields if isinstance(axis, int))
            axes[expr] = plain or None
            if plain and len(plain) != len(fields):
                return "a tuple has values of items beside others"
        case TupleGetItem():
            of_tuple = axes[expr.tuple_value]
            axes[expr] = of_tuple[expr.index] if isinstance(of_tuple, tuple) else of_tuple
        case Call(op=Op()):
            return _examine_call(expr, axes)
        case _:
            return f"{expression_name(expr)} decides for all items"
    return None


def _examine_call(call: Call, axes: dict[Expr, BatchAxis]) -> str | None:
    op = call.op
    assert isinstance(op, Op)
    axes[call] = None
    if known_value(call) is not None:  # shape arithmetic
        return None
    if is_random(call):
        return f"{expression_name(call)} draws random numbers"
    shapes = SHAPE_ARGUMENTS.get(op.name, ())
    for position, arg in enumerate(call.args):
        value = known_value(arg)
        if value is not None and position not in shapes and _has_items(value.reshape(-1).tolist()):
            return f"{expression_name(call)} computes with the number of items"
    of_args = [axes[arg] for arg in call.args]
    if all(axis is None for axis in of_args) and not any(map(_has_items, _shapes(call.checked_type))):
        return None
    if is_provided_for(call, of_args):
        axes[call] = provided_axis(call, of_args)
        return _misplaced(call, expression_name(call), axes[call])
    rule = item_rule(op)
    if rule is not None and None in _shapes(call.checked_type):
        return f"the shape of {expression_name(call)} depends on data"
    plain = [axis if isinstance(axis, int) else None for axis in of_args]
    axis = None if rule is None or plain != of_args else rule(call, plain)
    if axis is None:
        return f"{expression_name(call)} mixes items"
    axes[call] = axis
    return _misplaced(call, expression_name(call), axis)


def _misplaced(expr: Expr, subject: str, axis: BatchAxis) -> str | None:
    """Return a reason if a value has sizes that come from the batch elsewhere than in its axis."""
    for position, shape in enumerate(_shapes(expr.checked_type)):
        expected = axis[position] if isinstance(axis, tuple) else axis
        if shape is None:
            return f"the shape of {subject} depends on data"
        if [at for at, extent in enumerate(shape) if _has_items((extent,))] != [expected][
            : expected is not None
        ]:
            return f"{subject} has the number of items in another axis"
    return None


def _shapes(type_: Type | None) -> Iterator[tuple[int, ...] | None]:
    """Yield the shapes of all tensors in a type; None for one that is not static."""
    match type_:
        case TensorType():
            yield type_.static_shape if type_.is_static else None
        case TupleType():
            for item in type_.fields:
                yield from _shapes(item)
        case _:
            yield None


def _has_items(sizes: Iterable[int | float | bool] | None) -> bool:
    return any(size and size % ITEMS == 0 for size in sizes or ())
