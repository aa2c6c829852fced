"""UnrollLoop: copies of the body in place of a loop."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import Final, assert_never

from intarsia.ir import IRModule, PrimFunc, with_prim_func_fields
from intarsia.ir.loop_walk import walk
from intarsia.ir.prim_func import (
    Allocate,
    Block,
    Buffer,
    For,
    ForKind,
    IfThenElse,
    KernelStatement,
    Statement,
    Store,
)
from intarsia.native.tir.numbered_copies import NumberedCopies
from intarsia.native.tir.rewriting import (
    Indices,
    block,
    block_like,
    buffer_names,
    flat,
    with_body,
    with_branches,
    with_scalars,
)
from intarsia.native.tir.transposed_reads import reads_columns
from intarsia.native.tir.unroll_choice import UnrollLimits, marked_loops
from intarsia.support.free_names import NameSupply
from intarsia.transform import PassContext, PrimFuncPass, register_config_option, register_pass

AUTO_UNROLL_MAX_STEP: Final = "auto_unroll_max_step"
"""Attribute of a loop function that stands for `UnrollLoopConfig.auto_max_step` in it."""


@dataclass(frozen=True, slots=True)
class UnrollLoopConfig:
    """Options of the pass `tir.UnrollLoop`.

    Attributes:
        auto_max_step: Most stores of a serial loop that is unrolled without a mark; 0 to unroll none.
        auto_max_depth: Most loops inside each other that are unrolled without a mark.
        auto_max_stores: Most stores that a function grows to by that; where it would grow further, the
            loops come first in which most is done, and borders stay loops. A single nest has room with the
            largest hint of schedule searches, 512; what keeps sums in registers adds stores later.
        explicit_unroll: Whether iterations are written out; else loops are marked for the code generator.
    """

    auto_max_step: int = 0
    auto_max_depth: int = 8
    auto_max_stores: int = 512
    explicit_unroll: bool = True


UNROLL_LOOP: Final = register_config_option(
    "tir.UnrollLoop", UnrollLoopConfig, UnrollLoopConfig(), "which loops are unrolled, and how far"
)


@register_pass
@dataclass(frozen=True)
class UnrollLoop(PrimFuncPass):
    """Writes out the iterations of loops of the kind `unrolled`, and of small serial loops.

    The emitter of LLVM IR writes out marked loops itself, in half the time that copies, their simplification
    and their emission take: before it loops are only marked (`is_written_out=False`). What is small stands in
    the config `tir.UnrollLoop` (a vectorised loop inside counts once), or in the attribute
    `auto_unroll_max_step` of a function. Grows the function by the extents of the loops that are marked, and
    by small ones up to `auto_max_stores` stores, those first in which most is done. Another run
    may unroll more where a limit stopped the first: copies of a loop that stayed are counted separately then.
    Loops over columns of squares stay: the code generator unrolls them, and transposes the squares.

    Attributes:
        is_written_out: Whether iterations are written out, if the config does not forbid it; else loops are
            marked for the code generator.

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

    is_written_out: bool = True

    def transform_prim_func(self, function: PrimFunc, mod: IRModule, ctx: PassContext) -> PrimFunc:
        """Return the loop function, unrolled."""
        body = marked_loops(function.body, unroll_limits(function, ctx))
        is_written_out = self.is_written_out and ctx.option(UNROLL_LOOP).explicit_unroll
        if is_written_out and _has_marked(body):
            body = _Writer(buffer_names(function)).copy_statement(body)
        return with_prim_func_fields(function, body=body)


def unroll_limits(function: PrimFunc, ctx: PassContext) -> UnrollLimits:
    """Return the limits for loops of a function that are not marked."""
    config = ctx.option(UNROLL_LOOP)
    given = function.attrs.get(AUTO_UNROLL_MAX_STEP, config.auto_max_step)
    steps = given if isinstance(given, int) else 0
    return UnrollLimits(steps, config.auto_max_depth, config.auto_max_stores)


def _has_marked(body: Statement) -> bool:
    loops = (visit.statement for visit in walk(body) if isinstance(visit.statement, For))
    return any(loop.kind is ForKind.UNROLLED for loop in loops)


@dataclass(slots=True)
class _Writer:
    """Unrolls loops, outer ones first, so that each statement is copied once for all loops around it.

    Attributes:
        names: Names of the function's buffers, so that copies get new ones.
        copies: Scalars with the numbers of the current iterations.
        is_first: Whether the walk is in the first iteration of all unrolled loops around it.
    """

    names: NameSupply
    copies: NumberedCopies = field(default_factory=NumberedCopies)
    is_first: bool = True

    def copy_statement(self, statement: Statement) -> Statement:
        match statement:
            case Store():
                return self.copy_store(statement)
            case KernelStatement():
                return with_scalars(statement, self.copies.scalar, self.copied_element)
            case Block():
                return block_like(statement, [self.copy_statement(inner) for inner in flat(statement)])
            case For():
                if statement.kind is ForKind.UNROLLED and not reads_columns(statement):
                    return self.unroll(statement)
                return with_body(statement, self.copy_statement(statement.body))
            case Allocate():
                return self.copy_allocate(statement)
            case IfThenElse():
                cond = self.copies.scalar(statement.cond)
                then = self.copy_statement(statement.then)
                otherwise = None if statement.otherwise is None else self.copy_statement(statement.otherwise)
                if cond is statement.cond:
                    return with_branches(statement, then, otherwise)
                return IfThenElse(cond, then, otherwise)
            case _:
                assert_never(statement)

    def unroll(self, loop: For) -> Statement:
        was_first, copies = self.is_first, []
        for number in range(loop.extent):
            self.copies.number(loop.var, number)
            self.is_first = was_first and number == 0
            copies.append(self.copy_statement(loop.body))
        self.copies.number(loop.var, None)
        self.is_first = was_first
        return block(copies)

    def copy_store(self, store: Store) -> Store:
        value = self.copies.scalar(store.value)
        indices = tuple(map(self.copies.scalar, store.indices))
        buffer, _ = self.copied_element(store.buffer, indices)
        is_same = buffer is store.buffer and value is store.value
        if is_same and all(a is b for a, b in zip(indices, store.indices, strict=True)):
            return store
        return Store(buffer, indices, value)

    def copied_element(self, buffer: Buffer, indices: Indices) -> tuple[Buffer, Indices]:
        """Return the buffer of the current copy that stands for a buffer, and the indices as they are."""
        return self.copies.buffers.get(buffer, buffer) if self.copies.buffers else buffer, indices

    def copy_allocate(self, allocate: Allocate) -> Allocate:
        if self.is_first:  # the first copy keeps its name
            after = with_body(allocate, self.copy_statement(allocate.body))
            assert isinstance(after, Allocate)
            return after
        outer_copies, old = self.copies, allocate.buffer
        new = replace(old, name=self.names.fresh(old.name))
        self.copies = outer_copies.with_buffer(old, new)
        body = self.copy_statement(allocate.body)
        self.copies = outer_copies
        return Allocate(new, body)
