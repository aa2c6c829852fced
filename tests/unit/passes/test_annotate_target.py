"""Calls are given to toolchains by their virtual device."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
import pytest
from tests.pass_checks import planned

from intarsia.ir import (
    Call,
    Constant,
    DType,
    Expr,
    Function,
    If,
    IRModule,
    Op,
    TensorType,
    Tuple,
    Var,
    post_order,
    with_fields,
)
from intarsia.ir.parser import parse_module
from intarsia.op import call, infer_types, verify
from intarsia.op.operator_predicate import holding_operator_predicate
from intarsia.passes import AnnotateTarget
from intarsia.support.errors import UsageError
from intarsia.target import Target

VECTOR = TensorType((4,), DType.FLOAT32)
X = Var("x", checked_type=VECTOR)
FLAG = Var("flag", checked_type=TensorType((), DType.BOOL))


@pytest.fixture(autouse=True)
def _predicates() -> Iterator[None]:
    with (
        holding_operator_predicate(
            "onnxruntime", lambda found: str(found.op) in {"Relu", "Neg", "Loop", "Add"}
        ),
        holding_operator_predicate("openvino", lambda found: str(found.op) in {"Neg", "Exp", "Loop"}),
    ):
        yield


def program(body: Expr) -> IRModule:
    return infer_types(IRModule.from_expr(Function((X, FLAG), body)))


def given(mod: IRModule) -> list[str]:
    """Operators and whom they are given to, in evaluation order."""
    found = []
    for expr in post_order(mod["main"]):
        if isinstance(expr, Call):
            target = expr.virtual_device.target
            name = str(expr.op) if isinstance(expr.op, Op) else "composite"
            found.append(f"{name}: {target.toolchain if target else None}")
    return found


def annotated(body: Expr, *toolchains: str) -> list[str]:
    before = program(body)
    after = AnnotateTarget(toolchains)(before)
    verify(after)
    assert AnnotateTarget(toolchains)(after) is after
    return given(after)


def test_the_first_toolchain_that_supports_a_call_gets_it() -> None:
    body = call("Tanh", call("Exp", call("Neg", call("Relu", X))))
    assert annotated(body, "onnxruntime", "openvino") == [
        "Relu: onnxruntime",
        "Neg: onnxruntime",
        "Exp: openvino",
        "Tanh: None",
    ]
    assert annotated(body, "openvino", "onnxruntime")[1] == "Neg: openvino"


def test_no_expression_is_added() -> None:
    before = program(call("Tanh", call("Exp", X)))
    after = AnnotateTarget(("openvino",))(before)
    assert len(list(post_order(after["main"]))) == len(list(post_order(before["main"])))


def test_a_target_brings_its_options() -> None:
    after = AnnotateTarget(("cpu -toolchain=openvino -threads=2",))(program(call("Exp", X)))
    assert after["main"].body.virtual_device.target == Target("cpu -toolchain=openvino -threads=2")


def test_a_planned_device_is_refined() -> None:
    mod = parse_module(
        """def @main(%x: Tensor[(4,), float32]) {
          Exp(%x) @device(cpu:1, target="cpu -threads=2", scope="global")
        }"""
    )
    device = AnnotateTarget(("openvino",))(infer_types(mod))["main"].body.virtual_device
    assert (device.virtual_device_id, device.memory_scope) == (1, "global")
    assert device.target is not None
    assert device.target.toolchain == "openvino"
    assert device.target.option("threads") == 2


def test_a_call_that_has_a_toolchain_keeps_it() -> None:
    mod = parse_module(
        'def @main(%x: Tensor[(4,), float32]) { Neg(%x) @device(cpu, target="cpu -toolchain=reference") }'
    )
    mod = infer_types(mod)
    assert AnnotateTarget(("openvino",))(mod) is mod


def test_branches_are_open_and_values_of_unknown_type_are_not() -> None:
    unknown = Var("u")
    body = If(FLAG, call("Relu", X), Call(Op("Relu"), (unknown,)), checked_type=VECTOR)
    mod = IRModule.from_expr(Function((X, FLAG, unknown), body))
    assert given(AnnotateTarget(("onnxruntime",))(mod)) == ["Relu: onnxruntime", "Relu: None"]


@pytest.mark.parametrize(("inside", "by"), [("Neg", "onnxruntime"), ("Exp", "openvino"), ("Tanh", "None")])
def test_a_loop_is_given_as_a_whole(inside: str, by: str) -> None:
    number, go = (
        Var("i", checked_type=TensorType((), DType.INT64)),
        Var("c", checked_type=TensorType((), DType.BOOL)),
    )
    state = Var("s", checked_type=VECTOR)
    body = Function((number, go, state), Tuple((go, call(inside, state))))
    loop = call("Loop", Constant(np.array(3)), FLAG, X, body)
    assert annotated(loop, "onnxruntime", "openvino") == [f"{inside}: None", f"Loop: {by}"]


def test_a_composite_goes_to_its_toolchain_only() -> None:
    y = Var("y", checked_type=VECTOR)
    function = Function((y,), call("Tanh", y))
    function = with_fields(function, attrs=function.attrs.updated(Composite="openvino.tanh"))
    body = Call(function, (X,), checked_type=VECTOR)
    assert annotated(body, "onnxruntime", "openvino") == ["Tanh: None", "composite: openvino"]
    assert annotated(body, "onnxruntime") == ["Tanh: None", "composite: None"]


def test_functions_of_toolchains_are_left_alone() -> None:
    mod = infer_types(
        parse_module('def @main(%x: Tensor[(4,), float32]) attributes {Compiler="reference"} { Neg(%x) }')
    )
    assert AnnotateTarget(("openvino",))(mod) is mod


def test_spans_are_kept() -> None:
    after = AnnotateTarget(("openvino",))(planned(program(call("Exp", X))))
    assert all(expr.span is not None for expr in post_order(after["main"]) if not isinstance(expr, Op))


def test_unknown_toolchains_are_errors() -> None:
    with pytest.raises(UsageError, match="unknown toolchain 'ethosn'"):
        AnnotateTarget(("ethosn",))(program(X))
    with pytest.raises(UsageError, match="names no toolchain"):
        AnnotateTarget(("cpu -threads=2",))(program(X))
