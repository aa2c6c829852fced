"""QuantizeLinear, DequantizeLinear, DynamicQuantizeLinear, and products and convolutions of integers."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.compute_rule_checks import check, rule_call
from tests.effort import examples

from intarsia.native.te.operators import NotCoveredError, compute, compute_call_of

Array = npt.NDArray[Any]

SEEDS = st.integers(0, 2**32 - 1)
NARROW = st.sampled_from((np.int8, np.uint8, np.int16, np.uint16))
BYTES = st.sampled_from((np.int8, np.uint8))
SHAPES = st.lists(st.integers(0, 4), min_size=1, max_size=3).map(tuple)


def floats(seed: int, shape: tuple[int, ...], scale: float = 100.0) -> Array:
    return np.random.default_rng(seed).normal(0, scale, shape).astype(np.float32)


def integers(seed: int, shape: tuple[int, ...], dtype: Any) -> Array:
    limits = np.iinfo(dtype)
    return np.random.default_rng(seed).integers(limits.min, limits.max, shape, dtype, endpoint=True)


def scales(seed: int, *shape: int) -> Array:
    """Powers of two, so that sums of products need no rounding."""
    return (2.0 ** np.random.default_rng(seed).integers(-6, 0, shape)).astype(np.float32)


@given(SHAPES, NARROW, SEEDS, st.booleans(), st.data())
@settings(max_examples=examples(60, quick=6), deadline=None)
def test_quantize_and_dequantize(
    shape: tuple[int, ...], dtype: Any, seed: int, is_per_axis: bool, data: st.DataObject
) -> None:
    axis = data.draw(st.integers(-len(shape), len(shape) - 1))
    own = (shape[axis],) if is_per_axis else ()
    scale, zero = scales(seed, *own), integers(seed, own, dtype)
    attrs = dict[str, Any](axis=axis)
    check("QuantizeLinear", floats(seed, shape), scale, zero, **attrs)
    check("DequantizeLinear", integers(seed, shape, dtype), scale, zero, tolerance=1e-6, **attrs)


def test_rounds_to_even_and_saturates() -> None:
    x = np.array([0.5, 1.5, 2.5, -0.5, -1.5, 1e9, -1e9, np.inf, -np.inf], np.float32)
    wanted = np.array([0, 2, 2, 0, -2, 127, -128, 127, -128], np.int8)
    check("QuantizeLinear", x, np.array([1.0], np.float32), np.array([0], np.int8), expected=[wanted])


@pytest.mark.parametrize("axis", [0, 1, -1])
def test_blocks(axis: int) -> None:
    shape = [4, 5]
    shape[axis] = -(-shape[axis] // 2)
    attrs = dict[str, Any](axis=axis, block_size=2)
    scale, zero = scales(1, *shape), integers(1, tuple(shape), np.uint8)
    check("QuantizeLinear", floats(1, (4, 5)), scale, zero, **attrs)
    check("DequantizeLinear", integers(1, (4, 5), np.uint8), scale, zero, tolerance=1e-6, **attrs)


def test_quantizing_without_a_zero_point() -> None:
    check("QuantizeLinear", floats(2, (3, 4)), scales(1))
    check("QuantizeLinear", floats(2, (3, 4)), scales(1), output_dtype=5)
    check("DequantizeLinear", integers(2, (3, 4), np.int32) // 2**10, scales(1), tolerance=1e-6)


def test_narrow_types_are_not_covered() -> None:
    typed = rule_call("QuantizeLinear", [floats(2, (3, 4)), scales(1)], output_dtype=17)
    with pytest.raises(NotCoveredError, match="float8_e4m3fn"):
        compute(compute_call_of(typed))


@given(SHAPES.filter(lambda shape: 0 not in shape), SEEDS, st.sampled_from((0.0, 3.0, -3.0)))
@settings(max_examples=examples(40, quick=6), deadline=None)
def test_dynamic_quantization(shape: tuple[int, ...], seed: int, middle: float) -> None:
    x = floats(seed, shape, 1.0) + np.float32(middle)
    check("DynamicQuantizeLinear", x, outputs=3, tolerance=1e-6)
    check("DynamicQuantizeLinear", np.zeros_like(x), outputs=3)


MATRICES = st.sampled_from(
    (
        ((3, 4), (4, 2)),
        ((4,), (4, 2)),
        ((3, 4), (4,)),
        ((4,), (4,)),
        ((2, 3, 4), (4, 5)),
        ((3, 4), (2, 4, 5)),
        ((2, 1, 3, 4), (5, 4, 2)),
        ((3, 0), (0, 2)),
    )
)


@given(MATRICES, BYTES, BYTES, SEEDS)
@settings(max_examples=examples(60, quick=6), deadline=None)
def test_products(shapes: tuple[tuple[int, ...], ...], left: Any, right: Any, seed: int) -> None:
    a, b = integers(seed, shapes[0], left), integers(seed + 1, shapes[1], right)
    zeros = integers(seed, (), left), integers(seed + 2, (), right)
    wide = a.astype(np.int32) - np.int32(zeros[0]), b.astype(np.int32) - np.int32(zeros[1])
    total = np.asarray(wide[0] @ wide[1], np.int32)
    check("MatMulInteger", a, b, *zeros, expected=[total])
    check("MatMulInteger", a, b, expected=[np.asarray(a.astype(np.int32) @ b.astype(np.int32), np.int32)])
    one, two, three, last = scales(seed), scales(seed + 1), scales(seed + 2), integers(seed + 3, (), left)
    moved = np.rint(total * np.float64(one * two / three) + last)
    limits = np.iinfo(left)
    wanted = np.clip(moved, limits.min, limits.max).astype(left)
    check("QLinearMatMul", a, one, zeros[0], b, two, zeros[1], three, last, expected=[wanted])


def test_products_with_zero_points_of_rows_and_columns() -> None:
    a, b = integers(1, (3, 4), np.uint8), integers(2, (4, 2), np.int8)
    rows, columns = integers(3, (3,), np.uint8), integers(4, (2,), np.int8)
    wide = a.astype(np.int32) - rows[:, None].astype(np.int32), b.astype(np.int32) - columns.astype(np.int32)
    check("MatMulInteger", a, b, rows, columns, expected=[wide[0] @ wide[1]])
    one, two = scales(5, 3), scales(6, 2)
    moved = np.rint((wide[0] @ wide[1]) * (one[:, None] * two).astype(np.float64) + 3)
    wanted = np.clip(moved, 0, 255).astype(np.uint8)
    three, last = np.array(1.0, np.float32), np.array(3, np.uint8)
    check("QLinearMatMul", a, one, rows, b, two, columns, three, last, expected=[wanted])
    three, last = scales(7, 3), integers(8, (3,), np.uint8)
    moved = np.rint((wide[0] @ wide[1]) * np.float64(one[:, None] * two / three[:, None]) + last[:, None])
    wanted = np.clip(moved, 0, 255).astype(np.uint8)
    check("QLinearMatMul", a, one, rows, b, two, columns, three, last, expected=[wanted])


def test_scales_of_one_element() -> None:
    a, b = integers(1, (4,), np.uint8), integers(2, (4,), np.uint8)
    one, zero = np.array([1.0], np.float32), np.array([2], np.uint8)
    total = (a.astype(np.int32) - 2) @ (b.astype(np.int32) - 2)
    wanted = np.array(np.clip(total + 2, 0, 255), np.uint8)
    check("QLinearMatMul", a, one, zero, b, one, zero, one, zero, expected=[wanted])


@given(st.integers(1, 2), st.integers(1, 3), st.integers(1, 2), st.integers(1, 2), BYTES, SEEDS, st.data())
@settings(max_examples=examples(40, quick=6), deadline=None)
def test_convolutions(
    group: int, taps: int, stride: int, dilation: int, dtype: Any, seed: int, data: st.DataObject
) -> None:
    pads = tuple(data.draw(st.integers(0, 2)) for _ in range(4))
    attrs = dict[str, Any](group=group, strides=(stride, 1), dilations=(1, dilation), pads=pads)
    x, w = integers(seed, (2, 2 * group, 6, 5), dtype), integers(seed + 1, (3 * group, 2, taps, 2), np.int8)
    zero = integers(seed, (), dtype)
    check(
        "ConvInteger", x, w, zero, np.array(1, np.int8), expected=[_convolved(x, w, zero, **attrs)], **attrs
    )
    one, many, last = scales(seed), scales(seed + 1, 3 * group), integers(seed + 3, (), dtype)
    bias = integers(seed, (3 * group,), np.int16).astype(np.int32)
    total = _convolved(x, w, zero, **attrs) + bias[:, None, None]
    moved = np.rint(total * (one * many[:, None, None]).astype(np.float64) + last)
    wanted = np.clip(moved, np.iinfo(dtype).min, np.iinfo(dtype).max).astype(dtype)
    unit = np.array(1.0, np.float32)
    args = (x, one, zero, w, many, np.full(3 * group, 1, np.int8), unit, last, bias)
    check("QLinearConv", *args, expected=[wanted], **attrs)


def _convolved(x: Array, w: Array, zero: Array, **attrs: Any) -> Array:
    """By definition, with a zero point of 1 for the kernel."""
    pads, (sh, sw), (dh, dw) = attrs["pads"], attrs["strides"], attrs["dilations"]
    widths = ((0, 0), (0, 0), (pads[0], pads[2]), (pads[1], pads[3]))
    image = np.pad(x.astype(np.int64) - int(zero), widths)
    kernel, inputs = w.astype(np.int64) - 1, w.shape[1]
    rows = (image.shape[2] - dh * (w.shape[2] - 1) - 1) // sh + 1
    columns = (image.shape[3] - dw * (w.shape[3] - 1) - 1) // sw + 1
    found = np.zeros((x.shape[0], w.shape[0], rows, columns), np.int32)
    for n, m, i, j in np.ndindex(found.shape):
        first = m // (w.shape[0] // attrs["group"]) * inputs
        patch = image[n, first : first + inputs, i * sh :: dh, j * sw :: dw][:, : w.shape[2], : w.shape[3]]
        found[n, m, i, j] = (patch * kernel[m]).sum()
    return found


@pytest.mark.parametrize("auto_pad", ["SAME_UPPER", "SAME_LOWER", "VALID"])
def test_convolution_with_automatic_padding(auto_pad: str) -> None:
    x, w = integers(0, (1, 1, 5, 6), np.uint8), integers(1, (1, 1, 3, 2), np.uint8)
    check("ConvInteger", x, w, np.array(3, np.uint8), auto_pad=auto_pad, strides=(2, 2))
