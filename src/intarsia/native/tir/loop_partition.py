"""LoopPartition: guards out of loops, by cutting the loops where the guards are decided."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from functools import partial
from typing import Final, assert_never

from intarsia.ir import DType, IRModule, PrimFunc, with_prim_func_fields
from intarsia.ir.loop_walk import Event, walk
from intarsia.ir.prim_func import (
    Allocate,
    Arith,
    ArithOp,
    Block,
    For,
    ForKind,
    IfThenElse,
    Literal,
    LoopVar,
    Scalar,
    Statement,
    Store,
)
from intarsia.native.tir.affine import Range, scalar_range
from intarsia.native.tir.loop_cuts import Comparisons, Segment, cut, cuts, ranges_inside
from intarsia.native.tir.rewriting import (
    Replacement,
    block_like,
    buffer_names,
    flat,
    with_body,
    with_branches,
)
from intarsia.native.tir.simplify import simplified
from intarsia.support.free_names import NameSupply
from intarsia.transform import PassContext, PrimFuncPass, register_pass

_SMALL: Final = 4
"""How many iterations of a part beside the main one are written out if that decides what is open."""


@register_pass
@dataclass(frozen=True)
class LoopPartition(PrimFuncPass):
    """Cuts loops into a first part, a main part and a tail, so that the main part needs no guards.

    Cuts stand where the comparisons inside are decided, whatever the counters inside are: guards of splits
    that leave a rest, and of windows that reach into padding. Parallel loops stay whole, and so do loops
    whose comparisons are of quotients and remainders of the counter: there, the main part stands beside the
    general one in an IfThenElse. Unrolled loops only lose iterations that do nothing, and so do vectorised
    ones without guards, in which comparisons choose values. Another
    run may cut more: outer loops are cut first, and inner ones that have become shorter may decide more. The
    work is that of simplifying the result once for each level of loops.

    Attributes:
        max_parts: Into how many parts a loop is cut at a time, at least 3; parts with guards are cut again.
        max_statements: How many stores a function may have after the pass, if it had fewer before.

    Before:
        def prim @f(x: Buffer[(10,), float32], y: Buffer[(10,), float32]) {
          for i in 3 {
            for j in 4 {
              if i * 4 + j < 10 {
                y[i * 4 + j] = x[i * 4 + j];
              }
            }
          }
        }
    After:
        def prim @f(x: Buffer[(10,), float32], y: Buffer[(10,), float32]) {
          for i in 2 {
            for j in 4 {
              y[i * 4 + j] = x[i * 4 + j];
            }
          }
          for j in 2 {
            y[j + 8] = x[j + 8];
          }
        }
    """

    max_parts: int = 3
    max_statements: int = 1024

    def transform_prim_func(self, function: PrimFunc, mod: IRModule, ctx: PassContext) -> PrimFunc:
        """The loop function with its loops cut."""
        if not Comparisons().of(function.body):
            return function
        budget = self.max_statements - _stores(function.body)
        walker = _Walker(buffer_names(function), max(3, self.max_parts), budget)
        body = block_like(function.body, walker.visit(function.body, {}))
        return with_prim_func_fields(function, body=body)


@dataclass(frozen=True, slots=True)
class _Part:
    """What is done for some values.

    Attributes:
        segment: The values.
        body: What is done.
        is_main: Whether it is the longest part.
    """

    segment: Segment
    body: Statement
    is_main: bool


@dataclass(slots=True)
class _Walker:
    names: NameSupply
    max_parts: int
    budget: int
    comparisons: Comparisons = field(default_factory=Comparisons)

    def visit(self, statement: Statement, ranges: dict[LoopVar, Range]) -> list[Statement]:
        match statement:
            case Store():
                return [statement]
            case Block():
                return [after for inner in flat(statement) for after in self.visit(inner, ranges)]
            case For():
                return self.loop(statement, ranges)
            case Allocate():
                return [with_body(statement, self.inside(statement.body, ranges))]
            case IfThenElse():
                then = self.inside(statement.then, ranges)
                other = None if statement.otherwise is None else self.inside(statement.otherwise, ranges)
                return [with_branches(statement, then, other)]
            case _:
                assert_never(statement)

    def inside(self, statement: Statement, ranges: dict[LoopVar, Range]) -> Statement:
        return block_like(statement, self.visit(statement, ranges))

    def loop(self, loop: For, ranges: dict[LoopVar, Range]) -> list[Statement]:
        here = {**ranges, loop.var: (0, loop.extent - 1)}
        if loop.extent == 0 or not self.comparisons.of(loop.body):
            return [loop]
        found = cuts(self.comparisons.of(loop.body), loop.var, ranges_inside(loop.body, here), set(here))
        own = found.pop(loop.var, set())
        if loop.kind in (ForKind.VECTORIZED, ForKind.UNROLLED):
            trimmed = self.trimmed(loop, own, ranges)
            if trimmed is None and own and loop.kind is ForKind.VECTORIZED and _is_guarded(loop.body):
                trimmed = self.parts(loop, own, ranges)
            return [with_body(loop, self.inside(loop.body, here))] if trimmed is None else trimmed
        if own and loop.kind is ForKind.PARALLEL:
            found[loop.var] = own
            own = set()
        if own:
            parts = self.parts(loop, own, ranges)
            if parts is not None:
                return parts
        return [with_body(loop, self.versions(loop.body, list(found.items()), here))]

    def parts(self, loop: For, at: set[int], ranges: dict[LoopVar, Range]) -> list[Statement] | None:
        """The loop in parts, each with its loops cut; None if no part has fewer comparisons."""
        segments, main = cut(0, loop.extent, at, self.max_parts)
        whole = simplified(loop.body, {**ranges, loop.var: (0, loop.extent - 1)})
        known = partial(self.known, loop, ranges)
        found = self.refined(loop.body, segments, main, known, len(self.comparisons.of(whole)))
        if found is None:
            return None
        after: list[Statement] = []
        for part in found:
            after += self.visit(self.shifted(loop, part.segment, part.body, not part.is_main), ranges)
        return after

    def refined(
        self,
        body: Statement,
        segments: list[Segment],
        main: int,
        known: Callable[[Segment], Statement],
        before: int,
    ) -> list[_Part] | None:
        """The parts, those that are small and undecided in parts of one value; None if no part is better.

        Args:
            body: The whole.
            segments: The parts.
            main: Which of them is the longest.
            known: The body in a segment.
            before: How many comparisons the whole has.
        """
        stores = _stores(body)
        parts = [_Part(one, known(one), position == main) for position, one in enumerate(segments)]
        is_better = any(len(self.comparisons.of(part.body)) < before for part in parts)
        if not is_better or not self.paid((len(parts) - 1) * stores):
            return None
        found: list[_Part] = []
        for part in parts:
            size = part.segment.size
            is_small = 1 < size <= _SMALL and not part.is_main and self.comparisons.of(part.body)
            if is_small and self.paid((size - 1) * stores):
                ones = (Segment(value, value + 1) for value in range(part.segment.begin, part.segment.end))
                found += [_Part(one, known(one), False) for one in ones]
            else:
                found.append(part)
        return found

    def trimmed(self, loop: For, at: set[int], ranges: dict[LoopVar, Range]) -> list[Statement] | None:
        """The only part of the loop that does anything; None if there are several, or nothing to cut."""
        found, _ = cut(0, loop.extent, at, loop.extent + 1)
        bodies = [self.known(loop, ranges, segment) for segment in found]
        busy = [position for position, body in enumerate(bodies) if flat(body)]
        if len(found) == 1 or len(busy) != 1:
            return None
        segment = found[busy[0]]
        return self.visit(self.shifted(loop, segment, bodies[busy[0]], False), ranges)

    def known(self, loop: For, ranges: dict[LoopVar, Range], segment: Segment) -> Statement:
        """The body of a loop whose counter stays in a segment."""
        return simplified(loop.body, {**ranges, loop.var: (segment.begin, segment.end - 1)})

    def shifted(self, loop: For, segment: Segment, body: Statement, is_copy: bool) -> Statement:
        """A part of a loop as a loop from 0 on."""
        start = Literal(segment.begin, DType.INT64)
        counters: dict[LoopVar, Scalar] = {}
        if segment.begin:
            counters[loop.var] = Arith(ArithOp.ADD, (loop.var, start))
        if is_copy or counters:
            body = Replacement(counters, names=self.names if is_copy else None).statement(body)
        return simplified(For(loop.var, segment.size, body, loop.kind))

    def versions(
        self, body: Statement, found: list[tuple[Scalar, set[int]]], ranges: dict[LoopVar, Range]
    ) -> Statement:
        """A body for each part of the values of each scalar, and guards that choose, where that is better."""
        if not found:
            return self.inside(body, ranges)
        (scalar, at), *others = found
        low, high = scalar_range(scalar, ranges)
        segments, main = cut(low, high + 1, at, self.max_parts)
        cond = _within(scalar, segments[main], low, high)
        first = flat(body)[0] if len(flat(body)) == 1 else None
        if isinstance(first, IfThenElse) and first.cond == cond:  # this is what the pass has made
            other = None if first.otherwise is None else self.versions(first.otherwise, others, ranges)
            return with_branches(first, self.versions(first.then, others, ranges), other)
        known = partial(_assuming, body, scalar, ranges)
        parts = self.refined(body, segments, main, known, len(self.comparisons.of(body)))
        if parts is None:
            return self.versions(body, others, ranges)
        result: Statement | None = None
        for part in reversed(parts):
            if not part.is_main:
                copy = self.versions(Replacement(names=self.names).statement(part.body), others, ranges)
                is_below = Arith(ArithOp.LT, (scalar, Literal(part.segment.end, DType.INT64)))
                result = copy if result is None else IfThenElse(is_below, copy, result)
        main_body = next(part.body for part in parts if part.is_main)
        return IfThenElse(cond, self.versions(main_body, others, ranges), result)

    def paid(self, stores: int) -> bool:
        """Whether so many more stores are allowed; they then are taken from the budget."""
        if stores > self.budget:
            return False
        self.budget -= stores
        return True


def _is_guarded(body: Statement) -> bool:
    return any(isinstance(visit.statement, IfThenElse) for visit in walk(body))


def _stores(statement: Statement) -> int:
    return sum(isinstance(visit.statement, Store) for visit in walk(statement) if visit.event is Event.ENTER)


def _within(scalar: Scalar, segment: Segment, low: int, high: int) -> Scalar:
    """That a scalar is in a segment, as far as its range leaves that open."""
    above = Arith(ArithOp.LT, (Literal(segment.begin - 1, DType.INT64), scalar))
    below = Arith(ArithOp.LT, (scalar, Literal(segment.end, DType.INT64)))
    if segment.begin > low and segment.end <= high:
        return Arith(ArithOp.AND, (above, below))
    return above if segment.begin > low else below


def _assuming(body: Statement, scalar: Scalar, ranges: dict[LoopVar, Range], segment: Segment) -> Statement:
    """A body, simplified where a scalar is in a segment: a counter stands for it while it is."""
    stand_in = LoopVar("stands for a scalar")
    known = {**ranges, stand_in: (segment.begin, segment.end - 1)}
    after = simplified(Replacement(scalars={scalar: stand_in}).statement(body), known)
    return simplified(Replacement({stand_in: scalar}).statement(after), ranges)
