from __future__ import annotations

import itertools

import ml_dtypes
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.each_case import each_case

from intarsia.measure.judge import tolerance as module
from intarsia.measure.judge.tolerance import EXACT, Tolerance, tolerance_for

FLOATS = sorted(module._FORMATS)
INTEGERS = [
    "int2",
    "int4",
    "int8",
    "int16",
    "int32",
    "int64",
    "uint2",
    "uint4",
    "uint8",
    "uint16",
    "uint32",
    "uint64",
]
counts = st.integers(1, 10**9)


def test_a_single_float32_operator() -> None:
    tolerance = tolerance_for("float32")
    assert 1e-6 < tolerance.atol_scale + tolerance.rtol < 1e-5


def test_a_deep_float32_network() -> None:
    tolerance = tolerance_for("float32", reduction_length=4608, depth=50)
    assert tolerance.atol_scale + tolerance.rtol == pytest.approx(1e-3, rel=0.15)


@settings(deadline=None)
@given(counts, counts)
def test_float32_is_never_looser_than_one_percent(reduction_length: int, depth: int) -> None:
    tolerance = tolerance_for("float32", reduction_length, depth)
    assert tolerance.allowed(magnitude=1.0, scale=1.0) <= 1e-2


@pytest.mark.parametrize("name", FLOATS)
@settings(deadline=None)
@given(reduction_length=counts, depth=counts, more=st.integers(1, 1000), quantized=st.booleans())
def test_more_work_is_never_judged_more_strictly(
    name: str, reduction_length: int, depth: int, more: int, quantized: bool
) -> None:
    scale = tolerance_for(name, reduction_length, depth, quantized).atol_scale
    assert scale <= tolerance_for(name, reduction_length * more, depth, quantized).atol_scale
    assert scale <= tolerance_for(name, reduction_length, depth * more, quantized).atol_scale
    assert scale <= tolerance_for(name, reduction_length, depth, True).atol_scale


@pytest.mark.parametrize(("k", "depth"), [*itertools.product([1, 100, 4608], [1, 50])])
def test_narrower_types_are_judged_less_strictly(k: int, depth: int) -> None:
    order = [tolerance_for(name, k, depth) for name in ("float64", "float32", "float16", "bfloat16")]
    assert [t.atol_scale for t in order] == sorted(t.atol_scale for t in order)
    assert [t.rtol for t in order] == sorted(t.rtol for t in order)


def ml_finfo(name: str) -> ml_dtypes.finfo:
    return ml_dtypes.finfo(getattr(ml_dtypes, name, name))


@each_case("name", FLOATS)
def test_the_table_agrees_with_the_types(name: str) -> None:
    info, row = ml_finfo(name), module._FORMATS[name]
    assert row.eps == float(info.eps)
    flushed = name in {"float64", "float32", "bfloat16"}
    assert row.tiny == float(info.smallest_normal if flushed else info.smallest_subnormal)


def test_the_table_knows_every_float_type_of_ml_dtypes() -> None:
    known = {name for name in dir(ml_dtypes) if name.startswith(("float", "bfloat"))}
    assert known <= set(FLOATS)


def test_float8_is_one_step_of_the_type_after_a_single_operator() -> None:
    tolerance = tolerance_for("float8_e4m3fn", reduction_length=512)
    assert tolerance.rtol == 0.125
    assert tolerance.atol_scale < 1e-4


def test_complex_numbers_are_judged_like_their_parts() -> None:
    assert tolerance_for("complex64", 7, 3) == tolerance_for("float32", 7, 3)
    assert tolerance_for(np.dtype(np.complex128), 7, 3) == tolerance_for(np.dtype(np.float64), 7, 3)


@each_case("name", INTEGERS)
def test_integers_are_exact_unless_quantized(name: str) -> None:
    assert tolerance_for(name, 100, 100) == EXACT
    expected = Tolerance(atol=1.0) if name in ("int8", "uint8", "int4", "uint4", "int2", "uint2") else EXACT
    assert tolerance_for(name, 100, 100, quantized=True) == expected


@pytest.mark.parametrize("dtype", [np.dtype(bool), np.dtype("U5"), np.dtype(object), "str"])
def test_booleans_and_texts_are_always_exact(dtype: np.dtype[np.generic] | str) -> None:
    assert tolerance_for(dtype, quantized=True) == EXACT


def test_floats_of_a_quantized_network_may_be_some_steps_of_8_bits_off() -> None:
    assert tolerance_for("float32", quantized=True).atol_scale == pytest.approx(1 / 255, rel=1e-3)
    assert tolerance_for("float32", depth=50, quantized=True).atol_scale == pytest.approx(
        50**0.5 / 255, rel=1e-2
    )
    assert tolerance_for("float32", depth=5000, quantized=True).atol_scale == 0.05


def test_allowed_difference() -> None:
    tolerance = Tolerance(rtol=0.01, atol_scale=0.001, atol=0.5)
    assert tolerance.allowed(magnitude=2.0, scale=10.0) == pytest.approx(0.5 + 0.01 + 0.02)
    assert EXACT.allowed(2.0, 10.0) == 0.0


@pytest.mark.parametrize(("k", "depth"), [(0, 1), (1, 0), (-3, 1)])
def test_lengths_below_one(k: int, depth: int) -> None:
    with pytest.raises(
        ValueError, match=f"^expected at least 1, found reduction length {k} and depth {depth}$"
    ):
        tolerance_for("float32", k, depth)


def test_an_unknown_type() -> None:
    with pytest.raises(ValueError, match=r"^no tolerance is known for the element type datetime64\[s\]$"):
        tolerance_for(np.dtype("M8[s]"))


@pytest.mark.quick_cases(6)
@pytest.mark.parametrize("reduction_length", [1, 16, 576, 4608])
@pytest.mark.parametrize("seed", range(5))
def test_float32_sums_in_the_worst_order_pass_and_an_error_in_a_thousandth_does_not(
    reduction_length: int, seed: int
) -> None:
    """A matrix product added up strictly from left to right, as the plainest kernel does it."""
    generator = np.random.default_rng(seed)
    a, b = generator.standard_normal((2, reduction_length, 512)).astype(np.float32)
    exact = (a.astype(np.float64) * b.astype(np.float64)).sum(axis=0)
    serial = np.cumsum(a * b, axis=0, dtype=np.float32)[-1]
    allowed = tolerance_for("float32", reduction_length).atol_scale * np.abs(exact).max()
    assert np.abs(serial - exact).max() < allowed
    assert np.abs(exact * 1.001 - exact).max() > allowed
