"""Masks and biases of attention as biases by key, for keys up to the query and for later ones."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, Final

import numpy as np

from intarsia.ir import Call, Constant, Expr, Op, with_fields
from intarsia.op import call
from intarsia.op.infer import typed
from intarsia.op.operator_facts import LayoutKind
from intarsia.op.operator_table import facts_of
from intarsia.passes.rules.tensor_facts import operator_name
from intarsia.passes.tokens.position_table import PositionTable, position_table
from intarsia.passes.tokens.token_twins import LENGTHS, Array, TokenTwins

_SAME_ELEMENTS: Final = frozenset({"Identity", "Reshape", "Squeeze", "Unsqueeze"})
EXCLUDES: Final = -1e30
"""Adding so low a number to a score rounds to that number: it is the same as replacing the score."""
_INT64: Final = 7
"""Number of int64 in ONNX's Cast."""
_MAPS: Final = frozenset({"Cast", "Expand"})


@dataclass(frozen=True, slots=True)
class SidedBias:
    """A value by query and key that depends on the key, and on whether it is behind the query's position.

    Attributes:
        inside: Value for keys up to the query's position, with an extent of 1 for queries.
        outside: Value for later keys; None if it is that of the others.
        heads: Extent of the axis before those of queries and keys.
        is_by_key: Whether the values differ between keys; else the last axis is 1.
        table: Addend of both sides by the position of the key; None without one.
        starts: Position of the first query of each text, int64 (texts,), by which sides are divided; None
            where the last query is at the position of the last key.
    """

    inside: Expr
    outside: Expr | None
    heads: int = 1
    is_by_key: bool = False
    table: PositionTable | None = None
    starts: Expr | None = None

    @property
    def later(self) -> Expr:
        """The value for later keys."""
        return self.inside if self.outside is None else self.outside


def scalar_bias(value: float, dtype: np.dtype[Any]) -> SidedBias:
    """Return a bias that is the same for all."""
    return SidedBias(Constant(np.full((1, 1, 1, 1), value, dtype)), None)


def sided_bias(node: Expr, twins: TokenTwins, done: Mapping[Expr, Expr]) -> SidedBias | None:
    """Return a tensor that is broadcast to scores (texts, heads, queries, keys) by its sides, or None.

    Args:
        node: Expression of the program.
        twins: The program bound to numbers of tokens.
        done: Replacement of each expression before this one.
    """
    shape = twins.shape(node, LENGTHS[0])
    if shape is None or len(shape) > 4 or twins.texts_axes(node) not in ((), (0,) * (len(shape) == 4)):
        return None
    has_all_axes, keys = len(shape) == 4, twins.keys_of(LENGTHS[0])
    shape = (1,) * (4 - len(shape)) + shape
    tokens = LENGTHS[0]
    if shape[0] != 1 or shape[2] not in (1, tokens) or shape[3] not in (1, keys):
        return None
    if node in twins.free:
        bias = _free_bias(node, twins)
        if bias is not None:
            return bias
    behind = _behind_starts(node, twins, done)
    if behind is not None:
        return behind
    if shape[2] == 1:
        inside = done[node] if has_all_axes else _four_axes(done[node], shape)
        return SidedBias(inside, None, shape[1], shape[3] == keys)
    return _computed_bias(node, shape, twins, done)


def _computed_bias(
    node: Expr, shape: tuple[int, ...], twins: TokenTwins, done: Mapping[Expr, Expr]
) -> SidedBias | None:
    """Return what an operator computes from biases by their sides, given its shape with four axes."""
    if not isinstance(node, Call) or not isinstance(node.op, Op):
        return None
    if operator_name(node) in _SAME_ELEMENTS:
        before = twins.shape(node.args[0], LENGTHS[0])
        is_same = before is not None and (1,) * (4 - len(before)) + before == shape
        return sided_bias(node.args[0], twins, done) if is_same else None
    name = operator_name(node)
    if name not in _MAPS and facts_of(node.op).layout is not LayoutKind.ELEMENTWISE:
        return None
    args = node.args[:1] if name in _MAPS else node.args
    sides = [sided_bias(arg, twins, done) for arg in args]
    if any(side is None for side in sides):
        return None
    given = [side for side in sides if side is not None]
    return given[0] if name == "Expand" else applied(node, *given)


def applied(node: Call, *args: SidedBias) -> SidedBias | None:
    """Return an elementwise operator applied to biases; None where their tables or sides do not fit."""
    is_tabled = any(arg.table is not None for arg in args)
    table = _applied_table(node, args) if is_tabled else None
    starts = {arg.starts for arg in args if arg.outside is not None}
    if len(starts) > 1 or (is_tabled and table is None):
        return None

    def side(values: Sequence[Expr]) -> Expr:
        return typed(with_fields(node, args=tuple(values), checked_type=None))

    outside = side([arg.later for arg in args]) if any(arg.outside is not None for arg in args) else None
    return SidedBias(
        side([arg.inside for arg in args]),
        outside,
        max(arg.heads for arg in args),
        any(arg.is_by_key for arg in args),
        table,
        next(iter(starts), None),
    )


def _applied_table(node: Call, args: Sequence[SidedBias]) -> PositionTable | None:
    """Return the table of an elementwise operator applied to biases; None where it is no table."""
    tables = [arg.table for arg in args]
    numbers = [_number(arg) if table is None else None for arg, table in zip(args, tables, strict=True)]
    match operator_name(node), tables, numbers:
        case "Add", [PositionTable() as left, PositionTable() as right], _:
            return left.added(right)
        case "Add", [table, None] | [None, table], _:
            return table
        case "Mul", [PositionTable() as table, None] | [None, PositionTable() as table], [
            float() as factor,
            None,
        ] | [None, float() as factor]:
            return table.scaled(factor)
        case "Div", [PositionTable() as table, None], [_, float() as divisor] if divisor:
            return table.scaled(1 / divisor)
        case "Where", [None, table, None], [_, _, float() as excluded] if excluded <= EXCLUDES:
            return table
        case "Where", [None, None, table], [_, float() as excluded, _] if excluded <= EXCLUDES:
            return table
        case _:
            return None


def _number(bias: SidedBias) -> float | None:
    """Return the only element of a bias; None if there are several."""
    node = bias.inside
    is_number = bias.outside is None and isinstance(node, Constant) and node.data.size == 1
    return float(node.data.reshape(-1)[0]) if is_number and isinstance(node, Constant) else None


def _behind_starts(node: Expr, twins: TokenTwins, done: Mapping[Expr, Expr]) -> SidedBias | None:
    """Return whether a key is no later than a query that is counted from the first one of its text, or None.

    It is query + first >= key, or key <= query + first.
    """
    name = operator_name(node)
    if name not in ("GreaterOrEqual", "LessOrEqual") or not isinstance(node, Call):
        return None
    queries, keys = node.args if name == "GreaterOrEqual" else node.args[::-1]
    if operator_name(queries) != "Add" or not isinstance(queries, Call) or queries in twins.free:
        return None
    starts = next((item for item in queries.args if item not in twins.free), None)
    counted = next((item for item in queries.args if item in twins.free), None)
    if starts is None or counted is None or keys not in twins.free:
        return None
    is_of_texts = twins.shape(starts, LENGTHS[0]) == (1, 1, 1, 1) and twins.texts_axes(starts) in ((0,), ())
    if not is_of_texts or not twins.counts(counted, -2) or not twins.counts(keys, -1, of_keys=True):
        return None
    first = call("Cast", call("Reshape", done[starts], Constant(np.array([-1]))), to=_INT64)
    inside, outside = (scalar_bias(value, np.dtype(np.bool_)).inside for value in (True, False))
    return SidedBias(inside, outside, starts=first)


def _free_bias(node: Expr, twins: TokenTwins) -> SidedBias | None:
    """Return a free value that is one number, or one for keys up to the query and another for later keys.

    It is compared for the most tokens as well: a window shows only in texts that are longer than it is.
    """
    numbers = twins.common(node, _two_numbers)
    if numbers is None:
        table = position_table(node, twins)
        zero = scalar_bias(0.0, np.dtype(np.float32))
        return None if table is None else replace(zero, table=table)
    value = twins.value(node, LENGTHS[0])
    assert value is not None
    inside, outside = (scalar_bias(number, value.dtype) for number in numbers)
    return inside if numbers[0] == numbers[1] else SidedBias(inside.inside, outside.inside)


def _two_numbers(value: Array | None) -> tuple[float, float] | None:
    """Return the number up to the diagonal, and that above it; None if there are others."""
    if value is None or value.size == 0 or value.dtype.kind not in "biuf":
        return None
    first, last = value.reshape(-1)[0].item(), value.reshape(-1)[-1].item()
    if bool((value == first).all()):
        return first, first
    if value.ndim < 2 or first != last:
        return None
    queries, keys = value.shape[-2:]
    if not 1 < queries <= keys:
        return None
    outside = value[..., 0, keys - 1].reshape(-1)[0].item()
    expected = np.where(np.tri(queries, keys, keys - queries, dtype=np.bool_), first, outside)
    return (first, outside) if bool((value == expected).all()) else None


def _four_axes(node: Expr, shape: tuple[int, ...]) -> Expr:
    """Return a tensor that is the same for all texts with four axes; the last one may have the tokens."""
    target = np.array((1, shape[1], 1, 1 if shape[3] == 1 else -1), np.int64)
    return call("Reshape", node, Constant(target))
