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
    KernelStatement,
    Literal,
    LoopVar,
    Scalar,
    Statement,
    Store,
)
from intarsia.native.tir.affine import Range, scalar_range
from intarsia.native.tir.loop_cuts import Comparisons, Segment, find_cuts, ranges_inside, split_range
from intarsia.native.tir.rewriting import (
    Replacement,
    block_like,
    buffer_names,
    flat,
    has_blocks,
    with_body,
    with_branches,
)
from intarsia.native.tir.simplify import simplified
from intarsia.support.free_names import NameSupply
from intarsia.transform import PassContext, PrimFuncPass, register_pass

_SMALL: Final = 4
"""Most iterations of a part other than the main one that are peeled where that decides its comparisons."""


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
        max_parts: Most parts that a loop is cut into at a time, at least 3; parts with guards are cut again.
        max_statements: Most stores of a function after the pass, if it had fewer before.

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
        """Return the loop function with its loops cut."""
        if has_blocks(function):
            return function  # it may not move accesses across barriers
        if not Comparisons().find_in(function.body):
            return function
        budget = self.max_statements - _store_count(function.body)
        walker = _Walker(buffer_names(function), max(3, self.max_parts), budget)
        body = block_like(function.body, walker.visit(function.body, {}))
        return with_prim_func_fields(function, body=body)


@dataclass(frozen=True, slots=True)
class _Part:
    """A part of a loop.

    Attributes:
        segment: Values of the counter or scalar in this part.
        body: Simplified body for these values.
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
            case Store() | KernelStatement():
                return [statement]
            case Block():
                return [after for inner in flat(statement) for after in self.visit(inner, ranges)]
            case For():
                return self.partition_loop(statement, ranges)
            case Allocate():
                return [with_body(statement, self.visit_body(statement.body, ranges))]
            case IfThenElse():
                then = self.visit_body(statement.then, ranges)
                other = None if statement.otherwise is None else self.visit_body(statement.otherwise, ranges)
                return [with_branches(statement, then, other)]
            case _:
                assert_never(statement)

    def visit_body(self, statement: Statement, ranges: dict[LoopVar, Range]) -> Statement:
        return block_like(statement, self.visit(statement, ranges))

    def partition_loop(self, loop: For, ranges: dict[LoopVar, Range]) -> list[Statement]:
        here = {**ranges, loop.var: (0, loop.extent - 1)}
        if loop.extent == 0 or not self.comparisons.find_in(loop.body):
            return [loop]
        if loop.count is not None:  # where its last iteration is, is known at run time only
            return [with_body(loop, self.visit_body(loop.body, here))]
        values_by_scalar = find_cuts(
            self.comparisons.find_in(loop.body), loop.var, ranges_inside(loop.body, here), set(here)
        )
        counter_cuts = values_by_scalar.pop(loop.var, set())
        if loop.kind in (ForKind.VECTORIZED, ForKind.UNROLLED):
            trimmed = self.trim_loop(loop, counter_cuts, ranges)
            if (
                trimmed is None
                and counter_cuts
                and loop.kind is ForKind.VECTORIZED
                and _is_guarded(loop.body)
            ):
                trimmed = self.split_loop(loop, counter_cuts, ranges)
            return [with_body(loop, self.visit_body(loop.body, here))] if trimmed is None else trimmed
        # A parallel loop stays whole, so that its threads start once: version its body instead.
        if counter_cuts and loop.kind is ForKind.PARALLEL:
            values_by_scalar[loop.var] = counter_cuts
            counter_cuts = set()
        if counter_cuts:
            parts = self.split_loop(loop, counter_cuts, ranges)
            if parts is not None:
                return parts
        return [with_body(loop, self.version_body(loop.body, list(values_by_scalar.items()), here))]

    def split_loop(self, loop: For, at: set[int], ranges: dict[LoopVar, Range]) -> list[Statement] | None:
        """Split a loop, and cut the loops of each part; return None if no part has fewer comparisons."""
        segments, main = split_range(0, loop.extent, at, self.max_parts)
        body_in = partial(self.simplified_body, loop, ranges)
        parts = self.refine_parts(loop.body, segments, main, body_in)
        if parts is None:
            return None
        after: list[Statement] = []
        for part in parts:
            after += self.visit(self.segment_loop(loop, part.segment, part.body, not part.is_main), ranges)
        return after

    def refine_parts(
        self,
        body: Statement,
        segments: list[Segment],
        main: int,
        body_in: Callable[[Segment], Statement],
    ) -> list[_Part] | None:
        """Return the parts, small undecided ones peeled; None if no part has fewer comparisons.

        Args:
            body: Body before it is cut.
            segments: Segments of values, in order.
            main: Position of the longest segment.
            body_in: Function from a segment to the body simplified for it.
        """
        before = len(self.comparisons.find_in(body))
        parts = [
            _Part(segment, body_in(segment), position == main) for position, segment in enumerate(segments)
        ]
        is_better = any(len(self.comparisons.find_in(part.body)) < before for part in parts)
        # Branches that a part never takes are gone from it: a Concat has each of its stores once, however
        # many parts it is cut into.
        added = sum(_store_count(part.body) for part in parts) - _store_count(body)
        if not is_better or not self.spend_budget(added):
            return None
        refined: list[_Part] = []
        for part in parts:
            size = part.segment.size
            # Borders such as the first rows of a padded window are short: peeling them decides their guards.
            is_small = 1 < size <= _SMALL and not part.is_main and self.comparisons.find_in(part.body)
            if is_small and self.spend_budget((size - 1) * _store_count(part.body)):
                ones = (Segment(value, value + 1) for value in range(part.segment.begin, part.segment.end))
                refined += [_Part(segment, body_in(segment), False) for segment in ones]
            else:
                refined.append(part)
        return refined

    def trim_loop(self, loop: For, at: set[int], ranges: dict[LoopVar, Range]) -> list[Statement] | None:
        """Return the only part of the loop with effects; None if there are several, or nothing to cut."""
        if not at or not _is_guarded(loop.body):
            return None
        segments, _ = split_range(0, loop.extent, at, loop.extent + 1)
        bodies = [self.simplified_body(loop, ranges, segment) for segment in segments]
        busy = [position for position, body in enumerate(bodies) if flat(body)]
        if len(busy) != 1:
            return None
        segment = segments[busy[0]]
        return self.visit(self.segment_loop(loop, segment, bodies[busy[0]], False), ranges)

    def simplified_body(self, loop: For, ranges: dict[LoopVar, Range], segment: Segment) -> Statement:
        """Return the body of a part of a loop, in which the counter begins at 0, simplified."""
        body = loop.body
        if segment.begin:
            start = Literal(segment.begin, DType.INT64)
            body = Replacement({loop.var: Arith(ArithOp.ADD, (loop.var, start))}).statement(body)
        return simplified(body, {**ranges, loop.var: (0, segment.size - 1)})

    def segment_loop(self, loop: For, segment: Segment, body: Statement, is_copy: bool) -> Statement:
        """Return a part of a loop around its body, which is simplified."""
        if is_copy:
            body = Replacement(names=self.names).statement(body)
        if segment.size == 1 or not flat(body):
            return body
        return For(loop.var, segment.size, body, loop.kind)

    def version_body(
        self, body: Statement, pending: list[tuple[Scalar, set[int]]], ranges: dict[LoopVar, Range]
    ) -> Statement:
        """Version a body by ranges of each scalar, with guards that choose, where that saves comparisons."""
        if not pending:
            return self.visit_body(body, ranges)
        (scalar, at), *others = pending
        low, high = scalar_range(scalar, ranges)
        segments, main = split_range(low, high + 1, at, self.max_parts)
        cond = _segment_condition(scalar, segments[main], low, high)
        first = flat(body)[0] if len(flat(body)) == 1 else None
        if isinstance(first, IfThenElse) and first.cond == cond:  # this is what the pass has made
            other = None if first.otherwise is None else self.version_body(first.otherwise, others, ranges)
            return with_branches(first, self.version_body(first.then, others, ranges), other)
        body_in = partial(_body_within, body, scalar, ranges)
        parts = self.refine_parts(body, segments, main, body_in)
        if parts is None:
            return self.version_body(body, others, ranges)
        result: Statement | None = None
        for part in reversed(parts):
            if not part.is_main:
                copy = self.version_body(Replacement(names=self.names).statement(part.body), others, ranges)
                is_below = Arith(ArithOp.LT, (scalar, Literal(part.segment.end, DType.INT64)))
                result = copy if result is None else IfThenElse(is_below, copy, result)
        main_body = next(part.body for part in parts if part.is_main)
        return IfThenElse(cond, self.version_body(main_body, others, ranges), result)

    def spend_budget(self, stores: int) -> bool:
        """Take stores from the budget; return whether there were enough."""
        if stores > self.budget:
            return False
        self.budget -= stores
        return True


def _is_guarded(body: Statement) -> bool:
    return any(isinstance(visit.statement, IfThenElse) for visit in walk(body))


def _store_count(statement: Statement) -> int:
    return sum(isinstance(visit.statement, Store) for visit in walk(statement) if visit.event is Event.ENTER)


def _segment_condition(scalar: Scalar, segment: Segment, low: int, high: int) -> Scalar:
    """Return the condition that a scalar is in a segment; bounds that its range implies are left out."""
    above = Arith(ArithOp.LT, (Literal(segment.begin - 1, DType.INT64), scalar))
    below = Arith(ArithOp.LT, (scalar, Literal(segment.end, DType.INT64)))
    if segment.begin > low and segment.end <= high:
        return Arith(ArithOp.AND, (above, below))
    return above if segment.begin > low else below


def _body_within(
    body: Statement, scalar: Scalar, ranges: dict[LoopVar, Range], segment: Segment
) -> Statement:
    """Return a body simplified for a scalar in a segment; a counter stands in for the scalar meanwhile."""
    stand_in = LoopVar("stands for a scalar")
    body_in = {**ranges, stand_in: (segment.begin, segment.end - 1)}
    after = simplified(Replacement(scalars={scalar: stand_in}).statement(body), body_in)
    return simplified(Replacement({stand_in: scalar}).statement(after), ranges)
