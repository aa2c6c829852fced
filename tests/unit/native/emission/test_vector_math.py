"""Errors and special values of the mathematical functions on vectors, against float64 of NumPy."""

import math
from collections.abc import Callable
from typing import Any

import numpy as np
import numpy.typing as npt
import pytest
from tests.emitted_kernels import compile_kernel, x86_sets
from tests.tir_checks import parsed

Floats = npt.NDArray[np.float32]
Reference = Callable[[npt.NDArray[np.float64]], npt.NDArray[np.float64]]

COUNT = 1 << 14
SPECIAL = np.array(
    [
        *(0.0, -0.0, np.inf, -np.inf, np.nan, 1e-45, -1e-45, 1e-40, -1e-40, 2.0**-126, 3.4028235e38),
        *(-3.4028235e38, 1.0, -1.0, 0.5, -0.5, 88.72, 88.73, -87.4, -103.9, -104.0, -150.0),
        *(128.0, 127.99999, 1.1e8, -3e9, 1e30),
    ],
    np.float32,
)
FUNCTIONS: dict[str, tuple[Reference, float]] = {
    "exp": (np.exp, 1.5),
    "exp2": (np.exp2, 1.5),
    "log": (np.log, 1.5),
    "log2": (np.log2, 2.0),
    "tanh": (np.tanh, 6.0),
    "erf": (np.vectorize(math.erf, otypes=[np.float64]), 6.0),
    "sin": (np.sin, 2.0),
    "cos": (np.cos, 2.0),
    "sqrt": (np.sqrt, 0.5),
    "tan": (np.tan, 2.0),
    "asin": (np.arcsin, 2.0),
    "sinh": (np.sinh, 3.0),
}
"""Each function with the units in the last place by which it may be off."""


def samples(name: str) -> Floats:
    """All kinds of bits, and numbers of usual sizes."""
    random = np.random.default_rng(7)
    parts = [SPECIAL, random.integers(0, 1 << 32, COUNT // 4, np.uint32).view(np.float32)]
    rest = COUNT - sum(part.size for part in parts)
    sizes = np.array([0.01, 1.0, 10.0, 60.0, 1000.0])[random.integers(0, 5, rest)]
    usual = (random.normal(size=rest) * sizes).astype(np.float32)
    if name.startswith("log"):
        usual = np.where(random.random(rest) < 0.3, 1 + usual * np.float32(1e-3), np.abs(usual))
    return np.concatenate([*parts, usual.astype(np.float32)])


def computed(name: str, x: Floats, isa_name: str, dtype: str = "float32") -> npt.NDArray[Any]:
    buffer = f"Buffer[({x.size},), {dtype}]"
    loop = f"for vectorized i in {x.size} {{ y[i] = {name}(x[i]); }}"
    function = parsed(f"def prim @f(x: {buffer}, y: {buffer}) {{ {loop} }}")
    y = np.zeros_like(x)
    compile_kernel(function, x86_sets()[isa_name])([x, y])
    return y


@pytest.mark.quick_cases(6)
@pytest.mark.parametrize("isa_name", x86_sets())
@pytest.mark.parametrize("name", FUNCTIONS)
def test_errors_are_small_and_special_values_right(name: str, isa_name: str) -> None:
    reference, limit = FUNCTIONS[name]
    x = samples(name)
    found = computed(name, x, isa_name)
    with np.errstate(all="ignore"):
        exact = reference(x.astype(np.float64))
        expected = exact.astype(np.float32)
    np.testing.assert_array_equal(np.isnan(found), np.isnan(expected))
    infinite = np.isinf(expected) | (expected == 0)
    np.testing.assert_array_equal(found[infinite], expected[infinite])
    np.testing.assert_array_equal(np.signbit(found[infinite]), np.signbit(expected[infinite]))
    finite = np.isfinite(expected)
    if name.startswith("exp"):
        finite &= expected >= np.float32(2.0**-125)
        np.testing.assert_array_equal(found[expected < np.float32(2.0**-126)], 0)
    unit = np.spacing(np.maximum(np.abs(expected[finite]), np.float32(2.0**-126))).astype(np.float64)
    errors = np.abs(found[finite].astype(np.float64) - exact[finite]) / unit
    assert errors.max() <= limit, f"{x[finite][errors.argmax()]!r}"


@pytest.mark.parametrize("name", ["exp", "log", "tanh", "erf", "sin", "floor", "round_even"])
def test_float64_is_as_exact_as_the_library(name: str) -> None:
    x = np.concatenate([SPECIAL.astype(np.float64), np.random.default_rng(1).normal(size=77) * 5])
    names: dict[str, Reference] = {name: reference for name, (reference, _) in FUNCTIONS.items()}
    names |= {"floor": np.floor, "round_even": np.rint}
    with np.errstate(all="ignore"):
        expected = names[name](x)
    np.testing.assert_allclose(computed(name, x, "host", "float64"), expected, rtol=1e-15)


@pytest.mark.parametrize("isa_name", x86_sets())
@pytest.mark.parametrize("name", ["floor", "ceil", "trunc", "round_even", "abs"])
def test_rounding_is_exact(name: str, isa_name: str) -> None:
    x = np.concatenate([SPECIAL, np.arange(-40, 41, dtype=np.float32) / 4, samples("exp")[100:900]])
    with np.errstate(all="ignore"):
        expected = ({"round_even": np.rint, "abs": np.abs}.get(name) or getattr(np, name))(x)
    found = computed(name, x, isa_name)
    np.testing.assert_array_equal(found, expected)
    numbers = ~np.isnan(x)
    np.testing.assert_array_equal(np.signbit(found)[numbers], np.signbit(expected)[numbers])


@pytest.mark.parametrize("exponent", ["0.0", "1.0", "2.0", "3.0", "-1.0", "0.5", "2.5"])
def test_powers(exponent: str) -> None:
    x = np.concatenate([SPECIAL, samples("log")[50:400]])
    buffer = f"Buffer[({x.size},), float32]"
    loop = f"for vectorized i in {x.size} {{ y[i] = pow(x[i], {exponent}f32); }}"
    y = np.zeros_like(x)
    compile_kernel(parsed(f"def prim @f(x: {buffer}, y: {buffer}) {{ {loop} }}"))([x, y])
    with np.errstate(all="ignore"):
        expected = np.power(x.astype(np.float64), np.full(x.shape, float(exponent))).astype(np.float32)
    np.testing.assert_allclose(y, expected, rtol=3e-7, atol=1e-45)
