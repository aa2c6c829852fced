"""GridSample."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import reduce
from itertools import product
from operator import add, mul

from intarsia.ir import DType
from intarsia.native.te.compute import compute
from intarsia.native.te.expression import Expression
from intarsia.native.te.functions import call as intrinsic
from intarsia.native.te.functions import (
    const,
    logical_and,
    logical_or,
    maximum,
    minimum,
    select,
)
from intarsia.native.te.operators.compute_call import ComputeCall
from intarsia.native.te.operators.compute_rule import compute_rule
from intarsia.native.te.operators.float32_arithmetic import in_float32
from intarsia.native.te.operators.index_arithmetic import ZERO, Indices, clamped, scaled
from intarsia.native.te.operators.interpolation_weights import Weights, cubic_weights, linear_weights
from intarsia.native.te.tensor import Tensor

_FAR = 2.0**30
"""A coordinate beyond every image that still fits an int64."""


@compute_rule("GridSample")
@in_float32
def grid_sample(call: ComputeCall) -> Sequence[Tensor]:
    """Declare elements of images at grid positions from -1 to 1: nearest, linear or cubic."""
    x, grid = call.input(0), call.input(1)
    mode, padding = call.text("mode", "linear"), call.text("padding_mode", "zeros")
    if mode not in ("nearest", "linear", "cubic") or padding not in ("zeros", "border", "reflection"):
        raise call.not_covered(f"the mode {mode} with {padding}")
    if not x.dtype.is_float or 0 in x.shape:
        raise call.not_covered(f"images of {x.dtype.value} of the shape {x.shape}")
    if len(x.shape) > (4 if mode == "cubic" else 5):
        raise call.not_covered(f"{len(x.shape) - 2} spatial dimensions in the mode {mode}")
    rank, around = len(x.shape) - 2, Padding(padding, bool(call.integer("align_corners", 0)))

    def coordinate(n: Expression, k: Expression, *position: Expression) -> Expression:
        """Return the coordinate on axis k of the image; the grid has the last axis first."""
        coordinates = [
            _placed(grid[(n, *position, rank - 1 - axis)].astype(x.dtype), extent, mode, around)
            for axis, extent in enumerate(x.shape[2:])
        ]
        return reduce(
            lambda rest, axis: select(k <= axis, coordinates[axis], rest),
            reversed(range(rank - 1)),
            coordinates[-1],
        )

    places = compute((x.shape[0], rank, *call.shape[2:]), coordinate, f"{call.name}.place")

    def element(n: Expression, c: Expression, *position: Expression) -> Expression:
        at = [places[(n, k, *position)] for k in range(rank)]
        if mode == "nearest":
            return _pixel(x, n, c, tuple(coordinate.astype(DType.INT64) for coordinate in at), around)
        return _blended(x, n, c, at, around, linear_weights if mode == "linear" else cubic_weights(-0.75))

    return [compute(call.shape, element, call.name)]


def _placed(position: Expression, extent: int, mode: str, padding: Padding) -> Expression:
    """Return a position from -1 to 1 as a fractional index, clamped unless zeros surround the image."""
    low, high = padding.ends(extent)
    if padding.is_aligned:
        coordinate = (position + 1.0) / 2.0 * (extent - 1.0)
    else:
        coordinate = ((position + 1.0) * float(extent) - 1.0) / 2.0
    coordinate = select(coordinate >= -_FAR, minimum(coordinate, _FAR), -_FAR)  # NaN is far away too
    if mode == "nearest":
        coordinate = intrinsic("round_even", coordinate)
    if padding.mode == "border" and mode == "cubic":
        return coordinate  # each of the four elements is clamped separately, as in onnxruntime and PyTorch
    if padding.mode == "border":
        is_outside = logical_or(coordinate < low, coordinate > high)
        return select(is_outside, minimum(maximum(coordinate, 0.0), extent - 1.0), coordinate)
    return _reflected(coordinate, low, high) if padding.mode == "reflection" else coordinate


def _reflected(coordinate: Expression, low: float, high: float) -> Expression:
    """Return a coordinate mirrored at both ends as often as it takes."""
    size = high - low
    if size <= 0:
        return coordinate * 0.0 + low
    distance = maximum(low - coordinate, coordinate - high)
    turns = intrinsic("floor", distance / size)
    # An even number of reflections keeps the direction, an odd one turns it around.
    rest = distance - turns * size
    is_even = turns - intrinsic("floor", turns * 0.5) * 2.0 < 0.5
    from_low, from_high = low + rest, high - rest
    below = select(is_even, from_low, from_high)
    above = select(is_even, from_high, from_low)
    return select(coordinate < low, below, select(coordinate > high, above, coordinate))


def _blended(
    x: Tensor, n: Expression, c: Expression, at: Sequence[Expression], padding: Padding, weights: Weights
) -> Expression:
    """Return the weighted sum of the elements around a position."""
    floors = [intrinsic("floor", coordinate) for coordinate in at]
    shares = [weights(coordinate - low) for coordinate, low in zip(at, floors, strict=True)]
    count, terms = len(shares[0]), []
    for corner in product(range(count), repeat=len(at)):
        indices = tuple(
            scaled(low.astype(DType.INT64), 1, side + 1 - count // 2)
            for low, side in zip(floors, corner, strict=True)
        )
        weight = reduce(mul, (share[side] for share, side in zip(shares, corner, strict=True)))
        terms.append(_pixel(x, n, c, indices, padding) * weight)
    return reduce(add, terms)


def _pixel(x: Tensor, n: Expression, c: Expression, indices: Indices, padding: Padding) -> Expression:
    """Return an element of the image, or of its padding."""
    extents = x.shape[2:]
    if padding.mode == "reflection":
        inside = tuple(padding.folded(index, extent) for index, extent in zip(indices, extents, strict=True))
        return x[(n, c, *inside)]
    inside = tuple(clamped(index, extent) for index, extent in zip(indices, extents, strict=True))
    if padding.mode == "border":
        return x[(n, c, *inside)]
    tests = [
        test for index, extent in zip(indices, extents, strict=True) for test in (index >= 0, index < extent)
    ]
    return select(logical_and(*tests), x[(n, c, *inside)], const(0, x.dtype))


@dataclass(frozen=True, slots=True)
class Padding:
    """The padding around an image.

    Attributes:
        mode: zeros, border or reflection.
        is_aligned: Whether the image ends at the middle of its outermost elements, or at their border.
    """

    mode: str
    is_aligned: bool

    def ends(self, extent: int) -> tuple[float, float]:
        """Return the coordinates at which an axis of the image begins and ends."""
        return (0.0, extent - 1.0) if self.is_aligned else (-0.5, extent - 0.5)

    def folded(self, index: Expression, extent: int) -> Expression:
        """Return an index mirrored at both ends as often as it takes."""
        if extent == 1:
            return ZERO
        last = 2 * (extent - 1) if self.is_aligned else 2 * extent - 1
        turned = index % (last if self.is_aligned else last + 1)
        return minimum(turned, last - turned)
