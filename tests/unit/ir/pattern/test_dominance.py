"""The dominator pattern: all uses of the earlier expression lead to the later one."""

from __future__ import annotations

import numpy as np

from intarsia.ir import Attrs, Call, Constant, Expr, Function, Op, Var
from intarsia.ir.pattern import Match, Users, dominates, is_op, match, wildcard

X, Y = Var("x"), Var("y")
W = Constant(np.ones((4, 3, 1, 1), np.float32))
ELEMENTWISE = is_op("Relu", "Add", "Mul")
PATTERN = dominates(is_op("Conv")(...), ELEMENTWISE(...), is_op("Add")(...))


def of(name: str, *args: Expr) -> Call:
    return Call(Op(name), args, Attrs())


def found(expr: Expr, root: Expr | None = None) -> Match | None:
    return match(PATTERN, expr, Users.below(Function((X, Y), expr if root is None else root)))


def test_a_diamond() -> None:
    conv = of("Conv", X, W)
    left, right = of("Relu", conv), of("Mul", conv, Y)
    end = of("Add", left, right)
    match_ = found(end)
    assert match_ is not None
    assert set(match_.covered) == {conv, left, right, end}
    assert match_.covered[0] is conv
    assert match_.covered[-1] is end
    assert match_.inputs == (X, Y)
    assert match_.is_exclusive(Users.below(end))


def test_directly_after_each_other() -> None:
    conv = of("Conv", X, W)
    end = of("Add", conv, conv)
    match_ = found(end)
    assert match_ is not None
    assert match_.covered == (conv, end)


def test_a_use_outside_is_no_dominance() -> None:
    conv = of("Conv", X, W)
    end = of("Add", of("Relu", conv), Y)
    assert found(end) is not None
    assert found(end, of("Sub", end, conv)) is None


def test_a_use_of_something_between_is_no_dominance() -> None:
    conv = of("Conv", X, W)
    relu = of("Relu", conv)
    end = of("Add", relu, relu)
    assert found(end) is not None
    assert found(end, of("Sub", end, relu)) is None


def test_what_does_not_fit_between_is_no_path() -> None:
    assert found(of("Add", of("Softmax", of("Conv", X, W)), Y)) is None


def test_another_operand_is_an_input() -> None:
    conv = of("Conv", X, W)
    other = of("Softmax", Y)
    scaled = of("Mul", conv, other)
    end = of("Add", scaled, of("Relu", Y))
    match_ = found(end)
    assert match_ is not None
    assert match_.covered == (conv, scaled, end)
    assert set(match_.inputs) == {X, other, end.args[1]}


def test_the_nearest_parent_counts() -> None:
    far = of("Conv", X, W)
    near = of("Conv", of("Relu", far), W)
    match_ = found(of("Add", near, Y))
    assert match_ is not None
    assert near in match_.covered
    assert far not in match_.covered


def test_a_parent_of_several_expressions() -> None:
    pattern = dominates(is_op("Add")(is_op("Conv")(...), wildcard()), ELEMENTWISE(...), is_op("Tanh")(...))
    conv = of("Conv", X, W)
    biased = of("Add", conv, Y)
    end = of("Tanh", of("Relu", biased))
    match_ = match(pattern, end, Users.below(end))
    assert match_ is not None
    assert match_.covered == (conv, biased, end.args[0], end)


def test_the_length_of_a_path_is_bounded() -> None:
    expr: Expr = of("Conv", X, W)
    for _ in range(20):
        expr = of("Relu", expr)
    end = of("Add", expr, Y)
    assert found(end) is not None
    short = dominates(is_op("Conv")(...), ELEMENTWISE(...), is_op("Add")(...), at_most=10)
    assert match(short, end, Users.below(end)) is None


def test_names_of_both_ends_are_told() -> None:
    pattern = dominates(
        is_op("Conv")(wildcard().named("data"), ...),
        ELEMENTWISE(...),
        is_op("Add")(wildcard(), wildcard().named("skip")),
    )
    match_ = match(pattern, of("Add", of("Relu", of("Conv", X, W)), Y))
    assert match_ is not None
    assert dict(match_.names) == {"data": X, "skip": Y}
