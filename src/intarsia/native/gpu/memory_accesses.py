"""What the accesses of a kernel cost its memories: sectors of global memory, and turns of shared memory.

The addresses of a warp's threads follow from the indices, for the first block and the first iteration of each
loop. Global memory moves sectors of 32 bytes: an access costs those that its threads touch. Shared memory has
32 banks of 4 bytes, each of which serves one word in a turn: an access of a warp takes as many turns as the
most words that lie in one bank. Accesses of neighbours in one row are one access, as LLVM makes them.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator
from dataclasses import dataclass, field, replace
from math import prod
from typing import Final

import numpy as np

from intarsia.ir.dtype import DType
from intarsia.ir.loop_walk import Event, inner_scalars, scalars, walk
from intarsia.ir.prim_func import (
    Arith,
    ArithOp,
    AsyncCopy,
    Buffer,
    For,
    ForKind,
    IfThenElse,
    Literal,
    Load,
    LoopVar,
    MemoryScope,
    Mma,
    Scalar,
    Statement,
    Store,
)
from intarsia.ir.warp import WARP
from intarsia.native.emission.types import stored_bytes
from intarsia.native.gpu.index_values import Numbers, value_of
from intarsia.native.gpu.kernel_list import Kernel
from intarsia.native.tir.simplify_scalar import ScalarSimplifier

SECTOR_BYTES: Final = 32
"""Size of what global memory moves at least."""
_BANKS: Final = 32
_WORD_BYTES: Final = 4
_WIDEST: Final = 16
"""Size of the widest access of a thread in bytes."""
_ORDER: Final = (4, 2, 1)
"""Numbers of neighbours that may be one access."""


@dataclass(frozen=True, slots=True)
class MemoryAccess:
    """An access of the threads of one block.

    Attributes:
        buffer: Buffer in global or shared memory.
        is_store: Whether it writes.
        bytes_of_thread: Number of bytes that each thread accesses at once.
        count: Number of times that each thread carries it out.
        units: Sectors, or turns of banks, that it takes all warps each time.
        least_units: Units of as many bytes without gaps and conflicts.
    """

    buffer: Buffer
    is_store: bool
    bytes_of_thread: int
    count: int
    units: int
    least_units: int

    @property
    def is_shared(self) -> bool:
        """Whether it is one of shared memory, whose units are turns."""
        return self.buffer.scope is MemoryScope.SHARED


def memory_accesses(kernel: Kernel, buffers: Collection[Buffer] | None = None) -> tuple[MemoryAccess, ...]:
    """Return the accesses of a kernel to global and shared memory, in the order of its text.

    Args:
        kernel: The kernel.
        buffers: Buffers whose accesses are wanted; all of its arguments and shared buffers if not given.
    """
    walker = _Walker(kernel, frozenset((*kernel.arguments, *kernel.shared) if buffers is None else buffers))
    for visit in walk(kernel.thread_loop.body):
        walker.visit(visit.statement, visit.event)
    return tuple(walker.accesses())


@dataclass(frozen=True, slots=True)
class _Row:
    """Elements that differ by a constant offset: where they stand, and what else their offset depends on."""

    loops: tuple[int, ...]
    guards: tuple[Scalar, ...]
    buffer: Buffer
    is_store: bool
    terms: tuple[tuple[Scalar, int], ...] | None


@dataclass(slots=True)
class _Walker:
    kernel: Kernel
    buffers: frozenset[Buffer]
    loops: list[For] = field(default_factory=list)
    guards: list[Scalar] = field(default_factory=list)
    rows: dict[_Row, dict[int, None]] = field(default_factory=dict)
    counts: dict[_Row, int] = field(default_factory=dict)
    tiles: dict[tuple[_Row, int], Mma] = field(default_factory=dict)

    def visit(self, statement: Statement, event: Event) -> None:
        match statement, event:
            case For(), Event.ENTER:
                self.loops.append(statement)
            case For(), Event.LEAVE:
                self.loops.pop()
            case IfThenElse(), Event.ENTER:
                self._note_loads(statement)
                self.guards.append(statement.cond)
            case IfThenElse(), Event.ELSE:
                self.guards[-1] = Arith(ArithOp.NOT, (self.guards[-1],))
            case IfThenElse(), Event.LEAVE:
                self.guards.pop()
            case AsyncCopy(), Event.ENTER:
                self._note_copy(statement)
            case Mma(), Event.ENTER:
                self._note_tiles(statement)
            case Store(), Event.ENTER:
                self._note_loads(statement)
                self._note(statement.buffer, statement.indices, 1, is_store=True)

    def _note_loads(self, statement: Statement) -> None:
        for root in scalars(statement):
            for part in inner_scalars(root):
                if isinstance(part, Load):
                    self._note(part.buffer, part.indices, 1, is_store=False)

    def _note_copy(self, copy: AsyncCopy) -> None:
        if copy.valid is not None:
            self.guards.append(Arith(ArithOp.LT, (Literal(0, DType.INT64), copy.valid)))
        self._note(copy.source.buffer, copy.source.indices, copy.width, is_store=False)
        if copy.valid is not None:
            self.guards.pop()
        self._note(copy.target.buffer, copy.target.indices, copy.width, is_store=True)

    def _note_tiles(self, mma: Mma) -> None:
        for tile in (mma.left, mma.right):
            if tile.buffer not in self.buffers:
                continue
            row, offset = self._row(tile.buffer, tile.indices, is_store=False)
            self.tiles.setdefault((row, offset), mma)
            self.counts[row] = self._runs()

    def _note(self, buffer: Buffer, indices: tuple[Scalar, ...], width: int, *, is_store: bool) -> None:
        if buffer not in self.buffers:
            return
        row, offset = self._row(buffer, indices, is_store=is_store)
        steps = [0]
        for loop in self._lanes(row):
            step = dict(row.terms or ())[loop.var]
            steps = [at + step * number for at in steps for number in range(loop.extent)]
        lanes = {loop.var for loop in self._lanes(row)}
        if row.terms is not None:
            row = replace(row, terms=tuple(term for term in row.terms if term[0] not in lanes))
        offsets = self.rows.setdefault(row, {})
        self.counts[row] = self._runs(lanes)
        for at in steps:
            offsets.update(dict.fromkeys(range(offset + at, offset + at + width)))

    def _lanes(self, row: _Row) -> Iterator[For]:
        """Yield the vectorised loops whose iterations are elements a constant offset apart."""
        terms = dict(row.terms or ())
        inside = {part for term in terms for part in inner_scalars(term) if part is not term}
        for loop in self.loops:
            if loop.kind is ForKind.VECTORIZED and loop.var in terms and loop.var not in inside:
                yield loop

    def _runs(self, lanes: Collection[LoopVar] = ()) -> int:
        return prod(loop.extent for loop in self.loops if loop.var not in lanes)

    def _row(self, buffer: Buffer, indices: tuple[Scalar, ...], *, is_store: bool) -> tuple[_Row, int]:
        simplifier, terms, constant = ScalarSimplifier({}), dict[Scalar, int](), 0
        for number, index in enumerate(indices):
            stride = prod(buffer.shape[number + 1 :])
            sums = simplifier.linear(index)
            constant += stride * sums.constant
            for part, factor in sums.terms.items():
                terms[part] = terms.get(part, 0) + stride * factor
        is_known = not any(isinstance(inner, Load) for part in terms for inner in inner_scalars(part))
        surroundings = tuple(id(loop) for loop in self.loops), tuple(self.guards)
        known_terms = tuple(terms.items()) if is_known else None
        return _Row(*surroundings, buffer, is_store, known_terms), constant

    def accesses(self) -> Iterator[MemoryAccess]:
        """Yield the accesses that were noted."""
        for row, offsets in self.rows.items():
            for start, width in _joined(row, sorted(offsets)):
                addresses = self._addresses(row, start)
                yield self._access(row, addresses, width * stored_bytes(row.buffer.dtype))
        for (row, start), mma in self.tiles.items():
            yield from self._tile_accesses(row, start, mma)

    def _addresses(self, row: _Row, start: int) -> Numbers | None:
        """Return the address of each thread, -1 for one that takes no part; None if indices are data."""
        if row.terms is None:
            return None
        env = {self.kernel.thread_loop.var: np.arange(self.kernel.thread_loop.extent)}
        offset = np.full(self.kernel.thread_loop.extent, start)
        for part, factor in row.terms:
            offset = offset + factor * value_of(part, env)
        active = np.ones(self.kernel.thread_loop.extent, np.bool_)
        for guard in row.guards:
            if not any(isinstance(part, Load) for part in inner_scalars(guard)):
                active &= np.asarray(value_of(guard, env), np.bool_)
        return np.where(active, offset * stored_bytes(row.buffer.dtype), -1)

    def _tile_accesses(self, row: _Row, start: int, mma: Mma) -> Iterator[MemoryAccess]:
        """Yield the loads of a tile of a product: rows of 16 bytes, or elements of float32."""
        first = self._addresses(row, start)
        assert first is not None, "tiles are at indices that threads of a warp share"
        lane = np.arange(len(first)) % WARP
        row_bytes = row.buffer.shape[-1] * stored_bytes(row.buffer.dtype)
        is_left = row.buffer == mma.left.buffer
        dtype = mma.left.buffer.dtype
        if dtype is not DType.FLOAT32 and (is_left or dtype is not DType.INT32):
            if is_left or not mma.is_right_transposed:
                down, along = lane % 16, lane // 16
            else:
                down, along = lane % 8, lane // 8 % 2
            addresses = first + down * row_bytes + along * 16
            yield self._access(row, addresses if is_left else np.where(lane < 16, addresses, -1), 16)
            return
        group, quad = lane // 4, lane % 4
        is_transposed = is_left or mma.is_right_transposed
        down, along = (group, quad) if is_transposed else (quad, group)
        for shift in ((0, 0), (8, 0), (0, 4), (8, 4)) if is_left else ((0, 0), (0, 4)):
            more = shift if is_transposed else shift[::-1]
            yield self._access(row, first + (down + more[0]) * row_bytes + (along + more[1]) * 4, 4)

    def _access(self, row: _Row, addresses: Numbers | None, size: int) -> MemoryAccess:
        threads = self.kernel.thread_loop.extent
        units, least = threads, -(-threads * size // SECTOR_BYTES)
        if addresses is not None:
            cost = _turns if row.buffer.scope is MemoryScope.SHARED else _sectors
            warps = [addresses[first : first + WARP] for first in range(0, threads, WARP)]
            costs = [cost(warp[warp >= 0], size) for warp in warps]
            units, least = sum(unit for unit, _ in costs), sum(unit for _, unit in costs)
        return MemoryAccess(row.buffer, row.is_store, size, self.counts[row], units, least)


def _joined(row: _Row, offsets: list[int]) -> Iterator[tuple[int, int]]:
    """Yield the first of some neighbours that are accessed at once, and their number."""
    size = stored_bytes(row.buffer.dtype)
    left = dict.fromkeys(offsets)
    for start in offsets:
        if start not in left:
            continue
        for width in (_WIDEST // size, *_ORDER):
            is_aligned = row.terms is not None and not any(factor % width for _, factor in row.terms)
            is_row = all(start + number in left for number in range(width))
            if width == 1 or (width * size <= _WIDEST and is_aligned and not start % width and is_row):
                for number in range(width):
                    del left[start + number]
                yield start, width
                break


def _sectors(addresses: Numbers, size: int) -> tuple[int, int]:
    """Return the number of sectors that threads touch, and of those that as many bytes fill."""
    touched = np.unique(addresses)
    first, last = touched // SECTOR_BYTES, (touched + size - 1) // SECTOR_BYTES
    return len(np.unique(np.concatenate((first, last)))), -(-len(touched) * size // SECTOR_BYTES)


def _turns(addresses: Numbers, size: int) -> tuple[int, int]:
    """Return the number of turns of the banks, and of those without conflicts.

    Threads with 8 or 16 bytes are served by halves or quarters of a warp.
    """
    words = max(1, size // _WORD_BYTES)
    turns = least = 0
    for first in range(0, len(addresses), WARP // words):
        part = addresses[first : first + WARP // words] // _WORD_BYTES
        touched = np.unique((part[:, None] + np.arange(words)[None, :]).ravel())
        turns += int(np.bincount(touched % _BANKS).max(initial=0))
        least += -(-len(touched) // _BANKS)
    return turns, least
