import math
import pickle

import pytest
from tests.loop_programs import matmul, scale

from intarsia.ir import Attrs, DType, PrimFunc, Span, with_prim_func_fields
from intarsia.ir.prim_func import (
    DEEPEST,
    Arith,
    ArithOp,
    Block,
    Buffer,
    For,
    Literal,
    LoopVar,
    Scalar,
    Statement,
    Store,
)


@pytest.mark.parametrize(
    ("value", "dtype", "stored"),
    [
        (1, "float32", 1.0),
        (0.1, "float32", 0.10000000149011612),
        (0.1, "float64", 0.1),
        (1e40, "float32", math.inf),
        (10**400, "float64", math.inf),
        (-(10**400), "float16", -math.inf),
        (1 / 3, "bfloat16", 0.333984375),
        (2.0, "int32", 2),
        (True, "uint8", 1),
        (1, "bool", True),
    ],
)
def test_a_literal_is_brought_to_its_type(value: float, dtype: str, stored: float) -> None:
    literal = Literal(value, DType(dtype))
    assert literal.value == stored
    assert type(literal.value) is type(stored)
    assert literal.is_in_type


@pytest.mark.parametrize(
    ("value", "dtype"), [(128, "int8"), (-1, "uint64"), (0.5, "int32"), (math.nan, "int8"), (2, "bool")]
)
def test_a_literal_that_its_type_has_not(value: float, dtype: str) -> None:
    literal = Literal(value, DType(dtype))
    assert literal.value is value
    assert not literal.is_in_type


@pytest.mark.parametrize("dtype", ["int8", "uint8", "int64", "uint64"])
def test_the_limits_of_a_type_are_in_it(dtype: str) -> None:
    bits = DType(dtype).numpy.itemsize * 8
    lowest, highest = (0, 2**bits - 1) if dtype.startswith("u") else (-(2 ** (bits - 1)), 2 ** (bits - 1) - 1)
    assert Literal(lowest, DType(dtype)).is_in_type
    assert Literal(highest, DType(dtype)).is_in_type
    assert not Literal(lowest - 1, DType(dtype)).is_in_type
    assert not Literal(highest + 1, DType(dtype)).is_in_type


def test_literals_are_compared_by_exact_value_and_type() -> None:
    f32, f64 = DType.FLOAT32, DType.FLOAT64
    assert Literal(math.nan, f32) == Literal(float("nan"), f32)
    assert hash(Literal(math.nan, f32)) == hash(Literal(float("nan"), f32))
    assert Literal(0.0, f32) != Literal(-0.0, f32)
    assert Literal(1, f32) != Literal(1, f64)
    assert Literal(1, DType.BOOL) != Literal(1, DType.INT8)
    assert Literal(1, f32) == Literal(1.0, f32)
    assert Literal(1, f32) != 1.0


def test_equal_loops_are_equal_wherever_they_were_made() -> None:
    assert scale() == scale()
    assert hash(matmul()) == hash(matmul())
    assert matmul(3) != matmul(4)
    assert pickle.loads(pickle.dumps(matmul())) == matmul()


def test_copy_on_write() -> None:
    function = scale()
    assert with_prim_func_fields(function) is function
    assert with_prim_func_fields(function, attrs=Attrs({"threads": 2}), body=scale().body) is function
    moved = with_prim_func_fields(function, span=Span("model.onnx", "Mul_0"))
    assert (moved.body, moved.attrs) == (function.body, function.attrs)
    assert moved != function


def test_the_deepest_nesting_can_be_compared_and_hashed() -> None:
    def deepest() -> PrimFunc:
        scalar: Scalar = LoopVar("i")
        for _ in range(DEEPEST - 1):
            scalar = Arith(ArithOp.ADD, (scalar, Literal(1, DType.INT64)))
        buffer = Buffer("x", (), DType.INT64)
        statement: Statement = Store(buffer, (), scalar)
        for number in range(DEEPEST - 1):
            statement = For(LoopVar(f"i{number}"), 2, Block((statement,)))
        return PrimFunc((buffer,), statement)

    assert deepest() == deepest()
    assert hash(deepest()) == hash(deepest())


def test_a_buffer_is_written_with_its_shape_and_type() -> None:
    assert str(Buffer("x", (4,), DType.FLOAT32)) == "Buffer[(4,), float32]"
    assert str(Buffer("x", (), DType.BOOL)) == "Buffer[(), bool]"
