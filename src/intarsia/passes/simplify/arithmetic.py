"""Neutral elements, operators that undo or repeat themselves, selections that are decided.

`x + 0.0` becomes `x`, although it would turn -0.0 into 0.0: the two are equal, and engines do the same.
`x * 0` is left alone: it is NaN for infinities and NaN.
"""

from __future__ import annotations

from typing import Final

from intarsia.ir import Call, Constant, Expr, Op
from intarsia.op import call as make_call
from intarsia.op.operator_facts import OperatorTrait
from intarsia.op.operator_table import operators_with
from intarsia.passes.rules.rule_table import RuleTable, merged, rules_for
from intarsia.passes.rules.tensor_facts import has_same_shape, keeps_shape, operator_name

_NEUTRAL: Final = {
    **dict.fromkeys(("Add", "Sub", "BitwiseOr", "BitwiseXor", "BitShift"), 0),
    **dict.fromkeys(("Mul", "Div", "Pow"), 1),
    "And": True,
    "Or": False,
    "Xor": False,
}
_COMMUTATIVE: Final = _NEUTRAL.keys() & operators_with(OperatorTrait.COMMUTATIVE)


def neutral_right(call: Call) -> Expr | None:
    """`x + 0`, `x * 1`, `x ** 1`, `x and true` as `x`, unless the constant makes the result larger."""
    match call.args:
        case (x, Constant() as constant):
            return _without_neutral(call, x, constant)
        case _:
            return None


def neutral_left(call: Call) -> Expr | None:
    """`0 + x` as `x`, and so on for the other commutative operators."""
    match call.args:
        case (Constant() as constant, x):
            return _without_neutral(call, x, constant)
        case _:
            return None


def _without_neutral(call: Call, x: Expr, constant: Constant) -> Expr | None:
    data, neutral = constant.data, _NEUTRAL[operator_name(call)]
    is_neutral = keeps_shape(x, data.shape) and bool((data == neutral).all())
    return x if is_neutral else None


def involution(call: Call) -> Expr | None:
    """`-(-x)` as `x`."""
    match call.args:
        case (Call(args=(x,)) as inner,) if operator_name(inner) == operator_name(call):
            return x
        case _:
            return None


def idempotent(call: Call) -> Expr | None:
    """`relu(relu(x))` as `relu(x)`."""
    inner = call.args[0]
    return inner if operator_name(inner) == operator_name(call) else None


def abs_of_neg(call: Call) -> Expr | None:
    """`abs(-x)` as `abs(x)`."""
    match call.args:
        case (Call(op=Op(name="Neg", domain=""), args=(x,)),):
            return make_call("Abs", x)
        case _:
            return None


def add_of_neg(call: Call) -> Expr | None:
    """`x + (-y)` as `x - y`; `(-x) + y` as `y - x`; `x - (-y)` as `x + y`. All are exact."""
    name = operator_name(call)
    match call.args:
        case (x, Call(op=Op(name="Neg", domain=""), args=(y,))):
            return make_call("Add" if name == "Sub" else "Sub", x, y)
        case (Call(op=Op(name="Neg", domain=""), args=(x,)), y) if name == "Add":
            return make_call("Sub", y, x)
        case _:
            return None


def variadic_of_one(call: Call) -> Expr | None:
    """`max(x)` as `x`."""
    return call.args[0] if len(call.args) == 1 else None


def same_operands(call: Call) -> Expr | None:
    """`max(x, x)` as `x`."""
    x, *others = call.args
    return x if others and all(other is x for other in others) else None


def decided_where(call: Call) -> Expr | None:
    """`where(true, x, y)` as `x`, unless the other arguments make the result larger than `x`."""
    match call.args:
        case (Constant(data=data), x, y) if data.size and data.all() != (~data).all():
            chosen = x if data.all() else y
            return chosen if has_same_shape(chosen, call) else None
        case _:
            return None


def where_of_same(call: Call) -> Expr | None:
    """`where(c, x, x)` as `x`, unless the condition makes the result larger."""
    _, x, y = call.args
    return x if x is y and has_same_shape(x, call) else None


RULES: RuleTable = merged(
    (
        rules_for(" ".join(_NEUTRAL), neutral_right),
        rules_for(" ".join(sorted(_COMMUTATIVE)), neutral_left),
        rules_for("Neg Not BitwiseNot", involution),
        rules_for("Relu Abs Ceil Floor Round Sign", idempotent),
        rules_for("Abs", abs_of_neg),
        rules_for("Add Sub", add_of_neg),
        rules_for("Max Min Sum Mean", variadic_of_one),
        rules_for("Max Min And Or BitwiseAnd BitwiseOr", same_operands),
        rules_for("Where", decided_where, where_of_same),
    )
)
