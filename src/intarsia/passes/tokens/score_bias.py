"""Masks and biases of attention as biases by key, for keys up to the query and for later ones."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

import numpy as np

from intarsia.ir import Call, Constant, Expr, Op, with_fields
from intarsia.op import call
from intarsia.op.infer import typed
from intarsia.op.operator_facts import LayoutKind
from intarsia.op.operator_table import facts_of
from intarsia.passes.rules.tensor_facts import operator_name
from intarsia.passes.tokens.token_twins import LENGTHS, Array, TokenTwins

_SAME_ELEMENTS: Final = frozenset({"Identity", "Reshape", "Squeeze", "Unsqueeze"})
_MAPS: Final = frozenset({"Cast", "Expand"})


@dataclass(frozen=True, slots=True)
class SidedBias:
    """A value by query and key that depends on the key, and on whether it is behind the query's position.

    Attributes:
        inside: Value for keys up to the query's position, with an extent of 1 for queries.
        outside: Value for later keys; None if it is that of the others.
        heads: Extent of the axis before those of queries and keys.
        is_by_key: Whether the values differ between keys; else the last axis is 1.
    """

    inside: Expr
    outside: Expr | None
    heads: int = 1
    is_by_key: bool = False

    @property
    def later(self) -> Expr:
        """The value for later keys."""
        return self.inside if self.outside is None else self.outside


def scalar_bias(value: float, dtype: np.dtype[Any]) -> SidedBias:
    """Return a bias that is the same for all."""
    return SidedBias(Constant(np.full((1, 1, 1, 1), value, dtype)), None)


def sided_bias(node: Expr, twins: TokenTwins, done: Mapping[Expr, Expr]) -> SidedBias | None:
    """Return a tensor that is broadcast to scores (1, heads, queries, keys) by its sides; None for others.

    Args:
        node: Expression of the program.
        twins: The program bound to numbers of tokens.
        done: Replacement of each expression before this one.
    """
    shape = twins.shape(node, LENGTHS[0])
    if shape is None or len(shape) > 4:
        return None
    shape = (1,) * (4 - len(shape)) + shape
    tokens = LENGTHS[0]
    if shape[0] != 1 or shape[2] not in (1, tokens) or shape[3] not in (1, tokens):
        return None
    if node in twins.free:
        bias = _free_bias(node, twins)
        if bias is not None:
            return bias
    if shape[2] == 1:
        return SidedBias(_four_axes(done[node], shape), None, shape[1], shape[3] == tokens)
    if not isinstance(node, Call) or not isinstance(node.op, Op):
        return None
    if operator_name(node) in _SAME_ELEMENTS:
        before = twins.shape(node.args[0], tokens)
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


def applied(node: Call, *args: SidedBias) -> SidedBias:
    """Return an elementwise operator applied to biases."""

    def side(values: Sequence[Expr]) -> Expr:
        return typed(with_fields(node, args=tuple(values), checked_type=None))

    outside = side([arg.later for arg in args]) if any(arg.outside is not None for arg in args) else None
    return SidedBias(
        side([arg.inside for arg in args]),
        outside,
        max(arg.heads for arg in args),
        any(arg.is_by_key for arg in args),
    )


def _free_bias(node: Expr, twins: TokenTwins) -> SidedBias | None:
    """Return a free value that is one number, or one for keys up to the query and another for later keys.

    It is compared for the most tokens as well: a window shows only in texts that are longer than it is.
    """
    numbers = twins.common(node, _two_numbers)
    if numbers is None:
        return None
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
    if value.ndim < 2 or value.shape[-1] != value.shape[-2] or first != last or value.shape[-1] < 2:
        return None
    outside = value[..., 0, 1].reshape(-1)[0].item()
    expected = np.where(np.tri(value.shape[-1], dtype=np.bool_), first, outside)
    return (first, outside) if bool((value == expected).all()) else None


def _four_axes(node: Expr, shape: tuple[int, ...]) -> Expr:
    """Return a tensor with all four axes, of which the last one may have the number of tokens."""
    target = np.array((1, shape[1], 1, 1 if shape[3] == 1 else -1), np.int64)
    return call("Reshape", node, Constant(target))
