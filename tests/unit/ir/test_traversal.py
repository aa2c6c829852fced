import pytest
from tests.ir_programs import BOOL, F32, add, branch, ones, relu, var

from intarsia.ir import (
    Call,
    Expr,
    Function,
    Let,
    Op,
    Span,
    Tuple,
    TupleGetItem,
    Var,
    children,
    free_vars,
    post_order,
    rewrite,
    substitute,
    with_children,
    with_fields,
)


def test_children_are_in_evaluation_order_and_binders_first() -> None:
    x, y, op = var("x"), var("y"), Op("Add")
    call = Call(op, (x, y))
    assert children(call) == (op, x, y)
    assert children(Function((x, y), call)) == (x, y, call)
    assert children(Let(x, y, call)) == (x, y, call)
    chosen = branch(x, y, call)
    assert children(chosen) == (x, y, call)
    assert children(Tuple((x, call))) == (x, call)
    assert children(TupleGetItem(call, 0)) == (call,)
    assert [children(atom) for atom in (x, op, ones())] == [(), (), ()]


def test_post_order_gives_shared_expressions_once() -> None:
    x = var()
    shared = relu(x)
    total = add(shared, shared)
    assert list(post_order(total)) == [total.op, shared.op, x, shared, total]


def test_post_order_of_several_roots_gives_common_expressions_once() -> None:
    shared = relu(var())
    left, right = relu(shared), relu(shared)
    order = list(post_order(left, right))
    assert len(order) == len(set(order))
    assert order[-1] is right


def test_with_children_keeps_facts_but_not_stale_types() -> None:
    call = with_fields(relu(var()), span=Span("m", "n"))
    same_types = with_children(call, (call.op, var("y")))
    assert (same_types.checked_type, same_types.span) == (F32, call.span)
    other_types = with_children(call, (call.op, var("c", BOOL)))
    assert (other_types.checked_type, other_types.span) == (None, call.span)
    assert with_children(call, children(call)) is call


def test_with_children_derives_types_again() -> None:
    x, c = var("x"), var("c", BOOL)
    assert with_children(Tuple((x, x)), (x, c)).checked_type == Tuple((x, c)).checked_type
    assert with_children(Function((x,), x), (c, c)).checked_type == Function((c,), c).checked_type


def test_rewrite_visits_a_shared_expression_once() -> None:
    visited: list[Expr] = []

    def rule(expr: Expr) -> Expr:
        visited.append(expr)
        return with_fields(expr, name="Sigmoid") if isinstance(expr, Op) and expr.name == "Relu" else expr

    shared = relu(var())
    total = add(shared, shared)
    new = rewrite(total, rule)
    assert isinstance(new, Call)
    assert len(visited) == len(set(visited)) == 5
    assert new.args[0] is new.args[1]
    assert str(new.args[0].op if isinstance(new.args[0], Call) else None) == "Sigmoid"


def test_rewrite_goes_into_functions_branches_and_lets() -> None:
    x, y, c = var("x"), var("y"), var("c", BOOL)
    body = branch(c, Let(y, relu(x), relu(y)), relu(x))
    function = Function((x, c), Call(Function((y,), relu(y)), (body,)))
    new = rewrite(function, lambda e: with_fields(e, name="Neg") if isinstance(e, Op) else e)
    names = {expr.name for expr in post_order(new) if isinstance(expr, Op)}
    assert names == {"Neg"}


def test_a_parameter_may_only_become_a_variable() -> None:
    function = Function((var("x"),), ones())
    with pytest.raises(TypeError, match="may only be rewritten to a Var, not to Constant"):
        rewrite(function, lambda expr: ones() if isinstance(expr, Var) else expr)


def test_substitute_replaces_at_once_and_does_not_search_replacements() -> None:
    x, y = var("x"), var("y")
    swapped = substitute(add(x, relu(y)), {x: y, y: x})
    assert isinstance(swapped, Call)
    inner = swapped.args[1]
    assert swapped.args[0] is y
    assert isinstance(inner, Call)
    assert inner.args[0] is x


def test_substitute_of_what_is_not_there_returns_the_same_object() -> None:
    call = relu(var())
    assert substitute(call, {var("z"): var("w")}) is call


def test_free_variables() -> None:
    x, y, z = var("x"), var("y"), var("z")
    assert free_vars(add(x, y)) == (x, y)
    assert free_vars(Function((x,), add(x, y))) == (y,)
    assert free_vars(Let(y, relu(z), add(y, x))) == (z, x)
