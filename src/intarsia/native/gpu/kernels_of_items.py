"""Kernels for any number of items, whose grid is computed when they are launched.

A value for n items is n values for one item, one behind another. Kernels for one item, in a grid of B blocks,
become those of n items in a grid of n B blocks:

    for block b in 1048576 * B count items[] * B
      y[b floordiv B, i] = ...                        of block b mod B for one item

Where rows are computed by themselves, as those of products are, kernels are made for a tile of rows, and one
grid has the blocks of all tiles. What the last tile has behind the last row is guarded: it reads the last row
in place of rows that do not exist, and writes nothing.

    for block b in 16384 * B count (items[] + 63) floordiv 64 * B
      y[..., j] = x[min(b floordiv B * 64 + r, items[] - 1), k] ...     if b floordiv B * 64 + r < items[]

So all threads reach all barriers whatever the number of rows is.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator
from dataclasses import dataclass, field, replace
from math import prod
from typing import Final

from intarsia.ir import DType, PrimFunc
from intarsia.ir.loop_walk import Event, walk
from intarsia.ir.prim_func import (
    Allocate,
    Arith,
    ArithOp,
    Block,
    Buffer,
    For,
    ForKind,
    IfThenElse,
    Literal,
    Load,
    LoopVar,
    Scalar,
    Statement,
    Store,
)
from intarsia.native.dag import ComputeDAG
from intarsia.native.execution.most_items import MOST_ITEMS
from intarsia.native.gpu.default_gpu_state import gpu_kernels
from intarsia.native.gpu.kernel_list import kernel_of
from intarsia.native.sizes.item_loops import ITEMS
from intarsia.native.sizes.row_dag import dependent_tensors, with_rows, without_unit_axes
from intarsia.native.te import ComputeOp
from intarsia.native.tir.rewriting import (
    Access,
    Indices,
    Replacement,
    block,
    buffer_names,
    flat,
    with_kernels,
)
from intarsia.support.free_names import NameSupply

ROWS_OF_TILE: Final = 64
"""Number of rows of a tile: that of the tiles of products without search."""
_MOST_COLUMNS: Final = 1024
"""Maximum number of elements of a row whose rows share tiles in a kernel without products: more elements fill
blocks by themselves."""
_COPY_BYTES: Final = 16
"""Alignment of rows in bytes that asynchronous copies and loads of matrices may need."""


@dataclass(frozen=True, slots=True)
class Tiling:
    """Division of the rows of items into tiles.

    Attributes:
        rows: Number of rows of an item.
        height: Number of rows of a tile.
    """

    rows: int = 1
    height: int = 1

    def tiles(self, items: int) -> int:
        """Return the number of tiles of a number of items."""
        return -(-items * self.rows // self.height)


@dataclass(frozen=True, slots=True)
class KernelsOfItems:
    """Kernels for any number of items.

    Attributes:
        function: The loop function; its last parameter is the number of items.
        tiling: The division of the rows of items by its grids; a block's number divided by the number of
            blocks of a tile is that of the tile.
        per_tile: Names of the kernels' own buffers whose first axis is the tiles.
    """

    function: PrimFunc
    tiling: Tiling
    per_tile: frozenset[str]


def kernels_of_items(dag: ComputeDAG, carrying: Collection[str], most: int = MOST_ITEMS) -> KernelsOfItems:
    """Return the kernels of a DAG for any number of items, without search.

    Args:
        dag: Computation for one item.
        carrying: Names of the placeholders that have each item; the others are the same for all items.
        most: Maximum number of items.
    """
    with_items = {*carrying, *(tensor.buffer.name for tensor in dag.outputs)}
    plain = without_unit_axes(dag, carrying)
    tile = _tile_of_rows(plain, carrying)
    if tile is not None:
        function = gpu_kernels(tile)
        if not _reads_what_it_writes(function, with_items):
            tiling = Tiling(plain.outputs[0].shape[0], ROWS_OF_TILE)
            return repeat_kernels(function, with_items, tiling, most)
    function = gpu_kernels(dag, is_portable=not _is_aligned(dag, carrying))
    return repeat_kernels(function, with_items, Tiling(), most)


def repeat_kernels(
    function: PrimFunc, carrying: Collection[str], tiling: Tiling, most: int = MOST_ITEMS
) -> KernelsOfItems:
    """Return kernels for any number of items, given those for one item or one tile of rows.

    Kernels that neither read nor write what has items stay as they are.

    Args:
        function: Kernels for one item if tiles have one row, or for one tile.
        carrying: Names of the parameters that have items.
        tiling: Division of the rows of items into tiles.
        most: Maximum number of items.
    """
    items = Buffer(buffer_names(function).fresh(ITEMS), (), DType.INT64)
    repeated = _Repeated(tiling, items, most)
    for param in function.params:
        if param.name in carrying:
            repeated.add(param, is_tiled=tiling.height == 1)
    for kernel in _kernel_loops(function.body):
        repeated.follow(kernel)
    params = tuple(repeated.buffers.get(param, param) for param in function.params)
    changed = with_kernels(function, repeated.kernel)
    after = replace(changed, params=(*params, items), body=repeated.allocated(changed.body))
    inner = repeated.buffers.keys() - set(function.params)
    return KernelsOfItems(after, tiling, frozenset(buffer.name for buffer in inner))


@dataclass(eq=False)
class _Repeated:
    """What has items so far.

    Attributes:
        tiling: Division of the rows of items into tiles.
        items: Buffer of the number of items.
        most: Maximum number of items.
        buffers: Buffers for all items, by those for one item or one tile.
        tiled: Buffers for one tile that get an axis for tiles; rows of the other ones follow each other.
    """

    tiling: Tiling
    items: Buffer
    most: int
    buffers: dict[Buffer, Buffer] = field(default_factory=dict)
    tiled: set[Buffer] = field(default_factory=set)

    def add(self, buffer: Buffer, *, is_tiled: bool) -> None:
        """Let a buffer have items."""
        if is_tiled:
            self.tiled.add(buffer)
            shape = (self.tiling.tiles(self.most), *buffer.shape)
        else:
            shape = (self.most * self.tiling.rows, *buffer.shape[1:])
        self.buffers[buffer] = replace(buffer, shape=shape)

    def follow(self, loop: For) -> None:
        """Let what a kernel computes from items have them, too."""
        kernel = kernel_of(loop)
        if any(buffer in self.buffers for buffer in kernel.arguments):
            for buffer in kernel.writes:
                if buffer not in self.buffers:
                    self.add(buffer, is_tiled=True)

    def kernel(self, loop: For) -> Statement:
        """Return a kernel for all items."""
        if not any(buffer in self.buffers for buffer in kernel_of(loop).arguments):
            return loop
        size, tiling = loop.extent, self.tiling
        names = NameSupply(inner.var.name for inner in _loops(loop))
        counter = LoopVar(names.fresh(loop.var.name))
        tile = _int(ArithOp.FLOOR_DIV, counter, size)
        inner = _int(ArithOp.FLOOR_MOD, counter, size)
        begin, rows = _int(ArithOp.MUL, tile, tiling.height), self._rows()
        accesses = {
            old: _of_tile(new, tile) if old in self.tiled else _of_row(new, begin, rows)
            for old, new in self.buffers.items()
        }
        guarded = self._guarded(loop.body, begin, rows)
        body = Replacement({loop.var: inner}, accesses).statement(guarded)
        upper = _int(ArithOp.ADD, rows, tiling.height - 1) if tiling.height > 1 else rows
        tiles = _int(ArithOp.FLOOR_DIV, upper, tiling.height) if tiling.height > 1 else upper
        count = _int(ArithOp.MUL, tiles, size)
        return For(counter, tiling.tiles(self.most) * size, body, ForKind.BLOCK, count)

    def allocated(self, statement: Statement) -> Statement:
        """Return statements around the kernels with the memory of all items."""
        match statement:
            case Block():
                return block([self.allocated(inner) for inner in flat(statement)])
            case Allocate():
                buffer = self.buffers.get(statement.buffer, statement.buffer)
                return Allocate(buffer, self.allocated(statement.body))
            case _:
                return statement

    def _rows(self) -> Scalar:
        items = Load(self.items, ())
        return items if self.tiling.rows == 1 else _int(ArithOp.MUL, items, self.tiling.rows)

    def _guarded(self, statement: Statement, begin: Scalar, rows: Scalar) -> Statement:
        """Return statements whose stores to rows are guarded; indices are those before the replacement."""

        def guarded(inner: Statement) -> Statement:
            match inner:
                case Block():
                    return block([guarded(part) for part in flat(inner)])
                case For() | Allocate():
                    return replace(inner, body=guarded(inner.body))
                case IfThenElse():
                    otherwise = None if inner.otherwise is None else guarded(inner.otherwise)
                    return IfThenElse(inner.cond, guarded(inner.then), otherwise)
                case Store(buffer=buffer) if buffer in self.buffers and buffer not in self.tiled:
                    row = Arith(ArithOp.ADD, (begin, inner.indices[0]))
                    return IfThenElse(Arith(ArithOp.LT, (row, rows)), inner)
                case _:
                    return inner

        return guarded(statement)


def _kernel_loops(statement: Statement) -> Iterator[For]:
    return (loop for loop in _loops(statement) if loop.kind is ForKind.BLOCK)


def _loops(statement: Statement) -> Iterator[For]:
    statements = (visit.statement for visit in walk(statement) if visit.event is Event.ENTER)
    return (loop for loop in statements if isinstance(loop, For))


def _of_tile(buffer: Buffer, tile: Scalar) -> Access:
    def access(indices: Indices) -> tuple[Buffer, Indices]:
        return buffer, (tile, *indices)

    return access


def _of_row(buffer: Buffer, begin: Scalar, rows: Scalar) -> Access:
    def access(indices: Indices) -> tuple[Buffer, Indices]:
        row = Arith(ArithOp.ADD, (begin, indices[0]))
        last = _int(ArithOp.SUB, rows, 1)
        return buffer, (Arith(ArithOp.MIN, (row, last)), *indices[1:])

    return access


def _tile_of_rows(dag: ComputeDAG, carrying: Collection[str]) -> ComputeDAG | None:
    """Return the DAG for a tile of rows; None if kernels for one item are as good, or rows are not apart.

    A tile pays off where rows of a matrix share what products read, and where single rows are few threads.
    """
    tile = with_rows(dag, carrying, ROWS_OF_TILE)
    if tile is None:
        return None
    dependent = dependent_tensors(tile, carrying)
    if any(len(tensor.shape) < 2 for tensor in dependent):
        return None  # accesses of several elements would go along the rows
    reductions = [op for op in tile.ops if isinstance(op, ComputeOp) and op.reduce_axes]
    if not reductions:
        return tile if all(prod(tensor.shape[1:]) <= _MOST_COLUMNS for tensor in tile.outputs) else None
    is_matrix = all(len(tensor.shape) == 2 for tensor in dependent)
    shares = any(
        len(tensor.shape) > 1 and tensor not in dependent for op in reductions for tensor in op.inputs
    )
    return tile if is_matrix and shares else None


def _reads_what_it_writes(function: PrimFunc, names: Collection[str]) -> bool:
    """Return whether a kernel reads rows that it writes: behind the last row, that would be a race for it."""
    kernels = map(kernel_of, _kernel_loops(function.body))
    return any(
        buffer.name in names and buffer in kernel.reads for kernel in kernels for buffer in kernel.writes
    )


def _is_aligned(dag: ComputeDAG, carrying: Collection[str]) -> bool:
    """Return whether each item begins where copies of several elements may begin."""
    return all(
        prod(tensor.shape) * tensor.dtype.numpy.itemsize % _COPY_BYTES == 0
        for tensor in dag.placeholders
        if tensor.op.name in carrying
    )


def _int(op: ArithOp, left: Scalar, right: Scalar | int) -> Scalar:
    return Arith(op, (left, Literal(right, DType.INT64) if isinstance(right, int) else right))
