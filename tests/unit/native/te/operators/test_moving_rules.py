"""Concat, Split, Slice, Pad, Transpose, the Reshape family, Expand and Tile on random shapes."""

from __future__ import annotations

from itertools import pairwise
from typing import Any

import ml_dtypes
import numpy as np
import numpy.typing as npt
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.compute_rule_checks import check, rule_call
from tests.effort import examples

from intarsia.native import te
from intarsia.native.te.operators import NotCoveredError, compute, compute_call_of

pytestmark = pytest.mark.quick_tests(
    36, also=["test_expand_and_tile", "test_operators_of_intarsia", "test_pad"]
)

Array = npt.NDArray[Any]

EXTENTS = st.integers(0, 4)
SHAPES = st.lists(EXTENTS, min_size=1, max_size=4).map(tuple)
DTYPES = (
    *(np.float64, np.float32, np.float16, ml_dtypes.bfloat16, np.bool_),
    *(np.int64, np.int32, np.int16, np.int8, np.uint64, np.uint32, np.uint16, np.uint8),
)


def numbers(shape: tuple[int, ...], dtype: Any = np.float32) -> Array:
    """Different numbers as far as the type goes, with a NaN, an infinity and a negative zero among floats."""
    count = int(np.prod(shape, dtype=np.int64))
    flat = (np.arange(count) * 7 % 113 - 3).astype(dtype)
    if flat.dtype.kind not in "biu":
        flat[1::5], flat[2::7], flat[3::9] = np.nan, -np.inf, -0.0
    return flat.reshape(shape)


def ints(*values: int) -> Array:
    return np.array(values, np.int64)


@given(SHAPES, st.data())
@settings(max_examples=examples(40, quick=6), deadline=None)
def test_concat_and_split(shape: tuple[int, ...], data: st.DataObject) -> None:
    axis = data.draw(st.integers(-len(shape), len(shape) - 1))
    lengths = data.draw(st.lists(EXTENTS, min_size=1, max_size=5))
    parts = [
        numbers((*shape[: axis % len(shape)], n, *shape[axis % len(shape) + 1 :])) + i
        for i, n in enumerate(lengths)
    ]
    check("Concat", *parts, axis=axis)
    whole = np.concatenate(parts, axis)
    check("Split", whole, ints(*lengths), outputs=len(lengths), axis=axis)


@pytest.mark.parametrize(("extent", "count"), [(7, 3), (6, 3), (1, 1), (0, 1)])
def test_split_into_equal_parts(extent: int, count: int) -> None:
    check("Split", numbers((2, extent)), outputs=count, num_outputs=count, axis=1)


def test_concat_of_many_nests_little() -> None:
    parts = [numbers((1 + i % 2, 2)) + i for i in range(150)]
    check("Concat", *parts, axis=0)


BOUNDS = st.integers(-7, 7) | st.sampled_from((-(2**63), 2**63 - 1))


@given(SHAPES, st.data())
@settings(max_examples=examples(80, quick=6), deadline=None)
def test_slice(shape: tuple[int, ...], data: st.DataObject) -> None:
    axes = data.draw(st.lists(st.integers(0, len(shape) - 1), unique=True, min_size=1))
    starts, ends = ([data.draw(BOUNDS) for _ in axes] for _ in range(2))
    steps = [data.draw(st.sampled_from((-3, -2, -1, 1, 2, 3))) for _ in axes]
    signed = [axis - len(shape) * data.draw(st.integers(0, 1)) for axis in axes]
    wanted = numbers(shape)
    for axis, start, end, step in zip(axes, starts, ends, steps, strict=True):
        wanted = wanted.take(_places(shape[axis], start, end, step), axis)
    found = [ints(*each) for each in (starts, ends, signed, steps)]
    check("Slice", numbers(shape), *found, expected=[wanted])


def _places(extent: int, start: int, end: int, step: int) -> list[int]:
    """As ONNX says, which is not as Python does: a start before the first element is the first."""
    start, end = (bound + extent if bound < 0 else bound for bound in (start, end))
    if step > 0:
        return list(range(max(0, min(start, extent)), max(0, min(end, extent)), step))
    return list(range(max(0, min(start, extent - 1)), max(-1, min(end, extent - 1)), step)) if extent else []


def test_slice_of_leading_axes() -> None:
    check("Slice", numbers((5, 4)), ints(1), ints(4))
    check("Slice", numbers((5, 4)), ints(1, -2), ints(4, 99))


@given(SHAPES, st.sampled_from(("constant", "edge", "reflect", "wrap")), st.data())
@settings(max_examples=examples(80, quick=6), deadline=None)
def test_pad(shape: tuple[int, ...], mode: str, data: st.DataObject) -> None:
    axes = data.draw(st.lists(st.integers(0, len(shape) - 1), unique=True, min_size=1))
    low = 0 if mode == "constant" else 1
    shape = tuple(max(low, n) for n in shape)
    pads = [data.draw(st.integers(0, 6)) for _ in range(2 * len(axes))]
    signed = ints(*(axis - len(shape) * data.draw(st.integers(0, 1)) for axis in axes))
    value = np.float32(2.5) if mode == "constant" and data.draw(st.booleans()) else None
    constant = None if value is None else np.array(value)
    check("Pad", numbers(shape), ints(*pads), constant, signed, mode=mode)


@pytest.mark.parametrize("mode", ["constant", "edge", "reflect", "wrap"])
@pytest.mark.parametrize("pads", [(-1, 2), (2, -1), (-2, -1), (-1, 3), (0, -2)])
def test_pad_crops_before_it_pads(mode: str, pads: tuple[int, int]) -> None:
    x = numbers((2, 5))
    cropped = x[:, max(0, -pads[0]) : 5 - max(0, -pads[1])]
    widths = ((0, 0), (max(0, pads[0]), max(0, pads[1])))
    wanted = np.pad(cropped, widths, mode=mode)  # type: ignore[call-overload]  # the modes are those of NumPy
    check("Pad", x, ints(0, pads[0], 0, pads[1]), mode=mode, expected=[wanted])


@pytest.mark.parametrize("dtype", DTYPES)
def test_pad_with_zeros_of_each_type(dtype: Any) -> None:
    check("Pad", numbers((2, 3), dtype), ints(1, 0, 0, 2))


def test_pad_without_elements_to_repeat() -> None:
    typed = rule_call("Pad", [numbers((0, 2)), ints(1, 0, 0, 0)], mode="edge")
    with pytest.raises(NotCoveredError, match="on an axis without elements"):
        compute(compute_call_of(typed))


@given(st.lists(st.integers(0, 7), min_size=1, max_size=3), st.data())
@settings(max_examples=examples(30, quick=6), deadline=None)
def test_center_crop_pad(shape: list[int], data: st.DataObject) -> None:
    axes = data.draw(st.lists(st.integers(0, len(shape) - 1), unique=True, min_size=1))
    sizes = ints(*(data.draw(st.integers(1, 7)) for _ in axes))
    check("CenterCropPad", numbers(tuple(shape)), sizes, axes=tuple(axes))


@given(SHAPES, st.data())
@settings(max_examples=examples(30, quick=6), deadline=None)
def test_transpose(shape: tuple[int, ...], data: st.DataObject) -> None:
    check("Transpose", numbers(shape))
    check("Transpose", numbers(shape), perm=tuple(data.draw(st.permutations(range(len(shape))))))


@given(SHAPES, SHAPES, st.data())
@settings(max_examples=examples(60, quick=6), deadline=None)
def test_reshape(left: tuple[int, ...], right: tuple[int, ...], data: st.DataObject) -> None:
    """Two shapes of the same factors, grouped differently."""
    factors = [n for n in (*left, *right) if n]
    shapes = [_grouped(factors, data) for _ in range(2)]
    check("Reshape", numbers(shapes[0]), ints(*shapes[1]))


def _grouped(factors: list[int], data: st.DataObject) -> tuple[int, ...]:
    cuts = sorted(data.draw(st.lists(st.integers(0, len(factors)), max_size=4)))
    edges = [0, *cuts, len(factors)]
    return tuple(int(np.prod(factors[a:b], dtype=np.int64)) for a, b in pairwise(edges))


def test_reshape_of_nothing() -> None:
    check("Reshape", numbers((0, 3)), ints(3, 0, 2), allowzero=1)


def test_reshape_to_the_same_factors_is_a_simple_access() -> None:
    (tensor,) = compute(compute_call_of(rule_call("Reshape", [numbers((2, 3, 4)), ints(2, 1, 12)]), "t"))
    assert isinstance(tensor.op, te.ComputeOp)
    assert str(tensor.op.bodies[0]).count("FLOOR_DIV") == 1  # i stays i; k is taken apart
    (tensor,) = compute(compute_call_of(rule_call("Unsqueeze", [numbers((2, 3)), ints(1)]), "t"))
    assert isinstance(tensor.op, te.ComputeOp)
    assert "Arith" not in str(tensor.op.bodies[0])


@pytest.mark.quick_cases(5)
@pytest.mark.parametrize("dtype", DTYPES)
def test_every_type_keeps_its_bits(dtype: Any) -> None:
    x = numbers((2, 1, 3), dtype)
    check("Identity", x)
    check("Flatten", x, axis=-1)
    check("Squeeze", x, ints(-2))
    check("Squeeze", x)
    check("Unsqueeze", x, ints(0, -1))
    check("Transpose", x)
    check("Concat", x, x, axis=1)


@given(SHAPES, st.data())
@settings(max_examples=examples(40, quick=6), deadline=None)
def test_expand_and_tile(shape: tuple[int, ...], data: st.DataObject) -> None:
    wanted = [n if n != 1 or data.draw(st.booleans()) else data.draw(EXTENTS) for n in shape]
    behind = wanted[data.draw(st.integers(0, len(wanted))) :]
    ahead = data.draw(st.lists(EXTENTS, max_size=2)) if len(behind) == len(wanted) else []
    check("Expand", numbers(shape), ints(*ahead, *behind))
    check("Tile", numbers(shape), ints(*(data.draw(st.integers(0, 3)) for _ in shape)))


def test_scalars() -> None:
    x = np.float32(3)
    check("Identity", np.array(x))
    check("Transpose", np.array(x))
    check("Expand", np.array(x), ints(2, 3))
    check("Reshape", np.array(x), ints(1, 1))
    check("Reshape", np.array([[x]]), ints())
    check("Pad", np.array(x), ints(), expected=[np.array(x)])  # the reference fails


def test_operators_of_intarsia() -> None:
    x = numbers((2, 3, 4, 5))
    check("layout_transform", x, domain="intarsia", src_layout="NCHW", dst_layout="NHWC")
    check("layout_transform", x, domain="intarsia", src_layout="NHWC", dst_layout="WCNH")
    check("device_copy", x, domain="intarsia")
    check("on_device", x, domain="intarsia")


@pytest.mark.parametrize("mode", ["DCR", "CRD"])
@pytest.mark.parametrize("block", [1, 2, 3])
def test_depth_and_space(mode: str, block: int) -> None:
    check("DepthToSpace", numbers((2, 3 * block**2, 2, 3)), blocksize=block, mode=mode)
    check("SpaceToDepth", numbers((2, 3, 2 * block, 3 * block)), blocksize=block)
