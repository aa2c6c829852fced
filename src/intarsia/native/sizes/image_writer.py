"""What moves images of any size, and what loop functions that do so consist of."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from enum import StrEnum
from typing import Final, TypeAlias

from intarsia.ir import DType
from intarsia.ir.prim_func import Buffer, For, ForKind, LoopVar, Statement
from intarsia.native.sizes.image_loops import MOST_PIXELS
from intarsia.native.sizes.shared_loops import SharedLoops
from intarsia.native.sizes.text_loops import with_numbers
from intarsia.native.te import Expression
from intarsia.native.te.operators.loop_nest import load, store
from intarsia.support.free_names import NameSupply

RowWriter: TypeAlias = Callable[[Expression, Expression, Expression], Statement]
"""Function from image, plane and row of a result to the statements that write the row."""

Neighbours: TypeAlias = Callable[[Expression], tuple[Expression, Expression, Expression]]
"""Function from a position in a result to the two beside it in the source, and the weight of the second."""


class Move(StrEnum):
    """What becomes of an image."""

    BORDER = "border"
    """The border around an image gets one value."""
    COPY = "copy"
    """A plain image is copied."""
    TO_BLOCKS = "to blocks"
    """A plain image is copied into blocks; zeros fill the last block."""
    FROM_BLOCKS = "from blocks"
    """Channels in blocks are copied into a plain image."""
    MEAN = "mean"
    """Each channel of a blocked image becomes its mean."""
    MAX = "max"
    """Each channel of a blocked image becomes its maximum."""
    NEAREST = "nearest"
    """Each pixel of a blocked image becomes `scale` x `scale` equal ones."""
    LINEAR = "linear"
    """A blocked image is enlarged by linear interpolation."""
    SAMPLE = "sample"
    """Each pixel of a result of any size is the nearest one of a blocked image."""
    INTERPOLATE = "interpolate"
    """A blocked image is resized to any size by linear interpolation."""


@dataclass(frozen=True, slots=True)
class ImageMove:
    """A loop function that moves images.

    Attributes:
        move: Kind of the move.
        lanes: Number of channels of a block; 0 where images are plain.
        channels: Number of channels.
        places: For FROM_BLOCKS the position in the blocks of each channel.
        value: For BORDER what it gets.
        scale: Factors by which rows and columns are enlarged.
        coordinates: For SAMPLE and INTERPOLATE where pixels of the result are, as for Resize.
        ratios: For SAMPLE and INTERPOLATE numerator and denominator of the factors of rows and columns, where
            positions follow from these and not from the sizes.
        rounding: For SAMPLE which pixel is the nearest one, as for Resize.
    """

    move: Move
    lanes: int
    channels: int
    places: tuple[int, ...] = ()
    value: float = 0.0
    scale: tuple[int, int] = (1, 1)
    coordinates: str = ""
    ratios: tuple[tuple[int, int], ...] = ()
    rounding: str = ""

    @property
    def blocks(self) -> int:
        """Number of planes of an image in blocks."""
        return -(-self.channels // self.lanes)


BORDER_NUMBERS: Final = ("planes", "plane", "pitch", "head", "inner", "side", "middle", "end", "tail")
"""Numbers for BORDER, in pixels: planes of all images, distance from plane to plane and from row to row,
pixels before the first row, rows but one, pixels between rows, where the first of them are, where those
behind the last row are, and their number."""
MOVE_NUMBERS: Final = (
    *("images", "rows", "columns", "pitch", "plane", "image"),
    *("new_pitch", "new_plane", "new_image", "new_rows", "new_columns"),
)
"""Numbers for others: of what is read, then of what is written."""


class ImageWriter:
    """Loops over pixels, and the parameters of a loop function.

    Args:
        form: Move, lanes and channels.
        shared: Sharing of its work among threads.
    """

    def __init__(self, form: ImageMove, shared: SharedLoops) -> None:
        self.form, self.shared = form, shared
        self.names = NameSupply()
        names = BORDER_NUMBERS if form.move is Move.BORDER else MOVE_NUMBERS
        reads = form.lanes if form.move is not Move.TO_BLOCKS else 0
        writes = form.lanes if form.move is not Move.FROM_BLOCKS else 0
        self.source, self.result = self._pixels("x", reads), self._pixels("y", writes)
        self.scalars = {name: Buffer(self.names.fresh(name), (), DType.INT64) for name in names}

    def _pixels(self, name: str, lanes: int) -> Buffer:
        shape = (MOST_PIXELS, lanes) if lanes else (MOST_PIXELS,)
        return Buffer(self.names.fresh(name), shape, DType.FLOAT32)

    def number(self, name: str) -> Expression:
        """Return a number that the function is given."""
        return load(self.scalars[name], ())

    def loop(
        self,
        count: Expression | int,
        body: Callable[[Expression], Statement],
        kind: ForKind = ForKind.SERIAL,
    ) -> For:
        """Return a loop whose body is made from its variable; the count may be known at run time only."""
        var = LoopVar(self.names.fresh("i"))
        if isinstance(count, int):
            return For(var, count, body(Expression(var)), kind)
        return For(var, MOST_PIXELS, body(Expression(var)), kind, count.scalar)

    def shared_loop(
        self, count: Expression | int, work: Expression, body: Callable[[Expression], Statement]
    ) -> For:
        """Return a loop that threads share if all of its iterations move enough elements."""
        names = self.names.fresh("group"), self.names.fresh("i")
        most = count if isinstance(count, int) else MOST_PIXELS
        return self.shared.loop(names, most, count, work, body)

    def lanes(self, body: Callable[[tuple[Expression, ...]], Statement], count: int = 0) -> Statement:
        """Return a statement for all channels of a block, or for the only channel of a plain image."""
        if not self.form.lanes:
            return body(())
        return self.loop(count or self.form.lanes, lambda lane: body((lane,)), ForKind.VECTORIZED)

    def rows(self, planes: int, body: RowWriter, lanes: int = 1) -> Statement:
        """Return loops over images, planes and rows of what is read; threads share planes, or rows of all."""
        return self._rows("", planes, lanes, body)

    def _rows(self, new: str, planes: int, lanes: int, body: RowWriter) -> Statement:
        rows, columns = self.number(f"{new}rows"), self.number(f"{new}columns")
        work = rows * columns * (planes * lanes)

        def of_image(image: Expression) -> Statement:
            if self.shared.is_even(planes):
                return self.shared_loop(
                    planes, work, lambda plane: self.loop(rows, lambda row: body(image, plane, row))
                )
            return self.shared_loop(
                rows, work, lambda row: self.loop(planes, lambda plane: body(image, plane, row))
            )

        return self.loop(self.number("images"), of_image)

    def at(self, image: Expression, plane: Expression, row: Expression, new: str = "") -> Expression:
        """Return the first pixel of a row of what is read, or of what is written."""
        numbers = (self.number(f"{new}{name}") for name in ("image", "plane", "pitch"))
        first, second, third = (at * number for at, number in zip((image, plane, row), numbers, strict=True))
        return first + second + third

    def new_rows(self, body: RowWriter) -> Statement:
        """Return loops over images, planes and rows of what is written."""
        return self._rows("new_", self.form.blocks, max(1, self.form.lanes), body)

    def interpolated_row(self, rows: Neighbours, columns: Neighbours) -> RowWriter:
        """Return a writer of rows whose elements are interpolated linearly between four of the source.

        Args:
            rows: Function from a row of the result to the rows of the source beside it.
            columns: Function from a column of the result to the columns of the source beside it.
        """

        def line(image: Expression, plane: Expression, row: Expression) -> Statement:
            above, below, weight = rows(row)
            upper, lower = self.at(image, plane, above), self.at(image, plane, below)
            target = self.at(image, plane, row, "new_")

            def pixel(column: Expression) -> Statement:
                left, right, share = columns(column)

                def value(begin: Expression, lane: tuple[Expression, ...]) -> Expression:
                    first = load(self.source, (begin + left, *lane))
                    second = load(self.source, (begin + right, *lane))
                    return first * (1.0 - share) + second * share

                def interpolated(lane: tuple[Expression, ...]) -> Statement:
                    result = value(upper, lane) * (1.0 - weight) + value(lower, lane) * weight
                    return store(self.result, (target + column, *lane), result)

                return with_numbers([left, right], self.lanes(interpolated))

            return with_numbers([upper, lower, target], self.loop(self.number("new_columns"), pixel))

        return line
