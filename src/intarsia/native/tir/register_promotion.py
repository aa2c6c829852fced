"""RegisterPromotion: what fits the registers of the machine, and stays there for a while."""

from __future__ import annotations

from dataclasses import dataclass, replace
from math import prod
from typing import Final, assert_never

from intarsia.ir import IRModule, PrimFunc, with_prim_func_fields
from intarsia.ir.loop_walk import scalar_post_order
from intarsia.ir.prim_func import (
    Allocate,
    Block,
    Buffer,
    For,
    ForKind,
    IfThenElse,
    Load,
    LoopVar,
    MemoryScope,
    Statement,
    Store,
)
from intarsia.native.tir.accesses import ElementAccess, accesses
from intarsia.native.tir.affine import Range
from intarsia.native.tir.register_tile import (
    EXPANDED,
    RegisterTile,
    expanded_inside,
    is_read_first,
    pattern_of,
    run_around,
    tiles,
)
from intarsia.native.tir.rewriting import (
    Indices,
    Replacement,
    block,
    block_like,
    buffer_names,
    flat,
    with_body,
    with_branches,
)
from intarsia.support.free_names import NameSupply
from intarsia.transform import PassContext, PrimFuncPass, register_pass

_RETURNING: Final = (ForKind.SERIAL, ForKind.UNROLLED)


@register_pass
@dataclass(frozen=True)
class RegisterPromotion(PrimFuncPass):
    """Puts small buffers, and elements that a loop keeps returning to, into the scope `register`.

    A buffer is promoted if its indices depend on counters of vectorised and unrolled loops only. Elements
    that every iteration of a serial or unrolled loop loads and stores, as sums do, are loaded before the
    loop and stored after it; statements around the loop that use just these elements, such as those that
    clear them, take part. Both only as long as there are registers: an array whose last dimension is
    vectorised takes as many as its rows need, a scalar takes one.

    Attributes:
        vector_bytes: How many bytes a vector register holds.
        registers: How many there are.
        kept_free: How many of them are left for operands.

    Before:
        def prim @f(x: Buffer[(64, 8), float32], y: Buffer[(4, 8), float32]) {
          for i in 4 {
            for k in 64 {
              for vectorized j in 8 {
                y[i, j] = y[i, j] + x[k, j];
              }
            }
          }
        }
    After:
        def prim @f(x: Buffer[(64, 8), float32], y: Buffer[(4, 8), float32]) {
          for i in 4 {
            alloc y_tile: Buffer[(8,), float32, register] {
              for vectorized j in 8 {
                y_tile[j] = y[i, j];
              }
              for k in 64 {
                for vectorized j in 8 {
                  y_tile[j] = y_tile[j] + x[k, j];
                }
              }
              for vectorized j in 8 {
                y[i, j] = y_tile[j];
              }
            }
          }
        }
    """

    vector_bytes: int = 16
    registers: int = 16
    kept_free: int = 3

    def transform_prim_func(self, function: PrimFunc, mod: IRModule, ctx: PassContext) -> PrimFunc:
        """The loop function with registers in use."""
        walker = _Walker(self.vector_bytes, buffer_names(function))
        body = walker.inside(function.body, {}, self.registers - self.kept_free)
        return with_prim_func_fields(function, body=body)


@dataclass(slots=True)
class _Walker:
    vector_bytes: int
    names: NameSupply

    def inside(self, statement: Statement, ranges: dict[LoopVar, Range], free: int) -> Statement:
        statements = flat(statement)
        after: list[Statement] = []
        done = 0
        for position, one in enumerate(statements):
            kept = self.kept(one, ranges, free) if position >= done else []
            if kept:
                run = run_around(statements, position, done, [tile for tile, _ in kept])
                after += [self.visit(other, ranges, free) for other in statements[done : run.start]]
                after.append(self.promoted(statements[run.start : run.stop], kept, ranges, free))
                done = run.stop
        after += [self.visit(other, ranges, free) for other in statements[done:]]
        return block_like(statement, after)

    def visit(self, statement: Statement, ranges: dict[LoopVar, Range], free: int) -> Statement:
        match statement:
            case Store():
                return statement
            case For():
                here = {**ranges, statement.var: (0, statement.extent - 1)}
                return with_body(statement, self.inside(statement.body, here, free))
            case Allocate():
                return self.allocate(statement, ranges, free)
            case IfThenElse():
                other = statement.otherwise
                return with_branches(
                    statement,
                    self.inside(statement.then, ranges, free),
                    None if other is None else self.inside(other, ranges, free),
                )
            case Block():
                return self.inside(statement, ranges, free)
            case _:
                assert_never(statement)

    def allocate(self, allocate: Allocate, ranges: dict[LoopVar, Range], free: int) -> Statement:
        buffer = allocate.buffer
        found = [access for access in dict.fromkeys(accesses(allocate.body)) if access.buffer == buffer]
        need = self.registers_of(buffer, found)
        if buffer.scope is not MemoryScope.REGISTER:
            is_shared = any(loop.kind is ForKind.PARALLEL for access in found for loop in access.loops)
            if is_shared or need > free or not all(map(_is_constant, found)):
                return with_body(allocate, self.inside(allocate.body, ranges, free))
            promoted = replace(buffer, scope=MemoryScope.REGISTER)
            moved = Replacement(accesses={buffer: lambda indices: (promoted, indices)})
            allocate = Allocate(promoted, moved.statement(allocate.body))
        return with_body(allocate, self.inside(allocate.body, ranges, free - need))

    def registers_of(self, buffer: Buffer, found: list[ElementAccess]) -> int:
        """How many registers a buffer takes: vectors along its last dimension, or one an element."""
        has_vectors = any(
            loop.kind is ForKind.VECTORIZED and access.indices and loop.var in _parts(access.indices[-1:])
            for access in found
            for loop in access.loops
        )
        return self.registers_for(buffer.shape, buffer.dtype.numpy.itemsize, has_vectors)

    def registers_for(self, shape: tuple[int, ...], itemsize: int, has_vectors: bool) -> int:
        if not has_vectors:
            return prod(shape)
        return prod(shape[:-1]) * -(-shape[-1] * itemsize // self.vector_bytes)

    def kept(
        self, loop: Statement, ranges: dict[LoopVar, Range], free: int
    ) -> list[tuple[RegisterTile, Buffer]]:
        """The tiles of a serial or unrolled loop that fit, each with its registers."""
        found: list[tuple[RegisterTile, Buffer]] = []
        if not isinstance(loop, For) or loop.kind not in _RETURNING or loop.extent < 2:
            return found
        for tile in tiles(loop, ranges):
            need = self.registers_of_tile(tile)
            if tile.buffer.scope is not MemoryScope.REGISTER and need <= free:
                free -= need
                name = self.names.fresh(f"{tile.buffer.name}_tile")
                found.append((tile, Buffer(name, tile.shape, tile.buffer.dtype, MemoryScope.REGISTER)))
        return found

    def registers_of_tile(self, tile: RegisterTile) -> int:
        has_vectors = bool(tile.loops) and tile.loops[-1].kind is ForKind.VECTORIZED
        return self.registers_for(tile.shape, tile.buffer.dtype.numpy.itemsize, has_vectors)

    def promoted(
        self,
        run: list[Statement],
        kept: list[tuple[RegisterTile, Buffer]],
        ranges: dict[LoopVar, Range],
        free: int,
    ) -> Statement:
        """Statements with tiles in registers, between loading the tiles and storing them."""
        before: list[Statement] = []
        after: list[Statement] = []
        for tile, register in kept:
            free -= self.registers_of_tile(tile)
            element, place = tile.stands.indices, tuple(loop.var for loop in tile.loops)
            if is_read_first(run, tile):
                before.append(_over(tile, Store(register, place, Load(tile.buffer, element))))
            after.append(_over(tile, Store(tile.buffer, element, Load(register, place))))
        inside = self.inside(block(_with_registers(one, kept) for one in run), ranges, free)
        result = block([*before, inside, *after])
        for _, register in reversed(kept):
            result = Allocate(register, result)
        return result


def _with_registers(statement: Statement, kept: list[tuple[RegisterTile, Buffer]]) -> Statement:
    """A statement with tiles in place of the elements."""
    inner = expanded_inside(statement)
    assert inner is not None, "then it would not be in the run"
    by_buffer: dict[Buffer, dict[Indices, Buffer]] = {}
    for tile, register in kept:
        by_buffer.setdefault(tile.buffer, {})[tile.pattern] = register
    moved = {buffer: _Tiled(buffer, registers, inner) for buffer, registers in by_buffer.items()}
    return Replacement(accesses=moved).statement(statement)


@dataclass(frozen=True, slots=True)
class _Tiled:
    """Where elements of a buffer stand: in their tile, or still in the buffer."""

    buffer: Buffer
    registers: dict[Indices, Buffer]
    inner: frozenset[LoopVar]

    def __call__(self, indices: Indices) -> tuple[Buffer, Indices]:
        pattern, order = pattern_of(indices, self.inner)
        register = self.registers.get(pattern)
        return (self.buffer, indices) if register is None else (register, order)


def _over(tile: RegisterTile, statement: Statement) -> Statement:
    for loop in reversed(tile.loops):
        statement = replace(loop, body=statement)
    return statement


def _parts(indices: Indices) -> set[object]:
    return {part for index in indices for part, _ in scalar_post_order(index)}


def _is_constant(access: ElementAccess) -> bool:
    """Whether the indices are constant once vectorised and unrolled loops are expanded."""
    expanded = {loop.var for loop in access.loops if loop.kind in EXPANDED}
    return all(
        not isinstance(part, Load) and (not isinstance(part, LoopVar) or part in expanded)
        for part in _parts(access.indices)
    )
