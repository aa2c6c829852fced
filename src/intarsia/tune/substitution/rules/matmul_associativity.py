"""Chains of matrix products, and factors that move in and out of them."""

from __future__ import annotations

from intarsia.ir import Expr
from intarsia.ir.pattern import is_constant, is_op
from intarsia.op import call
from intarsia.tune.substitution.building import is_scalar_constant, rank_of, size_along
from intarsia.tune.substitution.rule import A, B, C, substitution

_MATMUL, _MUL, _DIV = is_op("MatMul"), is_op("Mul"), is_op("Div")
_NUMBER = is_constant().named("c")


def _are_matrices(*exprs: Expr) -> bool:
    return all(rank_of(expr) >= 2 for expr in exprs)


@substitution(_MATMUL(_MATMUL(A, B), C))
def associate_matmul_right(a: Expr, b: Expr, c: Expr) -> Expr | None:
    """`(a b) c` as `a (b c)`.

    Before:
        def @main(%a: Tensor[(N, 4), float32], %b: Tensor[(4, K), float32], %c: Tensor[(K, 2), float32]) {
          MatMul(MatMul(%a, %b), %c)
        }
    After:
        def @main(%a: Tensor[(N, 4), float32], %b: Tensor[(4, K), float32], %c: Tensor[(K, 2), float32]) {
          MatMul(%a, MatMul(%b, %c))
        }
    """
    return call("MatMul", a, call("MatMul", b, c)) if _are_matrices(a, b, c) else None


@substitution(_MATMUL(A, _MATMUL(B, C)))
def associate_matmul_left(a: Expr, b: Expr, c: Expr) -> Expr | None:
    """`a (b c)` as `(a b) c`.

    Before:
        def @main(%a: Tensor[(2, N, 4), float32], %b: Tensor[(4, K), float32],
                  %c: Tensor[(2, K, 2), float32]) {
          MatMul(%a, MatMul(%b, %c))
        }
    After:
        def @main(%a: Tensor[(2, N, 4), float32], %b: Tensor[(4, K), float32],
                  %c: Tensor[(2, K, 2), float32]) {
          MatMul(MatMul(%a, %b), %c)
        }
    """
    return call("MatMul", call("MatMul", a, b), c) if _are_matrices(a, b, c) else None


@substitution(_MATMUL(_MUL.commutative(A, _NUMBER), B))
def scale_left_operand_later(a: Expr, b: Expr, c: Expr) -> Expr | None:
    """`(a * s) b` as `(a b) * s` for a number s.

    Before:
        def @main(%a: Tensor[(N, 4), float32], %b: Tensor[(4, K), float32]) {
          MatMul(Mul(%a, meta[Constant][0]), %b)
        }
    After:
        def @main(%a: Tensor[(N, 4), float32], %b: Tensor[(4, K), float32]) {
          Mul(MatMul(%a, %b), meta[Constant][0])
        }
    Constants:
        0.5
    """
    return call("Mul", call("MatMul", a, b), c) if is_scalar_constant(c) else None


@substitution(_MATMUL(A, _MUL.commutative(B, _NUMBER)))
def scale_right_operand_later(a: Expr, b: Expr, c: Expr) -> Expr | None:
    """`a (b * s)` as `(a b) * s` for a number s.

    Before:
        def @main(%a: Tensor[(N, 4), float32], %b: Tensor[(4, K), float32]) {
          MatMul(%a, Mul(meta[Constant][0], %b))
        }
    After:
        def @main(%a: Tensor[(N, 4), float32], %b: Tensor[(4, K), float32]) {
          Mul(MatMul(%a, %b), meta[Constant][0])
        }
    Constants:
        0.5
    """
    return call("Mul", call("MatMul", a, b), c) if is_scalar_constant(c) else None


@substitution(_MUL.commutative(_MATMUL(A, B), _NUMBER))
def scale_left_operand_first(a: Expr, b: Expr, c: Expr) -> Expr | None:
    """`(a b) * s` as `(a * s) b` for a number s; a constant a is scaled at once.

    Before:
        def @main(%a: Tensor[(N, 4), float32], %b: Tensor[(4, K), float32]) {
          Mul(MatMul(%a, %b), meta[Constant][0])
        }
    After:
        def @main(%a: Tensor[(N, 4), float32], %b: Tensor[(4, K), float32]) {
          MatMul(Mul(%a, meta[Constant][0]), %b)
        }
    Constants:
        0.5
    """
    return call("MatMul", call("Mul", a, c), b) if is_scalar_constant(c) else None


@substitution(_MUL.commutative(_MATMUL(A, B), _NUMBER))
def scale_right_operand_first(a: Expr, b: Expr, c: Expr) -> Expr | None:
    """`(a b) * s` as `a (b * s)` for a number s; constant weights are scaled at once.

    Before:
        def @main(%a: Tensor[(N, 2), float32]) {
          Mul(MatMul(%a, meta[Constant][0]), meta[Constant][1])
        }
    After:
        def @main(%a: Tensor[(N, 2), float32]) { MatMul(%a, meta[Constant][2]) }
    Constants:
        [[2.0, 3.0], [4.0, 5.0]] 0.5 [[1.0, 1.5], [2.0, 2.5]]
    """
    return call("MatMul", a, call("Mul", b, c)) if is_scalar_constant(c) else None


@substitution(_MATMUL(_DIV(A, C), B))
def divide_rows_later(a: Expr, b: Expr, c: Expr) -> Expr | None:
    """`(a / r) b` as `(a b) / r` for one divisor a row, as in the softmax of an attention.

    Before:
        def @main(%a: Tensor[(N, 4), float32], %b: Tensor[(4, K), float32]) {
          %e = Exp(%a);
          MatMul(Div(%e, ReduceSum(%e, meta[Constant][0])), %b)
        }
    After:
        def @main(%a: Tensor[(N, 4), float32], %b: Tensor[(4, K), float32]) {
          %e = Exp(%a);
          Div(MatMul(%e, %b), ReduceSum(%e, meta[Constant][0]))
        }
    Constants:
        [-1]
    """
    is_per_row = rank_of(a) >= 2 and rank_of(b) >= 2 and size_along(c, -1) == 1 and rank_of(c) == rank_of(a)
    return call("Div", call("MatMul", a, b), c) if is_per_row else None


@substitution(_DIV(_MATMUL(A, B), C))
def divide_rows_first(a: Expr, b: Expr, c: Expr) -> Expr | None:
    """`(a b) / r` as `(a / r) b` for one divisor a row.

    Before:
        def @main(%a: Tensor[(N, 4), float32], %b: Tensor[(4, K), float32], %c: Tensor[(N, 1), float32]) {
          Div(MatMul(%a, %b), Exp(%c))
        }
    After:
        def @main(%a: Tensor[(N, 4), float32], %b: Tensor[(4, K), float32], %c: Tensor[(N, 1), float32]) {
          MatMul(Div(%a, Exp(%c)), %b)
        }
    """
    is_per_row = rank_of(a) >= 2 and rank_of(b) >= 2 and size_along(c, -1) == 1 and rank_of(c) == rank_of(a)
    return call("MatMul", call("Div", a, c), b) if is_per_row else None
