"""Parallel matrix products as one, and one as several."""

from __future__ import annotations

from collections.abc import Sequence

from intarsia.ir import Call, Expr, TupleGetItem
from intarsia.ir.pattern import is_constant, is_op, is_tuple_get
from intarsia.op import call, tuple_get
from intarsia.passes.rules.tensor_facts import constant_ints
from intarsia.tune.substitution.building import (
    axis_of,
    concatenated,
    ints,
    part,
    rank_of,
    same_dims,
    size_along,
)
from intarsia.tune.substitution.rule import A, B, C, substitution

_MATMUL, _CONCAT = is_op("MatMul"), is_op("Concat")


def _beside(tensors: Sequence[Expr], from_the_end: int) -> Expr | None:
    """Stacks of matrices with equal axes but for one, concatenated along that."""
    rank = rank_of(tensors[0])
    if rank < 2 or not all(same_dims(tensors[0], each, but=rank - from_the_end) for each in tensors):
        return None
    return concatenated(tensors, rank - from_the_end)


@substitution(_CONCAT(_MATMUL(A, B), _MATMUL(A, C)))
def merge_products_beside(root: Call, a: Expr, b: Expr, c: Expr) -> Expr | None:
    """`a b` beside `a c` as a times b beside c.

    Before:
        def @main(%a: Tensor[(N, 4), float32], %b: Tensor[(4, 2), float32], %c: Tensor[(4, 3), float32]) {
          Concat(MatMul(%a, %b), MatMul(%a, %c), axis=-1)
        }
    After:
        def @main(%a: Tensor[(N, 4), float32], %b: Tensor[(4, 2), float32], %c: Tensor[(4, 3), float32]) {
          MatMul(%a, Concat(%b, %c, axis=1))
        }
    """
    rank, right = rank_of(root), _beside((b, c), 1)
    return call("MatMul", a, right) if right and axis_of(root, rank) == rank - 1 else None


@substitution(_MATMUL(A, _CONCAT(B, C).named("right")))
def part_products_beside(root: Call, a: Expr, b: Expr, c: Expr, right: Call) -> Expr | None:
    """A times b beside c as `a b` beside `a c`.

    Before:
        def @main(%a: Tensor[(N, 4), float32], %b: Tensor[(4, 2), float32], %c: Tensor[(4, 3), float32]) {
          MatMul(%a, Concat(%b, %c, axis=1))
        }
    After:
        def @main(%a: Tensor[(N, 4), float32], %b: Tensor[(4, 2), float32], %c: Tensor[(4, 3), float32]) {
          Concat(MatMul(%a, %b), MatMul(%a, %c), axis=1)
        }
    """
    rank = rank_of(right)
    if rank < 2 or axis_of(right, rank) != rank - 1:
        return None
    return concatenated((call("MatMul", a, b), call("MatMul", a, c)), rank_of(root) - 1)


@substitution(_CONCAT(_MATMUL(A, C), _MATMUL(B, C)))
def merge_products_below(root: Call, a: Expr, b: Expr, c: Expr) -> Expr | None:
    """`a c` above `b c` as a above b, times c.

    Before:
        def @main(%a: Tensor[(2, 4), float32], %b: Tensor[(3, 4), float32], %c: Tensor[(4, K), float32]) {
          Concat(MatMul(%a, %c), MatMul(%b, %c), axis=0)
        }
    After:
        def @main(%a: Tensor[(2, 4), float32], %b: Tensor[(3, 4), float32], %c: Tensor[(4, K), float32]) {
          MatMul(Concat(%a, %b, axis=0), %c)
        }
    """
    rank, left = rank_of(root), _beside((a, b), 2)
    return call("MatMul", left, c) if left and axis_of(root, rank) == rank - 2 else None


@substitution(_MATMUL(_CONCAT(A, B).named("left"), C))
def part_products_below(root: Call, a: Expr, b: Expr, c: Expr, left: Call) -> Expr | None:
    """A above b, times c, as `a c` above `b c`.

    Before:
        def @main(%a: Tensor[(2, 4), float32], %b: Tensor[(3, 4), float32], %c: Tensor[(4, K), float32]) {
          MatMul(Concat(%a, %b, axis=0), %c)
        }
    After:
        def @main(%a: Tensor[(2, 4), float32], %b: Tensor[(3, 4), float32], %c: Tensor[(4, K), float32]) {
          Concat(MatMul(%a, %c), MatMul(%b, %c), axis=0)
        }
    """
    rank = rank_of(left)
    if rank < 2 or axis_of(left, rank) != rank - 2 or rank_of(c) < 2:
        return None
    return concatenated((call("MatMul", a, c), call("MatMul", b, c)), rank_of(root) - 2)


def _fields(merged: Expr, axis: int, sizes: Sequence[int]) -> tuple[TupleGetItem, ...]:
    split = call("Split", merged, ints(*sizes), axis=axis, outputs=len(sizes))
    return tuple(tuple_get(split, index) for index in range(len(sizes)))


@substitution(_MATMUL(A, B), _MATMUL(A, C))
def merge_parallel_products(first: Call, a: Expr, b: Expr, c: Expr) -> tuple[Expr, ...] | None:
    """`a b` and `a c` as the two parts of a times b beside c (TASO, figure 3).

    Before:
        def @main(%a: Tensor[(N, 4), float32], %b: Tensor[(4, 2), float32], %c: Tensor[(4, 3), float32]) {
          (MatMul(%a, %b), MatMul(%a, %c))
        }
    After:
        def @main(%a: Tensor[(N, 4), float32], %b: Tensor[(4, 2), float32], %c: Tensor[(4, 3), float32]) {
          %s = Split(MatMul(%a, Concat(%b, %c, axis=1)), meta[Constant][0], axis=1, outputs=2);
          (%s.0, %s.1)
        }
    Constants:
        [2, 3]
    """
    first_size, second_size, right = size_along(b, -1), size_along(c, -1), _beside((b, c), 1)
    if right is None or first_size is None or second_size is None:
        return None
    return _fields(call("MatMul", a, right), rank_of(first) - 1, (first_size, second_size))


@substitution(_MATMUL(A, C), _MATMUL(B, C))
def merge_products_of_one_operand(first: Call, a: Expr, b: Expr, c: Expr) -> tuple[Expr, ...] | None:
    """`a c` and `b c` as the two parts of a above b, times c.

    Before:
        def @main(%a: Tensor[(2, 4), float32], %b: Tensor[(3, 4), float32], %c: Tensor[(4, K), float32]) {
          (MatMul(%a, %c), MatMul(%b, %c))
        }
    After:
        def @main(%a: Tensor[(2, 4), float32], %b: Tensor[(3, 4), float32], %c: Tensor[(4, K), float32]) {
          %s = Split(MatMul(Concat(%a, %b, axis=0), %c), meta[Constant][0], axis=0, outputs=2);
          (%s.0, %s.1)
        }
    Constants:
        [2, 3]
    """
    first_size, second_size, left = size_along(a, -2), size_along(b, -2), _beside((a, b), 2)
    if left is None or first_size is None or second_size is None or rank_of(c) < 2:
        return None
    return _fields(call("MatMul", left, c), rank_of(first) - 2, (first_size, second_size))


@substitution(is_tuple_get(is_op("Split")(_MATMUL(A, B), is_constant().named("sizes")).named("split")))
def field_of_product(root: TupleGetItem, a: Expr, b: Expr, sizes: Expr, split: Call) -> Expr | None:
    """One part of the columns of `a b` as a times these columns of b.

    Before:
        def @main(%a: Tensor[(N, 2), float32]) {
          Split(MatMul(%a, meta[Constant][0]), meta[Constant][1], axis=1, outputs=2).1
        }
    After:
        def @main(%a: Tensor[(N, 2), float32]) { MatMul(%a, meta[Constant][2]) }
    Constants:
        [[1.0, 2.0, 3.0], [4.0, 5.0, 6.0]] [1, 2] [[2.0, 3.0], [5.0, 6.0]]
    """
    counts, rank = constant_ints(sizes), rank_of(split.args[0])
    if counts is None or rank_of(b) < 2 or axis_of(split, rank) != rank - 1:
        return None
    columns = part(b, rank_of(b) - 1, sum(counts[: root.index]), counts[root.index])
    return call("MatMul", a, columns)
