"""What is added to the scores of an Attention: 0 where a query may look, minus infinity where it may not."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Final, TypeAlias

from intarsia.ir import DType
from intarsia.native.te.expression import Expression
from intarsia.native.te.functions import const, select
from intarsia.native.te.operators.broadcasting import element_at
from intarsia.native.te.operators.compute_call import ComputeCall
from intarsia.native.te.operators.index_arithmetic import clamped, scaled

Bias: TypeAlias = Callable[[Expression, Expression, Expression, Expression], Expression]
"""From batch, head, query and key to what is added to the score."""

_MASK, _PAST_KEY = 3, 4
LENGTHS: Final = 6
"""Position of the number of keys of each batch that are no padding."""


def bias_of(call: ComputeCall, queries: int, keys: int, dtype: DType) -> Bias | None:
    """The sum of mask, causality, window and lengths; None if there is none of them.

    Args:
        call: Of Attention.
        queries: Their number in this block.
        keys: Their number, past ones too.
        dtype: Of the scores.
    """
    parts = [_mask(call, keys, dtype)] if call.has_input(_MASK) else []
    parts += _reach(call, queries, dtype)
    parts += [_padding(call, dtype)] if call.has_input(LENGTHS) else []
    if not parts:
        return None

    def bias(b: Expression, h: Expression, i: Expression, j: Expression) -> Expression:
        found = parts[0](b, h, i, j)
        for part in parts[1:]:
            found = found + part(b, h, i, j)
        return found

    return bias


def _allowed(is_allowed: Expression, dtype: DType) -> Expression:
    return select(is_allowed, const(0, dtype), -math.inf)


def _mask(call: ComputeCall, keys: int, dtype: DType) -> Bias:
    """The mask, which may be shorter than the keys: those behind it are not looked at."""
    mask = call.input(_MASK)
    known = mask.shape[-1]

    def bias(b: Expression, h: Expression, i: Expression, j: Expression) -> Expression:
        place = clamped(j, known) if known < keys else j
        value = element_at(mask, (b, h, i, place)) if known else const(0, dtype)
        value = _allowed(value, dtype) if value.dtype is DType.BOOL else value.astype(dtype)
        return value if known >= keys else select(j < known, value, -math.inf)

    return bias


def _reach(call: ComputeCall, queries: int, dtype: DType) -> list[Bias]:
    """How far behind and ahead a query looks, counted from its place among all keys."""

    def distance(b: Expression, i: Expression, j: Expression) -> Expression:
        if call.has_input(_PAST_KEY):
            return scaled(i, 1, call.input(_PAST_KEY).shape[2]) - j
        if call.has_input(LENGTHS):
            return i + call.input(LENGTHS)[b].astype(DType.INT64) - queries - j
        return i - j

    found: list[Bias] = []
    behind, ahead = call.integer("left_window_size", -1), call.integer("right_window_size", -1)
    if call.integer("is_causal", 0):
        found.append(lambda b, _, i, j: _allowed(distance(b, i, j) >= 0, dtype))
    if behind >= 0:
        found.append(lambda b, _, i, j: _allowed(distance(b, i, j) <= behind, dtype))
    if ahead >= 0:
        found.append(lambda b, _, i, j: _allowed(distance(b, i, j) >= -ahead, dtype))
    return found


def _padding(call: ComputeCall, dtype: DType) -> Bias:
    lengths = call.input(LENGTHS)
    return lambda b, _, __, j: _allowed(j < lengths[b].astype(DType.INT64), dtype)
