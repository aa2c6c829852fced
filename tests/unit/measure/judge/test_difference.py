from __future__ import annotations

import math
import tracemalloc

import ml_dtypes
import numpy as np
import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp
from numpy.typing import DTypeLike

from intarsia.measure.judge.difference import (
    BLOCK,
    Array,
    Difference,
    difference,
    is_surely_within,
    sure_limit,
)
from intarsia.measure.judge.fill_values import scale_of_rest
from intarsia.measure.judge.tolerance import EXACT, Tolerance, tolerance_for

ONE = Tolerance(atol=1.0)


def array(values: object, dtype: DTypeLike = np.float64) -> Array:
    made: Array = np.array(values, dtype=dtype)
    return made


def test_numbers() -> None:
    found = difference(array([1.0, 2.5, -8.0]), array([1.0, 2.0, -8.1]), Tolerance(atol=0.25))
    assert found == Difference(max_abs=0.5, scale=8.1, excess=2.0, position=1)
    assert found.max_rel == pytest.approx(0.5 / 8.1)


def test_the_worst_element_is_the_one_furthest_beyond_what_it_is_allowed() -> None:
    found = difference(array([100.5, 1.2]), array([100.0, 1.0]), Tolerance(rtol=0.01))
    assert (found.max_abs, found.position) == (0.5, 1)
    assert found.excess == pytest.approx(20.0)


def test_equal_arrays() -> None:
    assert difference(array([1.0, 2.0]), array([1.0, 2.0]), EXACT) == Difference(scale=2.0)


def test_empty_arrays() -> None:
    assert difference(array([]), array([]), EXACT) == Difference()


def test_an_error_where_all_is_zero_is_infinite_in_relative_terms() -> None:
    assert difference(array([1e-9]), array([0.0]), EXACT).max_rel == math.inf


SPECIAL = [0.0, 1.0, math.nan, math.inf, -math.inf]


@pytest.mark.quick_cases(16)
@pytest.mark.parametrize("dtype", [np.float32, np.float16, ml_dtypes.bfloat16, ml_dtypes.float8_e5m2])
@pytest.mark.parametrize("actual", SPECIAL)
@pytest.mark.parametrize("expected", SPECIAL)
def test_special_values(actual: float, expected: float, dtype: DTypeLike) -> None:
    tolerance = Tolerance(rtol=1.0, atol_scale=1.0, atol=1.0)
    found = difference(array([7.0, actual], dtype), array([7.0, expected], dtype), tolerance)
    assert found.scale == 7.0
    same = actual == expected or (math.isnan(actual) and math.isnan(expected))
    if math.isfinite(actual) and math.isfinite(expected):
        assert found.max_abs == abs(actual - expected)
    else:
        assert found.max_abs == (0.0 if same else math.inf)
    assert (found.excess <= 1) == (found.max_abs < math.inf)
    assert found.position == (None if same else 1)


def test_an_array_without_finite_values() -> None:
    assert difference(array([math.nan] * 2), array([math.nan] * 2), ONE) == Difference()


@pytest.mark.parametrize(
    "name",
    ["bfloat16", "float8_e4m3fn", "float8_e4m3fnuz", "float8_e5m2", "float8_e5m2fnuz", "float4_e2m1fn"],
)
def test_narrow_floats_of_ml_dtypes(name: str) -> None:
    dtype = getattr(ml_dtypes, name)
    found = difference(array([1.0, 3.0], dtype), array([1.0, 4.0], dtype), ONE)
    assert found == Difference(max_abs=1.0, scale=4.0, excess=1.0, position=1)


@pytest.mark.parametrize("name", ["int4", "uint4", "int8", "uint8", "int32", "uint64"])
def test_integers(name: str) -> None:
    dtype = getattr(ml_dtypes, name, name)
    found = difference(array([1, 7, 3], dtype), array([1, 4, 4], dtype), ONE)
    assert found == Difference(max_abs=3.0, scale=4.0, excess=3.0, position=1)


def test_large_integers_are_subtracted_exactly() -> None:
    assert difference(array([2**62 + 1], np.int64), array([2**62], np.int64), EXACT).max_abs == 1.0
    assert difference(array([2**64 - 1], np.uint64), array([2**64 - 2], np.uint64), EXACT).max_abs == 1.0
    assert difference(array([2**63 - 1], np.int64), array([-(2**63)], np.int64), EXACT).max_abs == 2.0**64
    assert difference(array([-(2**63)], np.int64), array([-(2**63)], np.int64), EXACT).scale == 2.0**63


def test_booleans() -> None:
    found = difference(array([True, False], bool), array([True, True], bool), EXACT)
    assert found == Difference(max_abs=1.0, scale=1.0, excess=math.inf, position=1)


@pytest.mark.parametrize("dtype", [np.complex64, np.complex128, ">c8"])
def test_complex_numbers_differ_by_their_parts(dtype: DTypeLike) -> None:
    found = difference(array([1 + 2j, 3 - 4j], dtype), array([1 + 2j, 3 - 6j], dtype), ONE)
    assert found == Difference(max_abs=2.0, scale=6.0, excess=2.0, position=1)


def test_a_complex_number_with_one_part_nan() -> None:
    expected = array([complex(math.nan, 1.0)], np.complex64)
    assert difference(expected.copy(), expected, EXACT).position is None
    assert difference(array([complex(math.nan, 2.0)], np.complex64), expected, EXACT).max_abs == 1.0


@pytest.mark.parametrize(("actual_dtype", "expected_dtype"), [("U3", "U9"), (object, "U9"), ("S3", "S9")])
def test_texts(actual_dtype: DTypeLike, expected_dtype: DTypeLike) -> None:
    found = difference(array(["a", "b"], actual_dtype), array(["a", "bc"], expected_dtype), ONE)
    assert found == Difference(max_abs=math.inf, excess=math.inf, position=1)


def test_bytes_are_not_text() -> None:
    assert difference(array(["a"], "S1"), array(["a"], "U1"), ONE).position == 0


def test_an_array_in_several_blocks() -> None:
    expected = np.arange(3 * BLOCK + 5, dtype=np.float32).reshape(-1, 1)
    actual = expected.copy()
    actual[[10, 2 * BLOCK + 7, 3 * BLOCK + 4], 0] += (2, 3, 1)
    found = difference(actual, expected, ONE)
    assert found == Difference(max_abs=3.0, scale=3 * BLOCK + 4, excess=3.0, position=2 * BLOCK + 7)


def test_memory_does_not_grow_with_the_arrays() -> None:
    expected = np.ones(64 * BLOCK, dtype=np.float32)
    actual = expected + np.float32(1e-6)
    tracemalloc.start()
    try:
        difference(actual, expected, ONE)
        peak = tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()
    assert peak < expected.nbytes / 2


numbers = hnp.arrays(np.float32, st.integers(1, 30), elements=st.floats(width=32))


@settings(deadline=None)
@given(st.data(), numbers, st.sampled_from([EXACT, ONE, Tolerance(0.1, 0.01, 1e-6)]))
def test_it_agrees_with_the_definition_element_by_element(
    data: st.DataObject, expected: Array, tolerance: Tolerance
) -> None:
    changes = st.sampled_from([0.0, 1e-3, 0.5, 3.0, math.nan, math.inf])
    with np.errstate(all="ignore"):
        actual = expected + data.draw(hnp.arrays(np.float32, expected.shape, elements=changes))
    scale = max((abs(float(e)) for e in expected if math.isfinite(e)), default=0.0)
    blocks = [(actual.astype(np.float64), expected.astype(np.float64))]
    assume(not tolerance.rtol or not scale or scale_of_rest(blocks, scale, tolerance.rtol) is None)

    def is_right(a: float, e: float) -> bool:
        if math.isfinite(a) and math.isfinite(e):
            return abs(a - e) <= tolerance.allowed(abs(e), scale or 1.0)
        return a == e or (math.isnan(a) and math.isnan(e))

    right = all(is_right(float(a), float(e)) for a, e in zip(actual, expected, strict=True))
    found = difference(actual, expected, tolerance)
    assert (found.excess <= 1) == right
    assert found.scale == scale
    if not right:
        assert found.position is not None
        assert not is_right(float(actual[found.position]), float(expected[found.position]))


FLOAT32 = tolerance_for("float32", 100, 10)
LOWEST = float(np.finfo(np.float32).min)


@pytest.mark.parametrize(
    ("expected", "actual", "is_right"),
    [
        ([LOWEST, LOWEST, 3.0, 2.0], [LOWEST, LOWEST, 3.0, 2.001], True),
        ([LOWEST, LOWEST, 3.0, 2.0], [LOWEST, LOWEST, 3.0, 2.1], False),  # a mask hides nothing
        ([LOWEST, LOWEST, 0.0, 0.0], [LOWEST, LOWEST, 0.0, 0.1], False),
        ([-1e9, -1e9, 3.0, 2.0], [-1e9, -1e9, 3.0, 2.1], False),
        (
            [-1e9, -1e9, 3.0, 2.0],
            [-1e9, -1e9 - 64, 3.0, 2.1],
            True,
        ),  # computed: it may come from terms of 1e9
        ([1e30, 2e30, 3.0, 2.0], [1.0001e30, 2e30, 3.0, 2.1], False),
        ([1e30, 2e30, 3.0, 2.0], [1.01e30, 2e30, 3.0, 2.0], False),
        ([1.0, 3e-8, -2e-8], [1.0, -1e-8, 2e-8], True),  # the rounding errors of a sum
        ([1.0, 1.0, 0.0], [1.0, 1.0, 1e-5], True),
        ([1e6, 0.0], [1e6, 0.06], True),  # terms of 1e6 that cancel
        ([math.inf, math.nan, 2.0], [math.inf, math.nan, 2.1], False),
    ],
)
def test_large_values_hide_no_errors_of_others_that_stand_apart(
    expected: list[float], actual: list[float], is_right: bool
) -> None:
    found = difference(array(actual, np.float32), array(expected, np.float32), FLOAT32)
    assert (found.excess <= 1) == is_right


def test_large_values_may_stand_in_another_block() -> None:
    expected = np.ones(2 * BLOCK, np.float32)
    expected[:5] = LOWEST
    actual = expected.copy()
    actual[-1] = 1.5
    found = difference(actual, expected, FLOAT32)
    assert found.excess > 1
    assert found.position == 2 * BLOCK - 1


def test_tiny_errors_pass_where_only_zeros_are_expected() -> None:
    tolerance = Tolerance(atol_scale=1e-6)
    zeros = array([0.0, 0.0])
    assert difference(array([1e-7, 0.0]), zeros, tolerance).excess <= 1
    assert difference(array([1e-5, 0.0]), zeros, tolerance).excess > 1


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("factor", [0.5, 0.999, 1.001, 4.0])
def test_what_is_surely_within_is_within(dtype: DTypeLike, factor: float) -> None:
    expected = np.random.default_rng(0).standard_normal(3 * BLOCK // 2).astype(dtype)
    tolerance = tolerance_for(expected.dtype, 64)
    limit = sure_limit(expected, tolerance)
    assert limit is not None
    actual = expected.copy()
    smallest = int(np.abs(expected).argmin())  # where least is allowed
    actual[smallest] += expected.dtype.type(factor * limit)
    found = difference(actual, expected, tolerance)
    assert is_surely_within(actual, expected, limit) == (factor < 1) == (found.excess <= 1)


@pytest.mark.parametrize("odd", [math.nan, math.inf, -math.inf])
def test_odd_results_are_never_surely_right(odd: float) -> None:
    expected = np.arange(10, dtype=np.float32)
    limit = sure_limit(expected, tolerance_for("float32"))
    assert limit is not None
    for place in (0, 4, 9):
        actual = expected.copy()
        actual[place] = odd
        assert not is_surely_within(actual, expected, limit)


@pytest.mark.parametrize(
    "expected",
    [
        array([], np.float32),
        array([1.0, math.nan], np.float32),
        array([1.0, -math.inf]),
        array([1, 2], np.int32),
        array([1.0, 2.0], np.float16),
        array([1.0, 2.0], ml_dtypes.bfloat16),
        array([1.0, 2.0], ">f4"),
        array([-1e9, 0.25, -1e9], np.float32),  # a mask beside ordinary values
    ],
    ids=["empty", "nan", "infinite", "int32", "float16", "bfloat16", "turned", "mask"],
)
def test_what_takes_all_elements_has_no_sure_limit(expected: Array) -> None:
    assert sure_limit(expected, tolerance_for(expected.dtype.newbyteorder("="))) is None


_NUMBERS = st.floats(-1e4, 1e4, width=32) | st.sampled_from([0.0, -0.0, 1e-40, 1e30, -1e9])


@given(st.lists(st.tuples(_NUMBERS, _NUMBERS | st.just(math.nan), st.booleans()), min_size=1, max_size=20))
def test_a_sure_limit_lets_nothing_wrong_pass(given_numbers: list[tuple[float, float, bool]]) -> None:
    expected = array([wanted for wanted, _, _ in given_numbers], np.float32)
    actual = array([wanted if same else found for wanted, found, same in given_numbers], np.float32)
    tolerance = tolerance_for("float32", 100)
    limit = sure_limit(expected, tolerance)
    if limit is not None and is_surely_within(actual, expected, limit):
        assert difference(actual, expected, tolerance).excess <= 1
