"""Resize in all its modes, on random sizes, scales and regions."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import numpy.typing as npt
import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st
from tests.compute_rule_checks import check, rule_call
from tests.effort import examples

from intarsia.native import te
from intarsia.native.te.operators import (
    NotCoveredError,
    compute,
    compute_call_of,
    reason_not_covered,
    resize_coordinates,
    resizing,
)
from intarsia.native.te.operators.resize_coordinates import MODES

pytestmark = pytest.mark.quick_tests(10, also=["test_aspect_ratio[not_larger]", "test_crop_and_resize"])

Array = npt.NDArray[Any]

EXTENTS = st.integers(1, 7)
PLAIN_MODES = sorted(MODES - {"tf_crop_and_resize"})
ROUNDINGS = ("round_prefer_floor", "round_prefer_ceil", "floor", "ceil")


def image(*shape: int, dtype: Any = np.float32) -> Array:
    return np.random.default_rng(5).integers(0, 200, shape).astype(dtype)


def floats(*values: float) -> Array:
    return np.array(values, np.float32)


def sizes(*values: int) -> Array:
    return np.array(values, np.int64)


@given(EXTENTS, EXTENTS, EXTENTS, EXTENTS, st.sampled_from(PLAIN_MODES), st.sampled_from(ROUNDINGS))
@settings(max_examples=examples(150, quick=6), deadline=None)
def test_nearest_to_sizes(h: int, w: int, rows: int, columns: int, mode: str, rounding: str) -> None:
    attrs: dict[str, Any] = {
        "coordinate_transformation_mode": mode,
        "nearest_mode": rounding,
        "mode": "nearest",
    }
    check("Resize", image(h, w), None, None, sizes(rows, columns), **attrs)


SCALES = st.sampled_from((0.3, 0.5, 0.6, 1 / 3, 0.8, 1.0, 1.2, 1.5, 2.0, 2.5, 3.0, 0.21))


@given(EXTENTS, SCALES, st.sampled_from(PLAIN_MODES), st.sampled_from(ROUNDINGS))
@settings(max_examples=examples(150, quick=6), deadline=None)
def test_nearest_by_scales(extent: int, scale: float, mode: str, rounding: str) -> None:
    assume(math.floor(extent * scale) >= 1)
    assume(_is_exact(mode, extent, scale))
    attrs: dict[str, Any] = {
        "coordinate_transformation_mode": mode,
        "nearest_mode": rounding,
        "mode": "nearest",
    }
    check("Resize", image(2, extent), None, floats(1, scale), **attrs)


def _is_exact(mode: str, extent: int, scale: float) -> bool:
    """Whether the reference rounds positions in one way only; else it takes neighbours that do not fit."""
    return mode != "half_pixel_symmetric" or extent * scale == int(extent * scale)


KINDS = st.sampled_from(("linear", "cubic"))


@given(EXTENTS, EXTENTS, SCALES, SCALES, st.sampled_from(PLAIN_MODES), KINDS, st.booleans())
@settings(max_examples=examples(150, quick=6), deadline=None)
def test_interpolation(
    h: int, w: int, scale_h: float, scale_w: float, mode: str, kind: str, is_exclusive: bool
) -> None:
    assume(math.floor(h * scale_h) >= 1)
    assume(math.floor(w * scale_w) >= 1)
    assume(_is_exact(mode, h, scale_h) and _is_exact(mode, w, scale_w))
    attrs: dict[str, Any] = {"coordinate_transformation_mode": mode, "mode": kind}
    attrs["exclude_outside"] = int(is_exclusive)
    scales = floats(1, scale_h, scale_w)
    tolerance = 1e-9 if kind == "linear" else 2e-4  # the reference computes the weights in float32
    check("Resize", image(2, h, w, dtype=np.float64), None, scales, tolerance=tolerance, **attrs)
    check("Resize", image(2, h, w), None, scales, tolerance=2e-4, **attrs)


REGIONS = st.tuples(*[st.sampled_from((-0.5, 0.0, 0.25, 0.375, 0.75, 1.0, 1.25))] * 2)


@given(EXTENTS, EXTENTS, REGIONS, st.sampled_from(("nearest", "linear", "cubic")))
@settings(max_examples=examples(100, quick=6), deadline=None)
def test_crop_and_resize(extent: int, wanted: int, region: tuple[float, float], kind: str) -> None:
    attrs: dict[str, Any] = {"coordinate_transformation_mode": "tf_crop_and_resize", "mode": kind}
    assume(wanted / extent * extent == wanted)  # else the reference may miss the border by a rounding
    roi = floats(*region)
    x = image(2, extent, dtype=np.float64)
    more: dict[str, Any] = {"extrapolation_value": 10.0, "axes": (1,)}
    check("Resize", x, roi, None, sizes(wanted), tolerance=1e-4, **attrs, **more)


@pytest.mark.parametrize("policy", ["not_larger", "not_smaller", "stretch"])
def test_aspect_ratio(policy: str) -> None:
    for kind in ("nearest", "linear"):
        attrs: dict[str, Any] = {"keep_aspect_ratio_policy": policy, "axes": (1, 2), "mode": kind}
        check("Resize", image(1, 4, 6), None, None, sizes(7, 8), tolerance=1e-4, **attrs)


@pytest.mark.parametrize("dtype", [np.uint8, np.int8, np.int32, np.int64, np.float16])
def test_types(dtype: Any) -> None:
    x = image(3, 5, dtype=dtype)
    for kind in ("nearest", "linear", "cubic"):
        tolerance = 0.6 if dtype is np.float16 else 0.0
        check("Resize", x, None, floats(2, 1.6), mode=kind, tolerance=tolerance)


def test_bools_and_large_integers_keep_their_value() -> None:
    flags = np.array([True, False])
    check("Resize", flags, None, floats(2), mode="nearest", expected=[flags.repeat(2)])
    x = np.array([2**62 + 1, -(2**62) - 1])
    check("Resize", x, None, floats(2), mode="nearest", expected=[x.repeat(2)])


def test_doubling_is_halving_of_indices() -> None:
    for mode in ("half_pixel", "asymmetric", "pytorch_half_pixel"):
        rounding = "floor" if mode == "asymmetric" else "round_prefer_floor"
        attrs: dict[str, Any] = {"coordinate_transformation_mode": mode, "nearest_mode": rounding}
        typed = rule_call("Resize", [image(1, 6), None, floats(1, 2)], mode="nearest", **attrs)
        (tensor,) = compute(compute_call_of(typed, "t"))
        x = compute_call_of(typed, "t").input(0)
        assert isinstance(tensor.op, te.ComputeOp)
        i, j = (axis.expression for axis in tensor.op.axes)
        assert tensor.op.bodies == (x[i, j // 2].scalar,)


@pytest.mark.parametrize("at_once", [1, 3, 7])
def test_positions_are_rounded_in_pieces(at_once: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(resize_coordinates, "_POSITIONS_AT_ONCE", at_once)
    for rounding in ROUNDINGS:
        for extent, wanted in ((7, 3), (3, 7), (6, 20), (1, 5)):
            attrs: dict[str, Any] = {"mode": "nearest", "nearest_mode": rounding}
            check("Resize", image(2, extent), None, None, sizes(2, wanted), **attrs)


@pytest.mark.parametrize("more", [0, 1])
def test_nearest_elements_of_long_axes_are_refused(more: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(resizing, "MOST_POSITIONS", 9)
    typed = rule_call("Resize", [image(1, 2), None, None, sizes(1, 9 + more)], mode="nearest")
    assert reason_not_covered(typed) == (
        "operator 'Resize' has no native kernel for nearest elements along an axis that gets 10 elements"
        if more
        else None
    )


def test_an_axis_that_stays_may_be_long(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(resizing, "MOST_POSITIONS", 9)
    assert (
        reason_not_covered(rule_call("Resize", [image(99, 2), None, None, sizes(99, 4)], mode="nearest"))
        is None
    )


def test_what_is_not_covered() -> None:
    x = image(4, 4)
    typed = rule_call("Resize", [x, None, floats(0.5, 0.5)], mode="linear", antialias=1)
    with pytest.raises(NotCoveredError, match="no native kernel for antialiasing"):
        compute(compute_call_of(typed))
