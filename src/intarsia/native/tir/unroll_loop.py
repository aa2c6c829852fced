"""UnrollLoop: iterations one after the other, without a loop."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import Final, assert_never

from intarsia.ir import DType, IRModule, PrimFunc, with_prim_func_fields
from intarsia.ir.prim_func import Allocate, Block, For, ForKind, IfThenElse, Literal, Statement, Store
from intarsia.native.tir.numbered_copies import NumberedCopies
from intarsia.native.tir.rewriting import (
    BufferNames,
    block,
    block_like,
    flat,
    with_body,
    with_branches,
)
from intarsia.transform import PassContext, PrimFuncPass, register_config_option, register_pass

AUTO_UNROLL_MAX_STEP: Final = "auto_unroll_max_step"
"""Attribute of a loop function that stands for `UnrollLoopConfig.auto_max_step` in it."""


@dataclass(frozen=True, slots=True)
class UnrollLoopConfig:
    """What `tir.UnrollLoop` sets.

    Attributes:
        auto_max_step: A serial loop is unrolled if it then stores no more than so often; 0: none is.
        auto_max_depth: How many loops inside each other are unrolled without being marked.
        explicit_unroll: Whether iterations are written out; else loops are marked for the code generator.
    """

    auto_max_step: int = 0
    auto_max_depth: int = 8
    explicit_unroll: bool = True


UNROLL_LOOP: Final = register_config_option(
    "tir.UnrollLoop", UnrollLoopConfig, UnrollLoopConfig(), "which loops are unrolled, and how far"
)


@register_pass
@dataclass(frozen=True)
class UnrollLoop(PrimFuncPass):
    """Writes out the iterations of loops of the kind `unrolled`, and of small serial loops.

    What is small stands in the config `tir.UnrollLoop` (a vectorised loop inside counts once), or in the
    attribute `auto_unroll_max_step` of a function. Grows the function by the extents of the loops that are
    marked. Another run may unroll more where `auto_max_depth` stopped the first.

    Before:
        def prim @f(x: Buffer[(2, 8), float32], y: Buffer[(2, 8), float32]) {
          for unrolled i in 2 {
            for vectorized j in 8 {
              y[i, j] = x[i, j];
            }
          }
        }
    After:
        def prim @f(x: Buffer[(2, 8), float32], y: Buffer[(2, 8), float32]) {
          for vectorized j in 8 {
            y[0, j] = x[0, j];
          }
          for vectorized j in 8 {
            y[1, j] = x[1, j];
          }
        }
    """

    def transform_prim_func(self, function: PrimFunc, mod: IRModule, ctx: PassContext) -> PrimFunc:
        """The loop function, unrolled."""
        config = ctx.option(UNROLL_LOOP)
        given = function.attrs.get(AUTO_UNROLL_MAX_STEP, config.auto_max_step)
        walker = _Walker(config, given if isinstance(given, int) else 0)
        body = walker.visit(function.body).statement
        if walker.chosen:
            body = _Writer(frozenset(walker.chosen), BufferNames.of(function)).statement(body)
        return with_prim_func_fields(function, body=body)


@dataclass(frozen=True, slots=True)
class _Unrolled:
    """A statement after the pass.

    Attributes:
        statement: The statement.
        steps: How many stores it carries out, those of a vectorised loop once.
        depth: How many loops inside each other were unrolled without being marked.
        has_loop: Whether a loop is left in it that is neither vectorised nor to be unrolled.
    """

    statement: Statement
    steps: int = 1
    depth: int = 0
    has_loop: bool = False


@dataclass(slots=True)
class _Walker:
    """Decides.

    Attributes:
        config: What is asked for.
        auto_max_step: As there, of this function.
        chosen: The loops, by identity, that are to be written out; they are parts of what was visited.
    """

    config: UnrollLoopConfig
    auto_max_step: int
    chosen: set[int] = field(default_factory=set)

    def visit(self, statement: Statement) -> _Unrolled:
        match statement:
            case Store():
                return _Unrolled(statement)
            case Block():
                parts = [self.visit(inner) for inner in flat(statement)]
                return _over(block_like(statement, _flat_all(parts)), parts)
            case For():
                return self.loop(statement)
            case Allocate():
                inside = self.visit(statement.body)
                return _over(with_body(statement, inside.statement), [inside])
            case IfThenElse():
                then = self.visit(statement.then)
                if statement.otherwise is None:
                    return _over(with_branches(statement, then.statement, None), [then])
                other = self.visit(statement.otherwise)
                return _over(with_branches(statement, then.statement, other.statement), [then, other])
            case _:
                assert_never(statement)

    def loop(self, loop: For) -> _Unrolled:
        inside = self.visit(loop.body)
        kept = with_body(loop, inside.statement)
        assert isinstance(kept, For)
        if loop.kind is ForKind.VECTORIZED:
            return _over(kept, [inside])
        steps = loop.extent * inside.steps
        is_small = (
            loop.kind is ForKind.SERIAL
            and steps <= self.auto_max_step
            and inside.depth < self.config.auto_max_depth
            and not inside.has_loop
        )
        if not is_small and loop.kind is not ForKind.UNROLLED:
            return _Unrolled(kept, steps, inside.depth, has_loop=True)
        depth = inside.depth + is_small
        if not self.config.explicit_unroll:
            marked = For(kept.var, kept.extent, kept.body, ForKind.UNROLLED) if is_small else kept
            return _Unrolled(marked, steps, depth, inside.has_loop)
        self.chosen.add(id(kept))
        return _Unrolled(kept, steps, depth, inside.has_loop)


def _flat_all(parts: list[_Unrolled]) -> list[Statement]:
    return [inner for part in parts for inner in flat(part.statement)]


def _over(statement: Statement, parts: list[_Unrolled]) -> _Unrolled:
    return _Unrolled(
        statement,
        sum(part.steps for part in parts),
        max((part.depth for part in parts), default=0),
        any(part.has_loop for part in parts),
    )


@dataclass(slots=True)
class _Writer:
    """Writes loops out, outer ones first, so that each statement is copied once for all loops around it.

    Attributes:
        chosen: The loops, by identity.
        names: Of the function's buffers: copies get new ones.
        copies: Scalars where the walk is.
        is_first: Whether the walk is in the first iteration of all loops around that are written out.
    """

    chosen: frozenset[int]
    names: BufferNames
    copies: NumberedCopies = field(default_factory=NumberedCopies)
    is_first: bool = True

    def statement(self, statement: Statement) -> Statement:
        match statement:
            case Store():
                return self.store(statement)
            case Block():
                return block_like(statement, [self.statement(inner) for inner in flat(statement)])
            case For():
                if id(statement) in self.chosen:
                    return self.written_out(statement)
                return with_body(statement, self.statement(statement.body))
            case Allocate():
                return self.allocate(statement)
            case IfThenElse():
                cond = self.copies.scalar(statement.cond)
                then = self.statement(statement.then)
                otherwise = None if statement.otherwise is None else self.statement(statement.otherwise)
                if cond is statement.cond:
                    return with_branches(statement, then, otherwise)
                return IfThenElse(cond, then, otherwise)
            case _:
                assert_never(statement)

    def written_out(self, loop: For) -> Statement:
        was_first, numbers, found = self.is_first, self.copies.numbers, []
        for number in range(loop.extent):
            numbers[loop.var] = Literal(number, DType.INT64)
            self.is_first = was_first and number == 0
            found.append(self.statement(loop.body))
        numbers.pop(loop.var, None)
        self.is_first = was_first
        return block(found)

    def store(self, store: Store) -> Store:
        value = self.copies.scalar(store.value)
        indices = tuple(map(self.copies.scalar, store.indices))
        buffer = self.copies.buffers.get(store.buffer, store.buffer) if self.copies.buffers else store.buffer
        is_same = buffer is store.buffer and value is store.value
        if is_same and all(a is b for a, b in zip(indices, store.indices, strict=True)):
            return store
        return Store(buffer, indices, value)

    def allocate(self, allocate: Allocate) -> Allocate:
        if self.is_first:  # it keeps its name
            after = with_body(allocate, self.statement(allocate.body))
            assert isinstance(after, Allocate)
            return after
        around, old = self.copies, allocate.buffer
        new = replace(old, name=self.names.fresh(old.name))
        self.copies = around.with_buffer(old, new)
        body = self.statement(allocate.body)
        self.copies = around
        return Allocate(new, body)
