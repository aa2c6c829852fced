"""Regions become global functions."""

from __future__ import annotations

import numpy as np
from tests.pass_checks import assert_facts_kept, checked

from intarsia.ir import (
    Attrs,
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
    with_fields,
)
from intarsia.op import call
from intarsia.passes import PartitionGraph

VECTOR = TensorType((4,), DType.FLOAT32)
X, Y = Var("x", checked_type=VECTOR), Var("y", checked_type=VECTOR)
FLAG = Var("flag", checked_type=TensorType((), DType.BOOL))
PARTITION = PartitionGraph()


def program(body: Expr) -> IRModule:
    return IRModule.from_expr(Function((X, Y, FLAG), body))


def region(name: str, compiler: str = "reference") -> Function:
    p = Var("p", checked_type=VECTOR)
    return Function((p,), call(name, p), Attrs({"Compiler": compiler}))


def applied(function: Expr, arg: Expr) -> Call:
    return Call(function, (arg,), checked_type=VECTOR)


def names(mod: IRModule) -> list[str]:
    return [var.name for var in mod]


def test_each_region_gets_a_name_and_says_it() -> None:
    after = checked(PARTITION, program(applied(region("Neg", "onnxruntime"), applied(region("Exp"), X))))
    assert names(after) == ["main", "main_reference_0", "main_onnxruntime_1"]
    assert after["main_onnxruntime_1"].attrs["global_symbol"] == "main_onnxruntime_1"
    assert after["main_onnxruntime_1"].attrs["Compiler"] == "onnxruntime"


def test_names_that_are_taken_are_avoided() -> None:
    mod = program(applied(region("Neg"), X)).with_function("main_reference_0", Function((X,), X))
    assert names(PARTITION(mod)) == ["main", "main_reference_0", "main_reference_0_1"]


def test_a_region_that_is_called_twice_is_one_function() -> None:
    shared = region("Neg")
    after = checked(PARTITION, program(call("Add", applied(shared, X), applied(shared, Y))))
    assert names(after) == ["main", "main_reference_0"]


def test_branches_lets_and_function_values_are_searched() -> None:
    v = Var("v", checked_type=VECTOR)
    w = Var("w", checked_type=VECTOR)
    branch = If(FLAG, applied(region("Neg"), X), Y, checked_type=VECTOR)
    let = Let(v, branch, applied(region("Exp"), v))
    after = checked(PARTITION, program(applied(Function((w,), applied(region("Relu"), w)), let)))
    assert len(names(after)) == 4


def test_variables_from_around_become_parameters() -> None:
    v = Var("v", checked_type=VECTOR)
    p = Var("p", checked_type=VECTOR)
    open_region = Function((p,), call("Add", p, v), Attrs({"Compiler": "reference"}))
    before = program(Let(v, call("Exp", Y), applied(open_region, X)))
    after = PARTITION(before)
    assert len(after["main_reference_0"].params) == 2
    body = after["main"].body
    assert isinstance(body, Let)
    assert isinstance(body.body, Call)
    assert body.body.args == (X, v)


def test_regions_in_the_body_of_a_loop_stay() -> None:
    number, go = Var("i", checked_type=TensorType((), DType.INT64)), Var("c", checked_type=FLAG.checked_type)
    state = Var("s", checked_type=VECTOR)
    body = Function((number, go, state), Tuple((go, applied(region("Neg"), state))))
    mod = program(call("Loop", Constant(np.array(3)), FLAG, X, body))
    assert PARTITION(mod) is mod


def test_composites_stay_inside() -> None:
    q = Var("q", checked_type=VECTOR)
    composite = Function((q,), call("Neg", q), Attrs({"Composite": "reference.neg"}))
    outer = region("Exp")
    outer = with_fields(outer, body=applied(composite, outer.body))
    after = checked(PARTITION, program(applied(outer, X)))
    inner = [expr for expr in post_order(after["main_reference_0"]) if isinstance(expr, Function)]
    assert [function.attrs.get("Composite") for function in inner] == ["reference.neg", None]


def test_spans_and_devices_are_kept() -> None:
    assert_facts_kept(PARTITION, program(applied(region("Neg"), X)))


def test_a_program_without_regions_stays() -> None:
    mod = program(call("Neg", X))
    assert PARTITION(mod) is mod
