"""The box of a tensor that is read while some loops are fixed."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

from intarsia.ir import DType
from intarsia.ir.loop_walk import operands
from intarsia.ir.prim_func import Arith, ArithOp, Literal, LoopVar, Scalar
from intarsia.native.tir.affine import Affine, Range, Ranges, affine, as_scalar, bounds
from intarsia.support.post_order import post_order_of


@dataclass(frozen=True, slots=True)
class Read:
    """A read of elements.

    Attributes:
        indices: Index of each dimension in loop variables; None where it depends on a load.
        ranges: Ranges of all loop variables around the read.
    """

    indices: tuple[Affine | None, ...]
    ranges: Ranges


@dataclass(frozen=True, slots=True)
class Interval:
    """Indices `begin` to `begin + extent - 1` of a dimension."""

    begin: Affine
    extent: int


def read_box(reads: Iterable[Read], fixed: Ranges, shape: Sequence[int]) -> tuple[Interval, ...]:
    """Return a box that holds all elements read: exact for one affine read, and never too small.

    It may reach beyond the tensor where a fixed loop moves a window there, but is never larger than it.

    Args:
        reads: Reads of the tensor.
        fixed: Ranges of the fixed loop variables.
        shape: Shape of the tensor.
    """
    all_reads = list(reads)
    if not all_reads:
        return tuple(Interval(Affine(), 0) for _ in shape)
    return tuple(
        _interval([(read.indices[dimension], read.ranges) for read in all_reads], fixed, extent)
        for dimension, extent in enumerate(shape)
    )


def _interval(indices: Sequence[tuple[Affine | None, Ranges]], fixed: Ranges, extent: int) -> Interval:
    whole = Interval(Affine(), extent)
    parts: list[tuple[Affine, int]] = []
    for index, ranges in indices:
        part = None if index is None else _fixed_part(index, fixed, ranges)
        if part is None:
            return whole
        parts.append(part)
    begin = parts[0][0]
    low, high = 0, 0
    for start, length in parts:
        least, most = bounds(start.plus(begin, -1), fixed)
        low, high = min(low, least), max(high, most + length)
    interval = Interval(Affine(begin.terms, begin.constant + low), high - low)
    # A box that stays is clipped to the tensor; one that moves has one extent for all its positions.
    if not interval.begin.terms:
        first, last = max(0, interval.begin.constant), min(extent, interval.begin.constant + interval.extent)
        return Interval(Affine({}, first), max(0, last - first))
    return whole if interval.extent >= extent else interval


def _fixed_part(index: Affine, fixed: Ranges, ranges: Ranges) -> tuple[Affine, int] | None:
    """Return the least value for fixed loops, and the number of values that the other loops move it over."""
    base: dict[Scalar, int] = {}
    constant, width = index.constant, 0
    for scalar, factor in index.terms.items():
        if isinstance(scalar, LoopVar) and scalar not in fixed:
            low, high = ranges[scalar]
        elif isinstance(scalar, LoopVar) or _depends_only_on(scalar, fixed):
            base[scalar] = base.get(scalar, 0) + factor
            continue
        else:
            moved = _moved(scalar, fixed, ranges)
            if moved is None:
                return None
            start, low, high = moved
            for term, count in start.terms.items():
                base[term] = base.get(term, 0) + factor * count
            constant += factor * start.constant
        constant += factor * (low if factor > 0 else high)
        width += abs(factor) * (high - low)
    return Affine({scalar: factor for scalar, factor in base.items() if factor}, constant), width + 1


def _moved(scalar: Scalar, fixed: Ranges, ranges: Ranges) -> tuple[Affine, int, int] | None:
    """Return the fixed part of a scalar that is no loop variable, and the range of what is added to it."""
    match scalar:
        case Arith(op=ArithOp.FLOOR_DIV, operands=(number, Literal(value=int(by)))) if by > 0:
            part = _fixed_part(affine(number), fixed, ranges)
            if part is None:
                return None
            start, length = part
            if not start.terms:
                return Affine(), start.constant // by, (start.constant + length - 1) // by
            # floor((a + d) / by) - floor(a / by) is at most ceil(d / by).
            quotient = Arith(ArithOp.FLOOR_DIV, (as_scalar(start, DType.INT64), Literal(by, DType.INT64)))
            return Affine({quotient: 1}), 0, -(-(length - 1) // by)
        case Arith(op=ArithOp.FLOOR_MOD | ArithOp.MIN | ArithOp.MAX):
            low, high = bounds(Affine({scalar: 1}), ranges)
            return Affine(), low, high
        case _:
            return None


def _depends_only_on(scalar: Scalar, loop_vars: Mapping[LoopVar, Range]) -> bool:
    scalars = post_order_of((scalar,), operands)
    return all(inner in loop_vars for inner in scalars if isinstance(inner, LoopVar))
