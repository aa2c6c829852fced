"""Users of expressions, and the examples in the documentation of patterns."""

from __future__ import annotations

import doctest

from intarsia.ir import Call, Expr, Function, If, Op, Var
from intarsia.ir.pattern import Users, expr_pattern

X, C = Var("x"), Var("c")


def of(name: str, *args: Expr) -> Call:
    return Call(Op(name), args)


def test_each_user_counts_once() -> None:
    relu = of("Relu", X)
    both = of("Add", relu, relu)
    users = Users.below(Function((X,), both))
    assert users.of[relu] == (both,)


def test_branches_and_functions_are_users() -> None:
    relu = of("Relu", X)
    branch = If(C, relu, X)
    function = Function((X, C), branch)
    users = Users.below(function)
    assert users.of[relu] == (branch,)
    assert users.of[branch] == (function,)


def test_the_root_is_used_outside() -> None:
    relu = of("Relu", X)
    assert not Users.below(relu).all_in(relu, {relu})


def test_an_expression_of_another_program_has_unknown_users() -> None:
    assert not Users.below(X).all_in(of("Relu", X), set())


def test_the_examples_run() -> None:
    assert doctest.testmod(expr_pattern).attempted == 1
    assert doctest.testmod(expr_pattern).failed == 0
