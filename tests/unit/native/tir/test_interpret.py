import math
from typing import Any

import numpy as np
import numpy.typing as npt
import pytest
from tests.loop_programs import arith, every_statement, integer, matmul, scale
from tests.tir_checks import parsed

from intarsia.ir import DType, PrimFunc
from intarsia.ir.prim_func import (
    Allocate,
    ArithOp,
    Block,
    Buffer,
    Cast,
    For,
    IfThenElse,
    Intrinsic,
    Literal,
    LoopVar,
    Scalar,
    Statement,
    Store,
)
from intarsia.ir.scalar_types import scalar_dtype
from intarsia.native.tir import interpret
from intarsia.native.tir.generated_python import sentinel
from intarsia.support.errors import ExecutionError, InputError

F32, I64 = DType.FLOAT32, DType.INT64


def value_of(scalar: Scalar) -> Any:
    dtype = scalar_dtype(scalar)
    assert dtype is not None
    array: npt.NDArray[Any] = np.zeros((), dtype.numpy)
    interpret(PrimFunc((out := Buffer("out", (), dtype),), Store(out, (), scalar)), [array])
    return array[()]


def test_scale() -> None:
    x = np.arange(32, dtype=np.float32).reshape(4, 8)
    y = np.zeros_like(x)
    interpret(scale(), [x, y])
    np.testing.assert_array_equal(y, 2 * x)


def test_a_matrix_product_in_a_view() -> None:
    random = np.random.default_rng(0)
    a, b = random.integers(-9, 9, (5, 3)).T, random.integers(-9, 9, (5, 4))
    c = np.zeros((4, 3), np.int64).T
    interpret(matmul(dtype=I64), {"a": a, "b": b, "c": c})
    np.testing.assert_array_equal(c, a @ b)


def test_every_statement() -> None:
    x = np.linspace(-2, 2, 32, dtype=np.float32).reshape(4, 8)
    y = np.full(32, -1, np.float16)
    interpret(every_statement(), {"x": x, "for": y})
    row, column = np.indices((4, 8))
    expected = np.where((row <= column) & (row != 3), np.exp(x) / 3, -1).astype(np.float16)
    np.testing.assert_array_equal(y, expected.reshape(32))


@pytest.mark.quick_cases(6)
@pytest.mark.parametrize("dtype", [DType.FLOAT16, DType.BFLOAT16, DType.FLOAT32, DType.FLOAT64])
@pytest.mark.parametrize("op", [ArithOp.ADD, ArithOp.SUB, ArithOp.MUL, ArithOp.DIV])
def test_floats_round_in_their_type(op: ArithOp, dtype: DType) -> None:
    function = {ArithOp.ADD: np.add, ArithOp.SUB: np.subtract, ArithOp.MUL: np.multiply}.get(op, np.divide)
    random = np.random.default_rng(0)
    pairs = (random.normal(size=(100, 2)) * 10.0 ** random.integers(-5, 4, (100, 2))).astype(dtype.numpy)
    for left, right in pairs:
        with np.errstate(all="ignore"):
            expected = function(left, right)
        assert value_of(arith(op, Literal(float(left), dtype), Literal(float(right), dtype))) == expected


@pytest.mark.parametrize("left", [-7, -6, 0, 6, 7])
@pytest.mark.parametrize("right", [-3, 3])
def test_integer_division_rounds_down(left: int, right: int) -> None:
    both = Literal(left, DType.INT32), Literal(right, DType.INT32)
    assert value_of(arith(ArithOp.FLOOR_DIV, *both)) == math.floor(left / right)
    assert value_of(arith(ArithOp.FLOOR_MOD, *both)) == left - right * math.floor(left / right)


@pytest.mark.parametrize("dtype", [DType.INT8, DType.INT64, DType.UINT8, DType.UINT64])
def test_integers_wrap_around(dtype: DType) -> None:
    low, high = (int(np.iinfo(dtype.value).min), int(np.iinfo(dtype.value).max))
    assert value_of(arith(ArithOp.ADD, Literal(high, dtype), Literal(1, dtype))) == low
    assert value_of(arith(ArithOp.SUB, Literal(low, dtype), Literal(1, dtype))) == high
    assert value_of(arith(ArithOp.MUL, Literal(high, dtype), Literal(2, dtype))) == (2 * high) % 2 ** (
        dtype.numpy.itemsize * 8
    ) - (0 if low == 0 else 2 ** (dtype.numpy.itemsize * 8))


@pytest.mark.parametrize("op", [ArithOp.MIN, ArithOp.MAX])
@pytest.mark.parametrize("pair", [(math.nan, 1.0), (1.0, math.nan), (math.nan, -math.inf)])
def test_minimum_and_maximum_give_nan(op: ArithOp, pair: tuple[float, float]) -> None:
    assert math.isnan(value_of(arith(op, *(Literal(value, F32) for value in pair))))


@pytest.mark.parametrize(
    ("value", "source", "target", "expected"),
    [
        (2.9, "float64", "int32", 2),
        (-2.9, "float32", "int32", -2),
        (300, "int64", "uint8", 44),
        (math.nan, "float32", "bool", True),
        (-0.0, "float32", "bool", False),
        (True, "bool", "float32", 1.0),
        (2**62 + 2**38 + 1, "int64", "float32", 2.0**62 + 2.0**39),  # through float64 it would be a tie
        (1 + 2**-8 + 2**-40, "float64", "bfloat16", 1 + 2**-7),  # through float32 it would be a tie
        (1e300, "float64", "float32", math.inf),
        (65520.0, "float64", "float16", math.inf),
    ],
)
def test_casts(value: float, source: str, target: str, expected: float) -> None:
    assert value_of(Cast(Literal(value, DType(source)), DType(target))) == expected


def test_fma_rounds_once() -> None:
    near = 1 + 2.0**-12
    args = (Literal(near, F32), Literal(near, F32), Literal(-1.0, F32))
    assert value_of(Intrinsic("fma", args, F32)) == 2.0**-11 + 2.0**-24


@pytest.mark.parametrize("name", ["exp", "log", "sqrt", "erf", "sin", "tanh", "floor", "round_even", "abs"])
def test_intrinsics_are_those_of_float64_rounded(name: str) -> None:
    exact: Any = {"erf": math.erf, "round_even": np.rint}.get(name) or getattr(np, name)
    found = value_of(Intrinsic(name, (Literal(0.7, F32),), F32))
    assert found == np.float32(exact(np.float64(np.float32(0.7))))


X = Buffer("x", (4, 2), F32)


def run(statement: Statement) -> None:
    interpret(PrimFunc((X,), statement), [np.zeros((4, 2), np.float32)])


def test_an_index_outside_names_buffer_index_and_extent() -> None:
    with pytest.raises(ExecutionError) as caught:
        run(For(LoopVar("i"), 3, Store(X, (integer(3), LoopVar("i")), Literal(0, F32))))
    assert str(caught.value) == (
        "index 1 of x is 2; expected 0 to 1, since its extent is 2\nhelp: x is Buffer[(4, 2), float32]"
    )


@pytest.mark.parametrize(
    ("index", "problem"),
    [
        (integer(-1), "index 0 of x is -1; expected 0 to 3"),
        (arith(ArithOp.FLOOR_MOD, integer(1), integer(0)), "1 is divided by zero"),
        (Cast(Literal(1e30, F32), I64), r"1.0\d*e\+30 is outside of int64"),
        (Intrinsic("shift_left", (integer(1), integer(64)), I64), "int64 is shifted by 64"),
    ],
)
def test_what_is_undefined(index: Scalar, problem: str) -> None:
    with pytest.raises(ExecutionError, match=problem):
        run(Store(X, (index, integer(0)), Literal(0, F32)))


def test_new_buffers_hold_a_sentinel_in_each_iteration() -> None:
    text = """def prim @f(y: Buffer[(2,), float32], n: Buffer[(2,), int8]) {
      for i in 2 {
        alloc t: Buffer[(), float32] { alloc u: Buffer[(), int8] {
          y[i] = t[];
          n[i] = u[];
          t[] = 1f32;
          u[] = 1i8;
        } }
      }
    }"""
    y, n = np.zeros(2, np.float32), np.zeros(2, np.int8)
    interpret(parsed(text), [y, n])
    assert np.isnan(y).all()
    assert n.tolist() == [sentinel(DType.INT8)] * 2


def test_arrays_must_fit_the_parameters() -> None:
    function = PrimFunc((X,), Block(()))
    with pytest.raises(InputError, match="the array for x is float64"):
        interpret(function, [np.zeros((4, 2))])
    with pytest.raises(InputError, match="found 0 arrays; expected 1"):
        interpret(function, [])
    with pytest.raises(InputError, match="found arrays for z; expected x"):
        interpret(function, {"z": np.zeros((4, 2), np.float32)})


def test_statements_as_deep_as_they_may_be() -> None:
    y = Buffer("y", (), I64)
    counters = [LoopVar(f"i{n}") for n in range(60)]
    total: Scalar = integer(0)
    for var in counters[:50]:
        total = arith(ArithOp.ADD, var, total)
    body: Statement = Store(y, (), arith(ArithOp.ADD, integer(7), total))
    for position, var in enumerate(reversed(counters)):
        body = For(var, 1, IfThenElse(Literal(True, DType.BOOL), body) if position == 30 else body)
    found = np.zeros((), np.int64)
    interpret(PrimFunc((y,), Allocate(Buffer("t", (), I64), body)), [found])
    assert found == 7
