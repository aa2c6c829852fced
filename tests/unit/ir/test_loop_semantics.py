"""The meaning of the loop language, through the evaluator that other tests rely on."""

import math
import struct
from typing import Any

import numpy as np
import numpy.typing as npt
import pytest
from tests.each_case import each_case
from tests.loop_evaluator import UndefinedError, cast, run_prim_func
from tests.loop_programs import F32, I64, arith, every_statement, integer, matmul, scale

from intarsia.ir import DType, PrimFunc
from intarsia.ir.prim_func import (
    Allocate,
    ArithOp,
    Block,
    Buffer,
    Cast,
    For,
    ForKind,
    IfThenElse,
    Intrinsic,
    Literal,
    Load,
    LoopVar,
    Scalar,
    Store,
)
from intarsia.ir.scalar_types import scalar_dtype


def value_of(scalar: Scalar) -> Any:
    dtype = scalar_dtype(scalar)
    assert dtype is not None
    out = Buffer("out", (), dtype)
    array: npt.NDArray[Any] = np.zeros((), dtype.numpy)
    run_prim_func(PrimFunc((out,), Store(out, (), scalar)), {"out": array})
    return array[()]


def test_scale() -> None:
    x = np.arange(32, dtype=np.float32).reshape(4, 8)
    y = np.zeros_like(x)
    run_prim_func(scale(), {"x": x, "y": y}, order=lambda extent: reversed(range(extent)))
    np.testing.assert_array_equal(y, 2 * x)


def test_a_matrix_product() -> None:
    random = np.random.default_rng(0)
    a, b = random.integers(-9, 9, (3, 5)), random.integers(-9, 9, (5, 4))
    c = np.zeros((3, 4), np.int64)
    run_prim_func(matmul(dtype=I64), {"a": a, "b": b, "c": c})
    np.testing.assert_array_equal(c, a @ b)


def test_every_statement() -> None:
    x = np.linspace(-2, 2, 32, dtype=np.float32).reshape(4, 8)
    y = np.full(32, -1, np.float16)
    run_prim_func(every_statement(), {"x": x, "for": y})
    row, column = np.indices((4, 8))
    expected = np.where((row <= column) & (row != 3), np.exp(x) / 3, -1).astype(np.float16)
    np.testing.assert_array_equal(y, expected.reshape(32))


def int32(op: ArithOp, left: int, right: int) -> int:
    return int(value_of(arith(op, Literal(left, DType.INT32), Literal(right, DType.INT32))))


@pytest.mark.parametrize("left", [-7, -6, 0, 6, 7])
@pytest.mark.parametrize("right", [-3, 3])
def test_integer_division_rounds_down(left: int, right: int) -> None:
    assert int32(ArithOp.FLOOR_DIV, left, right) == math.floor(left / right)
    assert int32(ArithOp.FLOOR_MOD, left, right) == left - right * math.floor(left / right)


def test_integers_wrap_around() -> None:
    assert int32(ArithOp.ADD, 2**31 - 1, 1) == -(2**31)
    assert int32(ArithOp.MUL, 2**30, 6) == -(2**31)
    assert int32(ArithOp.FLOOR_DIV, -(2**31), -1) == -(2**31)
    assert value_of(arith(ArithOp.SUB, Literal(0, DType.UINT8), Literal(1, DType.UINT8))) == 255
    assert value_of(Intrinsic("abs", (Literal(-128, DType.INT8),), DType.INT8)) == -128
    assert (
        value_of(Intrinsic("shift_left", (Literal(129, DType.UINT8), Literal(1, DType.UINT8)), DType.UINT8))
        == 2
    )
    assert (
        value_of(Intrinsic("shift_right", (Literal(-128, DType.INT8), Literal(1, DType.INT8)), DType.INT8))
        == -64
    )


@pytest.mark.parametrize("op", [ArithOp.MIN, ArithOp.MAX])
@pytest.mark.parametrize("pair", [(math.nan, 1.0), (1.0, math.nan), (math.nan, -math.inf)])
def test_minimum_and_maximum_give_nan(op: ArithOp, pair: tuple[float, float]) -> None:
    assert math.isnan(value_of(arith(op, *(Literal(value, F32) for value in pair))))


@pytest.mark.parametrize("dtype", [DType.FLOAT16, DType.FLOAT32, DType.FLOAT64])
@pytest.mark.parametrize("op", [ArithOp.ADD, ArithOp.SUB, ArithOp.MUL, ArithOp.DIV])
def test_floats_round_as_numpy_rounds(op: ArithOp, dtype: DType) -> None:
    function = {ArithOp.ADD: np.add, ArithOp.SUB: np.subtract, ArithOp.MUL: np.multiply}.get(op, np.divide)
    random = np.random.default_rng(0)
    scales = 10.0 ** random.integers(-5, 4, (200, 2))
    pairs = (random.normal(size=(200, 2)) * scales).astype(dtype.numpy)
    for left, right in pairs:
        with np.errstate(all="ignore"):
            expected = function(left, right)
        found = value_of(arith(op, Literal(float(left), dtype), Literal(float(right), dtype)))
        np.testing.assert_array_equal(found, expected)


def test_fma_rounds_once() -> None:
    # (1 + e)^2 - 1 with e = 2^-12: the product needs 25 bits, one more than float32 has.
    near = 1 + 2.0**-12
    args = (Literal(near, F32), Literal(near, F32), Literal(-1.0, F32))
    assert value_of(Intrinsic("fma", args, F32)) == 2.0**-11 + 2.0**-24
    separate = arith(ArithOp.ADD, arith(ArithOp.MUL, *args[:2]), args[2])
    assert value_of(separate) == 2.0**-11


@pytest.mark.parametrize(
    ("values", "expected"),
    [
        ((1e300, 1e300, -math.inf), -math.inf),
        ((math.inf, 0.0, 1.0), math.nan),
        ((1e300, 1e300, 1.0), math.inf),
        ((2.0, 3.0, -6.0), 0.0),
        ((-0.0, 1.0, -0.0), -0.0),
    ],
)
def test_fma_at_its_limits(values: tuple[float, ...], expected: float) -> None:
    args = tuple(Literal(value, DType.FLOAT64) for value in values)
    np.testing.assert_equal(float(value_of(Intrinsic("fma", args, DType.FLOAT64))), expected)


@each_case(
    ("value", "dtype", "expected"),
    [
        (2.9, "int32", 2),
        (-2.9, "int32", -2),
        (300, "uint8", 44),
        (200, "int8", -56),
        (math.nan, "bool", True),
        (-0.0, "bool", False),
        (True, "float32", 1.0),
        (2**24 + 1, "float32", 2.0**24),
        (2**24 + 3, "float32", 2.0**24 + 4),
        (2**62 + 2**38 + 1, "float32", 2.0**62 + 2.0**39),  # through float64 it would be a tie
        (1 + 2**-8 + 2**-40, "bfloat16", 1 + 2**-7),  # through float32 it would be a tie
        (1 + 2**-8, "bfloat16", 1.0),
        (1e300, "float32", math.inf),
        (65519.0, "float16", 65504.0),
        (65520.0, "float16", math.inf),
        (2.0**-25, "float16", 0.0),
        (1.5 * 2.0**-25, "float16", 2.0**-24),
    ],
)
def test_casts(value: float, dtype: str, expected: float) -> None:
    found = cast(value, DType(dtype))
    assert found == expected
    assert type(found) is type(expected)


def test_casts_to_float32_round_as_the_machine_does() -> None:
    bits = np.random.default_rng(0).integers(0, 2**63, 500)
    for number in bits.view(np.float64).tolist():
        try:
            (expected,) = struct.unpack("f", struct.pack("f", number))
        except OverflowError:
            expected = math.inf
        np.testing.assert_equal(cast(number, F32), expected)


X = Buffer("x", (4,), F32)
UNDEFINED = [
    Store(X, (integer(4),), Literal(0, F32)),
    Store(X, (integer(-1),), Literal(0, F32)),
    Allocate(Buffer("t", (), F32), Store(X, (integer(0),), Load(Buffer("t", (), F32), ()))),
    Store(X, (Cast(Literal(math.nan, F32), I64),), Literal(0, F32)),
    Store(X, (Cast(Literal(1e30, F32), I64),), Literal(0, F32)),
    Store(X, (arith(ArithOp.FLOOR_MOD, integer(1), integer(0)),), Literal(0, F32)),
    Store(X, (Intrinsic("shift_left", (integer(1), integer(64)), I64),), Literal(0, F32)),
    # All operands are evaluated: select is no guard.
    Store(
        X,
        (integer(0),),
        arith(ArithOp.SELECT, Literal(True, DType.BOOL), Literal(0, F32), Load(X, (integer(9),))),
    ),
]


@pytest.mark.parametrize("statement", UNDEFINED)
def test_what_is_undefined_raises(statement: Store | Allocate) -> None:
    with pytest.raises(UndefinedError):
        run_prim_func(PrimFunc((X,), statement), {"x": np.zeros(4, np.float32)})


def test_an_if_guards() -> None:
    var = LoopVar("i")
    inside = arith(ArithOp.LT, var, integer(4))
    body = IfThenElse(inside, Store(X, (var,), Cast(var, F32)), Block(()))
    x = np.zeros(4, np.float32)
    run_prim_func(PrimFunc((X,), For(var, 6, body, ForKind.VECTORIZED)), {"x": x})
    np.testing.assert_array_equal(x, [0, 1, 2, 3])


def test_each_iteration_has_a_buffer_of_its_own() -> None:
    var, t = LoopVar("i"), Buffer("t", (), F32)
    first = arith(ArithOp.EQ, var, integer(0))
    body = Allocate(
        t, Block((IfThenElse(first, Store(t, (), Literal(1, F32))), Store(X, (var,), Load(t, ()))))
    )
    with pytest.raises(UndefinedError, match=r"t\[\] was never written"):
        run_prim_func(PrimFunc((X,), For(var, 2, body)), {"x": np.zeros(4, np.float32)})


def test_arrays_must_fit_the_parameters() -> None:
    with pytest.raises(ValueError, match="x is float64"):
        run_prim_func(PrimFunc((X,), Block(())), {"x": np.zeros(4)})
    with pytest.raises(ValueError, match="found arrays for"):
        run_prim_func(PrimFunc((X,), Block(())), {})
