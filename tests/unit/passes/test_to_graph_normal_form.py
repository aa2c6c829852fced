"""Names go where evaluation stays what it was."""

from __future__ import annotations

import numpy as np
import pytest
from tests.ir_programs import F32, add, branch, relu, var
from tests.pass_checks import assert_facts_kept, checked

import intarsia as ia
from intarsia.frontend.zoo import build_model
from intarsia.ir import (
    Attrs,
    Call,
    Constant,
    Expr,
    Function,
    FuncType,
    IRModule,
    Let,
    TensorType,
    Tuple,
    Var,
    post_order,
    structural_equal,
    with_fields,
)
from intarsia.op import call, infer_types, tuple_get
from intarsia.passes import ToANormalForm, ToGraphNormalForm
from intarsia.target import DeviceType, VirtualDevice

GRAPH = ToGraphNormalForm()
FLAG = TensorType.of(np.zeros((), np.bool_))
INT = TensorType.of(np.zeros((), np.int64))
X, Y, C = var("x"), var("y"), Var("c", checked_type=FLAG)
A, B = var("a"), var("b")
DEVICE = VirtualDevice(DeviceType.CPU, 1)


def module(body: Expr) -> IRModule:
    return infer_types(IRModule.from_expr(Function((X, Y, C), body)))


def left(body: Expr) -> int:
    """How many lets stay in a program of x, y and c."""
    before = module(body)
    after = checked(GRAPH, before)
    if after is not before:
        assert_facts_kept(GRAPH, before)
    return sum(isinstance(node, Let) for node in post_order(after["main"]))


def normal() -> Call:
    return call("RandomNormal", shape=(2, 3))


def test_a_name_becomes_sharing() -> None:
    after = checked(GRAPH, module(Let(A, relu(X), add(A, call("Neg", A)))))
    shared = relu(X)
    assert structural_equal(after, module(add(shared, call("Neg", shared))))


def test_a_name_that_is_not_used_goes() -> None:
    assert left(Let(A, relu(X), Y)) == 0
    assert left(Let(A, normal(), Y)) == 0


def test_a_value_of_one_branch_moves_there() -> None:
    assert left(Let(A, relu(X), branch(C, add(A, A), Y))) == 0


def test_what_draws_does_not_move_into_a_branch() -> None:
    mod = module(Let(A, normal(), branch(C, add(A, A), Y)))
    assert GRAPH(mod) is mod


def test_what_draws_is_shared_where_it_was_drawn() -> None:
    after = GRAPH(module(Let(A, normal(), add(A, branch(C, A, Y)))))
    drawn = normal()
    assert structural_equal(after, module(add(drawn, branch(C, drawn, Y))))


def test_what_draws_does_not_follow_a_value_into_a_branch() -> None:
    body = Let(A, normal(), Let(B, relu(A), branch(C, add(B, B), Y)))
    (stays,) = (node for node in post_order(GRAPH(module(body))["main"]) if isinstance(node, Let))
    assert stays.var is A


def test_a_value_that_contains_a_draw_does_not_move_into_a_branch() -> None:
    mod = module(Let(A, relu(normal()), branch(C, add(A, A), Y)))
    assert GRAPH(mod) is mod


def test_a_value_used_in_a_function_only_stays_outside() -> None:
    p = var("p")
    function = Function((p,), add(p, A))
    first = Call(function, (X,), checked_type=F32)
    body = Let(A, relu(Y), Call(function, (first,), checked_type=F32))
    assert left(body) == 1
    assert left(Let(A, relu(Y), add(A, Call(function, (first,), checked_type=F32)))) == 0


def called_with(argument: Expr, function: Function) -> Expr:
    return Call(function, (argument,), checked_type=F32)


def test_a_value_used_in_a_function_and_beside_it_needs_no_name() -> None:
    value, p = relu(X), var("p")
    inner = Function((p,), add(p, A))
    beside = add(called_with(Y, inner), called_with(value, inner))
    assert left(relu(Let(A, value, beside))) == 0
    assert left(relu(Let(A, value, add(called_with(Y, inner), called_with(X, inner))))) == 1


def test_a_name_of_the_same_value_that_goes_takes_others_with_it() -> None:
    value, p = relu(X), var("p")
    body = add(called_with(Y, Function((p,), add(p, A))), relu(B))
    assert left(Let(A, value, Let(B, value, body))) == 0
    assert left(Let(B, value, Let(A, value, body))) == 0


def test_a_value_used_in_a_loop_is_evaluated_around_it_anyway() -> None:
    step, go, state = Var("i", checked_type=INT), Var("go", checked_type=FLAG), var("s")
    inside = Let(B, add(state, A), relu(B))
    body = Function((step, go, state), Tuple((go, inside)))
    loop = call("Loop", Constant(np.array(3)), C, Y, body)
    assert left(Let(A, relu(X), tuple_get(loop, 0))) == 0


def test_names_of_names_and_constants_go() -> None:
    one = Constant(np.ones((2, 3), np.float32))
    assert left(Let(A, one, Let(B, A, add(A, B)))) == 0


@pytest.mark.parametrize("value", [X, relu(X)])
def test_a_name_on_another_device_stays(value: Expr) -> None:
    there = with_fields(A, virtual_device=DEVICE)
    mod = module(Let(there, value, relu(there)))
    assert GRAPH(mod) is mod


def test_a_let_on_another_device_stays() -> None:
    mod = module(Let(A, relu(X), add(A, Y), virtual_device=DEVICE))
    assert GRAPH(mod) is mod


def test_a_name_that_says_more_of_the_type_stays() -> None:
    unknown = with_fields(relu(X), checked_type=None)
    mod = IRModule.from_expr(Function((X,), Let(A, unknown, relu(A))))
    assert GRAPH(mod) is mod


def test_a_function_that_calls_itself_keeps_its_name() -> None:
    f = Var("f", checked_type=FuncType((F32,), F32))
    p = var("p")
    function = Function((p,), branch(C, Call(f, (p,), checked_type=F32), p))
    mod = IRModule.from_expr(Function((X, C), Let(f, function, Call(f, (X,), checked_type=F32))))
    assert GRAPH(mod) is mod


def test_functions_are_called_in_place() -> None:
    f = Var("f", checked_type=FuncType((F32,), F32))
    p = var("p")
    assert left(Let(f, Function((p,), relu(p)), Call(f, (X,), checked_type=F32))) == 0


def test_settled_functions_stay_as_they_are() -> None:
    p = var("p")
    function = Function((p,), Let(A, relu(p), add(A, A)), Attrs({"Primitive": 1}))
    mod = IRModule.from_expr(Function((X,), Let(B, Call(function, (X,), checked_type=F32), relu(B))))
    (found,) = (node for node in post_order(GRAPH(mod)["main"].body) if isinstance(node, Function))
    assert found is function


@pytest.mark.quick_cases(1)
@pytest.mark.parametrize("model", ["bert_tiny", "gpt2_tiny", "shufflenet", "densenet121"])
def test_models_come_back(model: str) -> None:
    before = ia.from_onnx(build_model(model, 0))
    assert structural_equal(GRAPH(ToANormalForm()(before)), before)


def test_long_chains_of_names_with_uses(length: int) -> None:
    names = [var(f"v{number}") for number in range(length)]
    body: Expr = relu(names[-1])
    for name, value in zip(reversed(names), reversed([X, *names[:-1]]), strict=True):
        body = Let(name, value, add(name, body))
    after = GRAPH(IRModule.from_expr(Function((X,), body)))
    assert not any(isinstance(node, Let) for node in post_order(after["main"]))
