"""Elements that a loop accesses in every iteration, as tiles that registers can hold."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Final

from intarsia.ir.loop_walk import Event, inner_scalars, walk
from intarsia.ir.prim_func import Buffer, For, ForKind, Load, LoopVar, Scalar, Statement, Store
from intarsia.native.tir.accesses import ElementAccess, accesses, affine_subscripts, are_disjoint
from intarsia.native.tir.affine import Range
from intarsia.native.tir.rewriting import Indices, Replacement, loop_vars

EXPANDED: Final = (ForKind.VECTORIZED, ForKind.UNROLLED)
"""Kinds of loops whose counters become constants."""

_FARTHEST: Final = 16
"""Number of statements before and after a loop that are searched for uses of its tiles."""
_MOST_PATTERNS: Final = 64
"""Most index patterns of one buffer that are compared with each other; machines have fewer registers."""


@dataclass(frozen=True, slots=True)
class RegisterTile:
    """Elements of a buffer that one loop accesses in every iteration, over and over.

    Attributes:
        buffer: The buffer.
        pattern: The indices, with numbered counters for those of the loops that are expanded inside.
        loops: Expanded loops around the first access, in the order of the numbers.
        representative: One of the accesses, to compare tiles by.
    """

    buffer: Buffer
    pattern: Indices
    loops: tuple[For, ...]
    representative: ElementAccess

    @property
    def shape(self) -> tuple[int, ...]:
        """Extents of the tile."""
        return tuple(loop.extent for loop in self.loops)


def pattern_of(indices: Indices, inner: frozenset[LoopVar]) -> tuple[Indices, tuple[LoopVar, ...]]:
    """Return indices with numbered counters for those of `inner`, and the counter of each number."""
    order: dict[LoopVar, None] = {}
    for index in indices:
        for part in inner_scalars(index):
            if isinstance(part, LoopVar) and part in inner:
                order[part] = None
    numbered: dict[LoopVar, Scalar] = {var: LoopVar(f"number {n}") for n, var in enumerate(order)}
    renamed = Replacement(numbered)
    return tuple(map(renamed.scalar, indices)), tuple(order)


def expanded_inside(body: Statement) -> frozenset[LoopVar] | None:
    """Return the counters of the loops inside that are expanded.

    None if a loop inside is parallel or does nothing, or if loops of two kinds have counters of one name.
    """
    kinds: dict[LoopVar, set[bool]] = {}
    for visit in walk(body):
        if isinstance(visit.statement, For) and visit.event is Event.ENTER:
            if visit.statement.kind is ForKind.PARALLEL or visit.statement.extent == 0:
                return None
            kinds.setdefault(visit.statement.var, set()).add(visit.statement.kind in EXPANDED)
    if any(len(found) > 1 for found in kinds.values()):
        return None
    return frozenset(var for var, found in kinds.items() if True in found)


def find_tiles(loop: For, ranges: dict[LoopVar, Range]) -> list[RegisterTile]:
    """Return the tiles that a serial loop stores to, of buffers in memory from outside of it."""
    inner = expanded_inside(loop.body)
    if inner is None or not _has_fixed_stores(loop, inner):
        return []
    by_buffer: dict[Buffer, list[ElementAccess]] = {}
    for access in dict.fromkeys(accesses(loop)):
        by_buffer.setdefault(access.buffer, []).append(access)
    tiles: list[RegisterTile] = []
    for buffer, group in by_buffer.items():
        if any(access.is_store for access in group):
            tiles += _tiles_of(buffer, group, inner, ranges)
    return tiles


def _has_fixed_stores(loop: For, inner: frozenset[LoopVar]) -> bool:
    """Return whether all stores to some buffer inside have indices without moving counters.

    A quick look at stores only: most outer loops move all that they store.
    """
    inside = [visit.statement for visit in walk(loop) if visit.event is Event.ENTER]
    moving = {inner_statement.var for inner_statement in inside if isinstance(inner_statement, For)} - inner
    fixed: dict[str, bool] = {}
    for inner_statement in inside:
        if isinstance(inner_statement, Store) and fixed.get(inner_statement.buffer.name, True):
            fixed[inner_statement.buffer.name] = all(
                loop_vars(index).isdisjoint(moving) for index in inner_statement.indices
            )
    return any(fixed.values())


def _tiles_of(
    buffer: Buffer, group: list[ElementAccess], inner: frozenset[LoopVar], ranges: dict[LoopVar, Range]
) -> list[RegisterTile]:
    """Return the tiles of one buffer; none if an access may reach into the tile of another."""
    by_pattern: dict[Indices, list[ElementAccess]] = {}
    shapes: dict[Indices, tuple[int, ...]] = {}
    for access in group:
        pattern, order = pattern_of(access.indices, inner)
        extents = tuple(loop.extent for loop in _loops(access, order))
        if not _is_fixed(access, inner) or shapes.setdefault(pattern, extents) != extents:
            return []
        by_pattern.setdefault(pattern, []).append(access)
    if len(by_pattern) > _MOST_PATTERNS:
        return []
    first = [some[0] for some in by_pattern.values()]
    for position, access in enumerate(first):
        if not all(are_disjoint(access, other, ranges) for other in first[position + 1 :]):
            return []
    tiles = []
    for pattern, some in by_pattern.items():
        loops = tuple(_loops(some[0], pattern_of(some[0].indices, inner)[1]))
        if any(access.is_store for access in some):
            if not _is_injective(some[0], loops, ranges):
                return []
            tiles.append(RegisterTile(buffer, pattern, loops, some[0]))
    return tiles


def promotable_range(
    statements: Sequence[Statement], position: int, first: int, tiles: Sequence[RegisterTile]
) -> range:
    """Return the range of statements around a loop over which its tiles can stay in registers.

    All statements in the range access no other elements of the tiles' buffers.

    Args:
        statements: The statements of a block.
        position: Position of the loop that has the tiles.
        first: First position that the range may begin at.
        tiles: Tiles of the loop.
    """
    begin, end = position, position + 1
    for before in range(position - 1, max(first, position - _FARTHEST) - 1, -1):
        is_used = _uses_tiles(statements[before], tiles)
        if is_used is None:
            break
        begin = before if is_used else begin
    for after in range(position + 1, min(len(statements), position + 1 + _FARTHEST)):
        is_used = _uses_tiles(statements[after], tiles)
        if is_used is None:
            break
        end = after + 1 if is_used else end
    return range(begin, end)


def _uses_tiles(statement: Statement, tiles: Sequence[RegisterTile]) -> bool | None:
    """Return whether a statement accesses tiles; None for parts, or for the rest of their buffers."""
    inner = expanded_inside(statement)
    if inner is None:
        return None
    by_place = {(tile.buffer, tile.pattern): tile for tile in tiles}
    buffers = {tile.buffer for tile in tiles}
    is_used = False
    for access in dict.fromkeys(accesses(statement)):
        if access.buffer in buffers:
            pattern, order = pattern_of(access.indices, inner)
            tile = by_place.get((access.buffer, pattern))
            if tile is None or not _is_fixed(access, inner):
                return None
            if tuple(loop.extent for loop in _loops(access, order)) != tile.shape:
                return None
            is_used = True
    return is_used


def is_read_first(statements: Iterable[Statement], tile: RegisterTile) -> bool:
    """Return whether the first of some statements that accesses a tile may load it."""
    for statement in statements:
        inner = expanded_inside(statement) or frozenset()
        some = [
            access
            for access in accesses(statement)
            if access.buffer == tile.buffer and pattern_of(access.indices, inner)[0] == tile.pattern
        ]
        if some:
            return any(not access.is_store for access in some)
    return False


def _loops(access: ElementAccess, order: tuple[LoopVar, ...]) -> Iterator[For]:
    around = {loop.var: loop for loop in access.loops}
    return (around[var] for var in order)


def _is_fixed(access: ElementAccess, inner: frozenset[LoopVar]) -> bool:
    """Return whether every iteration makes the access, to the same elements."""
    moving = {loop.var for loop in access.loops} - inner
    parts = [part for index in access.indices for part in inner_scalars(index)]
    return not access.is_guarded and not any(isinstance(part, Load) or part in moving for part in parts)


def _is_injective(access: ElementAccess, loops: tuple[For, ...], ranges: dict[LoopVar, Range]) -> bool:
    """Return whether different counters of the loops mean different elements."""
    flat = affine_subscripts(access, ranges)[0]
    extents = {loop.var: loop.extent for loop in loops if loop.extent > 1}
    inside = {
        part
        for scalar in flat.terms
        if scalar not in extents
        for part in inner_scalars(scalar)
        if isinstance(part, LoopVar)
    }
    if not inside.isdisjoint(extents):
        return False
    reach = 0
    # Sorted by stride, each stride must exceed the reach of all smaller ones: then no two counters collide.
    for factor, extent in sorted((abs(flat.factor_of(var)), extent) for var, extent in extents.items()):
        if factor <= reach:
            return False
        reach += factor * (extent - 1)
    return True
