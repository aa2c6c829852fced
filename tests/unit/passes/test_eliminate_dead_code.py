"""Values that nothing uses are not computed."""

from __future__ import annotations

import numpy as np
import pytest
from tests.pass_checks import assert_facts_kept, checked, operator_counts

from intarsia.ir import (
    Attrs,
    Call,
    Constant,
    DType,
    Expr,
    Function,
    GlobalVar,
    If,
    IRModule,
    Let,
    Op,
    TensorType,
    Tuple,
    TupleType,
    Var,
    post_order,
    with_fields,
)
from intarsia.op import absent, call, infer_types, tuple_get
from intarsia.passes import EliminateDeadCode
from intarsia.target import DeviceType, VirtualDevice

CLEAN = EliminateDeadCode()
VECTOR = TensorType((4,), DType.FLOAT32)
X = Var("x", checked_type=VECTOR)
FLAG = Var("c", checked_type=TensorType((), DType.BOOL))
IMAGE = Var("i", checked_type=TensorType((1, 2, 4, 4), DType.FLOAT32))
HERE, THERE = VirtualDevice(DeviceType.CPU, 0), VirtualDevice(DeviceType.CPU, 1)


def var(name: str) -> Var:
    return Var(name, checked_type=VECTOR)


def program(body: Expr, *params: Var) -> IRModule:
    return IRModule.from_expr(Function(params or (X, FLAG), body))


def cleaned(body: Expr, *params: Var) -> Expr:
    return checked(CLEAN, program(body, *params))["main"].body


def unchanged(body: Expr, *params: Var) -> bool:
    mod = infer_types(program(body, *params))
    return CLEAN(mod) is mod


def names(body: Expr) -> dict[str, int]:
    return dict(operator_counts(program(body)))


def test_a_let_that_nobody_uses() -> None:
    assert cleaned(Let(var("v"), call("Relu", X), X)) is X


def test_a_let_that_is_used_stays() -> None:
    v = var("v")
    assert unchanged(Let(v, call("Relu", X), call("Neg", v)))


def test_what_only_dead_code_uses_is_dead() -> None:
    v, w, u = var("v"), var("w"), var("u")
    inner = Let(u, call("Exp", w), call("Neg", X))
    assert names(cleaned(Let(v, call("Relu", X), Let(w, call("Abs", v), inner)))) == {"Neg": 1}


def test_what_a_live_value_uses_is_live() -> None:
    v, w, u = var("v"), var("w"), var("u")
    inner = Let(u, call("Exp", v), call("Neg", w))
    body = cleaned(Let(v, call("Relu", X), Let(w, call("Abs", v), inner)))
    assert names(body) == {"Relu": 1, "Abs": 1, "Neg": 1}


def test_lets_within_values_and_branches() -> None:
    v, w, u = var("v"), var("w"), var("u")
    value = Let(w, call("Exp", X), call("Relu", X))
    branch = Let(u, call("Tanh", X), call("Abs", v))
    body = cleaned(Let(v, value, If(FLAG, branch, v, checked_type=VECTOR)))
    assert names(body) == {"Relu": 1, "Abs": 1}


def test_a_variable_that_only_an_inner_scope_uses() -> None:
    v = var("v")
    assert unchanged(Let(v, call("Relu", X), If(FLAG, v, X, checked_type=VECTOR)))


def test_a_closure_that_nobody_calls() -> None:
    v, p = var("v"), var("p")
    f = Var("f", checked_type=Function((p,), call("Add", p, v)).checked_type)
    closure = Function((p,), call("Add", p, v))
    assert cleaned(Let(v, call("Relu", X), Let(f, closure, call("Neg", X)))).args == (X,)  # type: ignore[union-attr]  # a call
    applied = Call(f, (X,), checked_type=VECTOR)
    assert unchanged(Let(v, call("Relu", X), Let(f, closure, applied)))


def test_a_draw_that_nobody_uses_is_dropped() -> None:
    assert cleaned(Let(var("v"), call("RandomNormal", shape=(4,)), X)) is X


def test_fields_and_branches_stay() -> None:
    fields = Tuple((call("Relu", X), call("Neg", X)))
    assert unchanged(tuple_get(fields, 1))
    assert unchanged(If(FLAG, call("Relu", X), call("Neg", X), checked_type=VECTOR))


def test_a_let_that_says_where_its_body_is_to_live_stays() -> None:
    near = with_fields(call("Relu", X), virtual_device=HERE)
    v, w = var("v"), var("w")
    inner = Let(w, call("Abs", v), near, virtual_device=THERE)
    assert unchanged(Let(v, call("Exp", X), inner))
    kept = Let(v, call("Exp", X), near, virtual_device=HERE)
    assert CLEAN(infer_types(program(kept)))["main"].body is near


def test_a_chain_of_dead_lets(length: int) -> None:
    body: Expr = call("Neg", X)
    for position in range(length):
        body = Let(var(f"v{position}"), call("Relu", X), body)
    assert operator_counts(CLEAN(program(body))) == {"Neg": 1}


def test_results_at_the_end_that_nobody_asks_for() -> None:
    pooled = call("MaxPool", IMAGE, kernel_shape=(2, 2), strides=(2, 2), outputs=2)
    after = checked(CLEAN, program(call("Relu", tuple_get(pooled, 0)), IMAGE))
    (made,) = (item for item in post_order(after["main"]) if isinstance(item, Call) and item.args == (IMAGE,))
    assert made.attrs == Attrs({"kernel_shape": (2, 2), "strides": (2, 2)})
    assert made.checked_type == TensorType((1, 2, 2, 2), DType.FLOAT32)


def lstm(outputs: int) -> Call:
    sequence = Constant(np.ones((2, 1, 3), np.float32))
    weights = [Constant(np.ones((1, 8, width), np.float32)) for width in (3, 2)]
    return call("LSTM", sequence, *weights, hidden_size=2, outputs=outputs)


@pytest.mark.parametrize(("taken", "outputs"), [((0,), None), ((0, 1), 2), ((1,), 2), ((2,), 3), ((0, 2), 3)])
def test_results_up_to_the_last_that_is_used(taken: tuple[int, ...], outputs: int | None) -> None:
    made = lstm(3)
    body = Tuple((X, *(tuple_get(made, index) for index in taken)))
    after = checked(CLEAN, program(body))
    (found,) = (item for item in post_order(after["main"]) if isinstance(item, Call))
    assert found.attrs.get("outputs") == outputs


def test_a_tuple_that_is_used_as_a_whole_keeps_its_fields() -> None:
    made = call("MaxPool", IMAGE, kernel_shape=(2, 2), outputs=2)
    assert unchanged(Tuple((tuple_get(made, 0), made)), IMAGE)
    assert unchanged(made, IMAGE)
    bound = Var("b", checked_type=made.checked_type)
    assert unchanged(Let(bound, made, tuple_get(bound, 0)), IMAGE)


def test_results_that_an_operator_must_have_stay() -> None:
    best = call("TopK", X, Constant(np.array([2])), outputs=2)
    halves = call("Split", X, num_outputs=2, outputs=2)
    assert unchanged(Tuple((tuple_get(best, 0), tuple_get(halves, 0))))
    facts = [Constant(np.ones(2, np.float32)) for _ in range(4)]
    trained = call("BatchNormalization", IMAGE, *facts, training_mode=1, outputs=3)
    assert unchanged(tuple_get(trained, 0), IMAGE)


def test_a_dropout_that_draws_still_draws() -> None:
    made = call("Dropout", X, absent(), FLAG, outputs=2)
    after = CLEAN(infer_types(program(tuple_get(made, 0))))
    assert operator_counts(after) == {"Dropout": 1}
    assert after["main"].result_type == VECTOR


def test_a_field_that_lives_elsewhere_keeps_its_tuple() -> None:
    made = call("MaxPool", IMAGE, kernel_shape=(2, 2), outputs=2)
    assert unchanged(with_fields(tuple_get(made, 0), virtual_device=THERE), IMAGE)


def test_calls_of_functions_keep_their_results() -> None:
    p = var("p")
    both = Function((p,), Tuple((p, call("Relu", p))))
    assert isinstance(both.result_type, TupleType)
    assert unchanged(tuple_get(Call(both, (X,), checked_type=both.result_type), 0))
    applied = Call(GlobalVar("f"), (X,), checked_type=both.result_type)
    mod = infer_types(program(tuple_get(applied, 0)).with_function("f", both))
    assert CLEAN(mod) is mod


def test_results_that_only_dead_code_uses() -> None:
    made = call("MaxPool", IMAGE, kernel_shape=(2, 2), strides=(2, 2), outputs=2)
    indices = Var("n", checked_type=TensorType((1, 2, 2, 2), DType.INT64))
    body = Let(indices, tuple_get(made, 1), tuple_get(made, 0))
    after = checked(CLEAN, program(body, IMAGE))["main"].body
    assert isinstance(after, Call)
    assert isinstance(after.op, Op)
    assert "outputs" not in after.attrs


def test_spans_and_devices_are_kept() -> None:
    made = call("MaxPool", IMAGE, kernel_shape=(2, 2), outputs=2)
    body = Let(var("v"), call("Relu", IMAGE), call("Neg", tuple_get(made, 0)))
    assert_facts_kept(CLEAN, program(body, IMAGE))


def test_a_let_that_stays_for_the_device_of_a_dead_one_goes_too() -> None:
    result = with_fields(call("Relu", X), virtual_device=HERE)
    dead = Let(var("a"), X, result, virtual_device=THERE)
    assert cleaned(Let(var("b"), X, dead, virtual_device=HERE)) is not dead
    once = cleaned(Let(var("b"), X, dead, virtual_device=HERE))
    assert unchanged(once)
