"""What matches a pattern table becomes a function."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
import pytest
from tests.pass_checks import assert_facts_kept, checked

from intarsia.ir import (
    Call,
    Constant,
    DType,
    Expr,
    Function,
    If,
    IRModule,
    Let,
    TensorType,
    Tuple,
    Var,
    post_order,
)
from intarsia.ir.parser import parse_module
from intarsia.ir.pattern import Match, dominates, is_constant, is_op, wildcard
from intarsia.ir.printer import print_module
from intarsia.op import call, infer_types
from intarsia.op.pattern_table import CompositePattern, holding_pattern_table
from intarsia.passes import MergeComposite
from intarsia.support.errors import UsageError

VECTOR = TensorType((4,), DType.FLOAT32)
X, Y = Var("x", checked_type=VECTOR), Var("y", checked_type=VECTOR)
FLAG = Var("flag", checked_type=TensorType((), DType.BOOL))
ONES = Constant(np.ones(4, np.float32))


def is_small(found: Match) -> bool:
    return float(abs(found.names["bias"].data).max()) <= 1  # type: ignore[union-attr]  # the pattern says it is a constant


BIASED = is_op("Add")(is_op("Mul")(wildcard(), wildcard()), is_constant().named("bias"))
TABLE = (
    CompositePattern("mul_add_relu", is_op("Relu")(BIASED), is_small),
    CompositePattern("mul_add", BIASED, is_small),
    CompositePattern(
        "tanh_chain", dominates(is_op("Tanh")(wildcard()), is_op("Neg")(...), is_op("Sub")(...))
    ),
)
MERGE = MergeComposite("reference")


@pytest.fixture(autouse=True)
def _table() -> Iterator[None]:
    with holding_pattern_table("reference", TABLE):
        yield


def program(body: Expr) -> IRModule:
    return IRModule.from_expr(Function((X, Y, FLAG), body))


def composites(mod: IRModule) -> list[str]:
    """Names of the composite functions, in evaluation order."""
    found = [
        expr for expr in post_order(mod["main"]) if isinstance(expr, Function) and "Composite" in expr.attrs
    ]
    return [str(function.attrs["Composite"]) for function in found]


def merged(body: Expr) -> list[str]:
    return composites(checked(MERGE, program(body)))


def biased(value: Expr = ONES) -> Call:
    return call("Add", call("Mul", X, Y), value)


def test_the_text_before_and_after() -> None:
    after = MERGE(infer_types(program(call("Neg", call("Relu", biased())))))
    expected = infer_types(
        parse_module(
            """
            def @main(%x: Tensor[(4,), float32], %y: Tensor[(4,), float32], %flag: Tensor[(), bool]) {
              %0 = fn (%p0: Tensor[(4,), float32], %p1: Tensor[(4,), float32]) attributes {
                Composite="reference.mul_add_relu", PartitionedFromPattern="Mul_Add_Relu"
              } { Relu(Add(Mul(%p0, %p1), meta[Constant][0])) };
              Neg(%0(%x, %y))
            }
            """,
            [ONES.data],
        )
    )
    assert print_module(after).text == print_module(expected).text


def test_the_first_row_of_the_table_wins() -> None:
    assert merged(call("Relu", biased())) == ["reference.mul_add_relu"]
    assert merged(call("Neg", biased())) == ["reference.mul_add"]


def test_the_check_of_a_row_decides() -> None:
    large = Constant(np.full(4, 7, np.float32))
    assert merged(call("Relu", biased(large))) == []


def test_what_is_used_outside_is_not_swallowed() -> None:
    product = call("Mul", X, Y)
    total = call("Add", product, ONES)
    assert merged(Tuple((call("Relu", total), product))) == []
    assert merged(Tuple((call("Relu", total), total))) == ["reference.mul_add"]


def test_parts_in_different_scopes_stay_apart() -> None:
    total = biased()
    in_branch = If(FLAG, call("Relu", total), call("Neg", total), checked_type=VECTOR)
    assert merged(in_branch) == ["reference.mul_add"]
    whole_in_branch = If(FLAG, call("Relu", biased()), X, checked_type=VECTOR)
    assert merged(whole_in_branch) == ["reference.mul_add_relu"]


def test_in_a_let_and_in_a_function_value() -> None:
    v = Var("v", checked_type=VECTOR)
    let = Let(v, call("Exp", X), call("Relu", call("Add", call("Mul", v, Y), ONES)))
    assert merged(let) == ["reference.mul_add_relu"]
    closure = Function((v,), call("Relu", call("Add", call("Mul", v, Y), ONES)))
    applied = Call(closure, (X,), checked_type=VECTOR)
    assert merged(applied) == ["reference.mul_add_relu"]


def test_the_body_of_a_loop_stays_with_the_loop() -> None:
    number, go, state = (
        Var(n, checked_type=TensorType((), d))
        for n, d in (("i", DType.INT64), ("c", DType.BOOL), ("s", DType.FLOAT32))
    )
    state = Var("s", checked_type=VECTOR)
    body = Function((number, go, state), Tuple((go, call("Relu", call("Add", call("Mul", state, Y), ONES)))))
    trips = Constant(np.array(3))
    assert merged(call("Loop", trips, FLAG, X, body)) == []


def test_a_dominated_diamond() -> None:
    tanh = call("Tanh", X)
    assert merged(call("Sub", call("Neg", tanh), tanh)) == ["reference.tanh_chain"]
    assert merged(Tuple((call("Sub", call("Neg", tanh), Y), tanh))) == []


def test_two_matches_one_after_the_other() -> None:
    first = call("Relu", biased())
    second = call("Relu", call("Add", call("Mul", first, first), ONES))
    assert merged(second) == ["reference.mul_add_relu"] * 2


def test_spans_and_devices_are_kept() -> None:
    assert_facts_kept(MERGE, program(call("Relu", biased())))


def test_values_on_different_devices_are_not_joined() -> None:
    mod = parse_module(
        """
        def @main(%x: Tensor[(4,), float32], %y: Tensor[(4,), float32]) {
          %0 = Mul(%x, %y) @device(cpu:1);
          Add(%0, meta[Constant][0]) @device(cpu:0)
        }
        """,
        [ONES.data],
    )
    assert composites(MERGE(infer_types(mod))) == []


def test_a_toolchain_without_a_table_changes_nothing() -> None:
    mod = infer_types(program(call("Relu", biased())))
    assert MergeComposite("onnxruntime")(mod) is mod


def test_an_unknown_toolchain_is_an_error() -> None:
    with pytest.raises(UsageError, match="unknown toolchain 'onnxruntim'"):
        MergeComposite("onnxruntim")(program(X))


def test_a_long_chain(length: int) -> None:
    expr: Expr = X
    for _ in range(length):
        expr = call("Relu", call("Add", call("Mul", expr, expr), ONES))
    after = MERGE(program(expr))
    assert len(composites(after)) == length
