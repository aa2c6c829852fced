"""Calls of fused functions become what they compute."""

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
    Function,
    GlobalVar,
    IRModule,
    TensorType,
    Tuple,
    post_order,
    structural_equal,
)
from intarsia.passes import DefuseOps, FuseOps
from intarsia.transform import Sequential

DEFUSE = DefuseOps()
PRIMITIVE = Attrs({"Primitive": 1})
FLAG = TensorType.of(np.zeros((), np.bool_))
X, Y = var("x"), var("y")


def primitive_calls(mod: IRModule) -> int:
    return sum(
        isinstance(node, Call) and isinstance(node.op, Function) and "Primitive" in node.op.attrs
        for function in mod.graph_functions.values()
        for node in post_order(function)
    )


@pytest.mark.quick_cases(1)
@pytest.mark.parametrize("model", ["bert_tiny", "shufflenet", "densenet121", "inception_v1"])
def test_models_are_what_they_were_before_fusion(model: str) -> None:
    before = ia.from_onnx(build_model(model, 0))
    fused = FuseOps()(before)
    assert primitive_calls(fused) > 0
    after = DEFUSE(fused)
    assert structural_equal(after, before)
    assert DEFUSE(after) is after


def test_a_function_called_twice_is_copied_with_its_variables() -> None:
    p, c = var("p"), var("c", FLAG)
    function = Function((p, c), branch(c, relu(p), add(p, p)), PRIMITIVE)
    first = Call(function, (X, c_of_main := var("c", FLAG)), checked_type=F32)
    second = Call(function, (first, c_of_main), checked_type=F32)
    mod = IRModule.from_expr(Function((X, c_of_main), second))
    assert primitive_calls(checked(DEFUSE, mod)) == 0
    assert_facts_kept(DEFUSE, mod)


def test_fused_functions_in_fused_functions() -> None:
    p, q = var("p"), var("q")
    inner = Function((q,), relu(q), PRIMITIVE)
    outer = Function((p,), add(Call(inner, (p,), checked_type=F32), p), PRIMITIVE)
    mod = IRModule.from_expr(Function((X,), Call(outer, (X,), checked_type=F32)))
    assert structural_equal(checked(DEFUSE, mod), IRModule.from_expr(Function((X,), add(relu(X), X))))


def test_global_fused_functions_stay_uncalled() -> None:
    p = var("p")
    function = Function((p,), Tuple((relu(p), p)), PRIMITIVE)
    name = GlobalVar("fused", checked_type=function.checked_type)
    body = Call(name, (X,), checked_type=function.result_type)
    main = Function((X,), body)
    after = checked(DEFUSE, IRModule({GlobalVar("main"): main, name: function}))
    assert structural_equal(after["main"], Function((X,), Tuple((relu(X), X))))
    assert after["fused"] is function


def test_the_inside_of_what_a_toolchain_compiles_is_left_alone() -> None:
    p, q = var("p"), var("q")
    inner = Function((q,), relu(q), PRIMITIVE)
    compiled = Function((p,), Call(inner, (p,), checked_type=F32), Attrs({"Compiler": "reference"}))
    mod = IRModule.from_expr(Function((X,), Call(compiled, (X,), checked_type=F32)))
    assert DEFUSE(mod) is mod


def test_fusing_again_gives_the_same_groups() -> None:
    before = ia.from_onnx(build_model("squeezenet", 0))
    fused = FuseOps()(before)
    assert structural_equal(Sequential([DefuseOps(), FuseOps()])(fused), fused)
