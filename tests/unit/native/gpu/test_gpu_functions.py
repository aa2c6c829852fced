"""Functions in float64 on GPUs, and powers in float32: their errors, in the CPU form of kernels."""

import math
from decimal import Decimal, localcontext

import numpy as np
import numpy.typing as npt
import pytest
from tests.gpu_on_cpu.cpu_kernels import Array, run_on_cpu
from tests.gpu_on_cpu.ptxas_checks import assert_text_resources, needs_ptxas

from intarsia.ir.parser import parse_module
from intarsia.native.gpu.emit_kernels import emit_kernels

COUNT = 4096


def text_of(call: str, dtype: str) -> str:
    shape = f"Buffer[({COUNT},), {dtype}]"
    return (
        (
            f"def prim @f(x: {shape}, y: {shape}, z: {shape}) "
            f"{{ for block b in {COUNT // 32} {{ for thread t in 32 {{ "
            f"z[b * 32 + t] = {call}; }} }} }}"
        )
        .replace("$x", "x[b * 32 + t]")
        .replace("$y", "y[b * 32 + t]")
    )


def computed(call: str, x: Array, y: Array) -> Array:
    """The values of a call on 4096 numbers."""
    function = parse_module(text_of(call, str(x.dtype))).prim_func("f")
    z = np.zeros_like(x)
    run_on_cpu(function, {"x": x, "y": y, "z": z})
    return z


def filled(values: list[float], rng: np.random.Generator, low: float, high: float) -> npt.NDArray[np.float64]:
    """Numbers of all sizes in a range, after some special ones."""
    rest = rng.uniform(low, high, COUNT - len(values))
    return np.concatenate([np.array(values), rest])


def exact_exp(x: float) -> float:
    with localcontext(prec=40):
        return float(Decimal(x).exp())


def exact_log(x: float) -> float:
    with localcontext(prec=40):
        return float(Decimal(x).ln())


SPECIAL = [0.0, -0.0, 1.0, -1.0, math.inf, -math.inf, math.nan, 2.0**-1060, 1e308, 745.0, -744.5, 709.7]


def test_exponentials_in_float64_are_within_two_ulp() -> None:
    x = filled(SPECIAL, np.random.default_rng(0), -700, 700)
    result = computed("exp($x)", x, x)
    with np.errstate(over="ignore"):
        np.testing.assert_allclose(result[:12], np.exp(x[:12]), rtol=1e-15, atol=1e-308)
    exact = np.array([exact_exp(each) for each in x[12:]])
    assert np.max(np.abs(result[12:] - exact) / np.spacing(exact)) <= 2


def test_logarithms_in_float64_are_within_two_ulp() -> None:
    rng = np.random.default_rng(1)
    x = filled(SPECIAL, rng, 0.4, 2.5)
    x[2000:] = np.exp2(rng.uniform(-1070, 1023, COUNT - 2000))
    result = computed("log($x)", x, x)
    with np.errstate(divide="ignore", invalid="ignore"):
        np.testing.assert_allclose(result[:12], np.log(x[:12]), rtol=1e-15)
    exact = np.array([exact_log(each) for each in x[12:]])
    assert np.max(np.abs(result[12:] - exact) / np.spacing(np.abs(exact))) <= 2


@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_powers_are_those_of_the_c_library(dtype: str) -> None:
    rng = np.random.default_rng(2)
    special = [0.0, -0.0, 1.0, -1.0, math.inf, -math.inf, math.nan, 2.0, -2.0, 0.5, -0.5, 3.0, -3.0]
    pairs = [(first, second) for first in special for second in special]
    x, y = np.abs(filled([], rng, 0, 9)), filled([], rng, -30, 30)
    x[: len(pairs)], y[: len(pairs)] = zip(*pairs, strict=True)
    x, y = x.astype(dtype), y.astype(dtype)
    with np.errstate(all="ignore"):
        expected = np.power(x.astype(np.float64), y.astype(np.float64))
        size = np.maximum(2, np.abs(y.astype(np.float64) * np.log(np.abs(x.astype(np.float64)))))
        narrow = expected.astype(dtype)
        result = computed("pow($x, $y)", x, y)
    few = slice(0, len(pairs))
    is_negative = np.signbit(expected[few]) & ~np.isnan(expected[few])
    np.testing.assert_array_equal(np.isnan(result), np.isnan(expected))
    np.testing.assert_allclose(result[few], narrow[few], rtol=1e-6)
    np.testing.assert_array_equal(np.signbit(result[few]) & ~np.isnan(result[few]), is_negative)
    limits = np.finfo(dtype)
    is_normal = (np.abs(expected) > 2 * limits.tiny) & (np.abs(expected) < limits.max / 2)
    is_normal[: len(pairs)] = False
    error = np.abs(result[is_normal] - expected[is_normal]) / np.abs(expected[is_normal])
    allowed = 4e-16 * size[is_normal] + (2.0**-24 if dtype == "float32" else 0)
    assert is_normal.sum() > COUNT // 2
    assert (error <= allowed).all()


RANGES = {
    "sinh": (-710.0, 710.0),
    "cosh": (-710.0, 710.0),
    "tanh": (-21.0, 21.0),
    "asin": (-1.0, 1.0),
    "acos": (-1.0, 1.0),
    "atan": (-50.0, 50.0),
}
"""Functions with code of their own on GPUs, and the range of random arguments."""


def functions_on_numbers(name: str, seed: int) -> tuple[Array, Array]:
    """Results of a function on numbers of many sizes, and those of NumPy."""
    low, high = RANGES[name]
    rng = np.random.default_rng(seed)
    x = filled([0.0, -0.0, 1.0, -1.0, math.inf, -math.inf, math.nan, 1e-310, -1e-20], rng, low, high)
    x[1000:2000] *= np.exp2(rng.uniform(-60, 0, 1000))
    x[2000:2500] = np.sign(x[2000:2500]) - np.sign(x[2000:2500]) * np.exp2(rng.uniform(-52, -1, 500))
    with np.errstate(invalid="ignore"):
        exact: Array = getattr(np, f"arc{name[1:]}" if name.startswith("a") else name)(x)
    return computed(f"{name}($x)", x, x), exact


@pytest.mark.parametrize("name", RANGES)
def test_angles_and_hyperbolic_functions_are_within_their_errors(name: str) -> None:
    result, exact = functions_on_numbers(name, 4)
    np.testing.assert_array_equal(np.isnan(result), np.isnan(exact))
    is_finite = np.isfinite(exact)
    np.testing.assert_array_equal(result[~is_finite], exact[~is_finite])
    np.testing.assert_array_equal(np.signbit(result[is_finite]), np.signbit(exact[is_finite]))
    errors = np.abs(result[is_finite] - exact[is_finite]) / np.spacing(np.abs(exact[is_finite]))
    # NumPy's results have up to one ULP of their own.
    assert errors.max() <= 5


ANGLES = ("sin", "cos", "tan")


def from_the_c_library(name: str, x: Array) -> Array:
    return np.array([getattr(math, name)(each) if math.isfinite(each) else math.nan for each in x.tolist()])


@pytest.mark.parametrize("name", ANGLES)
def test_angles_of_all_sizes_are_within_their_errors(name: str) -> None:
    rng = np.random.default_rng(5)
    x = filled([0.0, -0.0, math.inf, -math.inf, math.nan, 1e-310, 1e300, 2.0**20, -(2.0**1023)], rng, -50, 50)
    x[1000:2000] *= np.exp2(rng.uniform(-60, 0, 1000))
    x[2000:3000] *= np.exp2(rng.uniform(0, 1000, 1000))
    x[3000:3500] = np.rint(rng.uniform(1, 2**26, 500)) * (math.pi / 2)
    result, exact = computed(f"{name}($x)", x, x), from_the_c_library(name, x)
    np.testing.assert_array_equal(np.isnan(result), np.isnan(exact))
    is_finite = np.isfinite(exact)
    np.testing.assert_array_equal(np.signbit(result[is_finite]), np.signbit(exact[is_finite]))
    errors = np.abs(result[is_finite] - exact[is_finite]) / np.spacing(np.abs(exact[is_finite]))
    assert errors.max() <= 5  # those of the C library are below 1


def test_the_number_that_is_next_to_a_quarter_turn() -> None:
    """The worst case of float64 (Muller, Elementary Functions), where some C libraries lose three bits."""
    x = np.full(COUNT, 6381956970095103.0 * 2.0**797)
    np.testing.assert_allclose(computed("cos($x)", x, x), -4.68716592425462761112e-19, rtol=4e-16, atol=0)


@pytest.mark.parametrize("name", ANGLES)
def test_angles_in_float32_of_all_sizes_are_within_their_errors(name: str) -> None:
    rng = np.random.default_rng(6)
    x = filled([0.0, -0.0, math.inf, math.nan, 1e8, 1e30, -3.4e38], rng, -50, 50)
    x[2000:] *= np.exp2(rng.uniform(-20, 120, COUNT - 2000))
    narrow = x.astype(np.float32)
    result, exact = (
        computed(f"{name}($x)", narrow, narrow),
        from_the_c_library(name, narrow.astype(np.float64)),
    )
    np.testing.assert_array_equal(np.isnan(result), np.isnan(exact))
    is_finite = np.isfinite(exact)
    spacing = np.spacing(np.abs(exact[is_finite]).astype(np.float32))
    assert (np.abs(result[is_finite] - exact[is_finite]) / spacing).max() <= 2


def test_the_error_function_is_within_its_error() -> None:
    rng = np.random.default_rng(7)
    x = filled([0.0, -0.0, math.inf, -math.inf, math.nan, 1e-310, 2.0, 6.0, 30.0], rng, -7, 7)
    x[1000:2000] *= np.exp2(rng.uniform(-60, 0, 1000))
    result, exact = computed("erf($x)", x, x), np.array([math.erf(each) for each in x.tolist()])
    np.testing.assert_array_equal(np.isnan(result), np.isnan(exact))
    np.testing.assert_array_equal(np.signbit(result[:4]), np.signbit(exact[:4]))
    known = ~np.isnan(exact)
    errors = np.abs(result[known] - exact[known]) / np.spacing(np.abs(exact[known]))
    assert errors.max() <= 6


@needs_ptxas
@pytest.mark.parametrize(
    "call", ["exp($x)", "log($x)", "pow($x, $y)", *(f"{name}($x)" for name in (*RANGES, *ANGLES, "erf"))]
)
def test_ptxas_accepts_them(call: str) -> None:
    function = parse_module(text_of(call, "float64")).prim_func("f")
    assert len(assert_text_resources(emit_kernels(function, "k", "sm_80").text, "sm_80", 128)) == 1
