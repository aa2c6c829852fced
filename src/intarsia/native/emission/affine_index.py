"""Indices as sums, `constant + step * lane + coefficient * symbol + ...`, folded as far as ranges allow."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final, NamedTuple

from intarsia.ir.dtype import DType
from intarsia.ir.prim_func import ArithOp
from intarsia.native.emission.loop_frame import LoopFrame
from intarsia.native.emission.types import Value

_LARGEST: Final = (1 << 63) - 1


class AffineIndex(NamedTuple):
    """An int64 as an affine sum.

    Attributes:
        const: Constant part.
        lane: Step from one lane to the next; 0 if all lanes share the value.
        terms: Pairs of a symbol's number, ascending, and its nonzero coefficient.
    """

    const: int
    lane: int = 0
    terms: tuple[tuple[int, int], ...] = ()


@dataclass(slots=True)
class Symbol:
    """An int64 that is known only at run time.

    Attributes:
        text: Name of the LLVM value.
        low: Least value, None if unknown.
        high: Greatest value, None if unknown.
        frame: Loop that counts it, or function that has it as a parameter; None for other values.
    """

    text: str
    low: int | None
    high: int | None
    frame: LoopFrame | None


def add(left: AffineIndex, right: AffineIndex, factor: int = 1) -> AffineIndex:
    """Return `left + factor * right`."""
    const = left.const + factor * right.const
    lane = left.lane + factor * right.lane
    if not right.terms:
        return AffineIndex(const, lane, left.terms)
    return AffineIndex(const, lane, _merged(left.terms, right.terms, factor))


def _merged(
    left: tuple[tuple[int, int], ...], right: tuple[tuple[int, int], ...], factor: int
) -> tuple[tuple[int, int], ...]:
    sums = dict(left)
    for symbol, coefficient in right:
        sums[symbol] = sums.get(symbol, 0) + factor * coefficient
    return tuple(sorted(item for item in sums.items() if item[1]))


def scale(value: AffineIndex, factor: int) -> AffineIndex:
    """Return `factor * value`."""
    if factor == 0:
        return AffineIndex(0)
    terms = tuple((symbol, coefficient * factor) for symbol, coefficient in value.terms)
    return AffineIndex(value.const * factor, value.lane * factor, terms)


def bounds(value: AffineIndex, symbols: Sequence[Symbol], lanes: int) -> tuple[int, int] | None:
    """Return the least and the greatest value over all lanes; None if unknown or beyond int64."""
    low = high = value.const
    parts = [(value.lane, 0, max(lanes - 1, 0))] if value.lane else []
    for number, coefficient in value.terms:
        symbol = symbols[number]
        if symbol.low is None or symbol.high is None:
            return None
        parts.append((coefficient, symbol.low, symbol.high))
    for coefficient, least, greatest in parts:
        ends = (coefficient * least, coefficient * greatest)
        low, high = low + min(ends), high + max(ends)
    return (low, high) if low >= -_LARGEST and high <= _LARGEST else None


def divided(
    value: AffineIndex, divisor: int, symbols: Sequence[Symbol], lanes: int
) -> tuple[AffineIndex, AffineIndex] | None:
    """Return floor quotient and remainder by a positive constant if both are affine, else None."""
    whole = tuple((symbol, factor // divisor) for symbol, factor in value.terms if factor % divisor == 0)
    rest_terms = tuple((symbol, factor) for symbol, factor in value.terms if factor % divisor)
    whole_lane = value.lane // divisor if value.lane % divisor == 0 else 0
    rest = AffineIndex(value.const, value.lane - whole_lane * divisor, rest_terms)
    span = bounds(rest, symbols, lanes)
    if span is None or span[0] // divisor != span[1] // divisor:
        return None
    carry = span[0] // divisor
    return AffineIndex(carry, whole_lane, whole), rest._replace(const=rest.const - carry * divisor)


def decided(
    op: ArithOp, span: tuple[int, int], left: AffineIndex, right: AffineIndex
) -> Value | AffineIndex | None:
    """Fold a comparison, minimum or maximum by the range of the difference; None if it is undecided."""
    low, high = span
    if op in (ArithOp.MIN, ArithOp.MAX):
        if high <= 0 or low >= 0:
            return left if (high <= 0) == (op is ArithOp.MIN) else right
        return None
    holds, fails = {
        ArithOp.LT: (high < 0, low >= 0),
        ArithOp.LE: (high <= 0, low > 0),
        ArithOp.EQ: (low == high == 0, low > 0 or high < 0),
        ArithOp.NE: (low > 0 or high < 0, low == high == 0),
    }[op]
    if holds or fails:
        return Value("true" if holds else "false", DType.BOOL, 0)
    return None
