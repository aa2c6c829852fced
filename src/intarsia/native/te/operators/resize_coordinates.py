"""Positions on the original axis of indices of a resized axis: all modes of Resize are linear in the index.

Positions are exact fractions, so that indices need integer arithmetic only.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import Any, Final, TypeAlias, TypeVar

import numpy as np
import numpy.typing as npt

from intarsia.ir import DType
from intarsia.native.te.expression import Expression
from intarsia.native.te.functions import const, maximum, minimum
from intarsia.native.te.operators.index_arithmetic import ZERO, scaled

Floats: TypeAlias = npt.NDArray[np.float64]
Number = TypeVar("Number", Fraction, Floats)

MODES = frozenset(
    {
        *("half_pixel", "half_pixel_symmetric", "pytorch_half_pixel"),
        *("align_corners", "asymmetric", "tf_crop_and_resize"),
    }
)
"""Values of coordinate_transformation_mode."""

MOST_POSITIONS: Final = 1 << 27
"""Elements of the longest axis that is resized to nearest elements: each position is rounded at build time.

Rounding so many takes 0.6 s: 4.4 ns each (`_agreeing_start` of 2**24 positions on a AMD EPYC, one thread).
"""

_POSITIONS_AT_ONCE: Final = 1 << 16
"""Positions that are rounded at once: 512 KiB, which stay in the cache."""

WHOLE = Fraction(0), Fraction(1)
"""The region that is all of an axis."""


@dataclass(frozen=True, slots=True)
class Resizing:
    """The resizing of one axis.

    Attributes:
        mode: One of `MODES`.
        extent: Extent of the original axis.
        wanted: Extent of the resized axis.
        scale: Ratio of the extents, which need not be exact.
        region: The part of the original that is wanted, from 0 to 1; only read by tf_crop_and_resize.
    """

    mode: str
    extent: int
    wanted: int
    scale: Fraction
    region: tuple[Fraction, Fraction] = WHOLE

    @property
    def is_nothing(self) -> bool:
        """Whether every index stays what it is."""
        whole = self.mode != "tf_crop_and_resize" or self.region == WHOLE
        return self.scale == 1 and self.wanted == self.extent and whole

    @property
    def line(self) -> Line:
        """The positions of all indices."""
        start, second = (self._position(Fraction(i), self.scale, self.region, Fraction(1, 2)) for i in (0, 1))
        step = second - start
        below = math.lcm(step.denominator, start.denominator)
        return Line(int(step * below), int(start * below), below, self.extent, self.wanted)

    def float_positions(self, first: int, last: int) -> Floats:
        """Return the positions of the indices from `first` to `last` - 1, in the specification's float order.

        Returns:
            Shape (last - first,).
        """
        index = np.arange(first, last, dtype=np.float64)
        region = np.array(float(self.region[0])), np.array(float(self.region[1]))
        return self._position(index, np.array(float(self.scale)), region, np.array(0.5))

    def _position(self, i: Number, scale: Number, region: tuple[Number, Number], half: Number) -> Number:
        extent, resized = self.extent, scale * self.extent
        match self.mode:
            case "align_corners":
                return i * 0 if resized == 1 else i * (extent - 1) / (resized - 1)
            case "asymmetric":
                return i / scale
            case "tf_crop_and_resize":
                size = (region[1] - region[0]) * (extent - 1)
                inner = i * 0 + size / 2 if resized == 1 else i * size / (resized - 1)
                return inner + region[0] * (extent - 1)
            case "pytorch_half_pixel" if resized == 1:
                return i * 0 - half
            case "half_pixel_symmetric":
                offset = half * extent * (1 - self.wanted / resized)
                return offset + (i + half) / scale - half
            case _:
                return (i + half) / scale - half


@dataclass(frozen=True, slots=True)
class Line:
    """Positions `(step * index + start) / below` for the indices of an axis.

    Attributes:
        step: Numerator for each index.
        start: Numerator of index 0.
        below: The denominator, at least 1.
        extent: Extent of the original axis; positions outside of it are possible.
        wanted: Number of indices, the extent of the resized axis.
    """

    step: int
    start: int
    below: int
    extent: int
    wanted: int

    @property
    def is_small(self) -> bool:
        """Whether no position overflows an int64."""
        # Rounding doubles the numerators and taps add offsets: the factor of 4 and the limit leave room.
        return 4 * (abs(self.step) * self.wanted + abs(self.start) + self.below) < 2**62

    def lower(self, index: Expression) -> Expression:
        """Return the integer at or below the position."""
        return _floor(index, self.step, self.start, self.below)

    def fraction(self, index: Expression, dtype: DType) -> Expression | None:
        """Return the fraction of the position above `lower`, from 0 to 1; None if it is always 0."""
        if self.below == 1:
            return None
        return (scaled(index, self.step, self.start) % self.below).astype(dtype) * (1 / self.below)

    def clamped(self, index: Expression, offset: int) -> Expression:
        """Return the integer at a distance from `lower`, clamped to the original axis."""
        ends = [(self.step * i + self.start) // self.below + offset for i in (0, self.wanted - 1)]
        return _inside(scaled(self.lower(index), 1, offset), ends, self.extent)

    def is_inside(self) -> bool:
        """Return whether no position is outside the original axis."""
        ends = [self.step * i + self.start for i in (0, self.wanted - 1)]
        return all(0 <= end <= (self.extent - 1) * self.below for end in ends)

    def outside(self, index: Expression) -> tuple[Expression, Expression]:
        """Return whether the position is before the axis, and whether it is behind."""
        above = scaled(index, self.step, self.start)
        return above < 0, above > (self.extent - 1) * self.below


def nearest(index: Expression, resizing: Resizing, rounding: str) -> Expression:
    """Return the nearest index of the original axis.

    Args:
        index: Index of the resized axis.
        resizing: Resizing of the axis.
        rounding: round_prefer_floor, round_prefer_ceil, floor or ceil.
    """
    line = resizing.line
    if resizing.extent == 1:
        return ZERO
    step, start, below = _rounding_line(line, rounding)
    start = _agreeing_start(step, start, below, resizing, rounding)
    ends = [(step * i + start) // below for i in (0, line.wanted - 1)]
    return _inside(_floor(index, step, start, below), ends, line.extent)


def _rounding_line(line: Line, rounding: str) -> tuple[int, int, int]:
    """Return a line whose floor is the rounded position."""
    step, start, below = line.step, line.start, line.below
    match rounding:
        case "floor":
            return step, start, below
        case "ceil":
            # ceil(a / b) == floor((a + b - 1) / b).
            return step, start + below - 1, below
        case "round_prefer_floor":
            # ceil(a / b - 1/2): ties go down. The default below is floor(a / b + 1/2): ties go up.
            return 2 * step, 2 * start + below - 1, 2 * below
        case _:
            return 2 * step, 2 * start + below, 2 * below


def _rounded(positions: Floats, rounding: str) -> npt.NDArray[np.int64]:
    low = np.floor(positions)
    ratio = positions - low
    is_up: npt.NDArray[Any]
    match rounding:
        case "floor":
            is_up = np.zeros(low.shape, np.bool_)
        case "ceil":
            is_up = ratio > 0
        case "round_prefer_floor":
            is_up = ratio > 0.5
        case _:
            is_up = ratio >= 0.5
    return low.astype(np.int64) + is_up


def _agreeing_start(step: int, start: int, below: int, resizing: Resizing, rounding: str) -> int:
    """Return the closest start with which a line gives the rounded positions, or `start` if there is none.

    Floats see ties where fractions see none. No int64 overflows: `Line.is_small` holds.
    """
    lows, highs = [], []
    for first in range(0, resizing.wanted, _POSITIONS_AT_ONCE):
        last = min(first + _POSITIONS_AT_ONCE, resizing.wanted)
        positions = _rounded(resizing.float_positions(first, last), rounding)
        # floor((step * i + start) / below) == positions[i] for start in [least[i], least[i] + below - 1].
        least = positions * below - step * np.arange(first, last)
        lows.append(int(least.max()))
        highs.append(int(least.min()) + below - 1)
    low, high = max(lows, default=start), min(highs, default=start)
    return min(max(start, low), high) if low <= high else start


def _floor(index: Expression, step: int, start: int, below: int) -> Expression:
    if step == 0:
        return const(start // below, DType.INT64)
    # Constants of the same size divide without loss: smaller factors leave simpler indices.
    common = math.gcd(step, below)
    above = scaled(index, step // common, start // common)
    return above if common == below else above // (below // common)


def _inside(index: Expression, ends: Sequence[int], extent: int) -> Expression:
    index = maximum(index, 0) if min(ends) < 0 else index
    return minimum(index, extent - 1) if max(ends) >= extent else index
