"""Reductions, positions of extremes, softmax and normalizations of random shapes against the reference."""

from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st
from tests.effort import examples
from tests.unit.native.te.operators.checked_call import Array, check, make_call
from tests.unit.native.te.operators.test_random_elementwise import SPECIAL, values

from intarsia.ir import Call, TensorType, with_fields
from intarsia.native.dag import ComputeDAG
from intarsia.native.te import ComputeOp
from intarsia.native.te.operators import compute, compute_call_of

pytestmark = pytest.mark.quick_tests(
    12,
    also=[
        "test_along_an_axis[Hardmax]",
        "test_layer_normalization",
        "test_lp_normalization[2]",
        "test_normalization_of_channels",
    ],
)

FLOATS = ("float32", "float64", "float16")
INTEGERS = ("int32", "int64")
SHAPES = st.lists(st.integers(0, 4), min_size=1, max_size=4).map(tuple)
FULL = st.lists(st.integers(1, 4), min_size=1, max_size=4).map(tuple)


@st.composite
def reductions(draw: st.DrawFn, dtypes: tuple[str, ...]) -> tuple[Array, Array | None, int, int]:
    """Data, axes, keepdims and noop_with_empty_axes."""
    shape = draw(SHAPES)
    data = draw(values(draw(st.sampled_from(dtypes)), shape))
    axes = draw(st.none() | st.lists(st.integers(0, len(shape) - 1), unique=True).map(tuple))
    if axes is not None:
        axes = tuple(axis - len(shape) if draw(st.booleans()) else axis for axis in axes)
    given_axes = None if axes is None else np.array(axes, np.int64)
    return data, given_axes, draw(st.integers(0, 1)), draw(st.integers(0, 1))


REDUCED = [
    *((name, (*FLOATS, *INTEGERS)) for name in ("ReduceSum", "ReduceProd", "ReduceL1", "ReduceSumSquare")),
    *((name, ("float32", "float64")) for name in ("ReduceMean", "ReduceL2", "ReduceLogSum")),
    *((name, (*FLOATS, *INTEGERS, "int8", "uint8", "bool")) for name in ("ReduceMax", "ReduceMin")),
]


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore:Mean of empty slice")
@pytest.mark.parametrize(("name", "dtypes"), REDUCED)
@settings(max_examples=examples(40, quick=6), deadline=None)
@given(data=st.data())
def test_reductions(name: str, dtypes: tuple[str, ...], data: st.DataObject) -> None:
    x, axes, keepdims, noop = data.draw(reductions(dtypes))
    assume(name not in ("ReduceMax", "ReduceMin") or x.size)
    with np.errstate(all="ignore"):
        call = make_call(name, x, axes, keepdims=keepdims, noop_with_empty_axes=noop)
        check(call, length=int(x.size * _cancellation(x, axes)))


def in_stages(name: str, shape: tuple[int, ...], axes: tuple[int, ...]) -> list[str]:
    """Return the names of the stages of a reduction."""
    call = make_call(name, np.ones(shape, np.float32), np.array(axes, np.int64), keepdims=0)
    return [
        op.name for op in ComputeDAG(compute(compute_call_of(call, "r"))).ops if isinstance(op, ComputeOp)
    ]


@pytest.mark.parametrize(
    ("shape", "axes", "is_staged"),
    [
        ((900, 2, 42), (0, 2), True),
        ((5, 40, 3, 7), (1, 3), True),
        ((900, 20, 9), (0, 2), True),
        ((900, 20, 90), (0, 2), False),  # runs are long enough for vectors
        ((4, 2, 42), (0, 2), False),  # few rows
        ((900, 84), (0,), False),
        ((900, 2, 42), (2,), False),
        ((900, 42), (0, 1), False),
    ],
)
def test_short_runs_are_summed_after_rows(
    shape: tuple[int, ...], axes: tuple[int, ...], *, is_staged: bool
) -> None:
    assert any(name.endswith("columns") for name in in_stages("ReduceMax", shape, axes)) == is_staged


@pytest.mark.parametrize("name", ["ReduceMax", "ReduceMean", "ReduceL2", "ReduceLogSumExp", "ReduceMin"])
@settings(max_examples=examples(12, quick=2), deadline=None)
@given(data=st.data())
def test_reductions_in_stages(name: str, data: st.DataObject) -> None:
    before, between, run = (data.draw(st.integers(*ends)) for ends in ((16, 40), (2, 5), (2, 9)))
    shape = (before, between, run) if data.draw(st.booleans()) else (2, before, between, run)
    axes = (len(shape) - 3, len(shape) - 1)
    assert any(part.endswith("columns") for part in in_stages(name, shape, axes))
    x = np.random.default_rng(data.draw(st.integers(0, 99))).standard_normal(shape).astype(np.float32)
    call = make_call(name, x, np.array(axes, np.int64), keepdims=data.draw(st.integers(0, 1)))
    check(call, length=int(x.size * _cancellation(x, np.array(axes))))


def _cancellation(x: Array, axes: Array | None) -> float:
    """How many times larger than its sum a sum of sizes is: so much do roundings of the terms count."""
    if not x.size or x.dtype.kind != "f" or not np.isfinite(x).all():
        return 1.0
    chosen = None if axes is None or not axes.size else tuple(map(int, axes))
    wide = x.astype(np.float64)
    sums, sizes = (np.atleast_1d(each) for each in (np.abs(wide.sum(chosen)), np.abs(wide).sum(chosen)))
    known = sizes < 1e5 * sums
    return float(np.max(sizes[known] / sums[known], initial=1.0))


@settings(max_examples=examples(40, quick=6), deadline=None)
@given(data=st.data())
def test_log_sum_exp_of_infinities(data: st.DataObject) -> None:
    x, axes, keepdims, _ = data.draw(reductions(("float64", "float32")))
    assume(x.size)
    chosen = tuple(range(x.ndim)) if axes is None or not axes.size else tuple(int(axis) for axis in axes)
    expected = _log_sum_exp(x.astype(np.float64), chosen)
    found = expected.astype(x.dtype)
    if not keepdims:
        found = found.squeeze(chosen)
    call = make_call("ReduceLogSumExp", x, axes, keepdims=keepdims)
    check(call, [found], length=x.size, summand=1.0)  # the largest power; its logarithm is 0


def _log_sum_exp(x: Array, axes: tuple[int, ...]) -> Array:
    """With the reduced dimensions kept."""
    with np.errstate(all="ignore"):
        largest = x.max(axes, keepdims=True)
        offset = np.where(np.isfinite(largest), largest, 0.0)
        return np.asarray(np.log(np.exp(x - offset).sum(axes, keepdims=True)) + offset)


@pytest.mark.parametrize("dtype", ["int32", "int64", "uint32"])
def test_means_of_integers_round_towards_zero(dtype: str) -> None:
    x = np.array([[1, 2, 4] if dtype == "uint32" else [-1, -2, -4], [5, 5, 6]], dtype)
    expected = np.trunc(x.astype(np.float64).mean(axis=1)).astype(dtype)
    check(make_call("ReduceMean", x, np.array([1]), keepdims=0), [expected])


@pytest.mark.parametrize("name", ["ArgMax", "ArgMin"])
@settings(max_examples=examples(60, quick=6), deadline=None)
@given(data=st.data(), keepdims=st.integers(0, 1), last=st.integers(0, 1))
def test_positions_of_extremes(name: str, data: st.DataObject, keepdims: int, last: int) -> None:
    shape = data.draw(FULL)
    axis = data.draw(st.integers(-len(shape), len(shape) - 1))
    x = data.draw(values(data.draw(st.sampled_from((*FLOATS, "int32", "uint8"))), shape))
    if x.dtype.kind == "f" and data.draw(st.booleans()):
        x = np.full(shape, data.draw(st.sampled_from(SPECIAL)), x.dtype)
    find = np.argmax if name == "ArgMax" else np.argmin
    found = find(np.flip(x, axis) if last else x, axis=axis)
    expected = x.shape[axis] - 1 - found if last else found
    expected = np.expand_dims(expected, axis) if keepdims else np.asarray(expected)
    attrs = {"axis": axis, "keepdims": keepdims, "select_last_index": last}
    check(make_call(name, x, **attrs), [expected.astype(np.int64)])


@pytest.mark.parametrize("name", ["Softmax", "LogSoftmax", "Hardmax"])
@settings(max_examples=examples(30, quick=6), deadline=None)
@given(data=st.data(), scale=st.sampled_from([1.0, 1000.0]))
def test_along_an_axis(name: str, data: st.DataObject, scale: float) -> None:
    shape = data.draw(FULL)
    axis = data.draw(st.integers(-len(shape), len(shape) - 1))
    dtype = data.draw(st.sampled_from(("float32", "float64")))
    x = data.draw(values(dtype, shape, special=False)) if name == "Hardmax" else seeded(*shape, dtype=dtype)
    x = x * np.dtype(dtype).type(scale)
    wide = x.astype(np.float64) - x.max(axis=axis, keepdims=True)
    logs = wide - np.log(np.exp(wide).sum(axis=axis, keepdims=True))
    is_first = np.cumsum(wide == 0, axis=axis) * (wide == 0) == 1
    expected = {"Softmax": np.exp(logs), "LogSoftmax": logs, "Hardmax": is_first}[name]
    check(make_call(name, x, axis=axis), [expected.astype(dtype)], length=x.size)


def seeded(*shape: int, dtype: str = "float32", seed: int = 0) -> Array:
    return np.random.default_rng(seed).standard_normal(shape).astype(dtype)


@settings(max_examples=examples(30, quick=6), deadline=None)
@given(
    shape=FULL,
    data=st.data(),
    has_bias=st.booleans(),
    outputs=st.sampled_from([1, 3]),
    dtype=st.sampled_from(FLOATS),
)
def test_layer_normalization(
    shape: tuple[int, ...], data: st.DataObject, has_bias: bool, outputs: int, dtype: str
) -> None:
    axis = data.draw(st.integers(-len(shape), len(shape) - 1))
    x, tail = (seeded(*shape) + 100).astype(dtype), shape[axis:]
    scale, bias = seeded(*tail, dtype=dtype, seed=1), seeded(*tail, dtype=dtype, seed=2) if has_bias else None
    over = tuple(range(axis % len(shape), len(shape)))
    wide = x.astype(np.float64)
    mean = wide.mean(over, keepdims=True)
    inverse = 1 / np.sqrt(wide.var(over, keepdims=True) + np.float32(1e-5))
    result = (wide - mean) * inverse * scale + (0 if bias is None else bias)
    # Statistics are kept in float32 whatever the argument is.
    expected = [result.astype(dtype), mean.astype(np.float32), inverse.astype(np.float32)][:outputs]
    call = make_call("LayerNormalization", x, scale, bias, outputs=outputs, axis=axis)
    check(call, expected, 10_000 * math.prod(tail))


@settings(max_examples=examples(25, quick=6), deadline=None)
@given(shape=FULL, data=st.data(), dtype=st.sampled_from(["float32", "float64"]))
def test_rms_normalization(shape: tuple[int, ...], data: st.DataObject, dtype: str) -> None:
    axis = data.draw(st.integers(-len(shape), len(shape) - 1))
    scale = seeded(*shape[axis:], dtype=dtype, seed=1)
    check(
        make_call("RMSNormalization", seeded(*shape, dtype=dtype), scale, axis=axis), length=math.prod(shape)
    )


@settings(max_examples=examples(20, quick=6), deadline=None)
@given(shape=st.lists(st.integers(1, 4), min_size=3, max_size=5).map(tuple), dtype=st.sampled_from(FLOATS))
def test_normalization_of_channels(shape: tuple[int, ...], dtype: str) -> None:
    x, channels = seeded(*shape, dtype=dtype), shape[1]
    scale, bias, mean = (seeded(channels, dtype=dtype, seed=seed) for seed in (1, 2, 3))
    variance = np.abs(seeded(channels, dtype=dtype, seed=4))
    check(make_call("BatchNormalization", x, scale, bias, mean, variance))
    wide, over = x.astype(np.float64), tuple(range(2, x.ndim))
    deviation = np.sqrt(wide.var(over, keepdims=True) + np.float32(1e-5))
    each = (channels,) + (1,) * (x.ndim - 2)
    expected = (wide - wide.mean(over, keepdims=True)) / deviation * scale.reshape(each) + bias.reshape(each)
    check(make_call("InstanceNormalization", x, scale, bias), [expected.astype(dtype)], 100 * x.size)


@settings(max_examples=examples(25, quick=6), deadline=None)
@given(
    channels=st.integers(1, 7),
    size=st.one_of(st.integers(1, 5), st.integers(8, 11)),
    beta=st.sampled_from([0.75, 0.5]),
    dtype=st.sampled_from(["float32", "float64"]),
)
def test_lrn(channels: int, size: int, beta: float, dtype: str) -> None:
    x = seeded(2, channels, 2, 1, dtype=dtype)
    squares = np.zeros(x.shape)
    for channel in range(channels):
        first, behind = max(0, channel - (size - 1) // 2), min(channels, channel + size // 2 + 1)
        squares[:, channel] = (x[:, first:behind].astype(np.float64) ** 2).sum(1)
    expected = x / (1.5 + 0.25 / size * squares) ** beta
    attrs = {"alpha": 0.25, "beta": beta, "bias": 1.5, "size": size}
    check(make_call("LRN", x, **attrs), [expected.astype(dtype)], length=size)


@pytest.mark.parametrize("p", [1, 2])
@settings(max_examples=examples(20, quick=6), deadline=None)
@given(shape=FULL, data=st.data())
def test_lp_normalization(p: int, shape: tuple[int, ...], data: st.DataObject) -> None:
    axis = data.draw(st.integers(-len(shape), len(shape) - 1))
    x = data.draw(values("float32", shape, special=False))
    norm = np.linalg.norm(x.astype(np.float64), ord=p, axis=axis, keepdims=True)
    expected = np.divide(x, norm, out=np.zeros(shape), where=norm != 0).astype(np.float32)
    check(make_call("LpNormalization", x, axis=axis, p=p), [expected], length=x.size)


def shaped(call: Call, x: Array) -> Call:
    """A call with the type of an argument: onnx infers none for operators that it defines by functions."""
    return with_fields(call, checked_type=TensorType.of(x))


@settings(max_examples=examples(25, quick=6), deadline=None)
@given(
    batch=st.integers(0, 2),
    groups=st.integers(1, 3),
    size=st.integers(1, 3),
    spatial=st.lists(st.integers(1, 3), max_size=3),
    dtype=st.sampled_from(FLOATS),
)
def test_group_normalization(batch: int, groups: int, size: int, spatial: list[int], dtype: str) -> None:
    shape = (batch, groups * size, *spatial)
    x, scale, bias = (seeded(*each, dtype=dtype) for each in (shape, shape[1:2], shape[1:2]))
    wide = x.astype(np.float64).reshape(batch, groups, size * math.prod(spatial))
    found = (wide - wide.mean(2, keepdims=True)) / np.sqrt(wide.var(2, keepdims=True) + np.float32(1e-5))
    each = (-1,) + (1,) * len(spatial)
    expected = found.reshape(shape) * scale.reshape(each) + bias.reshape(each)
    call = shaped(make_call("GroupNormalization", x, scale, bias, num_groups=groups), x)
    check(call, [expected.astype(dtype)], 100 * size * math.prod(spatial))


@pytest.mark.parametrize("axes", [(0, 2, 3), (2, 3), (1,), (-1, 0)])
@pytest.mark.parametrize("dtype", ["float32", "float64", "float16"])
def test_mean_variance_normalization(axes: tuple[int, ...], dtype: str) -> None:
    x = seeded(2, 3, 4, 5, dtype=dtype)
    wide = x.astype(np.float64)
    expected = (wide - wide.mean(axes, keepdims=True)) / (wide.std(axes, keepdims=True) + 1e-9)
    call = shaped(make_call("MeanVarianceNormalization", x, axes=axes), x)
    check(call, [expected.astype(dtype)], x.size)
