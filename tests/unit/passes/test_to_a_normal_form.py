"""Every step gets a name, where it is evaluated."""

from __future__ import annotations

import numpy as np
import pytest
from tests.ir_programs import F32, add, branch, chain, relu, var
from tests.pass_checks import assert_facts_kept, checked, operator_counts

from intarsia.ir import (
    Attrs,
    Call,
    Constant,
    Expr,
    Function,
    If,
    IRModule,
    Let,
    Op,
    TensorType,
    Tuple,
    Var,
    children,
    post_order,
    structural_equal,
    with_fields,
)
from intarsia.ir.parser import parse_module
from intarsia.ir.scope import is_atom
from intarsia.op import call, infer_types, tuple_get
from intarsia.passes import FuseOps, ToANormalForm, ToGraphNormalForm
from intarsia.target import DeviceType, VirtualDevice

NAME = ToANormalForm()
T = "Tensor[(2, 3), float32]"
FLAG = TensorType.of(np.zeros((), np.bool_))
INT = TensorType.of(np.zeros((), np.int64))
X, Y, C = var("x"), var("y"), Var("c", checked_type=FLAG)
DEVICE = VirtualDevice(DeviceType.CPU, 1)


def program(text: str) -> IRModule:
    return infer_types(parse_module(text.replace("T3", T)))


def named(body: Expr) -> IRModule:
    """A program of x, y and c in the form, which it is and stays."""
    before = infer_types(IRModule.from_expr(Function((X, Y, C), body)))
    after = checked(NAME, before)
    assert [text for function in after.graph_functions.values() for text in faults(function)] == []
    if after is not before:
        assert_facts_kept(NAME, before)
    return after


def faults(root: Function) -> list[str]:
    """Compound expressions that stand where an atom should."""
    found = []
    for node in post_order(root):
        for position, child in enumerate(children(node)):
            is_scope = isinstance(node, Function) or (isinstance(node, If) and position > 0)
            is_value = isinstance(node, Let) and position == 1 and not isinstance(child, Let)
            is_chain = isinstance(child, Let) and (is_scope or (isinstance(node, Let) and position == 2))
            is_body = isinstance(node, Call) and isinstance(node.op, Op) and isinstance(child, Function)
            is_settled = isinstance(node, Call) and isinstance(child, Function) and "Primitive" in child.attrs
            if not (is_atom(child) or is_value or is_chain or is_body or is_settled):
                found.append(f"{type(child).__name__} in {type(node).__name__}")
    return found


def lets(expr: Expr) -> list[Let]:
    return [node for node in post_order(expr) if isinstance(node, Let)]


def test_a_shared_expression_is_bound_once() -> None:
    shared = relu(X)
    expected = program("""
        def @main(%x: T3, %y: T3, %c: Tensor[(), bool]) {
          let %v1: T3 = Relu(%x);
          let %v2: T3 = Neg(%v1);
          let %v3: T3 = Add(%v1, %v2);
          %v3
        }
    """)
    assert structural_equal(named(add(shared, call("Neg", shared))), expected)


def test_it_is_bound_around_the_branches_that_share_it() -> None:
    shared = relu(X)
    after = named(branch(C, call("Neg", shared), add(shared, Y)))
    body = after["main"].body
    assert isinstance(body, Let)
    assert isinstance(body.value, Call)
    assert len(lets(after["main"])) == 4


def test_what_one_branch_uses_is_bound_in_it() -> None:
    after = named(branch(C, call("Neg", relu(X)), Y))
    body = after["main"].body
    assert isinstance(body, Let)
    assert isinstance(body.value, If)
    assert len(lets(body.value.true_branch)) == 2


def test_lets_in_lets_become_one_chain() -> None:
    a, b = var("a"), var("b")
    inner = Let(a, relu(X), add(a, a))
    after = named(Let(b, inner, call("Neg", add(b, relu(Y)))))
    names = []
    body = after["main"].body
    while isinstance(body, Let):
        names.append(body.var)
        body = body.body
    assert names[0] is a
    assert len(names) == 5


def test_names_of_names_go() -> None:
    a, b = var("a"), var("b")
    after = named(Let(a, X, Let(b, a, add(b, a))))
    (only,) = lets(after["main"])
    assert isinstance(only.value, Call)
    assert only.value.args == (X, X)


def test_names_on_another_device_stay() -> None:
    a = with_fields(var("a"), virtual_device=DEVICE)
    mod = IRModule.from_expr(Function((X,), Let(a, X, relu(a))))
    after = checked(NAME, mod)
    assert [let.var.virtual_device == DEVICE for let in lets(after["main"])].count(True) == 1


def test_the_device_of_a_let_stays() -> None:
    a = var("a")
    mod = IRModule.from_expr(Function((X,), Let(a, relu(X), a, virtual_device=DEVICE)))
    assert checked(NAME, mod)["main"].body.virtual_device == DEVICE


def test_bodies_of_operators_stay_in_place_and_what_they_do_not_depend_on_is_bound_outside() -> None:
    step, go, state = Var("i", checked_type=INT), Var("go", checked_type=FLAG), var("s")
    body = Function((step, go, state), Tuple((go, add(state, relu(X)))))
    loop = call("Loop", Constant(np.array(3)), C, Y, body)
    after = named(tuple_get(loop, 0))
    (inside,) = (
        node
        for node in post_order(after["main"].body)
        if isinstance(node, Function) and len(node.params) == 3
    )
    assert len(lets(inside)) == 2
    first = after["main"].body
    assert isinstance(first, Let)
    assert isinstance(first.value, Call)
    assert str(first.value.op) == "Relu"


def test_closures_are_bound_and_normal_inside() -> None:
    p = var("p")
    closure = Function((p,), relu(add(p, Y)))
    twice = Call(closure, (Call(closure, (X,), checked_type=F32),), checked_type=F32)
    after = named(twice)
    (bound,) = (let for let in lets(after["main"]) if isinstance(let.value, Function))
    assert len(lets(bound.value)) == 2


@pytest.mark.parametrize("mark", ["Primitive", "Composite", "Compiler"])
def test_settled_functions_stay_as_they_are(mark: str) -> None:
    p = var("p")
    function = Function((p,), relu(relu(p)), Attrs({mark: "reference"}))
    before = IRModule.from_expr(Function((X,), relu(Call(function, (relu(X),), checked_type=F32))))
    after = checked(NAME, before)
    (found,) = (node for node in post_order(after["main"].body) if isinstance(node, Function))
    assert found is function
    alone = IRModule.from_expr(function)
    assert NAME(alone) is alone


def test_a_matched_function_that_uses_what_is_around_it_uses_the_name() -> None:
    p, shared = var("p"), relu(X)
    function = Function((p,), add(p, shared), Attrs({"Composite": "add"}))
    mod = IRModule.from_expr(Function((X,), add(Call(function, (X,), checked_type=F32), shared)))
    after = checked(NAME, mod)
    assert operator_counts(after)["Relu"] == 1


def test_what_is_in_the_form_is_the_same_object() -> None:
    mod = program("""
        def @main(%x: T3, %y: T3) {
          let %a: T3 = Relu(%x);
          let %b: T3 = Add(%a, %y);
          %b
        }
    """)
    assert NAME(mod) is mod


def test_fused_programs_come_back() -> None:
    fused = FuseOps()(IRModule.from_expr(Function((X, Y), add(relu(X), call("Neg", Y)))))
    assert structural_equal(ToGraphNormalForm()(NAME(fused)), fused)


def test_long_chains(length: int) -> None:
    mod = IRModule.from_expr(Function((X,), chain(length, X)))
    after = NAME(mod)
    assert len(lets(after["main"])) == length
    assert NAME(after) is after
    assert structural_equal(ToGraphNormalForm()(after), mod)


def test_long_chains_of_names(length: int) -> None:
    names = [var(f"v{number}") for number in range(length)]
    body: Expr = relu(names[-1])
    for name, value in zip(reversed(names), reversed([X, *names[:-1]]), strict=True):
        body = Let(name, value, body)
    mod = IRModule.from_expr(Function((X,), body))
    assert len(lets(NAME(mod)["main"])) == 1
    assert lets(ToGraphNormalForm()(mod)["main"]) == []
