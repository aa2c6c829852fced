"""Simplify: loop functions in fewer operations."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import assert_never

from intarsia.ir import IRModule, PrimFunc, with_prim_func_fields
from intarsia.ir.loop_walk import reads_each, scalar_post_order
from intarsia.ir.prim_func import (
    Allocate,
    Arith,
    ArithOp,
    Block,
    Buffer,
    For,
    IfThenElse,
    Literal,
    Load,
    LoopVar,
    Scalar,
    Statement,
    Store,
)
from intarsia.native.tir.affine import Range
from intarsia.native.tir.rewriting import (
    block_like,
    flat,
    with_body,
    with_branches,
)
from intarsia.native.tir.simplify_scalar import ScalarSimplifier
from intarsia.transform import PassContext, PrimFuncPass, register_pass


@register_pass
@dataclass(frozen=True)
class Simplify(PrimFuncPass):
    """Folds numbers, shortens indices by the ranges of counters, and drops what does nothing.

    Loops of extent 1 are replaced by their body, guards that always or never hold by what they guard. Buffers
    that are never read are not written. Every value stays the same bit for bit, so `x + 0.0` stays (it makes
    0.0 of -0.0), and `x * 1.0` goes. Linear in the program; sums of n terms in n * n at worst.

    Before:
        def prim @f(x: Buffer[(4, 8), float32], y: Buffer[(4, 8), float32]) {
          for i in 4 {
            for j in 8 {
              for k in 1 {
                if i * 8 + j < 32 {
                  y[(i * 8 + j) floordiv 8, (i * 8 + j) mod 8 + k] = x[i, j + k] * 1.0f32;
                }
              }
            }
          }
        }
    After:
        def prim @f(x: Buffer[(4, 8), float32], y: Buffer[(4, 8), float32]) {
          for i in 4 {
            for j in 8 {
              y[i, j] = x[i, j];
            }
          }
        }
    """

    def transform_prim_func(self, function: PrimFunc, mod: IRModule, ctx: PassContext) -> PrimFunc:
        """The loop function, simplified."""
        return with_prim_func_fields(function, body=simplified(function.body))


def simplified(statement: Statement, ranges: dict[LoopVar, Range] | None = None) -> Statement:
    """A statement in fewer operations; the same object if there is nothing to save.

    Args:
        statement: The statement.
        ranges: The least and the greatest value of counters of loops around it, where they are known.
    """
    known = dict(ranges or {})
    while True:
        walker = _Walker(ScalarSimplifier(known))
        after = walker.block(statement)
        if not walker.kept or reads_each(after, walker.kept):
            return after
        statement = after  # the last reads of a buffer are gone


@dataclass
class _Walker:
    """A walk through a statement.

    Attributes:
        scalars: What is known where the walk is.
        kept: Allocated buffers of which something was read before.
        unread: Other allocated buffers around where the walk is.
    """

    scalars: ScalarSimplifier
    kept: set[Buffer] = field(default_factory=set)
    unread: set[Buffer] = field(default_factory=set)

    def block(self, statement: Statement) -> Statement:
        after = [inner for one in flat(statement) for inner in self.statement(one)]
        return block_like(statement, after)

    def statement(self, statement: Statement) -> list[Statement]:
        match statement:
            case Store():
                return self.store(statement)
            case For():
                return self.loop(statement)
            case Allocate():
                return self.allocate(statement)
            case IfThenElse():
                return self.guard(statement)
            case Block():
                return flat(self.block(statement))
            case _:
                assert_never(statement)

    def store(self, store: Store) -> list[Statement]:
        if store.buffer in self.unread:
            return []
        indices = tuple(map(self.scalars.index, store.indices))
        value = self.scalars.simplified(store.value)
        if isinstance(value, Load) and value == Load(store.buffer, indices):
            return []
        if value is store.value and all(a is b for a, b in zip(indices, store.indices, strict=True)):
            return [store]
        return [Store(store.buffer, indices, value)]

    def loop(self, loop: For) -> list[Statement]:
        if loop.extent == 0:
            return []
        with self.knowing({loop.var: (0, loop.extent - 1)}, {}):
            body = self.block(loop.body)
        if _is_empty(body):
            return []
        return flat(body) if loop.extent == 1 else [with_body(loop, body)]

    def allocate(self, allocate: Allocate) -> list[Statement]:
        body, buffer = allocate.body, allocate.buffer
        if reads_each(body, (buffer,)):
            self.kept.add(buffer)
            return [with_body(allocate, self.block(body))]
        self.unread.add(buffer)
        after = flat(self.block(body))
        self.unread.discard(buffer)
        return after

    def guard(self, guard: IfThenElse) -> list[Statement]:
        cond = self.scalars.simplified(guard.cond)
        if isinstance(cond, Literal):
            chosen = guard.then if cond.value else guard.otherwise
            return [] if chosen is None else flat(self.block(chosen))
        with self.assuming(cond, True):
            then = self.block(guard.then)
        otherwise = None
        if guard.otherwise is not None:
            with self.assuming(cond, False):
                otherwise = self.block(guard.otherwise)
        if otherwise is not None and _is_empty(otherwise):
            otherwise = None
        if _is_empty(then):
            if otherwise is None:
                return []
            negated = self.scalars.simplified(Arith(ArithOp.NOT, (cond,)))
            return [IfThenElse(negated, otherwise)]
        if cond is guard.cond:
            return [with_branches(guard, then, otherwise)]
        return [IfThenElse(cond, then, otherwise)]

    @contextmanager
    def knowing(self, ranges: dict[LoopVar, Range], known: dict[Scalar, bool]) -> Iterator[None]:
        """Know more for a while."""
        before = self.scalars
        self.scalars = before.knowing(ranges, known)
        yield
        self.scalars = before

    @contextmanager
    def assuming(self, cond: Scalar, value: bool) -> Iterator[None]:
        """Know that a condition holds, or does not; what loads may change is not remembered."""
        known: dict[Scalar, bool] = {}
        ranges: dict[LoopVar, Range] = {}
        for part in _parts(cond, value):
            if not any(isinstance(one, Load) for one, _ in scalar_post_order(part)):
                known[part] = value
                narrowed = _narrowed(part, value, self.scalars.ranges)
                if narrowed is not None:
                    var, found = narrowed
                    low, high = ranges.get(var, found)
                    ranges[var] = (max(low, found[0]), min(high, found[1]))
        with self.knowing(ranges, known):
            yield


def _parts(cond: Scalar, value: bool) -> list[Scalar]:
    """The conditions that have a value if their conjunction (or disjunction) has it."""
    joins = ArithOp.AND if value else ArithOp.OR
    parts: list[Scalar] = []
    stack = [cond]
    while stack:
        one = stack.pop()
        if isinstance(one, Arith) and one.op is joins:
            stack.extend(reversed(one.operands))
        else:
            parts.append(one)
    return parts


def _narrowed(cond: Scalar, value: bool, ranges: dict[LoopVar, Range]) -> tuple[LoopVar, Range] | None:
    """The range of a counter that is compared with a number."""
    match cond:
        case Arith(op=ArithOp.LT, operands=(LoopVar() as var, Literal(value=int(limit)))) if var in ranges:
            low, high = ranges[var]
            found = (low, min(high, limit - 1)) if value else (max(low, limit), high)
        case Arith(op=ArithOp.LT, operands=(Literal(value=int(limit)), LoopVar() as var)) if var in ranges:
            low, high = ranges[var]
            found = (max(low, limit + 1), high) if value else (low, min(high, limit))
        case Arith(op=ArithOp.EQ, operands=(LoopVar() as var, Literal(value=int(limit)))) if value:
            found = (limit, limit)
        case _:
            return None
    return var, found


def _is_empty(statement: Statement) -> bool:
    return not flat(statement)
