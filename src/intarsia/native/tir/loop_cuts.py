"""Where a loop is cut so that comparisons are decided in its parts."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from itertools import pairwise
from typing import assert_never

from intarsia.ir.dtype import DType
from intarsia.ir.loop_walk import Event, scalar_post_order, scalars, walk
from intarsia.ir.prim_func import (
    Allocate,
    Arith,
    ArithOp,
    Block,
    For,
    IfThenElse,
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
        """How many values it has."""
        return self.end - self.begin


def ranges_inside(statement: Statement, around: dict[LoopVar, Range]) -> dict[LoopVar, Range]:
    """Ranges of the counters around and inside a statement; loops of one name count together."""
    found: dict[LoopVar, Range] = {}
    for visit in walk(statement):
        if visit.event is Event.ENTER and isinstance(visit.statement, For):
            loop = visit.statement
            found[loop.var] = (0, max(loop.extent - 1, found.get(loop.var, (0, 0))[1]))
    return {**around, **found}


@dataclass(slots=True)
class Comparisons:
    """The comparisons inside statements, looked for once in each object.

    Attributes:
        known: By identity, each with the statement, which stays alive.
    """

    known: dict[int, tuple[Statement, tuple[Arith, ...]]] = field(default_factory=dict)

    def of(self, statement: Statement) -> tuple[Arith, ...]:
        """The comparisons of int64 scalars inside a statement, in the order of the text."""
        found = self.known.get(id(statement))
        if found is None:
            found = self.known[id(statement)] = statement, tuple(self._find(statement))
        return found[1]

    def _find(self, statement: Statement) -> Iterator[Arith]:
        yield from _own_comparisons(statement)
        match statement:
            case Block():
                for inner in statement.statements:
                    yield from self.of(inner)
            case For() | Allocate():
                yield from self.of(statement.body)
            case IfThenElse():
                yield from self.of(statement.then)
                if statement.otherwise is not None:
                    yield from self.of(statement.otherwise)
            case Store():
                pass
            case _:
                assert_never(statement)


def _own_comparisons(statement: Statement) -> Iterator[Arith]:
    for root in scalars(statement):
        for scalar, _ in scalar_post_order(root):
            if not isinstance(scalar, Arith) or scalar.op not in COMPARISONS:
                continue
            if scalar_dtype(scalar.operands[0]) is _INT64:
                yield scalar


def cuts(
    comparisons: Iterable[Arith], var: LoopVar, ranges: dict[LoopVar, Range], known: set[LoopVar]
) -> dict[Scalar, set[int]]:
    """Values from which on a comparison inside a loop's body is decided, or no longer is.

    Args:
        comparisons: The comparisons of the body.
        var: The loop's counter.
        ranges: Ranges of all counters around and inside.
        known: The counters of this loop and those around it.

    Returns:
        The values by what has them: the counter, or a scalar of it and of counters around.
    """
    found: dict[Scalar, set[int]] = {}
    for comparison in comparisons:
        left, right = (affine(one) for one in comparison.operands)
        if not (fits(bounds(left, ranges), _INT64) and fits(bounds(right, ranges), _INT64)):
            continue
        difference = left.plus(right, -1)
        for scalar, factor in difference.terms.items():
            counters = loop_vars(scalar)
            has_loads = any(isinstance(part, Load) for part, _ in scalar_post_order(scalar))
            if var not in counters or not counters <= known or has_loads:
                continue
            rest = difference.plus(Affine({scalar: factor}), -1)
            low, high = scalar_range(scalar, ranges)
            inside = {
                value
                for value in _decided(comparison.op, factor, bounds(rest, ranges))
                if low < value <= high
            }
            if inside:
                found.setdefault(scalar, set()).update(inside)
    return found


def _decided(op: ArithOp, factor: int, rest: Range) -> Iterator[int]:
    """Where factor * v + rest < 0 (<= 0, == 0) becomes sure, possible or impossible as v grows."""
    low, high = rest
    limits = {ArithOp.LT: (0,), ArithOp.LE: (1,)}.get(op, (0, 1))  # below 0; below 1; both sides of 0
    for limit in limits:
        for bound in (low - limit, high - limit):  # from where on factor * v + bound >= 0, or no longer
            yield -(bound // factor) if factor > 0 else bound // -factor + 1


def cut(low: int, end: int, at: set[int], max_parts: int) -> tuple[list[Segment], int]:
    """The values from `low` to `end` minus 1 in parts, in order, and which of them is longest.

    If there are too many, only the longest, what is before it and what is after it stay apart.
    """
    places = [low, *sorted(at), end]
    parts = [Segment(begin, stop) for begin, stop in pairwise(places)]
    main = max(range(len(parts)), key=lambda position: parts[position].size)
    if len(parts) <= max_parts:
        return parts, main
    longest = parts[main]
    few = [Segment(low, longest.begin), longest, Segment(longest.end, end)]
    kept = [part for part in few if part.size]
    return kept, max(range(len(kept)), key=lambda position: kept[position].size)
