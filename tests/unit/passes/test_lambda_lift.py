"""Function literals become global functions; what they capture becomes parameters."""

from __future__ import annotations

import numpy as np
from tests.ir_programs import F32, add, branch, relu, var
from tests.pass_checks import assert_facts_kept, checked

from intarsia.ir import (
    Attrs,
    Call,
    Expr,
    Function,
    FuncType,
    GlobalVar,
    IRModule,
    Let,
    TensorType,
    Tuple,
    Var,
    post_order,
)
from intarsia.ir.parser import parse_module
from intarsia.op import infer_types, verify
from intarsia.passes import LambdaLift

LIFT = LambdaLift()
T = "Tensor[(2, 3), float32]"
X, Y = var("x"), var("y")
FLAG = TensorType.of(np.zeros((), np.bool_))


def program(text: str) -> IRModule:
    return infer_types(parse_module(text.replace("F1", f"fn ({T}) -> {T}").replace("T3", T)))


def literals(mod: IRModule) -> int:
    return sum(
        isinstance(node, Function) and node is not function
        for function in mod.graph_functions.values()
        for node in post_order(function)
    )


def applied(function: Expr, *args: Expr) -> Call:
    return Call(function, args, checked_type=F32)


def params(mod: IRModule, name: str) -> list[str]:
    return [param.name for param in mod[name].params]


def test_captured_variables_and_expressions_become_parameters() -> None:
    p = var("p")
    shared = relu(X)
    literal = Function((p,), add(add(p, Y), shared))
    mod = IRModule.from_expr(Function((X, Y), add(applied(literal, X), shared)))
    after = checked(LIFT, mod)
    assert literals(after) == 0
    assert params(after, "main_function") == ["y", "captured1", "p"]
    assert_facts_kept(LIFT, mod)


def test_a_literal_called_twice_is_lifted_once() -> None:
    p = var("p")
    literal = Function((p,), relu(p))
    after = checked(LIFT, IRModule.from_expr(Function((X,), applied(literal, applied(literal, X)))))
    assert [name.name for name in after] == ["main", "main_function"]


def test_functions_in_functions_pass_captures_on() -> None:
    after = checked(
        LIFT,
        program("""
            def @main(%x: T3, %y: T3) {
              let %outer: F1 = fn (%a: T3) -> T3 {
                let %inner: F1 = fn (%b: T3) -> T3 { Add(Add(%b, %a), %y) };
                Mul(%inner(%x): T3, %a)
              };
              %outer(%x): T3
            }
        """),
    )
    assert literals(after) == 0
    assert params(after, "main_outer") == ["x", "y", "a"]
    assert params(after, "main_inner") == ["a", "y", "b"]


def test_a_function_that_calls_another_captures_for_it() -> None:
    after = checked(
        LIFT,
        program("""
            def @main(%x: T3, %y: T3) {
              let %f: F1 = fn (%a: T3) -> T3 { Add(%a, %y) };
              let %g: F1 = fn (%b: T3) -> T3 { Neg(%f(%b): T3) };
              %g(%x): T3
            }
        """),
    )
    assert params(after, "main_g") == ["y", "b"]


def test_a_closure_in_the_body_of_a_loop_captures_its_variables() -> None:
    after = checked(
        LIFT,
        program(
            """
            def @main(%x: T3, %n: Tensor[(), int64], %c: Tensor[(), bool]) {
              %body = fn (%i: Tensor[(), int64], %go: Tensor[(), bool], %s: T3) {
                %f = fn (%a: T3) -> T3 { Add(%a, Mul(%s, %x)) };
                (%go, %f(%s): T3)
              };
              %loop = Loop(%n, %c, %x, %body, outputs=1);
              %loop.0
            }
        """
        ),
    )
    assert literals(after) == 1  # the body of the loop
    assert set(params(after, "main_function")) == {"s", "x", "a"}


def test_a_let_bound_function_that_calls_itself() -> None:
    """The text form and `verify` refuse such a let; lifting makes it well formed."""
    f = Var("f", checked_type=FuncType((F32, FLAG), F32))
    p, go, c = var("p"), Var("go", checked_type=FLAG), Var("c", checked_type=FLAG)
    again = applied(f, relu(p), c)
    literal = Function((p, go), branch(go, again, add(p, Y)))
    main = Function((X, Y, c), Let(f, literal, applied(f, X, c)))
    after = LIFT(IRModule.from_expr(main))
    verify(after)
    assert literals(after) == 0
    assert params(after, "main_f") == ["c", "y", "p", "go"]
    calls = [node for node in post_order(after["main_f"]) if isinstance(node, Call) and len(node.args) == 4]
    assert [node.args[:2] for node in calls] == [after["main_f"].params[:2]]


def test_functions_that_are_values_stay_and_so_do_those_that_use_them() -> None:
    mod = program("""
        def @main(%x: T3) {
          let %f: F1 = fn (%a: T3) -> T3 { Relu(%a) };
          let %g: F1 = fn (%b: T3) -> T3 { %f(%b): T3 };
          let %alias: F1 = %f;
          let %h: F1 = fn (%d: T3) -> T3 { Neg(%d) };
          (%alias(%x): T3, %g(%x): T3, %h(%x): T3)
        }
    """)
    after = LIFT(mod)
    verify(after)
    assert [name.name for name in after] == ["main", "main_h"]
    assert LIFT(after) is after


def test_a_returned_function_stays() -> None:
    p = var("p")
    mod = IRModule.from_expr(Function((X,), Tuple((X, Function((p,), add(p, X))))))
    assert LIFT(mod) is mod


def test_settled_functions_stay_in_place() -> None:
    p, q = var("p"), var("q")
    fused = Function((p,), relu(p), Attrs({"Primitive": 1}))
    matched = Function((q,), relu(q), Attrs({"Composite": "relu"}))
    mod = IRModule.from_expr(Function((X,), add(applied(fused, X), applied(matched, X))))
    assert LIFT(mod) is mod


def test_functions_of_toolchains_keep_their_marks_and_symbols() -> None:
    p, q = var("p"), var("q")
    marks = Attrs({"Compiler": "reference", "global_symbol": "region"})
    first, second = Function((p,), relu(p), marks), Function((q,), add(q, q), marks)
    after = checked(LIFT, IRModule.from_expr(Function((X,), applied(first, applied(second, X)))))
    assert {name.name for name in after} == {"main", "region", "region_1"}
    assert after["region"].attrs == marks


def test_names_that_are_taken_get_a_number() -> None:
    p, q = var("p"), var("q")
    main = Function((X,), applied(Function((p,), relu(p)), X))
    mod = IRModule({GlobalVar("main"): main, GlobalVar("main_function"): Function((q,), relu(q))})
    assert [name.name for name in checked(LIFT, mod)] == ["main", "main_function", "main_function_1"]


def test_many_literals() -> None:
    value: Expr = X
    shared = relu(Y)
    for _ in range(1_200):
        p = var("p")
        value = applied(Function((p,), add(relu(p), shared)), value)
    after = LIFT(IRModule.from_expr(Function((X, Y), add(value, shared))))
    assert len(after.functions) == 1_201
    assert literals(after) == 0
