"""Transposed matrix products."""

from __future__ import annotations

from intarsia.ir import Call, Expr
from intarsia.ir.pattern import is_op
from intarsia.op import call
from intarsia.tune.substitution.building import permutation, rank_of, swap_of, swapped
from intarsia.tune.substitution.rule import A, B, substitution

_MATMUL, _TRANSPOSE = is_op("MatMul"), is_op("Transpose")


def _swaps(transpose: Call) -> bool:
    rank = rank_of(transpose)
    return rank >= 2 and permutation(transpose) == swap_of(rank)


@substitution(_TRANSPOSE(_MATMUL(A, B)))
def transpose_operands(root: Call, a: Expr, b: Expr) -> Expr | None:
    """The transpose of `a b` as the product of the transposes of b and a.

    Before:
        def @main(%a: Tensor[(N, 4), float32], %b: Tensor[(4, K), float32]) {
          Transpose(MatMul(%a, %b), perm=[1, 0])
        }
    After:
        def @main(%a: Tensor[(N, 4), float32], %b: Tensor[(4, K), float32]) {
          MatMul(Transpose(%b, perm=[1, 0]), Transpose(%a, perm=[1, 0]))
        }
    """
    if not _swaps(root) or min(rank_of(a), rank_of(b)) < 2:
        return None
    return call("MatMul", swapped(b), swapped(a))


@substitution(_MATMUL(_TRANSPOSE(A).named("left"), _TRANSPOSE(B).named("right")))
def transpose_product(a: Expr, b: Expr, left: Call, right: Call) -> Expr | None:
    """The product of two transposes as the transpose of a product.

    Before:
        def @main(%a: Tensor[(4, N), float32], %b: Tensor[(K, 4), float32]) {
          MatMul(Transpose(%a, perm=[1, 0]), Transpose(%b, perm=[1, 0]))
        }
    After:
        def @main(%a: Tensor[(4, N), float32], %b: Tensor[(K, 4), float32]) {
          Transpose(MatMul(%b, %a), perm=[1, 0])
        }
    """
    return swapped(call("MatMul", b, a)) if _swaps(left) and _swaps(right) else None
