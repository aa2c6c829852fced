"""Loop functions on images of any size, from loop functions for some tiles of rows and columns.

A convolution by Winograd's transforms computes tiles of a few rows and columns. Its code for a number of
tiles in one row computes any tiles of an image if the first pixel of a tile is read from a table:

    for image in 1048576 count images[]
      for chunk in 1048576 count chunks_24[]
        for at in 24
          tile = min(begin_24[] + chunk * 24 + at, last_tile[])
          x_at[at] = image * all_x[] + min(tile / across[] * 4, last_row[]) * pitch_x[]
                     + min(tile % across[] * 4, last_column[])
        ...
        y[y_at[tile] + plane * plane_y[] + row * pitch_y[] + column, lane] = ...
      for chunk in 1048576 count chunks_8[]
        ...

Tiles at the last rows and columns begin where they end with the image, so they compute some pixels a second
time, and so do tiles behind the last one. No result may be where an argument is.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from typing import Final

from intarsia.ir import DType
from intarsia.ir.loop_walk import walk
from intarsia.ir.prim_func import Allocate, Buffer, For, ForKind, LoopVar, PrimFunc, Scalar, Statement
from intarsia.native.execution.most_items import MOST_ITEMS
from intarsia.native.sizes.image_loops import ImageAccess, Strides, pixels
from intarsia.native.te import Expression, minimum
from intarsia.native.te.operators.loop_nest import load, store
from intarsia.native.tir.affine import Affine, affine, as_scalar
from intarsia.native.tir.rewriting import Access, Indices, Replacement, block, buffer_names
from intarsia.support.errors import CompileError
from intarsia.support.free_names import NameSupply

_NUMBERS: Final = ("images", "across", "last_tile", "last_row", "last_column")


def grid_function(
    functions: Mapping[int, PrimFunc], accesses: Mapping[str, ImageAccess], tile: int, *, is_parallel: bool
) -> PrimFunc:
    """Return the loop function for images of any size.

    Its last parameters are scalars: the number of images, that of tiles in a row, the last tile, the row and
    the column at which the last tiles begin; for each number of tiles, largest first, how often its code
    runs, and the first tile; and for each parameter with images the distances from row to row, from plane to
    plane, and from image to image.

    Args:
        functions: Loop functions for one image with a number of tiles in one row, by that number, before any
            pass; largest first.
        accesses: The parameters with images, by name.
        tile: Number of rows and columns of a tile.
        is_parallel: Whether threads share the tiles.
    """
    return _GridWriter(functions, accesses, tile).function(
        ForKind.PARALLEL if is_parallel else ForKind.SERIAL
    )


@dataclass(frozen=True, slots=True)
class _Table:
    """The first pixels of tiles within an array.

    Attributes:
        buffer: The table.
        strides: Distances within the array.
    """

    buffer: Buffer
    strides: Strides


class _GridWriter:
    """Writer of the statements of one loop function."""

    def __init__(
        self, functions: Mapping[int, PrimFunc], accesses: Mapping[str, ImageAccess], tile: int
    ) -> None:
        self._functions, self._accesses, self._tile = functions, accesses, tile
        self._whole = next(iter(functions.values()))
        self._names = buffer_names(self._whole)
        loops = (visit.statement for function in functions.values() for visit in walk(function.body))
        self._variables = NameSupply(loop.var.name for loop in loops if isinstance(loop, For))
        self._scalars: list[Buffer] = []

    def function(self, kind: ForKind) -> PrimFunc:
        """Return the loop function."""
        whole = self._whole
        self._images, self._across, self._last_tile, *last = map(self._scalar, _NUMBERS)
        self._last = tuple(last)
        chunks = {count: (self._scalar("chunks"), self._scalar("begin")) for count in self._functions}
        strides = {
            buffer.name: Strides(self._scalar("pitch"), self._scalar("plane"), self._scalar("image"))
            for buffer in whole.params
            if buffer.name in self._accesses
        }
        arrays = {
            buffer.name: pixels(buffer, self._accesses[buffer.name])
            for buffer in whole.params
            if buffer.name in strides
        }
        image = self._variable("image")
        body = block(
            self._chunks(count, function, chunks[count], Expression(image), arrays, strides, kind, position)
            for position, (count, function) in enumerate(self._functions.items())
        )
        params = tuple(arrays.get(buffer.name, buffer) for buffer in whole.params)
        return replace(
            whole,
            params=(*params, *self._scalars),
            body=For(image, MOST_ITEMS, body, ForKind.SERIAL, self._images.scalar),
        )

    def _scalar(self, name: str) -> Expression:
        self._scalars.append(Buffer(self._names.fresh(name), (), DType.INT64))
        return load(self._scalars[-1], ())

    def _variable(self, name: str) -> LoopVar:
        return LoopVar(self._variables.fresh(name))

    def _chunks(
        self,
        count: int,
        function: PrimFunc,
        numbers: tuple[Expression, Expression],
        image: Expression,
        arrays: Mapping[str, Buffer],
        strides: Mapping[str, Strides],
        kind: ForKind,
        position: int,
    ) -> Statement:
        """Return the loop over chunks of a number of tiles."""
        chunks, begin = numbers
        chunk = self._variable("chunk")
        tables = {
            name: _Table(Buffer(self._names.fresh(f"{name}_at"), (count,), DType.INT64), strides[name])
            for name in arrays
        }
        first = begin + Expression(chunk) * count
        extents = {loop.var: loop.extent for loop in _loops(function)}
        replaced: dict[Buffer, Access] = {
            buffer: self._pixel_of(arrays[buffer.name], tables[buffer.name], buffer.shape[2], extents)
            for buffer in function.params
            if buffer.name in arrays
        }
        names = self._names if position else None
        body = Replacement(accesses=replaced, names=names).statement(function.body)
        body = block([self._filled(tables, count, first, image), body])
        for table in tables.values():
            body = Allocate(table.buffer, body)
        return For(chunk, MOST_ITEMS, body, kind, chunks.scalar)

    def _filled(
        self, tables: Mapping[str, _Table], count: int, first: Expression, image: Expression
    ) -> Statement:
        """Return the loop that fills the tables of a chunk."""
        at = self._variable("at")
        tile = minimum(first + Expression(at), self._last_tile)
        row, column = (
            minimum(number * self._tile, last)
            for number, last in zip((tile // self._across, tile % self._across), self._last, strict=True)
        )

        def pixel(name: str, table: _Table) -> Statement:
            access, strides = self._accesses[name], table.strides
            value = image * strides.image + row * access.rows * strides.pitch + column * access.columns
            return store(table.buffer, (Expression(at),), value)

        return For(at, count, block(pixel(*item) for item in tables.items()))

    def _pixel_of(self, buffer: Buffer, table: _Table, reach: int, extents: Mapping[LoopVar, int]) -> Access:
        """Return where a pixel of the row of tiles is.

        Args:
            buffer: The array as a table of pixels.
            table: The first pixels of tiles.
            reach: Rows of the array that the code for tiles reads or writes: those of a tile, or of a window.
            extents: Extents of all loops.
        """
        access, strides = self._accesses[buffer.name], table.strides

        def of(indices: Indices) -> tuple[Buffer, Indices]:
            _, plane, row, column, *lane = indices
            tile, inside = self._split(column, reach, extents) if access.columns else (_zero(), column)
            at = load(table.buffer, (Expression(tile),)) + Expression(plane) * strides.plane
            at = at + Expression(row) * access.step * strides.pitch + Expression(inside) * access.step
            return buffer, (at.scalar, *lane)

        return of

    def _split(self, column: Scalar, reach: int, extents: Mapping[LoopVar, int]) -> tuple[Scalar, Scalar]:
        """Return the number of a tile, and the column in it or beside it, of a column of the row of tiles.

        Loops over tiles have multiples of a tile's columns, loops in them have not. A loop over all columns,
        as that of an epilogue that reads sums twice, is divided. No loop over windows is one, as the windows
        of neighbours overlap.

        Raises:
            CompileError: A window is read in another way.
        """
        whole, inside = Affine(), affine(column)
        for term, factor in list(inside.terms.items()):
            if factor % self._tile == 0:
                whole.terms[term] = factor // self._tile
                del inside.terms[term]
        last = inside.constant
        for term, factor in inside.terms.items():
            last += factor * (extents[term] - 1) if isinstance(term, LoopVar) else reach
        if last < reach:
            return as_scalar(whole, DType.INT64), as_scalar(inside, DType.INT64)
        if reach != self._tile:
            raise CompileError("native cannot read the windows of tiles in this order")
        return (Expression(column) // self._tile).scalar, (Expression(column) % self._tile).scalar


def _zero() -> Scalar:
    return as_scalar(Affine(), DType.INT64)


def _loops(function: PrimFunc) -> Iterable[For]:
    return (visit.statement for visit in walk(function.body) if isinstance(visit.statement, For))
