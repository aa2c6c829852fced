"""Nothing recurses: a chain of 100,000 calls, and nesting of ten times Python's limit on recursion."""

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


SHAPES = [(a_chain, 100_000), (nested_lets, 10_000), (nested_ifs, 10_000), (nested_functions, 10_000)]


@pytest.mark.parametrize(("shape", "depth"), SHAPES)
def test_everything_but_parsing(shape: Callable[[int], Function], depth: int) -> None:
    function = shape(depth)
    mod = IRModule.from_expr(function)
    assert len(list(post_order(function))) > depth
    assert len(print_module(mod).text.splitlines()) > depth
    assert rewrite(function, lambda expr: expr) is function
    assert structural_equal(mod, IRModule.from_expr(shape(depth)))
    assert structural_digest(mod) != structural_digest(function.body)
    assert free_vars(function) == ()
    assert substitute(function.body, {Var("z"): Var("w")}) is function.body
    assert place(function).outermost.root is function
    verify(mod)


def test_rewriting_a_chain() -> None:
    function = a_chain(100_000)
    negated = rewrite(function, lambda e: with_fields(e, name="Neg") if isinstance(e, Op) else e)
    assert {expr.name for expr in post_order(negated) if isinstance(expr, Op)} == {"Neg"}
    assert sum(isinstance(expr, Call) for expr in post_order(negated)) == 100_000


@pytest.mark.parametrize("shape", [shape for shape, _ in SHAPES])
def test_parsing(shape: Callable[[int], Function]) -> None:
    mod = IRModule.from_expr(shape(10_000))
    printed = print_module(mod)
    assert structural_equal(parse_module(printed.text, printed.constants), mod)
