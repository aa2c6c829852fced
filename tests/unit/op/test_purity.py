"""Which calls have another value each time."""

from __future__ import annotations

import numpy as np
from tests.ir_programs import BOOL, F32, add, relu, var

from intarsia.ir import Call, Constant, Expr, Function, GlobalVar, IRModule, Let, Op, Tuple, Var
from intarsia.op import absent, call
from intarsia.op.purity import impure_calls, is_pure, is_random, pure_functions

RATIO = Constant(np.array(0.5, np.float32))


def draw() -> Call:
    return call("RandomNormal", shape=(2, 3))


def function(body: Expr, *params: Var) -> Function:
    return Function(params or (var(),), body)


def test_random_operators_draw_with_a_seed_too() -> None:
    assert is_random(call("RandomUniform", shape=(2,), seed=1.0))
    assert is_random(call("Bernoulli", var()))
    assert not is_random(relu(var()))


def test_a_dropout_draws_unless_it_is_known_not_to_train() -> None:
    x, training = var(), Var("t", checked_type=BOOL)
    assert not is_random(call("Dropout", x))
    assert not is_random(call("Dropout", x, RATIO, Constant(np.array(False))))
    assert not is_random(call("Dropout", x, absent(), Constant(np.array(False))))
    assert is_random(call("Dropout", x, RATIO, Constant(np.array(True))))
    assert is_random(call("Dropout", x, RATIO, training))


def test_an_operator_of_that_name_in_another_domain_is_another() -> None:
    assert not is_random(Call(Op("Bernoulli", "com.example"), (var(),)))


def test_what_is_computed_of_a_draw_is_no_draw() -> None:
    once = draw()
    total = add(once, relu(once))
    assert impure_calls(total) == {once}
    assert not is_pure(total)
    assert is_pure(add(var(), var()))


def test_a_call_of_a_literal_that_draws_is_impure_and_its_definition_is_not() -> None:
    x = var()
    drawing, quiet = function(draw()), function(relu(x), x)
    calls = [Call(item, (var("y"),), checked_type=F32) for item in (drawing, quiet)]
    found = impure_calls(Tuple(tuple(calls)))
    assert calls[0] in found
    assert calls[1] not in found


def test_a_function_that_is_not_known_counts_as_impure() -> None:
    f, x = Var("f"), var()
    applied = Call(f, (x,), checked_type=F32)
    assert impure_calls(applied) == {applied}
    unknown = Call(GlobalVar("nobody"), (x,), checked_type=F32)
    assert impure_calls(unknown) == {unknown}
    assert impure_calls(unknown, IRModule.from_expr(function(x, x))) == {unknown}


def loop(body: Expr) -> Call:
    trips, start = Constant(np.array(3, np.int64)), var("start")
    return Call(Op("Loop"), (trips, Constant(np.array(True)), start, body), checked_type=F32)


def accumulating(value: Expr) -> Function:
    again, state = Var("c"), var("s")
    return Function((Var("i"), again, state), Tuple((again, add(state, value))))


def test_an_operator_with_a_body_is_as_pure_as_the_body() -> None:
    quiet, drawing, unknown = loop(accumulating(var("y"))), loop(accumulating(draw())), loop(Var("body"))
    assert is_pure(quiet)
    assert drawing in impure_calls(drawing)
    assert impure_calls(unknown) == {unknown}


def test_global_functions_are_impure_through_what_they_call() -> None:
    x = var()
    names = ("main", "middle", "leaf", "quiet", "even", "odd")
    main, middle, leaf, quiet, even, odd = (GlobalVar(name) for name in names)

    def calling(callee: GlobalVar) -> Function:
        p = var("p")
        return Function((p,), Call(callee, (p,), checked_type=F32))

    functions = {
        main: calling(middle),
        middle: calling(leaf),
        leaf: function(draw()),
        quiet: function(relu(x), x),
    }
    mod = IRModule({**functions, even: calling(odd), odd: calling(even)})
    assert {var.name for var in mod.functions} - pure_functions(mod) == {"main", "middle", "leaf"}
    assert not is_pure(Call(middle, (x,)), mod)
    assert is_pure(Call(quiet, (x,)), mod)
    assert is_pure(Call(even, (x,)), mod)
    assert impure_calls(mod["main"], mod) == {mod["main"].body}


def test_a_long_chain_of_scopes(length: int) -> None:
    expr: Expr = draw()
    for position in range(length):
        bound = var(f"v{position}")
        expr = Let(bound, expr, relu(bound))
    assert not is_pure(expr)
