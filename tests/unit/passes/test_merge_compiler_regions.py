"""Calls of one toolchain become regions, and never a cycle."""

from __future__ import annotations

import numpy as np
import pytest
from tests.pass_checks import assert_same_results

from intarsia.ir import (
    Call,
    Constant,
    DType,
    Expr,
    Function,
    If,
    IRModule,
    Let,
    Op,
    TensorType,
    Tuple,
    TupleGetItem,
    Var,
    post_order,
    structural_equal,
    with_fields,
)
from intarsia.ir.parser import parse_module
from intarsia.ir.printer import print_module
from intarsia.op import call, infer_types, tuple_get, verify
from intarsia.passes import MergeCompilerRegions
from intarsia.target import Target, VirtualDevice

VECTOR = TensorType((4,), DType.FLOAT32)
X, Y = Var("x", checked_type=VECTOR), Var("y", checked_type=VECTOR)
FLAG = Var("flag", checked_type=TensorType((), DType.BOOL))
MERGE = MergeCompilerRegions()
REFERENCE = VirtualDevice.for_target(Target.for_toolchain("reference"))
ENGINE = VirtualDevice.for_target(Target.for_toolchain("onnxruntime"))


def on(device: VirtualDevice, name: str, *args: Expr) -> Call:
    return with_fields(call(name, *args), virtual_device=device)


def ours(name: str, *args: Expr) -> Call:
    return on(REFERENCE, name, *args)


def theirs(name: str, *args: Expr) -> Call:
    return on(ENGINE, name, *args)


def merged(body: Expr) -> list[str]:
    """The operators of each region, in evaluation order."""
    before = infer_types(IRModule.from_expr(Function((X, Y, FLAG), body)))
    after = MERGE(before)
    verify(after)
    assert MERGE(after) is after
    text = print_module(after)
    assert structural_equal(parse_module(text.text, text.constants), after)
    inputs = {"x": np.arange(4, dtype=np.float32) - 1, "y": np.ones(4, np.float32), "flag": np.array(True)}
    for flag in (True, False):
        assert_same_results(before, after, {**inputs, "flag": np.array(flag)})
    return operators(after)


def operators(mod: IRModule) -> list[str]:
    found = []
    for expr in post_order(mod["main"]):
        if isinstance(expr, Call) and isinstance(expr.op, Function) and "Compiler" in expr.op.attrs:
            inner = [item for item in post_order(expr.op) if isinstance(item, Call)]
            found.append(" ".join(str(item.op) for item in inner))
    return found


def test_a_chain_is_one_region() -> None:
    assert merged(call("Tanh", ours("Exp", ours("Neg", ours("Relu", X))))) == ["Relu Neg Exp"]


def test_toolchains_do_not_mix() -> None:
    assert merged(ours("Exp", theirs("Neg", ours("Relu", X)))) == ["Relu", "Neg", "Exp"]


def test_a_diamond_through_another_toolchain_is_cut() -> None:
    start = ours("Relu", X)
    assert merged(ours("Add", start, theirs("Neg", start))) == ["Relu", "Neg", "Add"]


def test_a_diamond_through_unmarked_code_is_cut() -> None:
    start = ours("Relu", X)
    assert merged(ours("Add", start, call("Tanh", start))) == ["Relu", "Add"]


def test_a_diamond_within_one_toolchain_is_whole() -> None:
    start = ours("Relu", X)
    assert merged(ours("Add", ours("Exp", start), ours("Neg", start))) == ["Relu Exp Neg Add"]


def test_two_regions_that_would_need_each_other() -> None:
    a0, b0 = ours("Relu", X), theirs("Exp", Y)
    b1, a1 = theirs("Add", b0, a0), ours("Sub", a0, b0)
    regions = merged(Tuple((a1, b1)))
    assert sorted(regions) in (["Add", "Exp", "Relu Sub"], ["Exp Add", "Relu", "Sub"])


def test_a_late_input_from_elsewhere_does_not_cut_a_chain() -> None:
    assert merged(ours("Add", ours("Exp", ours("Relu", X)), call("Tanh", Y))) == ["Relu Exp Add"]


def test_several_results_are_a_tuple() -> None:
    start = ours("Relu", X)
    both = Tuple((call("Tanh", start), ours("Exp", start)))
    assert merged(both) == ["Relu Exp"]


def test_fields_go_with_their_call() -> None:
    split = with_fields(call("Split", X, num_outputs=2, outputs=2), virtual_device=REFERENCE)
    fields = ours("Add", tuple_get(split, 0), tuple_get(split, 1))
    assert merged(call("Tanh", fields)) == ["Split Add"]
    assert merged(Tuple((split, tuple_get(split, 1)))) == ["Split"]


def test_a_field_of_unmarked_code_is_an_input() -> None:
    split = call("Split", X, num_outputs=2, outputs=2)
    assert merged(ours("Add", tuple_get(split, 0), tuple_get(split, 1))) == ["Add"]


def test_branches_have_their_own_regions() -> None:
    start = ours("Relu", X)
    body = If(FLAG, ours("Exp", ours("Neg", start)), ours("Neg", start), checked_type=VECTOR)
    assert merged(ours("Add", body, Y)) == ["Relu", "Neg Exp", "Neg", "Add"]


def test_an_if_between_cuts() -> None:
    """What follows the If depends on what its branches use."""
    start = ours("Relu", X)
    body = If(FLAG, call("Tanh", start), Y, checked_type=VECTOR)
    assert merged(ours("Add", start, body)) == ["Relu", "Add"]


def test_in_a_let() -> None:
    v = Var("v", checked_type=VECTOR)
    inner = ours("Add", ours("Neg", v), Y)
    assert merged(Let(v, ours("Relu", X), inner)) == ["Relu", "Neg Add"]


def test_in_a_function_value_that_is_called_twice() -> None:
    v = Var("v", checked_type=VECTOR)
    function = Function((v,), ours("Add", ours("Neg", v), Y))
    twice = [Call(function, (arg,), checked_type=VECTOR) for arg in (X, Y)]
    assert merged(call("Mul", *twice)) == ["Neg Add"]


def loop(state: Expr, inside: Expr, variable: Var) -> TupleGetItem:
    number, go = (
        Var("i", checked_type=TensorType((), DType.INT64)),
        Var("c", checked_type=TensorType((), DType.BOOL)),
    )
    body = Function((number, go, variable), Tuple((go, inside)))
    return tuple_get(ours("Loop", Constant(np.array(2)), FLAG, state, body), 0)


def test_a_loop_takes_its_body_along_and_what_that_captures_is_an_input() -> None:
    s = Var("s", checked_type=VECTOR)
    captured = call("Tanh", Y)
    whole = loop(ours("Relu", X), call("Add", s, captured), s)
    assert merged(ours("Neg", whole)) == ["Relu Add Loop Neg"]


def test_what_a_loop_captures_can_be_in_its_region() -> None:
    s = Var("s", checked_type=VECTOR)
    whole = loop(X, call("Add", s, ours("Exp", Y)), s)
    assert merged(ours("Neg", whole)) == ["Exp Add Loop Neg"]


def test_a_capture_that_comes_from_the_region_through_others_cuts() -> None:
    s = Var("s", checked_type=VECTOR)
    start = ours("Relu", X)
    whole = loop(start, call("Add", s, call("Tanh", start)), s)
    assert merged(whole) == ["Relu", "Add Loop"]


def test_a_region_without_inputs() -> None:
    constant = Constant(np.ones(4, np.float32))
    assert merged(call("Add", X, ours("Exp", constant))) == ["Exp"]


def test_constants_stand_inside() -> None:
    constant = Constant(np.ones(4, np.float32))
    after = MERGE(IRModule.from_expr(Function((X,), ours("Add", X, constant))))
    region = next(expr for expr in post_order(after["main"]) if isinstance(expr, Function) and expr.attrs)
    assert len(region.params) == 1
    assert region.attrs["Compiler"] == "reference"
    assert region.attrs["target"] == "cpu -toolchain=reference"


def test_different_options_are_different_regions() -> None:
    two = VirtualDevice.for_target(Target("cpu -toolchain=reference -threads=2"))
    assert merged(on(two, "Neg", ours("Relu", X))) == ["Relu", "Neg"]


def test_facts_of_values_stay_with_them() -> None:
    text = """
    def @main(%x: Tensor[(4,), float32] @span("x", "model.onnx")) @span("main", "model.onnx") {
      %0 = Relu(%x) @device(cpu:1, target="cpu -toolchain=reference") @span("a", "model.onnx");
      %1 = Exp(%0) @device(cpu:1, target="cpu -toolchain=reference") @span("b", "model.onnx");
      %2 = (%0, %1) @span("c", "model.onnx");
      %2
    }
    """
    after = MERGE(infer_types(parse_module(text)))["main"]
    assert isinstance(after.body, Tuple)
    for field, span in zip(after.body.fields, "ab", strict=True):
        assert isinstance(field, TupleGetItem)
        assert field.span is not None
        assert field.span.node == span
        assert field.virtual_device.virtual_device_id == 1
    for expr in post_order(after):
        assert isinstance(expr, Op) or expr.span is not None, expr


@pytest.mark.parametrize("alternate", [False, True])
def test_a_long_chain(alternate: bool, length: int) -> None:
    expr: Expr = X
    for step in range(length):
        expr = theirs("Neg", expr) if alternate and step % 2 else ours("Relu", expr)
    after = MERGE(IRModule.from_expr(Function((X,), expr)))
    assert len(operators(after)) == (length if alternate else 1)


def test_no_region_makes_a_copy_wait_for_what_it_does_not_need() -> None:
    here, there = (f'@device(cpu:{number}, target="cpu -toolchain=reference")' for number in range(2))
    text = f"""
    def @main(%x: Tensor[(4,), float32] {here}) {{
      %0 = Relu(%x) {here};
      %1 = Neg(%0) {here};
      %2 = Exp(%1) {here};
      %3 = intarsia::device_copy(%0) {there};
      %4 = Tanh(%3) {there};
      %5 = Sqrt(%4) {there};
      %6 = intarsia::device_copy(%5) {here};
      %7 = Add(%2, %6) {here};
      Abs(%7) {here}
    }}
    """
    after = MERGE(infer_types(parse_module(text)))
    assert operators(after) == ["Relu", "Neg Exp", "Tanh Sqrt", "Add Abs"]
