"""Loop functions that move images of any size: into and out of blocks, borders, global pools, and resizing.

Arrays are tables of pixels, as in `image_loops`. Blocked ones have a pixel's channels of a block side by
side.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Final

from intarsia.ir import DType
from intarsia.ir.prim_func import Allocate, Buffer, ForKind, PrimFunc, Statement
from intarsia.native.sizes.image_writer import ImageMove, ImageWriter, Move
from intarsia.native.sizes.shared_loops import SharedLoops
from intarsia.native.sizes.text_loops import with_numbers
from intarsia.native.te import Expression, maximum, minimum
from intarsia.native.te.expression import literal
from intarsia.native.te.functions import const
from intarsia.native.te.operators.loop_nest import load, store
from intarsia.native.tir.rewriting import block

_VECTOR: Final = 16
"""Number of pixels of a plain image that are copied at a time."""
_ACCUMULATORS: Final = 4
"""Number of sums of a pool that do not wait for each other."""


def move_function(form: ImageMove, shared: SharedLoops) -> PrimFunc:
    """Return the loop function. Its parameters are what it reads, what it writes, and the numbers.

    BORDER reads nothing.

    Args:
        form: Move, lanes and channels.
        shared: Sharing of its work among threads.
    """
    return _MoveWriter(form, shared).function()


class _MoveWriter(ImageWriter):
    """Writer of the statements of one loop function."""

    def function(self) -> PrimFunc:
        """Return the loop function."""
        bodies: dict[Move, Callable[[], Statement]] = {
            Move.BORDER: self._border,
            Move.COPY: self._copy,
            Move.TO_BLOCKS: self._to_blocks,
            Move.FROM_BLOCKS: self._from_blocks,
            Move.MEAN: self._pool,
            Move.MAX: self._pool,
            Move.NEAREST: self._nearest,
            Move.LINEAR: self._linear,
        }
        arrays = (self.result,) if self.form.move is Move.BORDER else (self.source, self.result)
        return PrimFunc((*arrays, *self.scalars.values()), bodies[self.form.move]())

    def _border(self) -> Statement:
        pitch, value = self.number("pitch"), const(self.form.value)

        def run(begin: Expression, count: Expression) -> Statement:
            return self.loop(
                count,
                lambda at: self.lanes(lambda lane: store(self.result, (begin + at, *lane), value)),
            )

        def plane(number: Expression) -> Statement:
            begin = number * self.number("plane")
            parts = [
                run(begin, self.number("head")),
                self.loop(
                    self.number("inner"),
                    lambda row: run(begin + self.number("middle") + row * pitch, self.number("side")),
                ),
                run(begin + self.number("end"), self.number("tail")),
            ]
            return block(parts)

        of_plane = self.number("head") + self.number("inner") * self.number("side") + self.number("tail")
        work = self.number("planes") * of_plane * max(1, self.form.lanes)
        return self.shared_loop(self.number("planes"), work, plane)

    def _copied_row(self, source: Expression, target: Expression) -> Statement:
        """Return the copy of a row of a plain image to one of a plain image."""
        columns = self.number("columns")

        def copy(at: Expression) -> Statement:
            return store(self.result, (target + at,), load(self.source, (source + at,)))

        def vector(number: Expression) -> Statement:
            return self.loop(_VECTOR, lambda lane: copy(number * _VECTOR + lane), ForKind.VECTORIZED)

        whole = columns // _VECTOR
        parts = [
            self.loop(whole, vector),
            self.loop(columns % _VECTOR, lambda at: copy(whole * _VECTOR + at)),
        ]
        return with_numbers([source, target], block(parts))

    def _copy(self) -> Statement:
        return self.rows(
            self.form.channels,
            lambda image, plane, row: self._copied_row(
                self.at(image, plane, row), self.at(image, plane, row, "new_")
            ),
        )

    def _to_blocks(self) -> Statement:
        form = self.form

        def pixels(image: Expression, plane: Expression, row: Expression, count: int) -> Statement:
            first = image * self.number("image") + row * self.number("pitch")
            target = self.at(image, plane, row, "new_")

            def pixel(column: Expression) -> Statement:
                def lane(at: Expression) -> Statement:
                    channel = plane * form.lanes + at
                    value = load(self.source, (first + channel * self.number("plane") + column,))
                    return store(self.result, (target + column, at), value)

                rest = self.loop(
                    form.lanes - count,
                    lambda at: store(self.result, (target + column, at + count), const(0.0)),
                )
                return block([self.loop(count, lane), *([rest] if count < form.lanes else [])])

            return with_numbers([first, target], self.loop(self.number("columns"), pixel))

        whole, rest = divmod(form.channels, form.lanes)
        parts: list[Statement] = []
        if whole:
            parts.append(
                self.rows(whole, lambda image, plane, row: pixels(image, plane, row, form.lanes), form.lanes)
            )
        if rest:
            last = literal(whole, DType.INT64)
            parts.append(
                self.rows(1, lambda image, plane, row: pixels(image, plane + last, row, rest), form.lanes)
            )
        return block(parts)

    def _from_blocks(self) -> Statement:
        return block([self._run(*run) for run in _runs(self.form.places)])

    def _run(self, channel: int, position: int, count: int) -> Statement:
        """Return the copies of some channels that lie one behind another."""
        return self.rows(
            count, lambda image, at, row: self._channel_row(image, at + channel, at + position, row)
        )

    def _channel_row(
        self, image: Expression, channel: Expression, position: Expression, row: Expression
    ) -> Statement:
        lanes = self.form.lanes
        source, target = self.at(image, position // lanes, row), self.at(image, channel, row, "new_")
        lane = position % lanes
        copied = self.loop(
            self.number("columns"),
            lambda column: store(self.result, (target + column,), load(self.source, (source + column, lane))),
        )
        return with_numbers([source, target, lane], copied)

    def _pool(self) -> Statement:
        form, zero = self.form, literal(0, DType.INT64)
        is_mean = form.move is Move.MEAN
        total = Buffer(self.names.fresh("total"), (_ACCUMULATORS, form.lanes), DType.FLOAT32)

        def combined(left: Expression, right: Expression) -> Expression:
            return left + right if is_mean else maximum(left, right)

        def add(at: Expression, source: Expression) -> Statement:
            return self.lanes(
                lambda lane: store(
                    total,
                    (at, *lane),
                    combined(load(total, (at, *lane)), load(self.source, (source, *lane))),
                )
            )

        def unrolled(body: Callable[[Expression], Statement]) -> Statement:
            return self.loop(_ACCUMULATORS, body, ForKind.UNROLLED)

        def row_sum(begin: Expression) -> Statement:
            columns = self.number("columns")
            whole = columns // _ACCUMULATORS
            parts = [
                self.loop(whole, lambda at: unrolled(lambda k: add(k, begin + at * _ACCUMULATORS + k))),
                self.loop(columns % _ACCUMULATORS, lambda at: add(zero, begin + whole * _ACCUMULATORS + at)),
            ]
            return with_numbers([begin], block(parts))

        def folded(k: Expression) -> Statement:
            return self.lanes(
                lambda lane: store(
                    total, (zero, *lane), combined(load(total, (zero, *lane)), load(total, (k, *lane)))
                )
            )

        def plane(image: Expression, number: Expression) -> Statement:
            first = image * self.number("image") + number * self.number("plane")
            target = image * self.number("new_image") + number * self.number("new_plane")
            count = (self.number("rows") * self.number("columns")).astype(DType.FLOAT32)
            begin = const(0.0 if is_mean else -math.inf)
            rest = [folded(literal(k, DType.INT64)) for k in range(1, _ACCUMULATORS)]

            def finished(lane: tuple[Expression, ...]) -> Statement:
                value = load(total, (zero, *lane))
                return store(self.result, (target, *lane), value / count if is_mean else value)

            parts = [
                unrolled(lambda k: self.lanes(lambda lane: store(total, (k, *lane), begin))),
                self.loop(self.number("rows"), lambda row: row_sum(first + row * self.number("pitch"))),
                *rest,
                self.lanes(finished),
            ]
            return Allocate(total, block(parts))

        work = self.number("rows") * self.number("columns") * (form.blocks * form.lanes)
        return self.loop(
            self.number("images"),
            lambda image: self.shared_loop(form.blocks, work, lambda number: plane(image, number)),
        )

    def _nearest(self) -> Statement:
        down, across = self.form.scale

        def line(image: Expression, plane: Expression, row: Expression) -> Statement:
            source, target = self.at(image, plane, row // down), self.at(image, plane, row, "new_")

            def pixel(column: Expression) -> Statement:
                def copies(k: Expression) -> Statement:
                    return self.lanes(
                        lambda lane: store(
                            self.result,
                            (target + column * across + k, *lane),
                            load(self.source, (source + column, *lane)),
                        )
                    )

                return self.loop(across, copies)

            return with_numbers([source, target], self.loop(self.number("columns"), pixel))

        return self.new_rows(line)

    def _linear(self) -> Statement:
        down, across = self.form.scale
        return self.new_rows(
            self.interpolated_row(
                lambda row: _neighbours(row, down, self.number("rows")),
                lambda column: _neighbours(column, across, self.number("columns")),
            )
        )


def _neighbours(at: Expression, scale: int, count: Expression) -> tuple[Expression, Expression, Expression]:
    """Return the two positions between which one of an enlarged image is, and the weight of the second."""
    doubled = at * 2 + (1 - scale)
    first = doubled // (2 * scale)
    weight = (doubled % (2 * scale)).astype(DType.FLOAT32) * const(1.0 / (2 * scale))
    return maximum(first, 0), minimum(first + 1, count - 1), weight


def _runs(places: tuple[int, ...]) -> list[tuple[int, int, int]]:
    """Return runs of channels that are in order: first channel, its position, and their number."""
    runs: list[tuple[int, int, int]] = []
    for channel, position in enumerate(places):
        if runs and runs[-1][1] + runs[-1][2] == position:
            first, begin, count = runs[-1]
            runs[-1] = first, begin, count + 1
        else:
            runs.append((channel, position, 1))
    return runs
