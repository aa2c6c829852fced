"""Gather*, Scatter*, TensorScatter, OneHot, ReverseSequence, CumSum, CumProd and TopK on random shapes."""

from __future__ import annotations

from typing import Any

import ml_dtypes
import numpy as np
import numpy.typing as npt
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.compute_rule_checks import check, rule_call
from tests.effort import examples

from intarsia.native.te.operators import NotCoveredError, compute, compute_call_of

pytestmark = pytest.mark.quick_tests(22, also=["test_tensor_scatter[-2-linear]"])

Array = npt.NDArray[Any]

SHAPES = st.lists(st.integers(1, 4), min_size=1, max_size=3).map(tuple)
SEEDS = st.integers(0, 2**32 - 1)
FLOATS = (np.float64, np.float32, np.float16, ml_dtypes.bfloat16)
INTEGERS = (np.int64, np.int32, np.int16, np.int8, np.uint64, np.uint32, np.uint16, np.uint8)


def numbers(seed: int, shape: tuple[int, ...], dtype: Any = np.float32) -> Array:
    return np.random.default_rng(seed).integers(0, 9, shape).astype(dtype)


def floats(*values: float) -> Array:
    return np.array(values, np.float32)


def places(seed: int, shape: tuple[int, ...], extent: int, dtype: Any = np.int64) -> Array:
    """Indices, negative ones too."""
    return np.random.default_rng(seed + 1).integers(-extent, extent, shape).astype(dtype)


def tuples(seed: int, shape: tuple[int, ...], extents: tuple[int, ...]) -> Array:
    """Index tuples along the last axis."""
    return np.stack([places(seed + n, shape, extent) for n, extent in enumerate(extents)], axis=-1)


@given(SHAPES, st.lists(st.integers(0, 3), max_size=2).map(tuple), SEEDS, st.data())
@settings(max_examples=examples(40, quick=6), deadline=None)
def test_gather(shape: tuple[int, ...], count: tuple[int, ...], seed: int, data: st.DataObject) -> None:
    axis = data.draw(st.integers(-len(shape), len(shape) - 1))
    dtype = data.draw(st.sampled_from((np.int64, np.int32)))
    check("Gather", numbers(seed, shape), places(seed, count, shape[axis], dtype), axis=axis)


@given(SHAPES, SEEDS, st.data())
@settings(max_examples=examples(40, quick=6), deadline=None)
def test_gather_elements(shape: tuple[int, ...], seed: int, data: st.DataObject) -> None:
    axis = data.draw(st.integers(-len(shape), len(shape) - 1))
    own = tuple(data.draw(st.integers(0, n)) for n in shape)
    count = data.draw(st.integers(0, 4))
    wanted = tuple(count if at == axis % len(shape) else n for at, n in enumerate(own))
    index = places(seed, wanted, shape[axis])
    x = numbers(seed, shape)
    cut = tuple(slice(None) if at == axis % len(shape) else slice(0, n) for at, n in enumerate(wanted))
    check("GatherElements", x, index, axis=axis, expected=[np.take_along_axis(x[cut], index, axis)])


@given(SHAPES, SEEDS, st.data())
@settings(max_examples=examples(60, quick=6), deadline=None)
def test_gather_nd(shape: tuple[int, ...], seed: int, data: st.DataObject) -> None:
    batch = data.draw(st.integers(0, len(shape) - 1))
    count = data.draw(st.integers(1, len(shape) - batch))
    more = tuple(data.draw(st.lists(st.integers(1, 3), min_size=batch == 0, max_size=2)))
    index = tuples(seed, (*shape[:batch], *more), shape[batch : batch + count])
    check("GatherND", numbers(seed, shape), index, batch_dims=batch)


REDUCTIONS = st.sampled_from(("none", "add", "mul", "max", "min"))


@given(SHAPES, REDUCTIONS, SEEDS, st.data())
@settings(max_examples=examples(60, quick=6), deadline=None)
def test_scatter_elements(shape: tuple[int, ...], reduction: str, seed: int, data: st.DataObject) -> None:
    axis = data.draw(st.integers(-len(shape), len(shape) - 1))
    count = tuple(data.draw(st.integers(0, n)) for n in shape)
    if reduction == "none":  # one update for each place, as their order is not defined
        order = np.random.default_rng(seed).permuted(np.indices(shape)[axis], axis=axis)
        index = order[tuple(slice(0, n) for n in count)].astype(np.int64)
    else:
        index = places(seed, count, shape[axis])
    updates = numbers(seed + 2, count)
    x, attrs = numbers(seed, shape), dict[str, Any](axis=axis, reduction=reduction)
    wanted = _scattered(x.copy(), index, updates, axis % len(shape), reduction)
    check("ScatterElements", x, index, updates, expected=[wanted], **attrs)


COMBINE = {"add": np.add, "mul": np.multiply, "max": np.maximum, "min": np.minimum}


def _scattered(x: Array, index: Array, updates: Array, axis: int, reduction: str) -> Array:
    for place in np.ndindex(index.shape):
        target = (*place[:axis], int(index[place]), *place[axis + 1 :])
        combine = COMBINE.get(reduction)
        x[target] = updates[place] if combine is None else combine(x[target], updates[place])
    return x


@given(SHAPES, REDUCTIONS, SEEDS, st.data())
@settings(max_examples=examples(60, quick=6), deadline=None)
def test_scatter_nd(shape: tuple[int, ...], reduction: str, seed: int, data: st.DataObject) -> None:
    count = data.draw(st.integers(1, len(shape)))
    more = tuple(data.draw(st.lists(st.integers(1, 3), max_size=2)))
    index = tuples(seed, more, shape[:count])
    if reduction == "none":
        index = index.reshape(-1, count)[:1]
        more = (1,)
    updates = numbers(seed + 2, (*more, *shape[count:]))
    check("ScatterND", numbers(seed, shape), index, updates, reduction=reduction)


@pytest.mark.quick_cases(20)
@pytest.mark.parametrize("dtype", [*FLOATS, *INTEGERS])
@pytest.mark.parametrize("reduction", ["none", "add", "mul", "max", "min"])
def test_types_of_scatter(dtype: Any, reduction: str) -> None:
    x, updates = numbers(3, (5,), dtype), numbers(4, (3,), dtype)
    check("ScatterElements", x, np.array([1, -1, 0]), updates, reduction=reduction)


def test_bools_are_moved_and_not_reduced() -> None:
    flags, index, updates = np.array([True, False, True]), np.array([[1]]), np.array([True])
    check("ScatterND", flags, index, updates)
    check("GatherND", flags, index)
    with pytest.raises(NotCoveredError, match="reductions of bool"):
        compute(compute_call_of(rule_call("ScatterND", [flags, index, updates], reduction="add")))


def test_indices_outside_read_and_write_inside() -> None:
    """ONNX leaves them undefined; kernels bring them to the nearest element."""
    x = np.arange(4, dtype=np.float32)
    check("Gather", x, np.array([9, -9]), expected=[floats(3, 0)])
    wanted = floats(7, 1, 2, 8)
    check("ScatterND", x, np.array([[-9], [9]]), floats(7, 8), expected=[wanted])


@pytest.mark.parametrize("mode", ["linear", "circular"])
@pytest.mark.parametrize("axis", [-2, 1])
def test_tensor_scatter(mode: str, axis: int) -> None:
    cache, update = numbers(0, (2, 5, 3)), numbers(1, (2, 2, 3))
    first = np.array([3, 1 if mode == "linear" else 4])
    check("TensorScatter", cache, update, first, mode=mode, axis=axis)
    check("TensorScatter", cache, update, mode=mode, axis=axis)


@given(st.lists(st.integers(0, 3), min_size=1, max_size=2).map(tuple), SEEDS, st.data())
@settings(max_examples=examples(30, quick=6), deadline=None)
def test_one_hot(shape: tuple[int, ...], seed: int, data: st.DataObject) -> None:
    axis = data.draw(st.integers(-len(shape) - 1, len(shape)))
    depth = data.draw(st.integers(1, 4))
    kind = data.draw(st.sampled_from((np.int64, np.int32, np.float32)))
    index = places(seed, shape, depth + 2, kind)  # some are outside
    check("OneHot", index, np.array(depth), np.array([2, 7], np.int32), axis=axis)


@given(st.integers(1, 4), st.integers(1, 4), st.integers(0, 2), st.booleans(), SEEDS)
@settings(max_examples=examples(30, quick=6), deadline=None)
def test_reverse_sequence(batch: int, steps: int, inner: int, is_time_first: bool, seed: int) -> None:
    shape = (steps, batch) if is_time_first else (batch, steps)
    lengths = np.random.default_rng(seed).integers(0, steps + 1, batch)
    time = int(not is_time_first)
    check("ReverseSequence", numbers(seed, (*shape, inner)), lengths, time_axis=time, batch_axis=1 - time)


SHAPES_OF_ALL = st.lists(st.integers(0, 4), min_size=1, max_size=3).map(tuple)


@given(SHAPES_OF_ALL, st.booleans(), st.booleans(), SEEDS, st.data())
@settings(max_examples=examples(60, quick=6), deadline=None)
def test_cumulation(
    shape: tuple[int, ...], is_exclusive: bool, is_reverse: bool, seed: int, data: st.DataObject
) -> None:
    axis = data.draw(st.integers(-len(shape), len(shape) - 1))
    dtype = data.draw(st.sampled_from((np.float64, np.float32, np.int32, np.int64)))
    x = numbers(seed, shape, dtype)
    flags = dict[str, Any](exclusive=int(is_exclusive), reverse=int(is_reverse))
    for name in ("CumSum", "CumProd"):
        wanted = _cumulated(name, x, axis, is_exclusive, is_reverse)
        check(name, x, np.array(axis), expected=[wanted], **flags)


@pytest.mark.parametrize("shape", [(8, 3), (2, 19, 5), (16, 1), (3, 8)])
@pytest.mark.parametrize("is_reverse", [False, True])
@pytest.mark.parametrize("is_exclusive", [False, True])
def test_lines_along_the_last_axis_are_added_up_together(
    shape: tuple[int, ...], is_exclusive: bool, is_reverse: bool
) -> None:
    x = numbers(3, shape, np.float32)
    flags = dict[str, Any](exclusive=int(is_exclusive), reverse=int(is_reverse))
    wanted = _cumulated("CumSum", x, -1, is_exclusive, is_reverse)
    check("CumSum", x, np.array(len(shape) - 1), expected=[wanted], **flags)


def _cumulated(name: str, x: Array, axis: int, is_exclusive: bool, is_reverse: bool) -> Array:
    x = np.flip(x, axis) if is_reverse else x
    if is_exclusive and x.shape[axis]:
        neutral = np.full_like(x.take([0], axis), 0 if name == "CumSum" else 1)
        x = np.concatenate([neutral, x.take(range(x.shape[axis] - 1), axis)], axis)
    found = (np.cumsum if name == "CumSum" else np.cumprod)(x, axis, dtype=x.dtype)
    return np.flip(found, axis) if is_reverse else found


@pytest.mark.parametrize("dtype", [np.float16, ml_dtypes.bfloat16])
def test_narrow_floats_are_summed_in_float32(dtype: Any) -> None:
    x = np.full((3000,), 0.3).astype(dtype)
    wanted = np.cumsum(x.astype(np.float32), dtype=np.float32).astype(dtype)
    check("CumSum", x, np.array(0), expected=[wanted])


@given(st.lists(st.integers(1, 5), min_size=1, max_size=3).map(tuple), st.booleans(), SEEDS, st.data())
@settings(max_examples=examples(60, quick=6), deadline=None)
def test_top_k(shape: tuple[int, ...], is_largest: bool, seed: int, data: st.DataObject) -> None:
    axis = data.draw(st.integers(-len(shape), len(shape) - 1))
    count = data.draw(st.integers(0, shape[axis]))
    dtype = data.draw(st.sampled_from((np.float32, np.float64, np.float16, np.int32, np.uint8)))
    x = numbers(seed, shape, dtype)
    if x.dtype.kind == "f":
        x[x == 3], x[x == 4], x[x == 5] = np.nan, np.inf, -np.inf
    check("TopK", x, np.array([count]), outputs=2, axis=axis, largest=int(is_largest))
