"""Loop functions that resize images of any size to any size.

Element `at` of the result is at position `numerator / denominator` of the argument, by the sizes of both:

    half pixel     ((2 * at + 1) * count - new_count) / (2 * new_count)
    align corners  at * (count - 1) / (new_count - 1)
    asymmetric     at * count / new_count

Where factors are given and not sizes, a factor takes the place of `new_count / count`.

Divisions of whole numbers give the elements beside the position and their weights exactly.
"""

from __future__ import annotations

from enum import StrEnum
from typing import Final

from intarsia.ir import DType
from intarsia.ir.prim_func import PrimFunc, Statement
from intarsia.native.sizes.image_writer import ImageMove, ImageWriter, Move
from intarsia.native.sizes.shared_loops import SharedLoops
from intarsia.native.sizes.text_loops import with_numbers
from intarsia.native.te import Expression, maximum, minimum
from intarsia.native.te.expression import literal
from intarsia.native.te.operators.loop_nest import load, store


class Rounding(StrEnum):
    """Which element a position between two is nearest to: as attribute `nearest_mode` of Resize."""

    FLOOR = "floor"
    CEIL = "ceil"
    PREFER_FLOOR = "round_prefer_floor"
    PREFER_CEIL = "round_prefer_ceil"


ALIGNED: Final = "align_corners"
ASYMMETRIC: Final = "asymmetric"
HALF: Final = "half_pixel"
COORDINATES: Final = (ALIGNED, ASYMMETRIC, HALF)
"""Values of `ImageMove.coordinates`."""


def sample_function(form: ImageMove, shared: SharedLoops) -> PrimFunc:
    """Return the loop function of Move.SAMPLE or Move.INTERPOLATE, with the parameters of other moves."""
    return _SampleWriter(form, shared).function()


class _SampleWriter(ImageWriter):
    """Writer of the statements of one loop function."""

    def function(self) -> PrimFunc:
        """Return the loop function."""
        if self.form.move is Move.INTERPOLATE:
            row = self.interpolated_row(
                lambda at: self._neighbours(at, "rows"), lambda at: self._neighbours(at, "columns")
            )
        else:
            row = self._sampled_row
        body = self.new_rows(row)
        return PrimFunc((self.source, self.result, *self.scalars.values()), body)

    def _position(self, at: Expression, name: str) -> tuple[Expression, Expression]:
        """Return numerator and denominator of the position of an element, along rows or columns."""
        count, new_count = self.number(name), self.number(f"new_{name}")
        if self.form.ratios:
            ratio = self.form.ratios[("rows", "columns").index(name)]
            new_count, count = (literal(number, DType.INT64) for number in ratio)
        match self.form.coordinates:
            case "align_corners":
                return at * (count - 1), maximum(new_count - 1, 1)
            case "asymmetric":
                return at * count, new_count
            case _:
                return (at * 2 + 1) * count - new_count, new_count * 2

    def _nearest(self, at: Expression, name: str) -> Expression:
        top, below = self._position(at, name)
        match Rounding(self.form.rounding):
            case Rounding.FLOOR:
                element = top // below
            case Rounding.CEIL:
                element = (top + below - 1) // below
            case Rounding.PREFER_FLOOR:
                element = (top * 2 + below - 1) // (below * 2)
            case Rounding.PREFER_CEIL:
                element = (top * 2 + below) // (below * 2)
        return minimum(maximum(element, 0), self.number(name) - 1)

    def _neighbours(self, at: Expression, name: str) -> tuple[Expression, Expression, Expression]:
        """Return the two elements between which one of the result is, and the weight of the second."""
        top, below = self._position(at, name)
        top = maximum(top, 0)
        first = minimum(top // below, self.number(name) - 1)
        second = minimum(first + 1, self.number(name) - 1)
        return first, second, (top % below).astype(DType.FLOAT32) / below.astype(DType.FLOAT32)

    def _sampled_row(self, image: Expression, plane: Expression, row: Expression) -> Statement:
        source = self.at(image, plane, self._nearest(row, "rows"))
        target = self.at(image, plane, row, "new_")

        def pixel(column: Expression) -> Statement:
            at = source + self._nearest(column, "columns")
            copied = self.lanes(
                lambda lane: store(self.result, (target + column, *lane), load(self.source, (at, *lane)))
            )
            return with_numbers([at], copied)

        return with_numbers([source, target], self.loop(self.number("new_columns"), pixel))
