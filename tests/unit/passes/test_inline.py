"""Calls of marked functions become what they compute: once, in order, with variables of their own."""

from __future__ import annotations

import numpy as np
import pytest
from tests.ir_programs import F32, add, relu, var
from tests.pass_checks import assert_facts_kept, checked, operator_counts

import intarsia as ia
from intarsia.ir import (
    Attrs,
    Call,
    Constant,
    Expr,
    Function,
    GlobalVar,
    IRModule,
    Let,
    TensorType,
    Tuple,
    Var,
    post_order,
    structural_equal,
    with_fields,
)
from intarsia.ir.parser import parse_module
from intarsia.op import call, infer_types, tuple_get, verify
from intarsia.passes import Inline
from intarsia.target import DeviceType, VirtualDevice

INLINE = Inline()
T = "Tensor[(2, 3), float32]"
FLAG = TensorType.of(np.zeros((), np.bool_))
INT = TensorType.of(np.zeros((), np.int64))
X = var("x")


def program(text: str) -> IRModule:
    return infer_types(parse_module(text.replace("T3", T)))


def same(left: IRModule, right: str) -> bool:
    return structural_equal(left["main"], program(right)["main"])


def global_calls(mod: IRModule, caller: str = "main") -> list[str]:
    return [
        node.op.name
        for node in post_order(mod[caller])
        if isinstance(node, Call) and isinstance(node.op, GlobalVar)
    ]


def lets(mod: IRModule) -> int:
    return sum(isinstance(node, Let) for node in post_order(mod["main"]))


def test_only_marked_and_named_functions_are_inlined() -> None:
    mod = program("""
        def @main(%x: T3) { @a(@b(@c(%x))) }
        def @a(%x: T3) attributes {Inline=1} { Relu(%x) }
        def @b(%x: T3) { Neg(%x) }
        def @c(%x: T3) attributes {Inline=0} { Abs(%x) }
    """)
    assert global_calls(checked(INLINE, mod)) == ["c", "b"]
    assert global_calls(checked(Inline(names=("b",)), mod)) == ["c"]


def test_callees_are_inlined_first() -> None:
    mod = program("""
        def @main(%x: T3) { @outer(%x) }
        def @outer(%x: T3) attributes {Inline=1} { Neg(@inner(%x)) }
        def @inner(%x: T3) attributes {Inline=1} { Relu(%x) }
    """)
    after = checked(INLINE, mod)
    assert same(after, "def @main(%x: T3) { Neg(Relu(%x)) }")
    assert global_calls(after, "outer") == []


def test_an_argument_is_evaluated_once() -> None:
    mod = program("""
        def @main(%x: T3) { @twice(Relu(%x)) }
        def @twice(%y: T3) attributes {Inline=1} { Add(%y, Neg(%y)) }
    """)
    assert same(checked(INLINE, mod), "def @main(%x: T3) { %0 = Relu(%x); Add(%0, Neg(%0)) }")


def test_an_argument_used_in_a_branch_only_is_still_evaluated_first() -> None:
    mod = program("""
        def @main(%x: T3, %c: Tensor[(), bool]) { @f(Relu(%x), %c) }
        def @f(%y: T3, %c: Tensor[(), bool]) attributes {Inline=1} { if (%c) { Neg(%y) } else { %y } }
    """)
    after = checked(INLINE, mod)
    assert same(
        after,
        """def @main(%x: T3, %c: Tensor[(), bool]) {
            let %y: T3 = Relu(%x);
            if (%c) { Neg(%y) } else { %y }
        }""",
    )
    assert_facts_kept(INLINE, mod)


def test_an_argument_used_in_a_loop_needs_no_let() -> None:
    mod = program("""
        def @main(%x: T3, %n: Tensor[(), int64], %c: Tensor[(), bool]) { @f(Relu(%x), %n, %c) }
        def @f(%y: T3, %n: Tensor[(), int64], %c: Tensor[(), bool]) attributes {Inline=1} {
          %body = fn (%i: Tensor[(), int64], %go: Tensor[(), bool], %s: T3) { (%go, Add(%s, %y)) };
          %loop = Loop(%n, %c, Neg(%y), %body, outputs=1);
          %loop.0
        }
    """)
    assert lets(checked(INLINE, mod)) == 0


def test_each_call_has_variables_of_its_own() -> None:
    mod = program("""
        def @main(%x: T3) { @f(@f(%x)) }
        def @f(%y: T3) attributes {Inline=1} { let %z: T3 = Relu(%y); Add(%z, %z) }
    """)
    after = checked(INLINE, mod)
    assert lets(after) == 2
    assert operator_counts(after)["Relu"] == 3  # two calls, and the function itself


def test_each_call_draws_anew() -> None:
    mod = program("""
        def @main(%x: T3) { Sub(@draw(), @draw()) }
        def @draw() -> T3 attributes {Inline=1} { RandomNormal(shape=[2, 3]) }
    """)
    after = INLINE(mod)
    verify(after)
    assert operator_counts(after)["RandomNormal"] == 3
    assert np.asarray(ia.build(after)(np.zeros((2, 3), np.float32))).any()


def test_what_draws_is_not_moved_out_of_a_loop() -> None:
    step, go, state = Var("i", checked_type=INT), Var("go", checked_type=FLAG), var("s")
    draw = Function((), call("RandomNormal", shape=(2, 3)), Attrs({"Inline": 1}))
    name = GlobalVar("draw", checked_type=draw.checked_type)
    body = Function(
        (step, go, state), Tuple((go, call("Add", state, Call(name, (state,)[:0], checked_type=F32))))
    )
    loop = call("Loop", Constant(np.array(3)), Constant(np.array(True)), X, body)
    mod = IRModule({GlobalVar("main"): Function((X,), tuple_get(loop, 0)), name: draw})
    assert INLINE(mod) is mod


@pytest.mark.parametrize("callee", ["@f(%x)", "@g(%x)"])
def test_recursive_functions_stay(callee: str) -> None:
    mod = program(f"""
        def @main(%x: T3) {{ {callee}: T3 }}
        def @f(%x: T3) -> T3 attributes {{Inline=1}} {{ @f(%x): T3 }}
        def @g(%x: T3) -> T3 attributes {{Inline=1}} {{ @h(%x): T3 }}
        def @h(%x: T3) -> T3 attributes {{Inline=1}} {{ @g(%x): T3 }}
    """)
    assert INLINE(mod) is mod


@pytest.mark.parametrize("mark", [{"Compiler": "reference"}, {"SkipOptimization": 1}])
def test_functions_that_passes_skip_are_neither_callers_nor_callees(mark: dict[str, str | int]) -> None:
    marked = Attrs({"Inline": 1, **mark})
    p, q = var("p"), var("q")
    inner = Function((q,), relu(q), Attrs({"Inline": 1}))
    inner_name = GlobalVar("inner", checked_type=inner.checked_type)
    outer = Function((p,), Call(inner_name, (p,), checked_type=F32), marked)
    outer_name = GlobalVar("outer", checked_type=outer.checked_type)
    main = Function((X,), Call(outer_name, (X,), checked_type=F32))
    mod = IRModule({GlobalVar("main"): main, outer_name: outer, inner_name: inner})
    assert INLINE(mod) is mod


def literal_call(function: Function, *args: Expr) -> Call:
    return Call(function, args, checked_type=F32)


def test_literals_used_once_are_inlined_if_asked_for() -> None:
    p = var("p")
    mod = IRModule.from_expr(Function((X,), literal_call(Function((p,), add(relu(p), X)), relu(X))))
    assert INLINE(mod) is mod
    after = checked(Inline(literals=True), mod)
    assert structural_equal(after["main"], Function((X,), add(relu(relu(X)), X)))


def test_literals_used_twice_or_settled_stay() -> None:
    p, q = var("p"), var("q")
    twice = Function((p,), relu(p))
    settled = Function((q,), relu(q), Attrs({"Composite": "relu"}))
    body = add(literal_call(twice, literal_call(twice, X)), literal_call(settled, X))
    mod = IRModule.from_expr(Function((X,), body))
    assert Inline(literals=True)(mod) is mod


def test_devices_of_parameters_and_results_stay() -> None:
    device, other = (VirtualDevice(DeviceType.CPU, number) for number in (0, 1))
    p = with_fields(var("p"), virtual_device=device)
    function = Function((p,), relu(p), Attrs({"Inline": 1}))
    name = GlobalVar("f", checked_type=function.checked_type)
    result = Call(name, (relu(X),), checked_type=F32, virtual_device=other)
    mod = IRModule({GlobalVar("main"): Function((X,), result), name: function})
    after = INLINE(mod)["main"]
    assert after.body.virtual_device == other
    assert device in {node.virtual_device for node in post_order(after)}


def test_long_functions_and_many_calls() -> None:
    p = var("p")
    inner: Expr = p
    for _ in range(1_200):
        inner = relu(inner)
    function = Function((p,), inner, Attrs({"Inline": 1}))
    name = GlobalVar("f", checked_type=function.checked_type)
    value: Expr = X
    for _ in range(4):
        value = Call(name, (value,), checked_type=F32)
    after = INLINE(IRModule({GlobalVar("main"): Function((X,), value), name: function}))
    assert operator_counts(after)["Relu"] == 5 * 1_200
