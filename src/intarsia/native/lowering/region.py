"""What part of a tensor is read while some loops stand still."""

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
    """Elements that are read.

    Attributes:
        indices: By the values of loops; None where an index depends on what is loaded.
        ranges: Of all loop variables around.
    """

    indices: tuple[Affine | None, ...]
    ranges: Ranges


@dataclass(frozen=True, slots=True)
class Interval:
    """Indices `begin` to `begin + extent - 1` of a dimension."""

    begin: Affine
    extent: int


def region(reads: Iterable[Read], fixed: Ranges, shape: Sequence[int]) -> tuple[Interval, ...]:
    """A box that holds everything read: exact for one read by sums of loops, and never too small.

    It may reach beyond the tensor where a loop around it makes a window do so; it is never larger than it.

    Args:
        reads: What is read.
        fixed: The loop variables that stand still, with their ranges.
        shape: Of the tensor.
    """
    found = list(reads)
    if not found:
        return tuple(Interval(Affine(), 0) for _ in shape)
    return tuple(
        _interval([(read.indices[place], read.ranges) for read in found], fixed, extent)
        for place, extent in enumerate(shape)
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
    found = Interval(Affine(begin.terms, begin.constant + low), high - low)
    if not found.begin.terms:
        first, last = max(0, found.begin.constant), min(extent, found.begin.constant + found.extent)
        return Interval(Affine({}, first), max(0, last - first))
    return whole if found.extent >= extent else found


def _fixed_part(index: Affine, fixed: Ranges, ranges: Ranges) -> tuple[Affine, int] | None:
    """The least value while the fixed loops stand still, and over how many values the others move it."""
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
            for each, count in start.terms.items():
                base[each] = base.get(each, 0) + factor * count
            constant += factor * start.constant
        constant += factor * (low if factor > 0 else high)
        width += abs(factor) * (high - low)
    return Affine({scalar: factor for scalar, factor in base.items() if factor}, constant), width + 1


def _moved(scalar: Scalar, fixed: Ranges, ranges: Ranges) -> tuple[Affine, int, int] | None:
    """What stands still of a scalar that is no loop variable, and the range of what is added to it."""
    match scalar:
        case Arith(op=ArithOp.FLOOR_DIV, operands=(number, Literal(value=int(by)))) if by > 0:
            part = _fixed_part(affine(number), fixed, ranges)
            if part is None:
                return None
            start, length = part
            if not start.terms:
                return Affine(), start.constant // by, (start.constant + length - 1) // by
            quotient = Arith(ArithOp.FLOOR_DIV, (as_scalar(start, DType.INT64), Literal(by, DType.INT64)))
            return Affine({quotient: 1}), 0, -(-(length - 1) // by)
        case Arith(op=ArithOp.FLOOR_MOD | ArithOp.MIN | ArithOp.MAX):
            low, high = bounds(Affine({scalar: 1}), ranges)
            return Affine(), low, high
        case _:
            return None


def _depends_only_on(scalar: Scalar, loop_vars: Mapping[LoopVar, Range]) -> bool:
    return all(each in loop_vars for each in post_order_of((scalar,), operands) if isinstance(each, LoopVar))
