"""Sums and products of elements: associativity, distribution, common factors."""

from __future__ import annotations

import numpy as np

from intarsia.ir import Call, Constant, Expr
from intarsia.ir.pattern import is_constant, is_op
from intarsia.op import call
from intarsia.tune.substitution.building import is_float, like
from intarsia.tune.substitution.rule import A, B, C, substitution

_ADD, _MUL, _SUB, _DIV = (is_op(name) for name in ("Add", "Mul", "Sub", "Div"))


@substitution(_ADD(_ADD(A, B), C))
def associate_addition_right(a: Expr, b: Expr, c: Expr) -> Expr:
    """`(a + b) + c` as `a + (b + c)`.

    Before:
        def @main(%a: Tensor[(N, 4), float32], %b: Tensor[(4,), float32], %c: Tensor[(4,), float32]) {
          Add(Add(%a, %b), %c)
        }
    After:
        def @main(%a: Tensor[(N, 4), float32], %b: Tensor[(4,), float32], %c: Tensor[(4,), float32]) {
          Add(%a, Add(%b, %c))
        }
    """
    return call("Add", a, call("Add", b, c))


@substitution(_ADD(A, _ADD(B, C)))
def associate_addition_left(a: Expr, b: Expr, c: Expr) -> Expr:
    """`a + (b + c)` as `(a + b) + c`.

    Before:
        def @main(%a: Tensor[(4,), float32], %b: Tensor[(4,), float32], %c: Tensor[(N, 4), float32]) {
          Add(%a, Add(%b, %c))
        }
    After:
        def @main(%a: Tensor[(4,), float32], %b: Tensor[(4,), float32], %c: Tensor[(N, 4), float32]) {
          Add(Add(%a, %b), %c)
        }
    """
    return call("Add", call("Add", a, b), c)


@substitution(_ADD(_ADD(A, B), C))
def exchange_addends(a: Expr, b: Expr, c: Expr) -> Expr:
    """`(a + b) + c` as `(a + c) + b`, so that other pairs of addends meet.

    Before:
        def @main(%a: Tensor[(N, 4), float32], %b: Tensor[(4,), float32], %c: Tensor[(N, 4), float32]) {
          Add(Add(%a, %b), %c)
        }
    After:
        def @main(%a: Tensor[(N, 4), float32], %b: Tensor[(4,), float32], %c: Tensor[(N, 4), float32]) {
          Add(Add(%a, %c), %b)
        }
    """
    return call("Add", call("Add", a, c), b)


@substitution(_MUL(_MUL(A, B), C))
def associate_multiplication_right(a: Expr, b: Expr, c: Expr) -> Expr:
    """`(a * b) * c` as `a * (b * c)`.

    Before:
        def @main(%a: Tensor[(N, 4), float32], %b: Tensor[(4,), float32], %c: Tensor[(1,), float32]) {
          Mul(Mul(%a, %b), %c)
        }
    After:
        def @main(%a: Tensor[(N, 4), float32], %b: Tensor[(4,), float32], %c: Tensor[(1,), float32]) {
          Mul(%a, Mul(%b, %c))
        }
    """
    return call("Mul", a, call("Mul", b, c))


@substitution(_MUL(A, _MUL(B, C)))
def associate_multiplication_left(a: Expr, b: Expr, c: Expr) -> Expr:
    """`a * (b * c)` as `(a * b) * c`.

    Before:
        def @main(%a: Tensor[(4,), float32], %b: Tensor[(1,), float32], %c: Tensor[(N, 4), float32]) {
          Mul(%a, Mul(%b, %c))
        }
    After:
        def @main(%a: Tensor[(4,), float32], %b: Tensor[(1,), float32], %c: Tensor[(N, 4), float32]) {
          Mul(Mul(%a, %b), %c)
        }
    """
    return call("Mul", call("Mul", a, b), c)


@substitution(_ADD(_MUL.commutative(A, B), _MUL.commutative(A, C)))
def factor_common_multiplier(a: Expr, b: Expr, c: Expr) -> Expr:
    """`a * b + a * c` as `a * (b + c)`.

    Before:
        def @main(%a: Tensor[(N, 4), float32], %b: Tensor[(4,), float32], %c: Tensor[(N, 1), float32]) {
          Add(Mul(%a, %b), Mul(%c, %a))
        }
    After:
        def @main(%a: Tensor[(N, 4), float32], %b: Tensor[(4,), float32], %c: Tensor[(N, 1), float32]) {
          Mul(%a, Add(%b, %c))
        }
    """
    return call("Mul", a, call("Add", b, c))


@substitution(_MUL.commutative(A, _ADD(B, C)))
def distribute_multiplication(a: Expr, b: Expr, c: Expr) -> Expr:
    """`a * (b + c)` as `a * b + a * c`.

    Before:
        def @main(%a: Tensor[(N, 4), float32], %b: Tensor[(4,), float32], %c: Tensor[(N, 4), float32]) {
          Mul(%a, Add(%b, %c))
        }
    After:
        def @main(%a: Tensor[(N, 4), float32], %b: Tensor[(4,), float32], %c: Tensor[(N, 4), float32]) {
          Add(Mul(%a, %b), Mul(%a, %c))
        }
    """
    return call("Add", call("Mul", a, b), call("Mul", a, c))


@substitution(_ADD(_DIV(A, C), _DIV(B, C)))
def factor_common_divisor(root: Call, a: Expr, b: Expr, c: Expr) -> Expr | None:
    """`a / c + b / c` as `(a + b) / c`, of floating-point numbers.

    Before:
        def @main(%a: Tensor[(N, 4), float32], %b: Tensor[(4,), float32], %c: Tensor[(N, 4), float32]) {
          %d = Exp(%c);
          Add(Div(%a, %d), Div(%b, %d))
        }
    After:
        def @main(%a: Tensor[(N, 4), float32], %b: Tensor[(4,), float32], %c: Tensor[(N, 4), float32]) {
          Div(Add(%a, %b), Exp(%c))
        }
    """
    return call("Div", call("Add", a, b), c) if is_float(root) else None


@substitution(_DIV(A, is_constant().named("b")))
def divide_by_multiplying(root: Call, a: Expr, b: Expr) -> Expr | None:
    """`a / constant` as `a * (1 / constant)`, of floating-point numbers.

    Before:
        def @main(%a: Tensor[(N, 4), float32]) { Div(%a, meta[Constant][0]) }
    After:
        def @main(%a: Tensor[(N, 4), float32]) { Mul(%a, meta[Constant][1]) }
    Constants:
        [1.0, 2.0, 4.0, -8.0] [1.0, 0.5, 0.25, -0.125]
    """
    assert isinstance(b, Constant)
    if not is_float(root) or not b.data.all():
        return None
    inverse = like(b, 1 / b.data.astype(np.float64))
    # An infinite or subnormal reciprocal would lose digits that the division keeps, in float16 at the latest.
    size = np.abs(inverse.data.astype(np.float64))
    is_harmless = bool(np.isfinite(size).all() and (size > np.finfo(np.float16).tiny).all())
    return call("Mul", a, inverse) if is_harmless else None


@substitution(is_op("Neg")(_SUB(A, B)))
def negated_difference(a: Expr, b: Expr) -> Expr:
    """`-(a - b)` as `b - a`.

    Before:
        def @main(%a: Tensor[(N, 4), float32], %b: Tensor[(4,), float32]) { Neg(Sub(%a, %b)) }
    After:
        def @main(%a: Tensor[(N, 4), float32], %b: Tensor[(4,), float32]) { Sub(%b, %a) }
    """
    return call("Sub", b, a)


@substitution(_SUB(_SUB(A, B), C))
def subtract_sum(a: Expr, b: Expr, c: Expr) -> Expr:
    """`(a - b) - c` as `a - (b + c)`.

    Before:
        def @main(%a: Tensor[(N, 4), float32], %b: Tensor[(4,), float32], %c: Tensor[(4,), float32]) {
          Sub(Sub(%a, %b), %c)
        }
    After:
        def @main(%a: Tensor[(N, 4), float32], %b: Tensor[(4,), float32], %c: Tensor[(4,), float32]) {
          Sub(%a, Add(%b, %c))
        }
    """
    return call("Sub", a, call("Add", b, c))


@substitution(is_op("Max")(_ADD.commutative(A, C), _ADD.commutative(B, C)))
def maximum_of_shifted(root: Call, a: Expr, b: Expr, c: Expr) -> Expr | None:
    """`max(a + c, b + c)` as `max(a, b) + c`, of floating-point numbers.

    Before:
        def @main(%a: Tensor[(N, 4), float32], %b: Tensor[(N, 4), float32], %c: Tensor[(4,), float32]) {
          Max(Add(%a, %c), Add(%b, %c))
        }
    After:
        def @main(%a: Tensor[(N, 4), float32], %b: Tensor[(N, 4), float32], %c: Tensor[(4,), float32]) {
          Add(Max(%a, %b), %c)
        }
    """
    return call("Add", call("Max", a, b), c) if is_float(root) else None


@substitution(_MUL(is_op("Exp")(A), is_op("Exp")(B)))
def product_of_exponentials(a: Expr, b: Expr) -> Expr:
    """`exp(a) * exp(b)` as `exp(a + b)`.

    Before:
        def @main(%a: Tensor[(N, 4), float32], %b: Tensor[(4,), float32]) { Mul(Exp(%a), Exp(%b)) }
    After:
        def @main(%a: Tensor[(N, 4), float32], %b: Tensor[(4,), float32]) { Exp(Add(%a, %b)) }
    """
    return call("Exp", call("Add", a, b))
