"""Sums of matrix products."""

from __future__ import annotations

from intarsia.ir import Call, Expr
from intarsia.ir.pattern import is_op
from intarsia.op import call
from intarsia.passes.rules.tensor_facts import dims_of, has_same_shape
from intarsia.tune.substitution.building import (
    axis_of,
    concatenated,
    is_sure,
    rank_of,
    same_dims,
    size_along,
)
from intarsia.tune.substitution.rule import A, B, C, D, substitution

_MATMUL, _ADD = is_op("MatMul"), is_op("Add")


def _have_equal_batches(*exprs: Expr) -> bool:
    """Whether stacks of matrices have as many axes, and equal ones but for the last two."""
    batches = {dims[:-2] for expr in exprs if (dims := dims_of(expr)) is not None}
    return min(map(rank_of, exprs)) >= 2 and len(batches) == 1 and all(map(is_sure, next(iter(batches))))


@substitution(_ADD(_MATMUL(A, B), _MATMUL(A, C)))
def add_right_operands(a: Expr, b: Expr, c: Expr) -> Expr | None:
    """`a b + a c` as `a (b + c)`.

    Before:
        def @main(%a: Tensor[(N, 4), float32], %b: Tensor[(4, K), float32], %c: Tensor[(4, K), float32]) {
          Add(MatMul(%a, %b), MatMul(%a, %c))
        }
    After:
        def @main(%a: Tensor[(N, 4), float32], %b: Tensor[(4, K), float32], %c: Tensor[(4, K), float32]) {
          MatMul(%a, Add(%b, %c))
        }
    """
    return call("MatMul", a, call("Add", b, c)) if has_same_shape(b, c) else None


@substitution(_MATMUL(A, _ADD(B, C)))
def distribute_over_right_sum(a: Expr, b: Expr, c: Expr) -> Expr | None:
    """`a (b + c)` as `a b + a c`.

    Before:
        def @main(%a: Tensor[(N, 4), float32], %b: Tensor[(4, K), float32], %c: Tensor[(4, K), float32]) {
          MatMul(%a, Add(%b, %c))
        }
    After:
        def @main(%a: Tensor[(N, 4), float32], %b: Tensor[(4, K), float32], %c: Tensor[(4, K), float32]) {
          Add(MatMul(%a, %b), MatMul(%a, %c))
        }
    """
    return call("Add", call("MatMul", a, b), call("MatMul", a, c)) if has_same_shape(b, c) else None


@substitution(_ADD(_MATMUL(A, C), _MATMUL(B, C)))
def add_left_operands(a: Expr, b: Expr, c: Expr) -> Expr | None:
    """`a c + b c` as `(a + b) c`.

    Before:
        def @main(%a: Tensor[(N, 4), float32], %b: Tensor[(N, 4), float32], %c: Tensor[(4, K), float32]) {
          Add(MatMul(%a, %c), MatMul(%b, %c))
        }
    After:
        def @main(%a: Tensor[(N, 4), float32], %b: Tensor[(N, 4), float32], %c: Tensor[(4, K), float32]) {
          MatMul(Add(%a, %b), %c)
        }
    """
    return call("MatMul", call("Add", a, b), c) if has_same_shape(a, b) else None


@substitution(_MATMUL(_ADD(A, B), C))
def distribute_over_left_sum(a: Expr, b: Expr, c: Expr) -> Expr | None:
    """`(a + b) c` as `a c + b c`.

    Before:
        def @main(%a: Tensor[(N, 4), float32], %b: Tensor[(N, 4), float32], %c: Tensor[(4, K), float32]) {
          MatMul(Add(%a, %b), %c)
        }
    After:
        def @main(%a: Tensor[(N, 4), float32], %b: Tensor[(N, 4), float32], %c: Tensor[(4, K), float32]) {
          Add(MatMul(%a, %c), MatMul(%b, %c))
        }
    """
    return call("Add", call("MatMul", a, c), call("MatMul", b, c)) if has_same_shape(a, b) else None


@substitution(_ADD(_MATMUL(A, B), _MATMUL(C, D)))
def sum_of_products_as_one(a: Expr, b: Expr, c: Expr, d: Expr) -> Expr | None:
    """`a b + c d` as `[a c] [b; d]`: the operands beside and below each other (TASO, figure 2).

    Before:
        def @main(%a: Tensor[(N, 3), float32], %b: Tensor[(3, K), float32],
                  %c: Tensor[(N, 2), float32], %d: Tensor[(2, K), float32]) {
          Add(MatMul(%a, %b), MatMul(%c, %d))
        }
    After:
        def @main(%a: Tensor[(N, 3), float32], %b: Tensor[(3, K), float32],
                  %c: Tensor[(N, 2), float32], %d: Tensor[(2, K), float32]) {
          MatMul(Concat(%a, %c, axis=1), Concat(%b, %d, axis=0))
        }
    """
    if not _have_equal_batches(a, c) or not _have_equal_batches(b, d):
        return None
    left, right = rank_of(a), rank_of(b)
    if not same_dims(a, c, but=left - 1) or not same_dims(b, d, but=right - 2):
        return None
    return call("MatMul", concatenated((a, c), left - 1), concatenated((b, d), right - 2))


@substitution(_MATMUL(is_op("Concat")(A, C).named("left"), is_op("Concat")(B, D).named("right")))
def product_of_concats_as_sum(a: Expr, b: Expr, c: Expr, d: Expr, left: Call, right: Call) -> Expr | None:
    """`[a c] [b; d]` as `a b + c d`.

    Before:
        def @main(%a: Tensor[(N, 3), float32], %b: Tensor[(3, K), float32],
                  %c: Tensor[(N, 2), float32], %d: Tensor[(2, K), float32]) {
          MatMul(Concat(%a, %c, axis=-1), Concat(%b, %d, axis=0))
        }
    After:
        def @main(%a: Tensor[(N, 3), float32], %b: Tensor[(3, K), float32],
                  %c: Tensor[(N, 2), float32], %d: Tensor[(2, K), float32]) {
          Add(MatMul(%a, %b), MatMul(%c, %d))
        }
    """
    one, other = rank_of(left), rank_of(right)
    if min(one, other) < 2 or axis_of(left, one) != one - 1 or axis_of(right, other) != other - 2:
        return None
    if size_along(a, -1) is None or size_along(a, -1) != size_along(b, -2):
        return None
    return call("Add", call("MatMul", a, b), call("MatMul", c, d))
