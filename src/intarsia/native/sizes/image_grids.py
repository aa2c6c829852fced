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

Pixels of small images are tiles of one row and column, of code for a number of pixels that have windows of
their own, side by side. Loops over planes are outside of their chunks if weights are to be read once. Windows
of sums over channels are copied together first: code with an address for each pixel has too few registers.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from functools import partial
from typing import Final

from intarsia.ir import DType
from intarsia.ir.loop_walk import walk
from intarsia.ir.prim_func import Allocate, Buffer, For, ForKind, LoopVar, PrimFunc, Scalar, Statement
from intarsia.native.execution.most_items import MOST_ITEMS
from intarsia.native.sizes.image_loops import ImageAccess, Strides, has_planes, loads, pixels
from intarsia.native.sizes.shared_loops import SharedLoops
from intarsia.native.te import Expression, minimum
from intarsia.native.te.operators.loop_nest import load, store, when
from intarsia.native.tir.affine import Affine, affine, as_scalar
from intarsia.native.tir.rewriting import Access, Indices, Replacement, block, buffer_names, flat, loop_vars
from intarsia.support.errors import CompileError
from intarsia.support.free_names import NameSupply

_NUMBERS: Final = ("images", "across", "last_tile", "last_row", "last_column")


def grid_function(
    functions: Mapping[int, PrimFunc],
    accesses: Mapping[str, ImageAccess],
    tile: int,
    work: Mapping[int, int],
    shared: SharedLoops,
    *,
    keeps_weights: bool = False,
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
        tile: Number of rows and columns of a tile; 1 for pixels, of which each has a window of its own.
        work: Number of elements that the code for a number of tiles computes, by that number.
        shared: Sharing of planes or chunks among threads.
        keeps_weights: Whether loops over planes are outside of chunks, where the functions have such loops.
    """
    return _GridWriter(functions, accesses, tile, work, shared).function(keeps_weights)


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
        self,
        functions: Mapping[int, PrimFunc],
        accesses: Mapping[str, ImageAccess],
        tile: int,
        work: Mapping[int, int],
        shared: SharedLoops,
    ) -> None:
        self._functions, self._accesses, self._tile = functions, accesses, tile
        self._work, self._shared = work, shared
        self._whole = next(iter(functions.values()))
        self._names = buffer_names(self._whole)
        loops = (visit.statement for function in functions.values() for visit in walk(function.body))
        self._variables = NameSupply(loop.var.name for loop in loops if isinstance(loop, For))
        self._scalars: list[Buffer] = []

    def function(self, keeps_weights: bool) -> PrimFunc:
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
        by_planes = keeps_weights or self._shares_planes()
        by_planes = by_planes and has_planes(self._functions) and not self._adds_what_is_gathered()

        def parts(position: int, count: int, function: PrimFunc) -> Iterable[Statement]:
            """Return the loops over chunks of a number of tiles, inside of those over planes."""
            given = count, function, chunks[count], Expression(image), arrays, strides
            work = chunks[count][0] * self._work[count]
            if not by_planes:
                yield self._chunks(*given, function.body, work, position > 0)
                return
            for statement in flat(function.body):
                yield self._shared.planes(
                    statement,
                    self._variables,
                    work,
                    lambda inner, shared: self._chunks(*given, inner, shared, position > 0),
                )

        body = block(
            when(chunks[count][0] > 0, block(parts(position, count, function)))
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
        inner: Statement,
        work: Expression | None,
        is_copy: bool,
    ) -> Statement:
        """Return the loop over chunks of a number of tiles around a statement; shared if it has work."""
        chunks, begin = numbers
        tables = {
            name: _Table(Buffer(self._names.fresh(f"{name}_at"), (count,), DType.INT64), strides[name])
            for name in arrays
        }
        extents = {loop.var: loop.extent for loop in _loops(function)}
        replaced: dict[Buffer, Access] = {
            buffer: self._pixel_of(arrays[buffer.name], tables[buffer.name], reach, extents)
            for buffer in function.params
            if buffer.name in arrays and (reach := self._reach(buffer, count))
        }
        gathered = {
            buffer: replace(buffer, name=self._names.fresh(f"{buffer.name}_windows"))
            for buffer in replaced
            if self._accesses[buffer.name].is_gathered
        }
        replaced |= {buffer: partial(_same_element, windows) for buffer, windows in gathered.items()}
        names = self._names if is_copy else None
        inner = Replacement(accesses=replaced, names=names).statement(inner)
        copies = [
            self._gathered(windows, arrays[buffer.name], tables[buffer.name], count)
            for buffer, windows in gathered.items()
        ]

        def chunk_of(chunk: Expression) -> Statement:
            body: Statement = block(
                [self._filled(tables, count, begin + chunk * count, image), *copies, inner]
            )
            for buffer in (*(table.buffer for table in tables.values()), *gathered.values()):
                body = Allocate(buffer, body)
            return body

        variables = self._variables.fresh("group"), self._variables.fresh("chunk")
        return self._shared.loop(variables, MOST_ITEMS, chunks, work, chunk_of)

    def _shares_planes(self) -> bool:
        """Return whether threads have even shares of planes; of few chunks of pixels they have not."""
        loops = [item for of in self._functions.values() for item in flat(of.body) if isinstance(item, For)]
        return self._tile == 1 and bool(loops) and all(self._shared.is_even(loop.extent) for loop in loops)

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

    def _adds_what_is_gathered(self) -> bool:
        """Return whether planes of results read the same planes of windows, which do not last so long."""
        return any(
            self._accesses[read.buffer.name].is_gathered and statement.var in loop_vars(read.indices[1])
            for function in self._functions.values()
            for statement in flat(function.body)
            if isinstance(statement, For)
            for read in loads(statement.body)
            if read.buffer.name in self._accesses
        )

    def _gathered(self, windows: Buffer, array: Buffer, table: _Table, count: int) -> Statement:
        """Return the loops that copy the windows of the tiles of a chunk together."""
        names = ("plane", "row", "at", "column", "lane")
        _, planes, rows, columns, *lanes = windows.shape
        extents = planes, rows, count, columns // count, *lanes
        loops = [self._variable(name) for name in names[: len(extents)]]
        plane, row, at, column, *lane = map(Expression, loops)
        pixel = load(table.buffer, (at,)) + plane * table.strides.plane + row * table.strides.pitch + column
        inside = at * (columns // count) + column
        zero = Expression(_zero())
        body: Statement = store(windows, (zero, plane, row, inside, *lane), load(array, (pixel, *lane)))
        for variable, extent in reversed(list(zip(loops, extents, strict=True))):
            is_lane = bool(lane) and variable is loops[-1]
            body = For(variable, extent, body, ForKind.VECTORIZED if is_lane else ForKind.SERIAL)
        return body

    def _reach(self, buffer: Buffer, count: int) -> int:
        """Return the columns that a tile reads or writes of an array; the rows of tiles are as many."""
        return buffer.shape[3] // count if self._tile == 1 else buffer.shape[2]

    def _pixel_of(self, buffer: Buffer, table: _Table, reach: int, extents: Mapping[LoopVar, int]) -> Access:
        """Return where a pixel of the row of tiles is.

        Args:
            buffer: The array as a table of pixels.
            table: The first pixels of tiles.
            reach: Columns of the array that a tile reads or writes: its own, or those of a window.
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
        apart = self._tile if self._tile > 1 else reach  # windows of pixels do not overlap
        for term, factor in list(inside.terms.items()):
            if factor % apart == 0:
                whole.terms[term] = factor // apart
                del inside.terms[term]
        last = inside.constant
        for term, factor in inside.terms.items():
            last += factor * (extents[term] - 1) if isinstance(term, LoopVar) else reach
        if last < reach:
            return as_scalar(whole, DType.INT64), as_scalar(inside, DType.INT64)
        if reach != apart:
            raise CompileError("native cannot read the windows of tiles in this order")
        return (Expression(column) // apart).scalar, (Expression(column) % apart).scalar


def _same_element(buffer: Buffer, indices: Indices) -> tuple[Buffer, Indices]:
    return buffer, indices


def _zero() -> Scalar:
    return as_scalar(Affine(), DType.INT64)


def _loops(function: PrimFunc) -> Iterable[For]:
    return (visit.statement for visit in walk(function.body) if isinstance(visit.statement, For))
