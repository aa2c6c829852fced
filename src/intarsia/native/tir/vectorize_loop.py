"""VectorizeLoop: vectorised loops innermost, around consecutive stores, as the code generator takes them."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import Final, assert_never

from intarsia.ir import DType, IRModule, PrimFunc, with_prim_func_fields
from intarsia.ir.loop_literal import loop_name_text
from intarsia.ir.loop_walk import Event, inner_scalars, walk
from intarsia.ir.prim_func import (
    Allocate,
    Arith,
    ArithOp,
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
from intarsia.native.tir.accesses import accesses, are_disjoint
from intarsia.native.tir.affine import Range
from intarsia.native.tir.rewriting import (
    Replacement,
    block_like,
    buffer_names,
    flat,
    has_blocks,
    loop_vars,
    with_body,
    with_branches,
)
from intarsia.support.free_names import NameSupply
from intarsia.transform import PassContext, PrimFuncPass, register_pass

NOT_VECTORIZED: Final = "not_vectorized"
"""Attribute of a loop function: for each loop that VectorizeLoop has made serial, its counter and why."""

_MOST_ACCESSES: Final = 64
"""Most accesses to one buffer that are compared with each other: the number of pairs is its square."""


@register_pass
@dataclass(frozen=True)
class VectorizeLoop(PrimFuncPass):
    """Brings vectorised loops into the innermost place, around stores only; serial where that is wrong.

    A vectorised loop is distributed over the statements inside it: loops and guards that do not depend on its
    counter move outside, and arrays of one iteration get a dimension for the iterations. This is done if no
    two iterations touch the same element, of which one is stored; that is proved by the ranges of indices. A
    loop for which it cannot be proved becomes serial, and so does what stands in a guard that depends on the
    counter; the attribute `not_vectorized` says why.

    Attributes:
        lanes: Number of lanes; longer loops are split into a multiple of it and a remainder loop. 0: none.

    Before:
        def prim @f(x: Buffer[(4, 8), float32], y: Buffer[(8,), float32]) {
          for vectorized j in 8 {
            y[j] = 0.0f32;
            for i in 4 {
              y[j] = y[j] + x[i, j];
            }
          }
        }
    After:
        def prim @f(x: Buffer[(4, 8), float32], y: Buffer[(8,), float32]) {
          for vectorized j in 8 {
            y[j] = 0.0f32;
          }
          for i in 4 {
            for vectorized j in 8 {
              y[j] = y[j] + x[i, j];
            }
          }
        }
    """

    lanes: int = 0

    def transform_prim_func(self, function: PrimFunc, mod: IRModule, ctx: PassContext) -> PrimFunc:
        """Return the loop function with its vectorised loops innermost."""
        if has_blocks(function):
            return function  # it may not move accesses across barriers
        walker = _Walker(buffer_names(function), self.lanes)
        body = walker.visit_body(function.body, {})
        earlier = function.attrs.get(NOT_VECTORIZED, ())
        reasons = (*(earlier if isinstance(earlier, tuple) else ()), *dict.fromkeys(walker.reasons))
        attrs = function.attrs.updated(**{NOT_VECTORIZED: reasons}) if walker.reasons else function.attrs
        return with_prim_func_fields(function, body=body, attrs=attrs)


@dataclass(slots=True)
class _Walker:
    names: NameSupply
    lanes: int
    reasons: list[str] = field(default_factory=list)

    def visit_body(self, statement: Statement, ranges: dict[LoopVar, Range]) -> Statement:
        after = [new for inner in flat(statement) for new in self.visit(inner, ranges)]
        return block_like(statement, after)

    def visit(self, statement: Statement, ranges: dict[LoopVar, Range]) -> list[Statement]:
        match statement:
            case Store() | KernelStatement():
                return [statement]
            case For():
                body = self.visit_body(statement.body, {**ranges, statement.var: (0, statement.extent - 1)})
                loop = with_body(statement, body)
                assert isinstance(loop, For)
                return self.vectorize(loop, ranges) if loop.kind is ForKind.VECTORIZED else [loop]
            case Allocate():
                return [with_body(statement, self.visit_body(statement.body, ranges))]
            case IfThenElse():
                other = None if statement.otherwise is None else self.visit_body(statement.otherwise, ranges)
                return [with_branches(statement, self.visit_body(statement.then, ranges), other)]
            case Block():
                return flat(self.visit_body(statement, ranges))
            case _:
                assert_never(statement)

    def vectorize(self, loop: For, ranges: dict[LoopVar, Range]) -> list[Statement]:
        reason = _find_obstacle(loop, ranges)
        if reason is not None:
            return [self.make_serial(loop, reason)]
        if _is_straight(loop.body):
            return self.split_remainder(loop)
        written = {visit.statement.buffer for visit in walk(loop.body) if isinstance(visit.statement, Store)}
        return self.distribute(loop, flat(loop.body), frozenset(written))

    def make_serial(self, loop: For, reason: str) -> For:
        self.reasons.append(f"{loop_name_text(loop.var.name)}: {reason}")
        return replace(loop, kind=ForKind.SERIAL)

    def split_remainder(self, loop: For) -> list[Statement]:
        """Split a loop into a main loop whose extent is a multiple of the lanes, and a remainder loop."""
        rest = loop.extent % self.lanes if self.lanes > 1 else 0
        main = loop.extent - rest
        if rest == 0 or main == 0:
            return [loop]
        shifted = Arith(ArithOp.ADD, (loop.var, Literal(main, DType.INT64)))
        tail = Replacement({loop.var: shifted}, names=self.names).statement(loop.body)
        return [replace(loop, extent=main), replace(loop, extent=rest, body=tail)]

    def distribute(
        self, loop: For, statements: list[Statement], written: frozenset[Buffer]
    ) -> list[Statement]:
        """Put the loop around each statement of its body; consecutive stores share one loop."""
        after: list[Statement] = []
        row: list[Statement] = []
        for statement in statements:
            if isinstance(statement, Store):
                row.append(statement)
                continue
            after += self.wrap_stores(loop, row)
            row = []
            after.append(self.move_inside(loop, statement, written))
        return [*after, *self.wrap_stores(loop, row)]

    def wrap_stores(self, loop: For, row: list[Statement]) -> list[Statement]:
        return (
            self.split_remainder(replace(loop, body=row[0] if len(row) == 1 else Block(tuple(row))))
            if row
            else []
        )

    def move_inside(self, loop: For, statement: Statement, written: frozenset[Buffer]) -> Statement:
        """Move the loop into a loop, an allocation, or a guard that is the same for all iterations."""
        match statement:
            case For():
                return with_body(statement, self.distribute_body(loop, statement.body, written))
            case Allocate():
                # Iterations no longer run one after the other: each gets an element of its own.
                private = replace(statement.buffer, shape=(*statement.buffer.shape, loop.extent))
                moved = Replacement(
                    accesses={statement.buffer: lambda indices: (private, (*indices, loop.var))}
                )
                body = moved.statement(statement.body)
                return Allocate(private, self.distribute_body(loop, body, written | {private}))
            case IfThenElse() if _is_uniform(statement.cond, loop.var, written):
                then = self.distribute_body(loop, statement.then, written)
                other = statement.otherwise
                return IfThenElse(
                    statement.cond,
                    then,
                    None if other is None else self.distribute_body(loop, other, written),
                )
            case _:
                return self.make_serial(replace(loop, body=statement), "a guard depends on it")

    def distribute_body(self, loop: For, body: Statement, written: frozenset[Buffer]) -> Statement:
        return block_like(body, self.distribute(loop, flat(body), written))


def _is_uniform(cond: Scalar, var: LoopVar, written: frozenset[Buffer]) -> bool:
    loads = {part.buffer for part in inner_scalars(cond) if isinstance(part, Load)}
    return var not in loop_vars(cond) and loads.isdisjoint(written)


def _is_straight(body: Statement) -> bool:
    """Return whether there are stores only, and scalars allocated for them."""
    inside = (visit.statement for visit in walk(body) if visit.event is Event.ENTER)
    return all(
        isinstance(inner, Store) or (isinstance(inner, Allocate) and inner.buffer.shape == ())
        for inner in inside
    )


def _find_obstacle(loop: For, ranges: dict[LoopVar, Range]) -> str | None:
    """Return why iterations cannot run in parallel lanes, or None if they can."""
    if any(isinstance(v.statement, For) and v.statement.kind is ForKind.VECTORIZED for v in walk(loop.body)):
        return "a vectorised loop is inside"
    here = {**ranges, loop.var: (0, loop.extent - 1)}
    body_accesses = [access for access in dict.fromkeys(accesses(loop.body)) if loop.extent > 1]
    stored = dict.fromkeys(access.buffer for access in body_accesses if access.is_store)
    for buffer in stored:
        group = [access for access in body_accesses if access.buffer == buffer]
        name = loop_name_text(buffer.name)
        if len(group) > _MOST_ACCESSES:
            return f"{name} is accessed in too many places to compare them"
        # Two loads never conflict: only pairs with a store matter, a store with itself included.
        for store in (access for access in group if access.is_store):
            for other in group:
                if not are_disjoint(store, other, here, loop.var):
                    what = "stored" if other.is_store else "loaded"
                    return f"an element of {name} that one iteration stores may be {what} by another"
    return None
