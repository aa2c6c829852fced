"""RegisterPromotion: keep in registers what fits them and is used over and over."""

from __future__ import annotations

from dataclasses import dataclass, replace
from math import prod
from typing import Final, assert_never

from intarsia.ir import IRModule, PrimFunc, with_prim_func_fields
from intarsia.ir.loop_walk import inner_scalars
from intarsia.ir.prim_func import (
    Allocate,
    Block,
    Buffer,
    For,
    ForKind,
    IfThenElse,
    KernelStatement,
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
    find_tiles,
    is_read_first,
    pattern_of,
    promotable_range,
)
from intarsia.native.tir.rewriting import (
    Indices,
    Replacement,
    block,
    block_like,
    buffer_names,
    flat,
    has_blocks,
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
        vector_bytes: Size of a vector register, in bytes.
        registers: Number of vector registers.
        kept_free: Number of registers that are left for operands.

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
        """Return the loop function with registers in use."""
        if has_blocks(function):
            return function  # it may not move accesses across barriers
        walker = _Walker(self.vector_bytes, buffer_names(function))
        body = walker.visit_body(function.body, {}, self.registers - self.kept_free)
        return with_prim_func_fields(function, body=body)


@dataclass(slots=True)
class _Walker:
    vector_bytes: int
    names: NameSupply

    def visit_body(self, statement: Statement, ranges: dict[LoopVar, Range], free: int) -> Statement:
        statements = flat(statement)
        after: list[Statement] = []
        done = 0
        for position, one in enumerate(statements):
            kept = self.choose_tiles(one, ranges, free) if position >= done else []
            if kept:
                run = promotable_range(statements, position, done, [tile for tile, _ in kept])
                after += [self.visit(other, ranges, free) for other in statements[done : run.start]]
                after.append(self.promote(statements[run.start : run.stop], kept, ranges, free))
                done = run.stop
        after += [self.visit(other, ranges, free) for other in statements[done:]]
        return block_like(statement, after)

    def visit(self, statement: Statement, ranges: dict[LoopVar, Range], free: int) -> Statement:
        match statement:
            case Store() | KernelStatement():
                return statement
            case For():
                here = {**ranges, statement.var: (0, statement.extent - 1)}
                return with_body(statement, self.visit_body(statement.body, here, free))
            case Allocate():
                return self.visit_allocate(statement, ranges, free)
            case IfThenElse():
                other = statement.otherwise
                return with_branches(
                    statement,
                    self.visit_body(statement.then, ranges, free),
                    None if other is None else self.visit_body(other, ranges, free),
                )
            case Block():
                return self.visit_body(statement, ranges, free)
            case _:
                assert_never(statement)

    def visit_allocate(self, allocate: Allocate, ranges: dict[LoopVar, Range], free: int) -> Statement:
        buffer = allocate.buffer
        buffer_accesses = [
            access for access in dict.fromkeys(accesses(allocate.body)) if access.buffer == buffer
        ]
        has_vectors = _runs_along_vectors(buffer_accesses)
        itemsize = buffer.dtype.numpy.itemsize
        need = self.registers_for(buffer.shape, itemsize, has_vectors)
        if buffer.scope is not MemoryScope.REGISTER:
            is_shared = any(
                loop.kind is ForKind.PARALLEL for access in buffer_accesses for loop in access.loops
            )
            if is_shared or need > free or not all(map(_is_constant, buffer_accesses)):
                return with_body(allocate, self.visit_body(allocate.body, ranges, free))
            shape = self.with_whole_rows(buffer.shape, itemsize) if has_vectors else buffer.shape
            promoted = replace(buffer, scope=MemoryScope.REGISTER, shape=shape)
            moved = Replacement(accesses={buffer: lambda indices: (promoted, indices)})
            allocate = Allocate(promoted, moved.statement(allocate.body))
        return with_body(allocate, self.visit_body(allocate.body, ranges, free - need))

    def registers_for(self, shape: tuple[int, ...], itemsize: int, has_vectors: bool) -> int:
        if not has_vectors:
            return prod(shape)
        return prod(self.with_whole_rows(shape, itemsize)) * itemsize // self.vector_bytes

    def with_whole_rows(self, shape: tuple[int, ...], itemsize: int) -> tuple[int, ...]:
        """Return a shape whose rows are whole vectors, so that the last one of a row touches no other row."""
        lanes = max(1, self.vector_bytes // itemsize)
        return (*shape[:-1], -(-shape[-1] // lanes) * lanes)

    def choose_tiles(
        self, loop: Statement, ranges: dict[LoopVar, Range], free: int
    ) -> list[tuple[RegisterTile, Buffer]]:
        """Return the tiles of a serial or unrolled loop that fit, each with its register buffer."""
        fitting: list[tuple[RegisterTile, Buffer]] = []
        if (
            not isinstance(loop, For)
            or loop.kind not in _RETURNING
            or loop.extent < 2
            or loop.count is not None
        ):
            return fitting
        for tile in find_tiles(loop, ranges):
            need = self.registers_of_tile(tile)
            if tile.buffer.scope is not MemoryScope.REGISTER and need <= free:
                free -= need
                name, dtype = self.names.fresh(f"{tile.buffer.name}_tile"), tile.buffer.dtype
                has_vectors = _is_vectorized(tile)
                shape = self.with_whole_rows(tile.shape, dtype.numpy.itemsize) if has_vectors else tile.shape
                fitting.append((tile, Buffer(name, shape, dtype, MemoryScope.REGISTER)))
        return fitting

    def registers_of_tile(self, tile: RegisterTile) -> int:
        return self.registers_for(tile.shape, tile.buffer.dtype.numpy.itemsize, _is_vectorized(tile))

    def promote(
        self,
        run: list[Statement],
        kept: list[tuple[RegisterTile, Buffer]],
        ranges: dict[LoopVar, Range],
        free: int,
    ) -> Statement:
        """Return statements with tiles in registers, between loads and stores of the tiles."""
        before: list[Statement] = []
        after: list[Statement] = []
        for tile, register in kept:
            free -= self.registers_of_tile(tile)
            element, position = tile.representative.indices, tuple(loop.var for loop in tile.loops)
            # A tile that is stored before it is loaded needs no load: the first store overwrites it.
            if is_read_first(run, tile):
                before.append(_tile_loops(tile, Store(register, position, Load(tile.buffer, element))))
            after.append(_tile_loops(tile, Store(tile.buffer, element, Load(register, position))))
        inside = self.visit_body(block(_with_registers(one, kept) for one in run), ranges, free)
        result = block([*before, inside, *after])
        for _, register in reversed(kept):
            result = Allocate(register, result)
        return result


def _is_vectorized(tile: RegisterTile) -> bool:
    return bool(tile.loops) and tile.loops[-1].kind is ForKind.VECTORIZED


def _runs_along_vectors(buffer_accesses: list[ElementAccess]) -> bool:
    """Return whether a vectorised loop runs along the last dimension of a buffer."""
    return any(
        loop.kind is ForKind.VECTORIZED and access.indices and loop.var in _scalars_in(access.indices[-1:])
        for access in buffer_accesses
        for loop in access.loops
    )


def _with_registers(statement: Statement, kept: list[tuple[RegisterTile, Buffer]]) -> Statement:
    """Return a statement that accesses tiles in place of the elements."""
    inner = expanded_inside(statement)
    assert inner is not None, "then it would not be in the run"
    by_buffer: dict[Buffer, dict[Indices, Buffer]] = {}
    for tile, register in kept:
        by_buffer.setdefault(tile.buffer, {})[tile.pattern] = register
    moved = {buffer: _Tiled(buffer, registers, inner) for buffer, registers in by_buffer.items()}
    return Replacement(accesses=moved).statement(statement)


@dataclass(frozen=True, slots=True)
class _Tiled:
    """Maps indices of a buffer to the tile that holds the element, or to the buffer itself."""

    buffer: Buffer
    registers: dict[Indices, Buffer]
    inner: frozenset[LoopVar]

    def __call__(self, indices: Indices) -> tuple[Buffer, Indices]:
        pattern, order = pattern_of(indices, self.inner)
        register = self.registers.get(pattern)
        return (self.buffer, indices) if register is None else (register, order)


def _tile_loops(tile: RegisterTile, statement: Statement) -> Statement:
    for loop in reversed(tile.loops):
        statement = replace(loop, body=statement)
    return statement


def _scalars_in(indices: Indices) -> set[object]:
    return {part for index in indices for part in inner_scalars(index)}


def _is_constant(access: ElementAccess) -> bool:
    """Return whether the indices are constant once vectorised and unrolled loops are expanded."""
    expanded = {loop.var for loop in access.loops if loop.kind in EXPANDED}
    return all(
        not isinstance(part, Load) and (not isinstance(part, LoopVar) or part in expanded)
        for part in _scalars_in(access.indices)
    )
