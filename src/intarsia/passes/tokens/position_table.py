"""Biases of attention by the position of the key, for any number of tokens: ALiBi, relative positions.

Their values depend on the number of tokens alone. Where they are the same at the same positions, or at the
same distances, for all numbers, a table for the most tokens has them all.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

import numpy as np

from intarsia.ir import Constant, Expr
from intarsia.passes.tokens.token_twins import LENGTHS, Array, TokenTwins

MOST_DISTANCES: Final = 1024
"""Maximum number of tokens of a program with biases by pairs of tokens: they are compared for as many, and
each value on the way to them has a MiB or more then."""
_ROOM: Final = 64
"""Columns behind those of the most tokens, which panels of keys may read; the widest panel has 48."""


class ManyDistancesError(Exception):
    """A program with biases by pairs of tokens is for more than `MOST_DISTANCES` tokens."""


@dataclass(frozen=True, slots=True, eq=False)
class PositionTable:
    """What is added to scores by the position of the key.

    Attributes:
        values: The table, float32 (heads or 1, columns).
        anchor: Origin of the positions (op/token_attention_op).
    """

    values: Array
    anchor: str

    @property
    def constant(self) -> Constant:
        """The table as an argument of token_attention."""
        return Constant(self.values)

    def added(self, other: PositionTable) -> PositionTable | None:
        """Return the sum of two tables; None if they count from elsewhere."""
        if self.anchor != other.anchor:
            return None
        return PositionTable(np.ascontiguousarray(self.values + other.values), self.anchor)

    def scaled(self, factor: float) -> PositionTable:
        """Return the table times a number."""
        return PositionTable(self.values * np.float32(factor), self.anchor)


def position_table(node: Expr, twins: TokenTwins) -> PositionTable | None:
    """Return a free float32 bias (1, heads or 1, queries or 1, keys) as a table; None if it is none.

    Values by key alone that count from the first key are left to others where there is no past.

    Raises:
        ManyDistancesError: It has pairs of tokens, and there are too many for it.
        InvalidModelError: The program takes no such number of tokens.
    """
    values = [_heads_first(twins.value(node, tokens)) for tokens in LENGTHS]
    if not twins.is_same_for_all_texts(node) or any(value is None for value in values):
        return None
    small = [value for value in values if value is not None]
    if small[0].shape[1] == 1:
        return _by_key(node, twins, small)
    if any(_by_distance(value, twins.past_of(value.shape[1])) is None for value in small):
        return None
    if twins.most > MOST_DISTANCES:
        raise ManyDistancesError
    full = _heads_first(twins.full_value(node))
    diagonals = None if full is None else _by_distance(full, 0)
    if diagonals is None:
        return None
    middle, table = twins.most - 1, np.pad(diagonals, ((0, 0), (_ROOM, _ROOM)))
    for value in small:
        _, tokens, keys = value.shape
        begin = middle - twins.past_of(tokens)
        expected = [diagonals[:, begin - query : begin - query + keys] for query in range(tokens)]
        if not np.array_equal(value, np.stack(expected, 1)):
            return None
    return PositionTable(table, "query")


def _heads_first(value: Array | None) -> Array | None:
    """Return a float32 bias as (heads, queries, keys); None for other values."""
    if value is None or value.dtype != np.float32 or not 2 <= value.ndim <= 4 or value.size == 0:
        return None
    whole = value.reshape((1,) * (4 - value.ndim) + value.shape)
    return whole[0] if whole.shape[0] == 1 else None


def _by_key(node: Expr, twins: TokenTwins, values: list[Array]) -> PositionTable | None:
    """Return a bias by key alone as a table that counts from the first or from the last key."""
    full = _heads_first(twins.full_value(node))
    if (
        full is None
        or full.shape[2] != twins.most
        or any(value.shape[2] != twins.keys_of(tokens) for value, tokens in zip(values, LENGTHS, strict=True))
    ):
        return None
    table = full[:, 0]
    if all(np.array_equal(value[:, 0], table[:, : value.shape[2]]) for value in values):
        return None if twins.past is None else PositionTable(np.ascontiguousarray(table), "first")
    if all(np.array_equal(value[:, 0], table[:, -value.shape[2] :]) for value in values):
        return PositionTable(np.ascontiguousarray(table), "last")
    return None


def _by_distance(value: Array, past: int) -> Array | None:
    """Return the diagonals of a bias (heads, queries, keys), the lowest one first; None if they differ.

    Args:
        value: The bias.
        past: Number of keys before the first query.
    """
    _, queries, keys = value.shape
    if keys != queries + past or not np.array_equal(value[:, 1:, 1:], value[:, :-1, :-1]):
        return None
    return np.concatenate([value[:, :0:-1, 0], value[:, 0]], 1)
