"""Patterns against expressions: what fits, what is covered, what has a name."""

from __future__ import annotations

import numpy as np
import pytest
from tests.each_case import each_case

from intarsia.ir import Attrs, Call, Constant, Expr, Function, Op, TensorType, Tuple, TupleGetItem, Var
from intarsia.ir.pattern import (
    ExprPattern,
    Users,
    find_matches,
    is_absent,
    is_constant,
    is_op,
    is_tuple,
    is_tuple_get,
    is_var,
    match,
    maybe,
    wildcard,
)
from intarsia.support.errors import UsageError

X = Var("x", checked_type=TensorType((1, 3, 8, 8), "float32"))  # type: ignore[arg-type]  # a spelling of the dtype
Y = Var("y")
W = Constant(np.ones((4, 3, 1, 1), np.float32))
B = Constant(np.ones(4, np.float32))
ABSENT = Tuple(())


def of(name: str, *args: Expr, **attrs: int | tuple[int, ...]) -> Call:
    return Call(Op(name), args, Attrs(attrs))


CONV = of("Conv", X, W, group=1)
CONV_BIAS = of("Conv", X, W, B)
SPLIT = of("Split", X, outputs=2)

CASES: list[tuple[ExprPattern, Expr, bool]] = [
    (wildcard(), X, True),
    (wildcard(), ABSENT, False),
    (is_absent(), ABSENT, True),
    (is_constant(), W, True),
    (is_constant(), X, False),
    (is_var(), X, True),
    (is_var("x"), X, True),
    (is_var("z"), X, False),
    (is_op("Conv"), CONV.op, True),
    (is_op("Conv"), CONV, False),
    (is_op("Relu", "Conv")(wildcard(), wildcard()), CONV, True),
    (is_op("Conv", domain="com.acme")(wildcard(), wildcard()), CONV, False),
    (is_op("Conv")(wildcard(), is_constant()), CONV, True),
    (is_op("Conv")(is_constant(), wildcard()), CONV, False),
    (wildcard()(wildcard(), wildcard()), CONV, True),
    (is_op("Conv")(wildcard(), wildcard()), CONV_BIAS, False),
    (is_op("Conv")(wildcard(), wildcard(), wildcard()), CONV, False),
    (is_op("Conv")(wildcard(), wildcard(), maybe()), CONV, True),
    (is_op("Conv")(wildcard(), wildcard(), maybe()), CONV_BIAS, True),
    (is_op("Conv")(wildcard(), wildcard(), maybe(is_var())), CONV_BIAS, False),
    (is_op("Conv")(wildcard(), wildcard(), is_absent()), CONV, True),
    (is_op("Conv")(wildcard(), wildcard()), of("Conv", X, W, ABSENT), True),
    (is_op("Clip")(wildcard(), wildcard(), is_constant()), of("Clip", X, ABSENT, B), False),
    (is_op("Clip")(wildcard(), maybe(), is_constant()), of("Clip", X, ABSENT, B), True),
    (is_op("Conv")(...), CONV, True),
    (is_op("Conv")(wildcard(), ...), CONV_BIAS, True),
    (is_op("Conv")(wildcard(), wildcard(), wildcard(), ...), CONV, False),
    (is_op("Conv")(...).has_attr(group=1), CONV, True),
    (is_op("Conv")(...).has_attr(group=2), CONV, False),
    (is_op("Conv")(...).has_attr(group=True), CONV, False),
    (is_op("Conv")(...).has_attr(group=1), CONV_BIAS, False),
    (is_op("Conv")(...).has_attr(strides=(2, 2)), of("Conv", X, W, strides=(2, 2)), True),
    (wildcard().has_dtype("float16", "float32"), X, True),
    (wildcard().has_dtype("float16"), X, False),
    (wildcard().has_dtype("float32"), Y, False),
    (wildcard().has_shape(1, 3, None, 8), X, True),
    (wildcard().has_shape(1, 3, None), X, False),
    (is_constant().has_shape(4, 3, 1, 2), W, False),
    (wildcard().has_type(TensorType.of(B.data)), B, True),
    (wildcard().has_type(TensorType.of(B.data)), W, False),
    (is_op("Add").commutative(is_var(), is_constant()), of("Add", W, X), True),
    (is_op("Add")(is_var(), is_constant()), of("Add", W, X), False),
    (is_tuple(is_var(), is_constant()), Tuple((X, W)), True),
    (is_tuple(is_var()), Tuple((X, W)), False),
    (is_tuple_get(is_op("Split")(...), 1), TupleGetItem(SPLIT, 1), True),
    (is_tuple_get(is_op("Split")(...), 0), TupleGetItem(SPLIT, 1), False),
    (is_tuple_get(is_op("Split")(...)), TupleGetItem(SPLIT, 1), True),
    (is_var() | is_constant(), W, True),
]


@each_case(("pattern", "expr", "fits"), CASES)
def test_what_fits(pattern: ExprPattern, expr: Expr, fits: bool) -> None:
    assert (match(pattern, expr) is not None) == fits


def layer() -> ExprPattern:
    conv = is_op("Conv")(wildcard().named("data"), is_constant().named("weight"), maybe(is_constant()))
    return conv.optional(is_op("Relu"))


def test_a_match_tells_what_is_covered_what_flows_in_and_what_has_a_name() -> None:
    relu = of("Relu", CONV_BIAS)
    found = match(layer(), relu)
    assert found is not None
    assert found.root is relu
    assert found.covered == (CONV_BIAS, relu)
    assert found.inputs == (X,)
    assert dict(found.names) == {"data": X, "weight": W}


def test_the_larger_of_an_optional_pattern_comes_first_and_the_smaller_fits_too() -> None:
    found = match(layer(), CONV)
    assert found is not None
    assert found.covered == (CONV,)


def test_one_name_is_one_expression() -> None:
    square = is_op("Mul")(wildcard().named("x"), wildcard().named("x"))
    assert match(square, of("Mul", X, X)) is not None
    assert match(square, of("Mul", X, Y)) is None
    assert match(square, of("Mul", W, Constant(W.data))) is None


def test_a_name_sends_the_search_back() -> None:
    """The first order of Add fits on its own, but not with the other use of the name."""
    swish = is_op("Mul")(
        is_op("Add").commutative(wildcard().named("x"), wildcard()), is_op("Sigmoid")(wildcard().named("x"))
    )
    found = match(swish, of("Mul", of("Add", Y, X), of("Sigmoid", X)))
    assert found is not None
    assert found.names["x"] is X


def test_patterns_are_values() -> None:
    assert layer() == layer()
    assert len({layer(), layer(), is_op("Conv")}) == 2
    assert is_op("Conv")(...).has_attr(group=1) != is_op("Conv")(...).has_attr(group=2)


def test_all_matches_in_evaluation_order() -> None:
    first = of("Relu", X)
    second = of("Relu", first)
    body = of("Add", second, CONV)
    found = find_matches(is_op("Relu")(wildcard()), Function((X,), body))
    assert [item.root for item in found] == [first, second]


def test_function_literals_are_searched() -> None:
    inner = of("Relu", Y)
    found = find_matches(is_op("Relu")(wildcard()), Call(Function((Y,), inner), (X,)))
    assert [item.root for item in found] == [inner]


def test_calls_of_functions_with_attributes() -> None:
    composite = Function((Y,), of("Relu", Y), Attrs({"Composite": "acme.relu"}))
    pattern = wildcard().has_attr(Composite="acme.relu")(wildcard())
    assert match(pattern, Call(composite, (X,))) is not None
    assert match(pattern, CONV) is None


def test_exclusive_matches_can_be_replaced() -> None:
    relu = of("Relu", CONV)
    used_once = Function((X,), relu)
    used_twice = Function((X,), of("Add", relu, CONV))
    found = match(layer(), relu)
    assert found is not None
    assert found.is_exclusive(Users.below(used_once))
    assert not found.is_exclusive(Users.below(used_twice))


def test_the_same_argument_twice_is_covered_once() -> None:
    relu = of("Relu", X)
    found = match(is_op("Add")(is_op("Relu")(wildcard()), is_op("Relu")(wildcard())), of("Add", relu, relu))
    assert found is not None
    assert found.covered[0] is relu
    assert len(found.covered) == 2


def test_further_arguments_stand_at_the_end() -> None:
    with pytest.raises(UsageError, match="at the end only"):
        is_op("Conv")(..., wildcard())


def test_an_operator_needs_a_name() -> None:
    with pytest.raises(UsageError, match="needs the name"):
        is_op()


def test_a_long_chain_is_searched_in_linear_time(length: int) -> None:
    expr: Expr = X
    for _ in range(length):
        expr = of("Relu", expr)
    pairs = find_matches(is_op("Relu")(is_op("Relu")(wildcard())), expr)
    assert len(pairs) == length - 1
