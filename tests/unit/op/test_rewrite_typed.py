"""What a rewritten program knows about its values."""

from __future__ import annotations

import numpy as np
import pytest
from tests.pass_checks import checked

from intarsia.ir import Call, Constant, DType, Expr, Function, IRModule, Op, TensorType, Var
from intarsia.op import call, rewrite_typed
from intarsia.passes import FoldConstant
from intarsia.support.errors import InvalidModelError

ROW = TensorType((1, 6), DType.FLOAT32)


def whole_numbers(*values: int) -> Constant:
    return Constant(np.array(values, np.int64))


def not_propagated(*values: int) -> Call:
    """Values that are computed by an operator which shape inference does not look through."""
    return call("BitwiseNot", whole_numbers(*(~value for value in values)))


def span_of(limit: Expr) -> Call:
    return call("Range", Constant(np.array(0)), limit, Constant(np.array(1)))


def test_an_argument_stays_where_its_value_would_be_refused() -> None:
    limit = not_propagated(4)
    flag = Var("flag", checked_type=TensorType((4,), DType.INT64))
    after = checked(FoldConstant(), IRModule.from_expr(Function((flag,), call("Add", span_of(limit), flag))))
    body = after["main"].body
    assert isinstance(body, Call)
    assert isinstance(body.args[0], Call)
    assert body.args[0].args[1] is limit


def test_what_is_drawn_is_not_kept_beside_what_it_has_become() -> None:
    drawn = call("Cast", call("RandomUniform", shape=(1,)), to=7)

    def rule(expr: Expr) -> Expr:
        return whole_numbers(4) if expr is drawn else expr

    with pytest.raises(InvalidModelError, match="'Range' cannot be applied"):
        rewrite_typed(span_of(drawn), rule)


def test_a_known_type_is_kept_where_none_can_be_inferred() -> None:
    unknown = Var("x")
    body = Call(Op("Reshape"), (unknown, not_propagated(1, 6)), checked_type=ROW)
    after = rewrite_typed(body, lambda expr: whole_numbers(1, 6) if expr is body.args[1] else expr)
    assert isinstance(after, Call)
    assert isinstance(after.args[1], Constant)
    assert after.checked_type == ROW


def test_what_is_built_has_the_type_of_what_it_replaces_where_none_can_be_inferred() -> None:
    unknown = Var("x")
    body = Call(Op("Neg"), (unknown,), checked_type=ROW)
    built = Call(Op("Identity"), (Call(Op("Neg"), (unknown,)),))
    after = rewrite_typed(body, lambda expr: built if expr is body else expr)
    assert isinstance(after, Call)
    assert str(after.op) == "Identity"
    assert after.checked_type == ROW
    assert after.args[0].checked_type is None
