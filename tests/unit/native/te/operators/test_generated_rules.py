"""Tensors made of positions and constants, and the arithmetic of indices."""

from __future__ import annotations

from typing import Any

import ml_dtypes
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.compute_rule_checks import check, rule_call
from tests.effort import examples
from tests.te_evaluator import evaluate

from intarsia.ir import Constant, DType
from intarsia.native import te
from intarsia.native.te.operators import NotCoveredError, compute, compute_call_of
from intarsia.native.te.operators.index_arithmetic import (
    clamped,
    flat,
    reshaped,
    scaled,
    unflattened,
    wrapped,
)

SHAPES = st.lists(st.integers(0, 4), min_size=1, max_size=3).map(tuple)


@pytest.mark.parametrize(
    "value", [np.array([7], np.int32), np.array([-np.inf], np.float16), np.array([True])]
)
def test_constant_of_shape(value: Any) -> None:
    value.flags.writeable = False
    check("ConstantOfShape", np.array([2, 0, 3]), value=Constant(value))
    check("ConstantOfShape", np.array([2, 3]), value=Constant(value))
    check("ConstantOfShape", np.array([], np.int64), value=Constant(value))


def test_zeros_of_shape() -> None:
    check("ConstantOfShape", np.array([2, 3]))


@given(st.integers(0, 4), st.integers(0, 4), st.integers(-5, 5), st.sampled_from((1, 6, 10, 9)))
@settings(max_examples=examples(30, quick=6), deadline=None)
def test_eye_like(rows: int, columns: int, k: int, dtype: int) -> None:
    kinds: dict[int, Any] = {1: np.float32, 6: np.int32, 10: np.float16, 9: np.bool_}
    wanted = np.eye(rows, columns, k, dtype=kinds[dtype])
    check("EyeLike", np.zeros((rows, columns)), k=k, dtype=dtype, expected=[wanted])


RANGED = st.sampled_from((np.int64, np.int32, np.float32, np.float64))


@given(st.integers(-9, 9), st.integers(-9, 9), st.sampled_from((-3, -1, 1, 2)), RANGED)
@settings(max_examples=examples(40, quick=6), deadline=None)
def test_range(start: int, limit: int, step: int, dtype: Any) -> None:
    check("Range", *(np.array(each, dtype) for each in (start, limit, step)))


@given(SHAPES, st.integers(-4, 4), st.integers(-4, 4))
@settings(max_examples=examples(40, quick=6), deadline=None)
def test_shape_and_size(shape: tuple[int, ...], start: int, end: int) -> None:
    x = np.zeros(shape, np.float32)
    check("Size", x, expected=[np.array(x.size)])
    check("Shape", x, expected=[np.array(shape)])
    check("Shape", x, start=start, end=end, expected=[np.array(shape[start:end], np.int64)])


@given(st.lists(st.integers(0, 4), min_size=2, max_size=3).map(tuple), st.integers(-5, 5), st.integers(0, 1))
@settings(max_examples=examples(40, quick=6), deadline=None)
def test_trilu(shape: tuple[int, ...], k: int, upper: int) -> None:
    x = np.arange(1, 1 + np.prod(shape), dtype=np.float32).reshape(shape)
    wanted = (np.triu if upper else np.tril)(x, k)
    check("Trilu", x, np.array(k), upper=upper, expected=[wanted])
    check("Trilu", x, upper=upper, expected=[(np.triu if upper else np.tril)(x)])


@pytest.mark.parametrize("dtype", [np.bool_, np.int8, np.uint64, np.float64, np.float16, ml_dtypes.bfloat16])
def test_types_of_trilu(dtype: Any) -> None:
    x = np.ones((3, 3), dtype)
    check("Trilu", x, expected=[np.triu(x)])


def test_elements_at_indices_that_are_wrapped() -> None:
    for dtype in (DType.INT64, DType.INT8, DType.UINT8):
        given_at = np.array([0, 3, 2, 100], dtype.numpy)
        index = te.placeholder((4,), dtype, "index")
        found = te.compute((4,), lambda i, index=index: wrapped(index[i], 4), "found")
        (values,) = evaluate([found], {"index": given_at})
        assert values.tolist() == [0, 3, 2, 3]
    index = te.placeholder((5,), DType.INT64, "index")
    found = te.compute((5,), lambda i: wrapped(index[i], 4), "found")
    (values,) = evaluate([found], {"index": np.array([-1, -4, -5, 4, -(2**63)])})
    assert values.tolist() == [3, 0, 0, 3, 0]


@given(SHAPES.filter(lambda shape: 0 not in shape))
@settings(max_examples=examples(30, quick=6), deadline=None)
def test_flat_positions(shape: tuple[int, ...]) -> None:
    positions = te.compute(shape, lambda *i: flat(i, shape), "positions")
    (values,) = evaluate([positions], {})
    assert values.ravel().tolist() == list(range(values.size))
    back = te.compute(shape, lambda *i: flat(unflattened(flat(i, shape), shape), shape), "back")
    assert np.array_equal(evaluate([back], {})[0], values)


def test_simple_indices_stay_simple() -> None:
    axis = te.IterVar("i", 4).expression
    assert scaled(axis, 1) is axis
    assert str(scaled(axis, 2, -1).scalar.op) == "-"  # type: ignore[union-attr]  # an Arith
    assert clamped(axis, 1).scalar == te.const(0, DType.INT64).scalar
    i, j, k = (te.IterVar(name, 4).expression for name in "ijk")
    assert reshaped((i, j, k), (4, 1, 4), (4, 4)) == (i, k)


def test_what_depends_on_values_is_not_covered() -> None:
    for name, args in (("NonZero", [np.ones(3)]), ("Compress", [np.ones(3), np.array([True, False, True])])):
        with pytest.raises(NotCoveredError, match="has no native kernel"):
            compute(compute_call_of(rule_call(name, args)))
