"""Nothing recurses: chains and nests are deeper than Python's limit on recursion."""

from collections.abc import Callable

import pytest
from tests.ir_programs import BOOL, F32, branch, chain, var

from intarsia.ir import (
    Call,
    Expr,
    Function,
    IRModule,
    Let,
    Op,
    Var,
    free_vars,
    post_order,
    rewrite,
    structural_digest,
    structural_equal,
    substitute,
    with_fields,
)
from intarsia.ir.parser import parse_module
from intarsia.ir.printer import print_module
from intarsia.ir.scope import place
from intarsia.ir.verify import verify

OP = Op("Relu")


def nested_lets(depth: int) -> Function:
    variables = [var("x"), *(var("v") for _ in range(depth))]
    expr: Expr = variables[-1]
    for bound, value in zip(reversed(variables[1:]), reversed(variables[:-1]), strict=True):
        expr = Let(bound, Call(OP, (value,), checked_type=F32), expr)
    return Function((variables[0],), expr)


def nested_ifs(depth: int) -> Function:
    x, c = var("x"), var("c", BOOL)
    expr: Expr = x
    for _ in range(depth):
        expr = branch(c, Call(OP, (expr,), checked_type=F32), x)
    return Function((x, c), expr)


def nested_functions(depth: int) -> Function:
    x = var("x")
    expr: Expr = x
    for _ in range(depth):
        expr = Call(Function((), expr), (), checked_type=F32)
    return Function((x,), expr)


def a_chain(depth: int) -> Function:
    return Function((x := var(),), chain(depth, x))


SHAPES = (a_chain, nested_lets, nested_ifs, nested_functions)


@pytest.mark.parametrize("shape", SHAPES)
def test_everything_but_parsing(shape: Callable[[int], Function], length: int) -> None:
    function = shape(length)
    mod = IRModule.from_expr(function)
    assert len(list(post_order(function))) > length
    assert len(print_module(mod).text.splitlines()) > length
    assert rewrite(function, lambda expr: expr) is function
    assert structural_equal(mod, IRModule.from_expr(shape(length)))
    assert structural_digest(mod) != structural_digest(function.body)
    assert free_vars(function) == ()
    assert substitute(function.body, {Var("z"): Var("w")}) is function.body
    assert place(function).outermost.root is function
    verify(mod)


def test_rewriting_a_chain(length: int) -> None:
    function = a_chain(length)
    negated = rewrite(function, lambda e: with_fields(e, name="Neg") if isinstance(e, Op) else e)
    assert {expr.name for expr in post_order(negated) if isinstance(expr, Op)} == {"Neg"}
    assert sum(isinstance(expr, Call) for expr in post_order(negated)) == length


@pytest.mark.parametrize("shape", SHAPES)
def test_parsing(shape: Callable[[int], Function], length: int) -> None:
    mod = IRModule.from_expr(shape(length))
    printed = print_module(mod)
    assert structural_equal(parse_module(printed.text, printed.constants), mod)
