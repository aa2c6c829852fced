"""Resize: nearest, linear and cubic, one axis at a time."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from fractions import Fraction
from functools import reduce

from intarsia.ir import DType
from intarsia.native.te.compute import compute
from intarsia.native.te.expression import Expression
from intarsia.native.te.functions import const, highest, if_then_else, logical_and, logical_or, lowest, select
from intarsia.native.te.operators.compute_call import ComputeCall
from intarsia.native.te.operators.compute_rule import compute_rule
from intarsia.native.te.operators.index_arithmetic import front, scaled
from intarsia.native.te.operators.interpolation_weights import Weights, cubic_weights, linear_weights
from intarsia.native.te.operators.resize_coordinates import (
    MODES,
    MOST_POSITIONS,
    WHOLE,
    Line,
    Resizing,
    nearest,
)
from intarsia.native.te.operators.saturation import saturated
from intarsia.native.te.tensor import Tensor


@compute_rule("Resize")
def resize(call: ComputeCall) -> Sequence[Tensor]:
    """Declare a resize: all coordinate transformations, constant sizes or scales, no antialiasing."""
    resizings = _resizings(call)
    if call.integer("antialias", 0):
        raise call.not_covered("antialiasing")
    match call.text("mode", "nearest"):
        case "nearest":
            return [_nearest(call, resizings)]
        case "linear":
            return [_interpolated(call, resizings, linear_weights)]
        case "cubic":
            return [_interpolated(call, resizings, cubic_weights(call.real("cubic_coeff_a", -0.75)))]
        case mode:
            raise call.not_covered(f"the mode {mode}")


def _resizings(call: ComputeCall) -> list[Resizing]:
    extents, wanted = call.input(0).shape, call.shape
    rank = len(extents)
    axes = [front(axis, rank) for axis in call.integers("axes", tuple(range(rank)))]
    mode = call.text("coordinate_transformation_mode", "half_pixel")
    if mode not in MODES:
        raise call.not_covered(f"the mode {mode}")
    scales = _scales(call, axes)
    regions = _regions(call, axes) if mode == "tf_crop_and_resize" else {}
    resizings = [
        Resizing(mode, extents[i], wanted[i], scales.get(i, Fraction(1)), regions.get(i, WHOLE))
        for i in range(rank)
    ]
    if 0 not in wanted and not all(resizing.line.is_small for resizing in resizings):
        raise call.not_covered("scales of so many digits")
    return resizings


def _scales(call: ComputeCall, axes: Sequence[int]) -> dict[int, Fraction]:
    scales = call.known_array(2)
    if scales is not None and scales.size:
        return {axis: Fraction(float(scale)) for axis, scale in zip(axes, scales, strict=True)}
    sizes, extents = call.known_ints(3), call.input(0).shape
    if not sizes or 0 in extents:
        raise call.not_covered("neither scales nor sizes, or nothing to resize")
    ratios = {axis: Fraction(size, extents[axis]) for axis, size in zip(axes, sizes, strict=True)}
    match call.text("keep_aspect_ratio_policy", "stretch"):
        case "not_larger":
            return dict.fromkeys(axes, min(ratios.values()))
        case "not_smaller":
            return dict.fromkeys(axes, max(ratios.values()))
        case _:
            return ratios


def _regions(call: ComputeCall, axes: Sequence[int]) -> dict[int, tuple[Fraction, Fraction]]:
    region = call.known_array(1)
    if region is None or region.size != 2 * len(axes):
        raise call.not_covered("a region left out")
    borders = [Fraction(float(border)) for border in region]
    return dict(zip(axes, zip(borders, borders[len(axes) :], strict=False), strict=True))


def _nearest(call: ComputeCall, resizings: Sequence[Resizing]) -> Tensor:
    x, rounding = call.input(0), call.text("nearest_mode", "round_prefer_floor")
    longest = max((resizing.wanted for resizing in resizings if not resizing.is_nothing), default=0)
    if longest > MOST_POSITIONS:
        raise call.not_covered(f"nearest elements along an axis that gets {longest} elements")

    def element(*i: Expression) -> Expression:
        nearest_element = x[
            tuple(
                _nearest_index(index, resizing, rounding)
                for index, resizing in zip(i, resizings, strict=True)
            )
        ]
        outside = [
            test for index, resizing in zip(i, resizings, strict=True) for test in _tests(index, resizing)
        ]
        return (
            if_then_else(logical_or(*outside), _extrapolation(call, x.dtype), nearest_element)
            if outside
            else nearest_element
        )

    return compute(call.shape, element, call.name)


def _nearest_index(index: Expression, resizing: Resizing, rounding: str) -> Expression:
    return index if resizing.is_nothing or not resizing.wanted else nearest(index, resizing, rounding)


def _tests(index: Expression, resizing: Resizing) -> tuple[Expression, ...]:
    """Return the conditions of which one holds where an index lies outside of the region."""
    if resizing.mode != "tf_crop_and_resize" or resizing.is_nothing or resizing.line.is_inside():
        return ()
    return resizing.line.outside(index)


def _extrapolation(call: ComputeCall, dtype: DType) -> Expression:
    value = call.real("extrapolation_value", 0.0)
    if dtype.is_integer:
        value = float(int(min(max(value, lowest(dtype)), highest(dtype))))
    return const(bool(value) if dtype is DType.BOOL else value, dtype)


def _interpolated(call: ComputeCall, resizings: Sequence[Resizing], weights: Weights) -> Tensor:
    """Declare a stage for each axis that changes, in floats; the last one has the type of the result."""
    x, dtype = call.input(0), call.output_type.dtype
    wide = dtype if dtype in (DType.FLOAT32, DType.FLOAT64) else DType.FLOAT32
    wide = DType.FLOAT64 if dtype.is_integer else wide
    changed = [axis for axis, resizing in enumerate(resizings) if not resizing.is_nothing]
    for axis in changed:
        x = _axis_interpolated(call, x, axis, resizings[axis], weights, wide)
    return compute(call.shape, lambda *i: saturated(x[i], dtype), call.name)


def _axis_interpolated(
    call: ComputeCall, x: Tensor, axis: int, resizing: Resizing, weights: Weights, dtype: DType
) -> Tensor:
    shape = (*x.shape[:axis], resizing.wanted, *x.shape[axis + 1 :])
    taps = _taps(call, resizing.line, weights, dtype)

    def element(*i: Expression) -> Expression:
        terms = [
            x[(*i[:axis], place, *i[axis + 1 :])].astype(dtype) * weight for place, weight in taps(i[axis])
        ]
        nearest_element = reduce(lambda so_far, term: so_far + term, terms)
        outside = _tests(i[axis], resizing)
        return (
            if_then_else(logical_or(*outside), _extrapolation(call, dtype), nearest_element)
            if outside
            else nearest_element
        )

    return compute(shape, element, f"{call.name}.axis{axis}")


def _taps(
    call: ComputeCall, line: Line, weights: Weights, dtype: DType
) -> Callable[[Expression], Sequence[tuple[Expression, Expression]]]:
    """Return a function from an index to the original indices that it blends, and their weights."""
    is_exclusive = bool(call.integer("exclude_outside", 0))

    def taps(index: Expression) -> Sequence[tuple[Expression, Expression]]:
        fraction = line.fraction(index, dtype)
        if fraction is None:
            return [(line.clamped(index, 0), const(1, dtype))]
        shares = weights(fraction)
        offsets = range(1 - len(shares) // 2, 1 + len(shares) // 2)
        if is_exclusive:
            shares = _inside_only(line, index, offsets, shares)
        return [(line.clamped(index, offset), share) for offset, share in zip(offsets, shares, strict=True)]

    return taps


def _inside_only(
    line: Line, index: Expression, offsets: Sequence[int], shares: Sequence[Expression]
) -> Sequence[Expression]:
    """Return weights of 0 for indices outside, with the others scaled to a sum of 1."""
    places = [scaled(line.lower(index), 1, offset) for offset in offsets]
    kept = [
        select(logical_and(place >= 0, place < line.extent), share, 0.0)
        for place, share in zip(places, shares, strict=True)
    ]
    whole = reduce(lambda so_far, share: so_far + share, kept)
    return [share / whole for share in kept]
