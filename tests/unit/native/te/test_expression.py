from collections.abc import Callable

import pytest
from tests.each_case import each_case

from intarsia.ir import DType
from intarsia.native import te
from intarsia.native.dag import expression_text
from intarsia.support.errors import UsageError

F32, I64 = DType.FLOAT32, DType.INT64
X = te.placeholder((4, 5), name="X")[0, 1]
N = te.placeholder((4,), I64, name="N")[2]
B = te.placeholder((), DType.BOOL, name="B")[()]

OPERATORS: list[tuple[te.Expression, str, DType]] = [
    (X + 1, "(X[0, 1]+1f)", F32),
    (1 + X, "(1f+X[0, 1])", F32),
    (X - 2.5, "(X[0, 1]-2.5f)", F32),
    (2 - X, "(2f-X[0, 1])", F32),
    (X * X, "(X[0, 1]*X[0, 1])", F32),
    (3 * X, "(3f*X[0, 1])", F32),
    (X / 2, "(X[0, 1]/2f)", F32),
    (1 / X, "(1f/X[0, 1])", F32),
    (-X, "(X[0, 1]*-1f)", F32),
    (-N, "(0-N[2])", I64),
    (N // 2, "floordiv(N[2], 2)", I64),
    (7 // N, "floordiv(7, N[2])", I64),
    (N % 2, "floormod(N[2], 2)", I64),
    (7 % N, "floormod(7, N[2])", I64),
    (X < 1, "(X[0, 1]<1f)", DType.BOOL),
    (X <= 1, "(X[0, 1]<=1f)", DType.BOOL),
    (X > 1, "(1f<X[0, 1])", DType.BOOL),
    (X >= 1, "(1f<=X[0, 1])", DType.BOOL),
    (te.equal(X, 1), "(X[0, 1] == 1f)", DType.BOOL),
    (te.not_equal(N, 1), "(N[2] != 1)", DType.BOOL),
    (te.maximum(X, 0), "max(X[0, 1], 0f)", F32),
    (te.minimum(0, N), "min(0, N[2])", I64),
    (te.logical_and(B, X < 1, B), "((B and (X[0, 1]<1f)) and B)", DType.BOOL),
    (te.logical_or(B, B), "(B or B)", DType.BOOL),
    (te.logical_not(B), "not(B)", DType.BOOL),
    (te.select(B, X, 0), "select(B, X[0, 1], 0f)", F32),
    (te.if_then_else(B, 0, N), "if_then_else(B, 0, N[2])", I64),
    (X.astype(I64), "int64(X[0, 1])", I64),
    (te.exp(X), "exp(X[0, 1])", F32),
    (te.power(X, 2), "pow(X[0, 1], 2f)", F32),
    (te.call("shift_left", N, 2), "shift_left(N[2], 2)", I64),
    (te.const(1.5, DType.FLOAT64), "1.5f", DType.FLOAT64),
]


@each_case(("expression", "text", "dtype"), OPERATORS)
def test_operators_of_python_build_scalars(expression: te.Expression, text: str, dtype: DType) -> None:
    assert expression_text(expression.scalar) == text
    assert expression.dtype is dtype


def test_a_cast_to_the_same_type_is_none() -> None:
    assert X.astype(F32) is X


def test_an_expression_knows_what_it_reads_once_and_in_order() -> None:
    a, b = te.placeholder((4,), I64, name="A"), te.placeholder((4,), name="B")
    value = b[a[1]] + b[0] * a[2].astype(F32)
    assert value.tensors == (b, a)
    assert te.const(1).tensors == ()


WRONG: list[tuple[Callable[[], object], str]] = [
    (lambda: X + N, "tensor expression: +: the operands are float32 and int64; expected one type"),
    (lambda: X // 2, "tensor expression: floordiv: an operand is float32; expected integers"),
    (lambda: N / 2, "tensor expression: /: an operand is int64; expected floats"),
    (lambda: N + 0.5, "0.5 is no int64"),
    (lambda: B + B, "tensor expression: +: an operand is bool; expected numbers"),
    (lambda: te.const(300, DType.UINT8), "300 is no uint8"),
    (lambda: te.select(X, X, X), "tensor expression: the condition of select is float32; expected bool"),
    (lambda: te.call("gamma", X), "tensor expression: unknown intrinsic gamma"),
    (lambda: te.exp(N), "tensor expression: exp: an operand is int64; expected floats"),
    (lambda: te.maximum(1, 2), "a tensor expression needs an operand that is no plain number: use te.const"),
    (
        lambda: bool(X < 1),
        "a tensor expression has no truth value: use te.select, te.if_then_else, te.logical_and",
    ),
    (lambda: te.placeholder((4, 5), name="X")[0], "tensor X has 2 dimensions; found 1 indices"),
    (
        lambda: te.placeholder((4,), name="X")[X],
        "an index of tensor X is float32; expected int64 (use astype)",
    ),
]


@each_case(("build", "message"), WRONG)
def test_what_does_not_fit_is_refused(build: Callable[[], object], message: str) -> None:
    with pytest.raises(UsageError) as caught:
        build()
    assert str(caught.value) == message


def test_an_axis_stands_for_its_value() -> None:
    k = te.reduce_axis(3, "k")
    assert expression_text((N + k).scalar) == "(N[2]+k)"
    assert expression_text((k + N).scalar) == "(k+N[2])"
    assert (N * k).scalar == (N * k.expression).scalar
