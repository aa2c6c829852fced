"""Loop functions on images of any size, from loop functions for a tile of a row.

A row of results is computed in tiles of columns, by code for a few widths. An array of images is a table of
pixels, of which the distance from row to row and from plane to plane is known at run time only:

    for image in 1048576 count images[]
      for row in 1048576 count rows[]
        for tile in 1048576 count tiles_8[]
          y[image * all_y[] + row * pitch_y[] + min(begin_8[] + tile * 8, last_8[]) + ...] = ...
        for tile in 1048576 count tiles_4[]
          ...

The last tile of a row may compute columns a second time, so no result may be where an argument is.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, replace
from functools import partial, reduce
from operator import add
from typing import Final

from intarsia.ir import DType
from intarsia.ir.loop_walk import inner_scalars, walk
from intarsia.ir.prim_func import Buffer, For, ForKind, Literal, Load, LoopVar, PrimFunc, Statement, Store
from intarsia.native.execution.most_items import MOST_ITEMS
from intarsia.native.sizes.shared_loops import SharedLoops
from intarsia.native.sizes.text_loops import with_numbers
from intarsia.native.te import Expression, minimum
from intarsia.native.te.operators.loop_nest import load, when
from intarsia.native.tir.rewriting import Access, Indices, Replacement, block, buffer_names, flat, loop_vars
from intarsia.support.free_names import NameSupply

MOST_PIXELS: Final = 1 << 36
"""Maximum number of pixels of an array."""
_IMAGES, _ROWS = "images", "rows"


@dataclass(frozen=True, slots=True)
class ImageAccess:
    """How a parameter is read or written by the code for a tile.

    Attributes:
        lanes: Number of channels of a block; 0 for a plain layout.
        rows: Number of its rows from one row of results to the next.
        columns: Number of its columns from one column of results to the next.
        step: Number of its columns from one column of the tile to the next.
        is_gathered: Whether the windows of some pixels are first copied together.
    """

    lanes: int
    rows: int
    columns: int
    step: int = 1
    is_gathered: bool = False


@dataclass(frozen=True, slots=True)
class Strides:
    """Scalar parameters with the distances within an array, in pixels.

    Attributes:
        pitch: Distance from row to row.
        plane: Distance from plane to plane.
        image: Distance from image to image.
    """

    pitch: Expression
    plane: Expression
    image: Expression


def image_function(
    functions: Mapping[int, PrimFunc],
    accesses: Mapping[str, ImageAccess],
    work: Mapping[int, int],
    shared: SharedLoops,
    *,
    keeps_weights: bool = False,
) -> PrimFunc:
    """Return the loop function for images of any size.

    Its last parameters are scalars: the number of images, and that of rows; for each width, widest first, the
    number of tiles, where they begin, and where the last one does; and for each parameter with images the
    distances from row to row, from plane to plane, and from image to image.

    Args:
        functions: Loop functions for one image and a tile of some columns, by their number; widest first.
        accesses: The parameters with images, by name.
        work: Number of elements that the code for a tile computes, by its number of columns.
        shared: Sharing of rows or planes among threads.
        keeps_weights: Whether loops over planes are outside of rows, where the functions have such loops, so
            that the weights of some planes stay in a cache.
    """
    whole = next(iter(functions.values()))
    names = buffer_names(whole)
    loops = (visit.statement for function in functions.values() for visit in walk(function.body))
    variables = NameSupply(loop.var.name for loop in loops if isinstance(loop, For))
    scalars: list[Buffer] = []

    def scalar(name: str) -> Expression:
        scalars.append(Buffer(names.fresh(name), (), DType.INT64))
        return load(scalars[-1], ())

    images, rows = scalar(_IMAGES), scalar(_ROWS)
    tiles = {width: (scalar("tiles"), scalar("begin"), scalar("last")) for width in functions}
    params = {buffer.name: buffer for buffer in whole.params}
    strides = {
        name: Strides(scalar("pitch"), scalar("plane"), scalar("image"))
        for name in params
        if name in accesses
    }
    moved = {name: pixels(params[name], accesses[name]) for name in strides}

    def work_of(width: int) -> Expression:
        """Return the number of elements that all tiles of a width of an image compute."""
        return rows * tiles[width][0] * work[width]

    image = LoopVar(variables.fresh("image"))
    of_image = {name: Expression(image) * of.image for name, of in strides.items()}

    def rows_of(body: Callable[[Mapping[str, Expression]], Statement], work: Expression | None) -> Statement:
        """Return the loop over rows around what is computed from where they begin; shared if it has work."""

        def row_of(row: Expression) -> Statement:
            first = {
                name: at + row * accesses[name].rows * strides[name].pitch for name, at in of_image.items()
            }
            return with_numbers(list(first.values()), body(first))

        names = variables.fresh("group"), variables.fresh("row")
        return shared.loop(names, MOST_ITEMS, rows, work, row_of)

    def tiles_of(width: int, body: Statement, first: Mapping[str, Expression], *, is_copy: bool) -> Statement:
        """Return the loop over tiles of a width in a row."""
        count, begin, last = tiles[width]
        tile = LoopVar(variables.fresh("tile"))
        column = minimum(begin + Expression(tile) * width, last)
        starts = {name: first[name] + column * accesses[name].columns for name in strides}
        replaced: dict[Buffer, Access] = {
            buffer: _pixel_of(moved[buffer.name], accesses[buffer.name], starts[buffer.name], of)
            for buffer in functions[width].params
            if (of := strides.get(buffer.name)) is not None
        }
        body = Replacement(accesses=replaced, names=names if is_copy else None).statement(body)
        return _loop(tile, count, with_numbers(list(starts.values()), body))

    def all_tiles(first: Mapping[str, Expression]) -> Statement:
        return block(
            tiles_of(width, function.body, first, is_copy=position > 0)
            for position, (width, function) in enumerate(functions.items())
        )

    def plane_rows(width: int, statement: Statement, work: Expression | None, *, is_copy: bool) -> Statement:
        return rows_of(partial(tiles_of, width, statement, is_copy=is_copy), work)

    def by_planes() -> Iterator[Statement]:
        for position, (width, function) in enumerate(functions.items()):
            inside = partial(plane_rows, width, is_copy=position > 0)
            statements = flat(function.body)
            loops = [shared.planes(item, variables, work_of(width), inside) for item in statements]
            yield when(tiles[width][0] > 0, block(loops))

    total = reduce(add, map(work_of, functions))
    by_plane = keeps_weights and has_planes(functions)
    inside = block(by_planes()) if by_plane else rows_of(all_tiles, total)
    arrays = tuple(moved.get(buffer.name, buffer) for buffer in whole.params)
    return replace(whole, params=(*arrays, *scalars), body=_loop(image, images, inside))


def _loop(var: LoopVar, count: Expression, body: Statement) -> For:
    return For(var, MOST_ITEMS, body, ForKind.SERIAL, count.scalar)


def has_planes(functions: Mapping[int, PrimFunc]) -> bool:
    """Return whether the statements of all functions, and the turns of their loops, compute planes apart.

    Then rows can be inside. Whatever is kept between statements is in an allocation, which is one statement.
    """
    for function in functions.values():
        output = function.params[-1]
        for statement in flat(function.body):
            if isinstance(statement, For):
                if statement.kind is not ForKind.SERIAL or statement.count is not None:
                    return False
                stores = [
                    visit.statement
                    for visit in walk(statement.body)
                    if isinstance(visit.statement, Store) and visit.statement.buffer == output
                ]
                if not all(statement.var in loop_vars(store.indices[1]) for store in stores):
                    return False
        if any(load.buffer == output for load in loads(function.body)):
            return False
    return True


def loads(body: Statement) -> Iterator[Load]:
    """Return what the stores of a statement read."""
    for visit in walk(body):
        if isinstance(visit.statement, Store):
            for scalar in (visit.statement.value, *visit.statement.indices):
                yield from (inner for inner in inner_scalars(scalar) if isinstance(inner, Load))


def pixels(buffer: Buffer, access: ImageAccess) -> Buffer:
    """Return a parameter as a table of pixels."""
    return replace(buffer, shape=(MOST_PIXELS, access.lanes) if access.lanes else (MOST_PIXELS,))


def _pixel_of(buffer: Buffer, access: ImageAccess, start: Expression, strides: Strides) -> Access:
    def of(indices: Indices) -> tuple[Buffer, Indices]:
        _, plane, row, column, *lane = indices
        assert len(lane) == (1 if access.lanes else 0)
        at = start
        rows = strides.pitch * access.step if access.step > 1 else strides.pitch
        for index, stride in ((plane, strides.plane), (row, rows), (column, None)):
            if not isinstance(index, Literal) or index.value != 0:
                at = at + Expression(index) * (access.step if stride is None else stride)
        return buffer, (at.scalar, *lane)

    return of
