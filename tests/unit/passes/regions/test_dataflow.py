"""What can be cut into regions, and what it needs."""

from __future__ import annotations

import numpy as np

from intarsia.ir import Attrs, Call, Constant, DType, Expr, Function, If, Let, Op, TensorType, Tuple, Var
from intarsia.op import call
from intarsia.passes.regions.dataflow import Dataflow

VECTOR = TensorType((4,), DType.FLOAT32)
X, Y = Var("x", checked_type=VECTOR), Var("y", checked_type=VECTOR)
FLAG = Var("flag", checked_type=TensorType((), DType.BOOL))


def flow(body: Expr) -> Dataflow:
    return Dataflow.of(Function((X, Y, FLAG), body))


def shown(expr: Expr) -> str:
    return str(expr.op) if isinstance(expr, Call) and isinstance(expr.op, Op) else type(expr).__name__


def names(found: Dataflow) -> list[str]:
    return [shown(expr) for expr in found.nodes]


def needs(found: Dataflow, expr: Expr) -> list[str]:
    return [shown(item) for item in found.needs[expr]]


def test_operators_need_what_they_use_once() -> None:
    relu = call("Relu", X)
    both = call("Add", relu, relu)
    found = flow(both)
    assert names(found) == ["Relu", "Add", "Function"]
    assert needs(found, both) == ["Relu"]


def test_branches_and_lets_are_open() -> None:
    v = Var("v", checked_type=VECTOR)
    branch = If(FLAG, call("Exp", X), Y, checked_type=VECTOR)
    found = flow(Let(v, branch, call("Neg", v)))
    assert set(names(found)) == {"Exp", "If", "Neg", "Let", "Function"}
    assert needs(found, branch) == ["Exp"]


def test_sealed_functions_are_closed_and_their_calls_need_arguments() -> None:
    sealed = Function((v := Var("v", checked_type=VECTOR),), call("Neg", v), Attrs({"Composite": "acme.neg"}))
    whole = Call(sealed, (call("Exp", X),), checked_type=VECTOR)
    found = flow(whole)
    assert names(found) == ["Exp", "Call", "Function"]
    assert needs(found, whole) == ["Exp"]


def test_a_loop_needs_what_its_body_captures() -> None:
    number, go = Var("i", checked_type=TensorType((), DType.INT64)), Var("c", checked_type=FLAG.checked_type)
    state = Var("s", checked_type=VECTOR)
    captured = call("Exp", Y)
    body = Function((number, go, state), Tuple((go, call("Add", state, call("Neg", captured)))))
    loop = call("Loop", Constant(np.array(2)), FLAG, X, body)
    found = flow(loop)
    assert "Add" not in names(found)
    assert needs(found, loop) == ["Neg"]  # it does not depend on the loop's variables: evaluated around it
