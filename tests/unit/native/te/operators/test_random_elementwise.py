"""Elementwise operators on random, broadcast arguments, special values among them, against the reference."""

from __future__ import annotations

import math
from collections.abc import Callable

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp
from tests.effort import examples
from tests.unit.native.te.operators.checked_call import Array, check, make_call

from intarsia.ir import AttrValue

FLOATS = ("float32", "float64", "float16")
SIGNED = ("int8", "int32", "int64")
INTEGERS = (*SIGNED, "uint8", "uint32", "uint64")

PLAIN = [0.0, -0.0, 0.5, -0.5, 1.0, -1.0, 1.5, 2.5, -2.5, 3.0, 7.25, -30.0, 30.0, 1e-3, -1e-3]
SPECIAL = [math.nan, math.inf, -math.inf]


def values(dtype: str, shape: tuple[int, ...], special: bool = True) -> st.SearchStrategy[Array]:
    if dtype == "bool":
        return hnp.arrays(np.bool_, shape)
    kind = np.dtype(dtype)
    if kind.kind in "iu":
        limits = np.iinfo(kind)
        small = st.integers(max(-9, int(limits.min)), 9)
        return hnp.arrays(kind, shape, elements=small | st.sampled_from([int(limits.min), int(limits.max)]))
    chosen = st.sampled_from(PLAIN + (SPECIAL if special else []))
    return hnp.arrays(kind, shape, elements=chosen)


@st.composite
def arguments(draw: st.DrawFn, dtypes: tuple[str, ...], count: int, special: bool = True) -> list[Array]:
    shapes = draw(hnp.mutually_broadcastable_shapes(num_shapes=count, max_dims=3, max_side=3, min_side=0))
    return [
        draw(values(dtype, shape, special)) for dtype, shape in zip(dtypes, shapes.input_shapes, strict=True)
    ]


def same(dtypes: tuple[str, ...], count: int, special: bool = True) -> st.SearchStrategy[list[Array]]:
    return st.sampled_from(dtypes).flatmap(lambda dtype: arguments((dtype,) * count, count, special))


NUMBERS = (*FLOATS, *INTEGERS)
BINARY: list[tuple[str, tuple[str, ...], dict[str, AttrValue]]] = [
    *((name, NUMBERS, {}) for name in ("Add", "Sub", "Mul", "Min", "Max", "Less", "LessOrEqual", "Greater")),
    *((name, NUMBERS, {}) for name in ("GreaterOrEqual", "Equal")),
    *((name, ("float32", "float64"), {}) for name in ("Div", "Sum")),
    *((name, ("bool",), {}) for name in ("And", "Or", "Xor", "Equal")),
    *((name, INTEGERS, {}) for name in ("BitwiseAnd", "BitwiseOr", "BitwiseXor")),
    ("Mod", INTEGERS, {"fmod": 0}),
    ("Mod", INTEGERS, {"fmod": 1}),
    ("BitShift", ("uint8", "uint32", "uint64"), {"direction": "LEFT"}),
    ("BitShift", ("uint8", "uint32", "uint64"), {"direction": "RIGHT"}),
]


@pytest.mark.parametrize(("name", "dtypes", "attrs"), BINARY)
@settings(max_examples=examples(25, quick=6), deadline=None)
@given(data=st.data())
def test_two_arguments(
    name: str, dtypes: tuple[str, ...], attrs: dict[str, AttrValue], data: st.DataObject
) -> None:
    with np.errstate(all="ignore"):
        check(make_call(name, *data.draw(same(dtypes, 2)), **attrs))


@settings(max_examples=examples(40, quick=6), deadline=None)
@given(same(INTEGERS, 2))
def test_integer_quotients_round_towards_zero_and_never_trap(pair: list[Array]) -> None:
    wide = [each.astype(object) for each in pair]
    dividend, divisor = np.broadcast_arrays(*wide)
    limits = np.iinfo(pair[0].dtype)
    expected = np.array(
        [_quotient(int(x), int(y), limits) for x, y in zip(dividend.flat, divisor.flat, strict=True)],
        dtype=pair[0].dtype,
    ).reshape(dividend.shape)
    check(make_call("Div", *pair), [expected])


def _quotient(x: int, y: int, limits: np.iinfo[np.signedinteger]) -> int:
    if y == 0:
        return 0
    quotient = abs(x) // abs(y) * (1 if (x < 0) == (y < 0) else -1)
    return int(limits.min) if quotient > int(limits.max) else quotient


@settings(max_examples=examples(25, quick=6), deadline=None)
@given(same(FLOATS, 3))
def test_means(arrays: list[Array]) -> None:
    with np.errstate(all="ignore"):
        expected = sum(each.astype(np.float64) for each in np.broadcast_arrays(*arrays)) / 3
        sizes = [abs(number) for each in arrays for number in each.astype(np.float64).flat]
        largest = max((size for size in sizes if math.isfinite(size)), default=0.0)
        made = [np.asarray(expected, arrays[0].dtype)]
        check(make_call("Mean", *arrays), made, length=3, summand=largest)


UNARY: list[tuple[str, tuple[str, ...], dict[str, AttrValue]]] = [
    *((name, FLOATS, {}) for name in ("Exp", "Log", "Sqrt", "Sin", "Cos", "Tanh", "Floor", "Ceil")),
    *((name, FLOATS, {}) for name in ("Round", "Reciprocal", "Sigmoid", "Softplus", "Asinh")),
    *((name, ("float32", "float64"), {}) for name in ("Tan", "Asin", "Acos", "Atan", "Acosh", "Atanh")),
    *((name, (*FLOATS, *SIGNED), {}) for name in ("Abs", "Neg", "Sign")),
    *((name, ("float32", "float64"), {}) for name in ("HardSigmoid",)),
    ("LeakyRelu", ("float32", "float64"), {"alpha": 0.7}),
    ("Swish", ("float32", "float64"), {"alpha": 0.7}),
    ("HardSwish", ("float32", "float16"), {}),
    ("ThresholdedRelu", FLOATS, {"alpha": 0.5}),
    ("Shrink", ("float32",), {"bias": 0.25, "lambd": 0.75}),
    ("Relu", (*FLOATS, *SIGNED), {}),
    ("IsNaN", FLOATS, {}),
    ("IsInf", ("float32",), {"detect_negative": 1, "detect_positive": 0}),
    ("IsInf", FLOATS, {"detect_negative": 0, "detect_positive": 1}),
    ("Not", ("bool",), {}),
    ("BitwiseNot", INTEGERS, {}),
]


@pytest.mark.parametrize(("name", "dtypes", "attrs"), UNARY)
@settings(max_examples=examples(12, quick=6), deadline=None)
@given(data=st.data())
def test_one_argument(
    name: str, dtypes: tuple[str, ...], attrs: dict[str, AttrValue], data: st.DataObject
) -> None:
    with np.errstate(all="ignore"):
        check(make_call(name, *data.draw(same(dtypes, 1)), **attrs))


def _erf(x: Array) -> Array:
    return np.asarray(np.vectorize(math.erf, otypes=[np.float64])(x))


def _gelu_tanh(x: Array) -> Array:
    return np.asarray(x / (1 + np.exp(-2 * math.sqrt(2 / math.pi) * (x + 0.044715 * x**3))))


def _selu(x: Array) -> Array:
    alpha, gamma = float(np.float32(1.67326319)), float(np.float32(1.05070102))
    return np.where(x < 0, gamma * alpha * np.expm1(x), gamma * x)


DEFINED: list[tuple[str, dict[str, AttrValue], Callable[[Array], Array]]] = [
    ("Erf", {}, _erf),
    ("Gelu", {}, lambda x: x / 2 * (1 + _erf(x / math.sqrt(2)))),
    ("Gelu", {"approximate": "tanh"}, _gelu_tanh),
    ("Softsign", {}, lambda x: x / (1 + np.abs(x))),
    ("Mish", {}, lambda x: x * np.tanh(np.logaddexp(0, x))),
    ("Selu", {}, _selu),
    ("Elu", {"alpha": 0.75}, lambda x: np.where(x < 0, 0.75 * np.expm1(x), x)),
    ("Celu", {"alpha": 0.75}, lambda x: np.where(x < 0, 0.75 * np.expm1(x / 0.75), x)),
]
"""Functions whose definition is more exact than onnx's reference implementation."""


@pytest.mark.parametrize(("name", "attrs", "definition"), DEFINED)
@settings(max_examples=examples(25, quick=6), deadline=None)
@given(data=st.data())
def test_one_argument_by_definition(
    name: str, attrs: dict[str, AttrValue], definition: Callable[[Array], Array], data: st.DataObject
) -> None:
    (x,) = data.draw(same(FLOATS, 1))
    x = x[np.isfinite(x) | (name != "Gelu")] if x.ndim else np.nan_to_num(x)
    with np.errstate(all="ignore"):
        expected = definition(x.astype(np.float64))
        check(make_call(name, x, **attrs), [np.asarray(expected, x.dtype)])


@pytest.mark.quick_cases(5)
@pytest.mark.parametrize("exponent", [1.0, 2.0, 3.0, 0.5, -1.0, 0.0, -0.5, 2.5])
@pytest.mark.parametrize("knows", [False, True])
@settings(max_examples=examples(10, quick=6), deadline=None)
@given(data=st.data())
def test_powers(exponent: float, knows: bool, data: st.DataObject) -> None:
    (base,) = data.draw(same(("float32", "float64"), 1))
    if exponent == 0.5:  # the square root of minus infinity is NaN, and NumPy's power is that or infinity
        base = np.nan_to_num(base, neginf=-1.0, posinf=np.inf)
    with np.errstate(all="ignore"):
        check(make_call("Pow", base, np.array(exponent, base.dtype)), knows=knows)


@pytest.mark.parametrize("knows", [False, True])
@settings(max_examples=examples(25, quick=6), deadline=None)
@given(data=st.data(), bounds=st.tuples(st.booleans(), st.booleans()))
def test_clip(knows: bool, data: st.DataObject, bounds: tuple[bool, bool]) -> None:
    (x,) = data.draw(same(NUMBERS, 1))
    low, high = (
        np.array(bound, x.dtype) if is_there else None for bound, is_there in zip((1, 3), bounds, strict=True)
    )
    check(make_call("Clip", x, low, high), knows=knows)


@settings(max_examples=examples(25, quick=6), deadline=None)
@given(data=st.data(), dtype=st.sampled_from((*NUMBERS, "bool")))
def test_where(data: st.DataObject, dtype: str) -> None:
    check(make_call("Where", *data.draw(arguments(("bool", dtype, dtype), 3))))


@settings(max_examples=examples(25, quick=6), deadline=None)
@given(same(FLOATS, 2))
def test_prelu(pair: list[Array]) -> None:
    x, slope = np.broadcast_arrays(*pair)
    with np.errstate(all="ignore"):
        check(make_call("PRelu", np.array(x), np.array(slope)))
