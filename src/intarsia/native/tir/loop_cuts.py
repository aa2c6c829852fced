"""Values at which a loop is cut, so that comparisons are constant in its parts."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from itertools import pairwise
from typing import assert_never

from intarsia.ir.dtype import DType
from intarsia.ir.loop_walk import Event, inner_scalars, scalars, walk
from intarsia.ir.prim_func import (
    Allocate,
    Arith,
    ArithOp,
    Block,
    For,
    IfThenElse,
    KernelStatement,
    Load,
    LoopVar,
    Scalar,
    Statement,
    Store,
)
from intarsia.ir.scalar_types import COMPARISONS, scalar_dtype
from intarsia.native.tir.affine import Affine, Range, affine, bounds, fits, scalar_range
from intarsia.native.tir.rewriting import loop_vars

_INT64 = DType.INT64


@dataclass(frozen=True, slots=True)
class Segment:
    """Values from `begin` to `end` minus 1."""

    begin: int
    end: int

    @property
    def size(self) -> int:
        """The number of values."""
        return self.end - self.begin


def ranges_inside(statement: Statement, around: dict[LoopVar, Range]) -> dict[LoopVar, Range]:
    """Return the ranges of the counters around and inside a statement; loops of one name count together."""
    ranges: dict[LoopVar, Range] = {}
    for visit in walk(statement):
        if visit.event is Event.ENTER and isinstance(visit.statement, For):
            loop = visit.statement
            ranges[loop.var] = (0, max(loop.extent - 1, ranges.get(loop.var, (0, 0))[1]))
    return {**around, **ranges}


@dataclass(slots=True)
class Comparisons:
    """The comparisons inside statements, cached by the identity of the statement.

    Attributes:
        cached: Comparisons by identity of the statement, and the statement, which keeps the identity unique.
    """

    cached: dict[int, tuple[Statement, tuple[Arith, ...]]] = field(default_factory=dict)

    def find_in(self, statement: Statement) -> tuple[Arith, ...]:
        """Return the comparisons of int64 scalars inside a statement, in program order."""
        comparisons = self.cached.get(id(statement))
        if comparisons is None:
            comparisons = self.cached[id(statement)] = statement, tuple(self._search(statement))
        return comparisons[1]

    def _search(self, statement: Statement) -> Iterator[Arith]:
        yield from _own_comparisons(statement)
        match statement:
            case Block():
                for inner in statement.statements:
                    yield from self.find_in(inner)
            case For() | Allocate():
                yield from self.find_in(statement.body)
            case IfThenElse():
                yield from self.find_in(statement.then)
                if statement.otherwise is not None:
                    yield from self.find_in(statement.otherwise)
            case Store() | KernelStatement():
                pass
            case _:
                assert_never(statement)


def _own_comparisons(statement: Statement) -> Iterator[Arith]:
    for root in scalars(statement):
        for scalar in inner_scalars(root):
            if not isinstance(scalar, Arith) or scalar.op not in COMPARISONS:
                continue
            if scalar_dtype(scalar.operands[0]) is _INT64:
                yield scalar


def find_cuts(
    comparisons: Iterable[Arith], var: LoopVar, ranges: dict[LoopVar, Range], counters_in_scope: set[LoopVar]
) -> dict[Scalar, set[int]]:
    """Return the values at which a comparison inside a loop's body becomes constant, or stops being so.

    Args:
        comparisons: The comparisons of the body.
        var: The loop's counter.
        ranges: Ranges of all counters around and inside.
        counters_in_scope: Counters of this loop and of those around it.

    Returns:
        The values for each scalar that takes them: the counter, or a scalar of it and of counters around.
    """
    values_by_scalar: dict[Scalar, set[int]] = {}
    for comparison in comparisons:
        left, right = (affine(operand) for operand in comparison.operands)
        if not (fits(bounds(left, ranges), _INT64) and fits(bounds(right, ranges), _INT64)):
            continue
        difference = left.plus(right, -1)
        for scalar, factor in difference.terms.items():
            counters = loop_vars(scalar)
            has_loads = any(isinstance(part, Load) for part in inner_scalars(scalar))
            if var not in counters or not counters <= counters_in_scope or has_loads:
                continue
            rest = difference.plus(Affine({scalar: factor}), -1)
            low, high = scalar_range(scalar, ranges)
            inside = {
                value
                for value in _deciding_values(comparison.op, factor, bounds(rest, ranges))
                if low < value <= high
            }
            if inside:
                values_by_scalar.setdefault(scalar, set()).update(inside)
    return values_by_scalar


def _deciding_values(op: ArithOp, factor: int, rest: Range) -> Iterator[int]:
    """Yield the v from which factor * v + rest < 0 (<= 0, == 0) is always true, possible or always false."""
    low, high = rest
    limits = {ArithOp.LT: (0,), ArithOp.LE: (1,)}.get(op, (0, 1))  # below 0; below 1; both sides of 0
    for limit in limits:
        for bound in (low - limit, high - limit):  # from where on factor * v + bound >= 0, or no longer
            # ceil(-bound / factor), the least v with a sum >= 0; for factor < 0 the least v with a sum < 0.
            yield -(bound // factor) if factor > 0 else bound // -factor + 1


def split_range(low: int, end: int, at: set[int], max_parts: int) -> tuple[list[Segment], int]:
    """Split the values from `low` to `end` minus 1; return the parts and the position of the longest one.

    If there are more than `max_parts`, the parts before the longest become one, and those after it. Of
    several longest parts that is the one in the middle, so that many equal parts are halved again and again.
    """
    borders = [low, *sorted(at), end]
    parts = [Segment(begin, stop) for begin, stop in pairwise(borders)]
    most = max(part.size for part in parts)
    longest_parts = [position for position, part in enumerate(parts) if part.size == most]
    main = longest_parts[(len(longest_parts) - 1) // 2] if len(parts) > max_parts else longest_parts[0]
    if len(parts) <= max_parts:
        return parts, main
    longest = parts[main]
    few = [Segment(low, longest.begin), longest, Segment(longest.end, end)]
    kept = [part for part in few if part.size]
    return kept, max(range(len(kept)), key=lambda position: kept[position].size)
