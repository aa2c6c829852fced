"""The program for a tile: some rows and columns of each image that is computed column by column."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from intarsia.ir import Attrs, Call, DType, Expr, Function, Op, TensorType, Tuple, Var
from intarsia.op import infer_call_type
from intarsia.toolchain.native.images.image_program import (
    NO_PIXELS,
    ONE_PIXEL,
    Image,
    ImageProgram,
    Level,
    Read,
    Window,
)

_GEOMETRY = ("auto_pad", "ceil_mode", "count_include_pad", "pads", "storage_order")
"""Attributes that say nothing about a window that is given as an argument."""


@dataclass(frozen=True, slots=True, eq=False)
class TileRead:
    """What a parameter of the program for a tile is.

    Attributes:
        image: The image that is read.
        rows: Rows of the image from one row of results to the next; 0 where all results read the same pixel.
        columns: Columns of the image from one column of results to the next; 0 as for rows.
        begins: Rows and columns in front of the image at which the first window begins.
    """

    image: Image
    rows: int
    columns: int
    begins: Level = NO_PIXELS


@dataclass(frozen=True, slots=True, eq=False)
class TileProgram:
    """The program for a tile.

    Attributes:
        function: The program: its results are the images that are stored.
        reads: Read of each parameter.
        images: Image that each call computes.
    """

    function: Function
    reads: tuple[TileRead, ...]
    images: Mapping[Expr, Image]


def tile_program(
    program: ImageProgram, height: int, width: int, *, windows_apart: bool = False
) -> TileProgram:
    """Return the program for a tile of some rows and columns; images of one pixel are computed as they are.

    Args:
        program: The program.
        height: Number of rows.
        width: Number of columns.
        windows_apart: Whether the windows of a row follow each other and do not overlap, as each is read from
            where its pixel is.

    Raises:
        InvalidModelError: Types do not fit.
    """
    tile = _Tile(height, width, windows_apart)
    for image in program.images:
        if image.call is not None:
            tile.add(image, image.call)
    return tile.finished()


class _Tile:
    def __init__(self, height: int, width: int, windows_apart: bool) -> None:
        self._shape, self._windows_apart = (height, width), windows_apart
        self._exprs: dict[int, Expr] = {}
        self._params: dict[object, tuple[Var, TileRead]] = {}
        self._images: dict[Expr, Image] = {}
        self._results: list[Expr] = []

    def add(self, image: Image, call: Call) -> None:
        """Add the call that computes an image."""
        op = call.op
        assert isinstance(op, Op)
        is_one = image.level == ONE_PIXEL
        extents = (1, 1) if is_one else self._shape
        args = tuple(self._argument(read, extents, is_one=is_one) for read in image.reads)
        attrs = Attrs({name: value for name, value in call.attrs.items() if name not in _GEOMETRY})
        window = next((read.window for read in image.reads if read.window is not None), None)
        if window is not None and self._windows_apart:
            attrs = attrs.updated(strides=window.taps)
        result = Call(op, args, attrs, span=call.span, checked_type=infer_call_type(op, args, attrs))
        self._exprs[image.number], self._images[result] = result, image
        if image.is_stored:
            self._results.append(result)

    def finished(self) -> TileProgram:
        """Return the program."""
        pairs = list(self._params.values())
        function = Function(tuple(var for var, _ in pairs), Tuple(tuple(self._results)))
        return TileProgram(function, tuple(read for _, read in pairs), self._images)

    def _argument(self, read: Read, extents: tuple[int, int], *, is_one: bool) -> Expr:
        image, window = read.image, read.window
        if image is None:
            assert read.expr is not None, "it reads one or the other"
            return read.expr
        if window is not None:
            rows, columns = (
                (extent - 1) * stride + taps
                for extent, stride, taps in zip(extents, self._steps(window), window.taps, strict=True)
            )
            shape = 1, image.channels, rows, columns
            # Whatever has one pixel has one result, at which its window begins.
            windows = TileRead(image, *window.strides, window.first)
            return self._param((image.number, window, is_one), shape, windows)
        if image.number in self._exprs and image.phase is None:
            return self._exprs[image.number]
        step = int(is_one or image.level != ONE_PIXEL)
        shape = 1, image.channels, *(extents if step else (1, 1))
        return self._param((image.number, step, is_one), shape, TileRead(image, step, step))

    def _steps(self, window: Window) -> tuple[int, int]:
        return window.taps if self._windows_apart else window.strides

    def _param(self, key: object, shape: tuple[int, ...], read: TileRead) -> Expr:
        if key not in self._params:
            read.image.is_stored = True
            var = Var(f"x{len(self._params)}", checked_type=TensorType(shape, DType.FLOAT32))
            self._params[key] = var, read
        return self._params[key][0]
