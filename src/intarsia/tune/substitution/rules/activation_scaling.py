"""Positive factors that move through activations which keep them."""

from __future__ import annotations

from intarsia.ir import Call, Expr
from intarsia.ir.pattern import is_constant, is_op
from intarsia.op import call
from intarsia.passes.rules.tensor_facts import operator_name
from intarsia.tune.substitution.building import called, constant_of, is_float
from intarsia.tune.substitution.rule import A, substitution

_MUL, _SCALED = is_op("Mul"), is_op("Relu", "LeakyRelu", "Abs")


def _is_positive(factor: Expr) -> bool:
    value = constant_of(factor)
    return value is not None and is_float(factor) and bool((value > 0).all())


@substitution(_SCALED(_MUL.commutative(A, is_constant().named("b"))))
def scale_behind_activation(root: Call, a: Expr, b: Expr) -> Expr | None:
    """`relu(a * positive)` as `relu(a) * positive`.

    Before:
        def @main(%a: Tensor[(N, 2), float32]) { Relu(Mul(%a, meta[Constant][0])) }
    After:
        def @main(%a: Tensor[(N, 2), float32]) { Mul(Relu(%a), meta[Constant][0]) }
    Constants:
        [0.5, 2.0]
    """
    return call("Mul", called(operator_name(root), root.attrs, a), b) if _is_positive(b) else None


@substitution(_MUL.commutative(_SCALED(A).named("c"), is_constant().named("b")))
def scale_before_activation(a: Expr, b: Expr, c: Call) -> Expr | None:
    """`relu(a) * positive` as `relu(a * positive)`.

    Before:
        def @main(%a: Tensor[(N, 2), float32]) { Mul(Relu(%a), meta[Constant][0]) }
    After:
        def @main(%a: Tensor[(N, 2), float32]) { Relu(Mul(%a, meta[Constant][0])) }
    Constants:
        [0.5, 2.0]
    """
    return called(operator_name(c), c.attrs, call("Mul", a, b)) if _is_positive(b) else None
