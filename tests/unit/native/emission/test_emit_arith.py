"""Operators and casts of every element type are those of the interpreter, in lanes and one by one."""

from __future__ import annotations

from itertools import product
from typing import Any

import numpy as np
import numpy.typing as npt
import pytest
from tests.emitted_kernels import compile_kernel, x86_sets
from tests.tir_checks import assert_same_bits, results

from intarsia.ir import DType, PrimFunc
from intarsia.ir.prim_func import (
    Arith,
    ArithOp,
    Block,
    Buffer,
    Cast,
    For,
    ForKind,
    Intrinsic,
    Load,
    LoopVar,
    Scalar,
    Statement,
    Store,
)
from intarsia.ir.scalar_types import ARITHMETIC, COMPARISONS, INTRINSICS, LOOP_DTYPES, Kind
from intarsia.native.machine.isa import Isa

pytestmark = pytest.mark.quick_tests(
    30,
    also=[
        "test_casts[host-bfloat16-uint32]",
        "test_casts[host-uint32-int32]",
        "test_float64_is_rounded_once[float16]",
        "test_fma_rounds_once[host-float32]",
    ],
)

Array = npt.NDArray[Any]

FLOATS = (0.0, -0.0, 1.0, -1.5, np.inf, -np.inf, np.nan, 3.0, 1e-7, -65504.0, 2.0**-14, 1e-40, 1 / 3)
DTYPES = sorted(LOOP_DTYPES)


@pytest.fixture(params=x86_sets().values(), ids=list(x86_sets()))
def isa(request: pytest.FixtureRequest) -> Isa:
    isa: Isa = request.param
    return isa


def numbers(dtype: DType) -> Array:
    """Values at the borders of a type and some between."""
    if dtype.is_float:
        with np.errstate(over="ignore"):
            return np.array(FLOATS).astype(dtype.numpy)
    if dtype is DType.BOOL:
        return np.array([False, True])
    limits = np.iinfo(dtype.value)
    values = {limits.min, limits.min + 1, limits.max, limits.max - 1, limits.max // 3, 0, 1, 2, 7, 8, 100}
    values |= set() if limits.min == 0 else {-1, -2, -7, -8, -100}
    return np.array(sorted(values), dtype.numpy)


def kernel_of(value: Scalar, given: list[Buffer], count: int, dtype: DType) -> PrimFunc:
    """The value computed in lanes and one by one."""
    made = [Buffer(name, (count,), dtype) for name in ("lanes", "single")]
    loops: list[Statement] = [
        For(LoopVar("i"), count, Store(buffer, (LoopVar("i"),), value), kind)
        for buffer, kind in zip(made, (ForKind.VECTORIZED, ForKind.SERIAL), strict=True)
    ]
    return PrimFunc((*given, *made), Block(tuple(loops)))


def check(value: Scalar, given: list[Buffer], arrays: list[Array], dtype: DType, isa: Isa) -> None:
    count = arrays[0].size
    function = kernel_of(value, given, count, dtype)
    arrays = [*arrays, np.zeros(count, dtype.numpy), np.zeros(count, dtype.numpy)]
    expected = results(function, arrays)
    found = [array.copy() for array in arrays]
    compile_kernel(function, isa)(found)
    assert_same_bits(found, expected)


def pairs(dtype: DType, *, is_divided: bool = False) -> tuple[Array, Array]:
    some = [(a, b) for a, b in product(numbers(dtype), repeat=2) if not (is_divided and b == 0)]
    return np.array([a for a, _ in some], dtype.numpy), np.array([b for _, b in some], dtype.numpy)


@pytest.mark.quick_cases(5)
@pytest.mark.parametrize("dtype", DTYPES)
def test_operators(dtype: DType, isa: Isa) -> None:
    for op, signature in ARITHMETIC.items():
        if op in (ArithOp.NOT, ArithOp.SELECT) or not signature.kind.holds(dtype):
            continue
        first, second = pairs(dtype, is_divided=op in (ArithOp.FLOOR_DIV, ArithOp.FLOOR_MOD))
        a, b = (Buffer(name, first.shape, dtype) for name in "ab")
        value = Arith(op, (Load(a, (LoopVar("i"),)), Load(b, (LoopVar("i"),))))
        result = DType.BOOL if op in COMPARISONS or signature.kind is Kind.BOOL else dtype
        if dtype.is_float and op in (ArithOp.MIN, ArithOp.MAX):
            same = (first == 0) & (second == 0)  # either zero may be the lesser
            first, second = first[~same], second[~same]
            a, b = (Buffer(name, first.shape, dtype) for name in "ab")
            value = Arith(op, (Load(a, (LoopVar("i"),)), Load(b, (LoopVar("i"),))))
        check(value, [a, b], [first, second], result, isa)


@pytest.mark.quick_cases(14)
@pytest.mark.parametrize("dtype", [dtype for dtype in DTYPES if dtype.is_integer])
@pytest.mark.parametrize("divisor", [1, 2, 8, 7, 100])
def test_division_by_constants(dtype: DType, divisor: int, isa: Isa) -> None:
    from intarsia.ir.prim_func import Literal

    x = numbers(dtype)
    a = Buffer("a", x.shape, dtype)
    for op in (ArithOp.FLOOR_DIV, ArithOp.FLOOR_MOD):
        check(Arith(op, (Load(a, (LoopVar("i"),)), Literal(divisor, dtype))), [a], [x], dtype, isa)


@pytest.mark.parametrize("dtype", DTYPES)
def test_select_and_not(dtype: DType, isa: Isa) -> None:
    first, second = pairs(dtype)
    a, b = (Buffer(name, first.shape, dtype) for name in "ab")
    left, right = Load(a, (LoopVar("i"),)), Load(b, (LoopVar("i"),))
    differ = Arith(ArithOp.NOT, (Arith(ArithOp.EQ, (left, right)),))
    check(Arith(ArithOp.SELECT, (differ, left, right)), [a, b], [first, second], dtype, isa)


@pytest.mark.quick_cases(16)
@pytest.mark.parametrize("source", DTYPES)
@pytest.mark.parametrize("target", DTYPES)
def test_casts(source: DType, target: DType, isa: Isa) -> None:
    x = numbers(source)
    if source.is_float and target.is_integer:
        limits = np.iinfo(target.value)
        wide = x.astype(np.float64)
        inside = np.isfinite(wide) & (np.trunc(wide) >= limits.min) & (np.trunc(wide) <= limits.max)
        x = np.concatenate([x[inside], np.array([0.99, 1.5, 100.7], source.numpy)])
    a = Buffer("a", x.shape, source)
    check(Cast(Load(a, (LoopVar("i"),)), target), [a], [x], target, isa)


@pytest.mark.parametrize("dtype", [DType.FLOAT16, DType.BFLOAT16])
def test_all_halves_are_read_and_rounded_back(dtype: DType, isa: Isa) -> None:
    x = np.arange(1 << 16, dtype=np.uint16).view(dtype.numpy)
    a, wide = Buffer("a", x.shape, dtype), Buffer("w", x.shape, DType.FLOAT32)
    place = (LoopVar("i"),)
    function = PrimFunc(
        (a, wide),
        For(
            LoopVar("i"), x.size, Store(wide, place, Cast(Load(a, place), DType.FLOAT32)), ForKind.VECTORIZED
        ),
    )
    back = PrimFunc(
        (wide, a),
        For(LoopVar("i"), x.size, Store(a, place, Cast(Load(wide, place), dtype)), ForKind.VECTORIZED),
    )
    random = np.random.default_rng(0).integers(0, 1 << 32, x.size, np.uint32).view(np.float32)
    found = np.zeros(x.size, np.float32)
    compile_kernel(function, isa)([x.copy(), found])
    assert_same_bits([found], [x.astype(np.float32)])
    for floats in (found, random):
        rounded = np.zeros(x.size, dtype.numpy)
        compile_kernel(back, isa)([floats, rounded])
        with np.errstate(over="ignore"):
            assert_same_bits([rounded], [floats.astype(dtype.numpy)])


@pytest.mark.parametrize("dtype", [DType.FLOAT16, DType.BFLOAT16])
def test_float64_is_rounded_once(dtype: DType) -> None:
    """Halfway between two numbers and a little more: rounding to float32 first would lose that."""
    step = 2.0**-10 if dtype is DType.FLOAT16 else 2.0**-7
    x = np.array(
        [
            1 + step / 2 + 2.0**-40,
            1 + step / 2 - 2.0**-40,
            1 + step / 2,
            1 + 1.5 * step,
            -1 - step / 2 - 2.0**-45,
        ]
    )
    expected = np.array([1 + step, 1.0, 1.0, 1 + 2 * step, -1 - step], dtype.numpy)
    a, b = Buffer("a", x.shape, DType.FLOAT64), Buffer("b", x.shape, dtype)
    place = (LoopVar("i"),)
    body = For(LoopVar("i"), x.size, Store(b, place, Cast(Load(a, place), dtype)), ForKind.VECTORIZED)
    found = np.zeros(x.size, dtype.numpy)
    compile_kernel(PrimFunc((a, b), body))([x, found])
    assert_same_bits([found], [expected])


@pytest.mark.quick_cases(3)
@pytest.mark.parametrize("dtype", [dtype for dtype in DTYPES if dtype.is_integer])
def test_bits(dtype: DType, isa: Isa) -> None:
    first, second = pairs(dtype)
    bits = dtype.numpy.itemsize * 8
    a, b = (Buffer(name, first.shape, dtype) for name in "ab")
    for name, signature in INTRINSICS.items():
        if not signature.kind.holds(dtype) or signature.kind is Kind.FLOAT or signature.result is not None:
            continue
        left, right = Load(a, (LoopVar("i"),)), Load(b, (LoopVar("i"),))
        is_shift = name.startswith("shift")
        by = (second.astype(np.int64) % bits).astype(dtype.numpy) if is_shift else second
        args = (left, right)[: signature.arity]
        check(Intrinsic(name, args, dtype), [a, b], [first, by], dtype, isa)


@pytest.mark.parametrize("dtype", [DType.FLOAT64, DType.FLOAT32])
def test_fma_rounds_once(dtype: DType, isa: Isa) -> None:
    tiny = float(np.finfo(dtype.value).eps)
    x = np.array([1 + tiny, 3.0, -2.0], dtype.numpy)
    a = Buffer("a", x.shape, dtype)
    load = Load(a, (LoopVar("i"),))
    value = Intrinsic("fma", (load, load, Arith(ArithOp.MUL, (load, load))), dtype)
    function = kernel_of(value, [a], x.size, dtype)
    arrays = [x, np.zeros_like(x), np.zeros_like(x)]
    compile_kernel(function, isa)(arrays)
    exact = x.astype(np.longdouble) * x + (x * x).astype(np.longdouble)
    for found in arrays[1:]:
        np.testing.assert_array_equal(found, exact.astype(dtype.numpy))


def test_division_by_zero_in_lanes_that_do_not_run() -> None:
    from intarsia.ir.parser import parse_module

    text = """def prim @f(x: Buffer[(9,), int32], y: Buffer[(9,), int32]) {
      for vectorized i in 9 { if x[i] != 0i32 { y[i] = 100i32 floordiv x[i]; } } }"""
    x = np.array([0, 1, 2, 0, -3, 0, 7, 0, 0], np.int32)
    y = np.zeros(9, np.int32)
    compile_kernel(parse_module(text).prim_func("f"))([x, y])
    np.testing.assert_array_equal(y, [0, 100, 50, 0, -34, 0, 14, 0, 0])
