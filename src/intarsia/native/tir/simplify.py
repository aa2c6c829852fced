"""Simplify: loop functions in fewer operations."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from typing import assert_never

from intarsia.ir import IRModule, PrimFunc, with_prim_func_fields
from intarsia.ir.loop_walk import inner_scalars, reads_each
from intarsia.ir.prim_func import (
    Allocate,
    AnyKernelStatement,
    Arith,
    ArithOp,
    AsyncCopy,
    Block,
    Buffer,
    For,
    ForKind,
    IfThenElse,
    KernelStatement,
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
    with_scalars,
)
from intarsia.native.tir.simplify_scalar import ScalarSimplifier
from intarsia.transform import PassContext, PrimFuncPass, register_pass


@register_pass
@dataclass(frozen=True)
class Simplify(PrimFuncPass):
    """Folds numbers, shortens indices by the ranges of counters, and drops what does nothing.

    Loops of extent 1 are replaced by their body, but for blocks and threads; guards that always or never hold
    by what they guard. Buffers that are never read are not written. Every value stays the same bit for bit,
    so `x + 0.0` stays (it makes 0.0 of -0.0), and `x * 1.0` goes. Linear in the program; sums of n terms in
    n * n at worst.

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
        """Return the loop function, simplified."""
        return with_prim_func_fields(function, body=simplified(function.body))


def simplified(statement: Statement, ranges: dict[LoopVar, Range] | None = None) -> Statement:
    """Return a statement in fewer operations; the same object if there is nothing to save.

    Args:
        statement: The statement.
        ranges: Least and greatest value of the counters of loops around it, where there are bounds.
    """
    bounds = dict(ranges or {})
    while True:
        walker = _Walker(ScalarSimplifier(bounds))
        after = walker.simplify_body(statement)
        if not walker.kept or reads_each(after, walker.kept):
            return after
        statement = after  # the last reads of a buffer are gone


@dataclass
class _Walker:
    """A walk through a statement.

    Attributes:
        scalars: Simplifier with the facts that hold where the walk is.
        kept: Allocated buffers of which something was read before.
        unread: Other allocated buffers around where the walk is.
    """

    scalars: ScalarSimplifier
    kept: set[Buffer] = field(default_factory=set)
    unread: set[Buffer] = field(default_factory=set)

    def simplify_body(self, statement: Statement) -> Statement:
        after = [new for inner in flat(statement) for new in self.simplify_statement(inner)]
        return block_like(statement, after)

    def simplify_statement(self, statement: Statement) -> list[Statement]:
        match statement:
            case Store():
                return self.simplify_store(statement)
            case KernelStatement():
                return self.simplify_kernel_statement(statement)
            case For():
                return self.simplify_loop(statement)
            case Allocate():
                return self.simplify_allocate(statement)
            case IfThenElse():
                return self.simplify_guard(statement)
            case Block():
                return flat(self.simplify_body(statement))
            case _:
                assert_never(statement)

    def simplify_store(self, store: Store) -> list[Statement]:
        if self.unread and store.buffer in self.unread:
            return []
        indices = tuple(map(self.scalars.simplified, store.indices))
        value = self.scalars.simplified(store.value)
        if isinstance(value, Load) and value == Load(store.buffer, indices):
            return []
        if value is store.value and all(a is b for a, b in zip(indices, store.indices, strict=True)):
            return [store]
        return [Store(store.buffer, indices, value)]

    def simplify_kernel_statement(self, statement: AnyKernelStatement) -> list[Statement]:
        if isinstance(statement, AsyncCopy) and statement.target.buffer in self.unread:
            return []
        after = with_scalars(statement, self.scalars.simplified, lambda *element: element)
        match after:
            case AsyncCopy(valid=Literal(value=count)) if count == after.width:
                return [replace(after, valid=None)]
        return [after]

    def simplify_loop(self, loop: For) -> list[Statement]:
        if loop.extent == 0:
            return []
        with self.add_facts({loop.var: (0, loop.extent - 1)}, {}):
            body = self.simplify_body(loop.body)
        if _is_empty(body):
            return []
        is_left_out = (
            loop.extent == 1 and loop.count is None and loop.kind not in (ForKind.BLOCK, ForKind.THREAD)
        )
        return flat(body) if is_left_out else [with_body(loop, body)]

    def simplify_allocate(self, allocate: Allocate) -> list[Statement]:
        body, buffer = allocate.body, allocate.buffer
        if reads_each(body, (buffer,)):
            self.kept.add(buffer)
            return [with_body(allocate, self.simplify_body(body))]
        # Dropping stores may drop the last loads of another buffer: `simplified` repeats until none is left.
        self.unread.add(buffer)
        after = flat(self.simplify_body(body))
        self.unread.discard(buffer)
        return after

    def simplify_guard(self, guard: IfThenElse) -> list[Statement]:
        cond = self.scalars.simplified(guard.cond)
        if isinstance(cond, Literal):
            chosen = guard.then if cond.value else guard.otherwise
            return [] if chosen is None else flat(self.simplify_body(chosen))
        with self.assume(cond, True):
            then = self.simplify_body(guard.then)
        otherwise = None
        if guard.otherwise is not None:
            with self.assume(cond, False):
                otherwise = self.simplify_body(guard.otherwise)
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
    def add_facts(self, ranges: dict[LoopVar, Range], facts: dict[Scalar, bool]) -> Iterator[None]:
        """Add facts to the simplifier inside the context."""
        before = self.scalars
        self.scalars = before.with_facts(ranges, facts)
        yield
        self.scalars = before

    @contextmanager
    def assume(self, cond: Scalar, value: bool) -> Iterator[None]:
        """Assume inside the context that a condition holds, or does not; conditions on loads are left out."""
        facts: dict[Scalar, bool] = {}
        # A store inside the guard may change what a load yields, so a condition on it need not hold there.
        ranges: dict[LoopVar, Range] = {}
        for part in _implied_conditions(cond, value):
            if not any(isinstance(inner, Load) for inner in inner_scalars(part)):
                facts[part] = value
                narrowed = _compared_range(part, value, self.scalars.ranges)
                if narrowed is not None:
                    var, values = narrowed
                    low, high = ranges.get(var, values)
                    ranges[var] = (max(low, values[0]), min(high, values[1]))
        with self.add_facts(ranges, facts):
            yield


def _implied_conditions(cond: Scalar, value: bool) -> list[Scalar]:
    """Return the conditions that must have a value if their conjunction (or disjunction) has it."""
    joins = ArithOp.AND if value else ArithOp.OR
    parts: list[Scalar] = []
    stack = [cond]
    while stack:
        condition = stack.pop()
        if isinstance(condition, Arith) and condition.op is joins:
            stack.extend(reversed(condition.operands))
        else:
            parts.append(condition)
    return parts


def _compared_range(cond: Scalar, value: bool, ranges: dict[LoopVar, Range]) -> tuple[LoopVar, Range] | None:
    """Return the counter that a condition compares with a number, and its range then."""
    match cond:
        case Arith(op=ArithOp.LT, operands=(LoopVar() as var, Literal(value=int(limit)))) if var in ranges:
            low, high = ranges[var]
            values = (low, min(high, limit - 1)) if value else (max(low, limit), high)
        case Arith(op=ArithOp.LT, operands=(Literal(value=int(limit)), LoopVar() as var)) if var in ranges:
            low, high = ranges[var]
            values = (max(low, limit + 1), high) if value else (low, min(high, limit))
        case Arith(op=ArithOp.EQ, operands=(LoopVar() as var, Literal(value=int(limit)))) if value:
            values = (limit, limit)
        case _:
            return None
    return var, values


def _is_empty(statement: Statement) -> bool:
    return not flat(statement)
