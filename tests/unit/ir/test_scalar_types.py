import pytest
from tests.each_case import each_case
from tests.loop_programs import arith, integer

from intarsia.ir import DType
from intarsia.ir.prim_func import Arith, ArithOp, Buffer, Cast, Intrinsic, Literal, Load, LoopVar, Scalar
from intarsia.ir.scalar_types import (
    ARITHMETIC,
    INTRINSICS,
    Kind,
    Signature,
    dtype_over,
    operand_complaint,
    scalar_dtype,
)

F16, F32, BOOL, I64 = DType.FLOAT16, DType.FLOAT32, DType.BOOL, DType.INT64
HALF, TRUE = Literal(0.5, F16), Literal(True, BOOL)


@each_case(
    ("scalar", "dtype"),
    [
        (LoopVar("i"), I64),
        (HALF, F16),
        (Load(Buffer("x", (), F32), ()), F32),
        (Cast(HALF, F32), F32),
        (Intrinsic("exp", (HALF,), F16), F16),
        (arith(ArithOp.ADD, HALF, HALF), F16),
        (arith(ArithOp.MIN, arith(ArithOp.MUL, HALF, HALF), HALF), F16),
        (arith(ArithOp.LE, HALF, HALF), BOOL),
        (arith(ArithOp.NOT, TRUE), BOOL),
        (arith(ArithOp.SELECT, TRUE, HALF, HALF), F16),
        (arith(ArithOp.ADD), None),
        (arith(ArithOp.SELECT, TRUE), None),
    ],
)
def test_the_type_of_a_scalar(scalar: Scalar, dtype: DType | None) -> None:
    assert scalar_dtype(scalar) is dtype
    given = [scalar_dtype(item) for item in scalar.operands] if isinstance(scalar, Arith) else []
    assert dtype_over(scalar, given) is dtype


def test_every_operator_has_a_signature() -> None:
    assert set(ARITHMETIC) == set(ArithOp)
    assert {signature.arity for signature in ARITHMETIC.values()} == {1, 2, 3}
    assert all(1 <= signature.arity <= 3 for signature in INTRINSICS.values())
    assert not set(INTRINSICS) & {op.value for op in ArithOp}


@pytest.mark.parametrize(
    ("kind", "held"),
    [
        (Kind.FLOAT, {F16, F32}),
        (Kind.INTEGER, {I64}),
        (Kind.NUMBER, {F16, F32, I64}),
        (Kind.BOOL, {BOOL}),
        (Kind.ANY, {F16, F32, I64, BOOL}),
    ],
)
def test_kinds_of_operands(kind: Kind, held: set[DType]) -> None:
    assert {dtype for dtype in (F16, F32, BOOL, I64) if kind.holds(dtype)} == held


def test_an_operand_of_unknown_type_fits() -> None:
    number = Signature(2, Kind.NUMBER)
    assert operand_complaint(number, [None, I64]) is None
    assert operand_complaint(number, [I64, None]) is None
    assert operand_complaint(number, [None, BOOL]) == "an operand is bool; expected numbers"
    assert operand_complaint(number, [I64, F32]) == "the operands are int64 and float32; expected one type"
    assert operand_complaint(number, [I64]) == "found 1 as the number of operands; expected 2"


def test_numbers_without_a_type_are_int64() -> None:
    assert scalar_dtype(integer(3)) is I64
