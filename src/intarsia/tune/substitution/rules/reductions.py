"""Sums, means and maxima along axes, before and behind what commutes with them."""

from __future__ import annotations

import numpy as np

from intarsia.ir import Call, Expr
from intarsia.ir.pattern import is_constant, is_op
from intarsia.op import call
from intarsia.passes.rules.tensor_facts import constant_ints, has_same_shape, int_attr, operator_name
from intarsia.tune.substitution.building import (
    called,
    ints,
    is_float,
    is_scalar_constant,
    like,
    permutation,
    rank_of,
    shape_sizes,
    size_along,
)
from intarsia.tune.substitution.rule import A, B, substitution

_AXES, _NUMBER = is_constant().named("axes"), is_constant().named("c")
_SUM, _MEAN, _LINEAR = is_op("ReduceSum"), is_op("ReduceMean"), is_op("ReduceSum", "ReduceMean")
_ANY = is_op("ReduceSum", "ReduceMean", "ReduceMax", "ReduceMin", "ReduceProd", "ReduceL1", "ReduceL2")


def _axes(reduction: Call, axes: Expr) -> tuple[int, ...]:
    """The axes, counted from the front; () where that is not known, or all are meant."""
    counted, rank = constant_ints(axes), rank_of(reduction.args[0])
    if counted is None or rank < 0:
        return ()
    return tuple(axis + rank if axis < 0 else axis for axis in counted)


@substitution(_LINEAR(is_op("Add")(A, B), _AXES))
def reduce_sum_apart(root: Call, a: Expr, b: Expr, axes: Expr) -> Expr | None:
    """A sum or mean of `a + b` as that of a plus that of b.

    Before:
        def @main(%a: Tensor[(N, 4), float32], %b: Tensor[(N, 4), float32]) {
          ReduceMean(Add(%a, %b), meta[Constant][0])
        }
    After:
        def @main(%a: Tensor[(N, 4), float32], %b: Tensor[(N, 4), float32]) {
          Add(ReduceMean(%a, meta[Constant][0]), ReduceMean(%b, meta[Constant][0]))
        }
    Constants:
        [1]
    """
    if not has_same_shape(a, b) or not is_float(root):
        return None
    left, right = (called(operator_name(root), root.attrs, each, axes) for each in (a, b))
    return call("Add", left, right)


@substitution(
    is_op("Add")(_LINEAR(A, _AXES).named("left"), _LINEAR(B, is_constant().named("c")).named("right"))
)
def reduce_sum_together(
    root: Call, a: Expr, b: Expr, axes: Expr, c: Expr, left: Call, right: Call
) -> Expr | None:
    """The sum or mean of a plus that of b as that of `a + b`.

    Before:
        def @main(%a: Tensor[(N, 4), float32], %b: Tensor[(N, 4), float32]) {
          Add(ReduceMean(%a, meta[Constant][0]), ReduceMean(%b, meta[Constant][0]))
        }
    After:
        def @main(%a: Tensor[(N, 4), float32], %b: Tensor[(N, 4), float32]) {
          ReduceMean(Add(%a, %b), meta[Constant][0])
        }
    Constants:
        [1]
    """
    is_alike = operator_name(left) == operator_name(right) and left.attrs == right.attrs
    if not is_alike or not has_same_shape(a, b) or not _axes(left, axes) or not is_float(root):
        return None
    return (
        called(operator_name(left), left.attrs, call("Add", a, b), axes)
        if _axes(left, axes) == _axes(right, c)
        else None
    )


@substitution(_LINEAR(is_op("Mul").commutative(A, _NUMBER), _AXES))
def scale_behind_reduction(root: Call, a: Expr, c: Expr, axes: Expr) -> Expr | None:
    """A sum or mean of scaled values as the scaled sum or mean.

    Before:
        def @main(%a: Tensor[(N, 4), float32]) {
          ReduceSum(Mul(%a, meta[Constant][1]), meta[Constant][0])
        }
    After:
        def @main(%a: Tensor[(N, 4), float32]) {
          Mul(ReduceSum(%a, meta[Constant][0]), meta[Constant][1])
        }
    Constants:
        [1] 0.5
    """
    return call("Mul", called(operator_name(root), root.attrs, a, axes), c) if is_scalar_constant(c) else None


@substitution(is_op("Mul").commutative(_LINEAR(A, _AXES).named("b"), _NUMBER))
def scale_before_reduction(a: Expr, b: Call, c: Expr, axes: Expr) -> Expr | None:
    """A scaled sum or mean as that of scaled values.

    Before:
        def @main(%a: Tensor[(N, 4), float32]) {
          Mul(ReduceSum(%a, meta[Constant][0]), meta[Constant][1])
        }
    After:
        def @main(%a: Tensor[(N, 4), float32]) {
          ReduceSum(Mul(%a, meta[Constant][1]), meta[Constant][0])
        }
    Constants:
        [1] 0.5
    """
    return called(operator_name(b), b.attrs, call("Mul", a, c), axes) if is_scalar_constant(c) else None


@substitution(_MEAN(A, _AXES))
def mean_as_scaled_sum(root: Call, a: Expr, axes: Expr) -> Expr | None:
    """A mean over sizes that are known as a sum times a number.

    Before:
        def @main(%a: Tensor[(N, 4), float32]) { ReduceMean(%a, meta[Constant][0]) }
    After:
        def @main(%a: Tensor[(N, 4), float32]) {
          Mul(ReduceSum(%a, meta[Constant][0]), meta[Constant][1])
        }
    Constants:
        [1] 0.25
    """
    sizes = [size_along(a, axis) for axis in _axes(root, axes)]
    count = np.prod([size or 0 for size in sizes])
    if not sizes or not count or not is_float(root):
        return None
    return call("Mul", called("ReduceSum", root.attrs, a, axes), like(a, 1 / count))


@substitution(_SUM(_SUM(A, _AXES).named("b"), is_constant().named("c")))
def merge_sums_along_axes(root: Call, a: Expr, b: Call, axes: Expr, c: Expr) -> Expr | None:
    """A sum of a sum, both keeping their axes, as one sum.

    Before:
        def @main(%a: Tensor[(N, 4, 5), float32]) {
          ReduceSum(ReduceSum(%a, meta[Constant][0]), meta[Constant][1])
        }
    After:
        def @main(%a: Tensor[(N, 4, 5), float32]) { ReduceSum(%a, meta[Constant][2]) }
    Constants:
        [1] [2] [1, 2]
    """
    first, second = _axes(b, axes), _axes(root, c)
    keeps = int_attr(root.attrs, "keepdims", 1) and int_attr(b.attrs, "keepdims", 1)
    if not keeps or not first or not second or set(first) & set(second):
        return None
    return call("ReduceSum", a, ints(*sorted((*first, *second))))


@substitution(_SUM(A, _AXES))
def sum_as_product(root: Call, a: Expr, axes: Expr) -> Expr | None:
    """A sum along the last axis as a product with ones, which the fastest kernels compute.

    Before:
        def @main(%a: Tensor[(N, 2), float32]) { ReduceSum(%a, meta[Constant][0]) }
    After:
        def @main(%a: Tensor[(N, 2), float32]) { MatMul(%a, meta[Constant][1]) }
    Constants:
        [1] [[1.0], [1.0]]
    """
    rank, size = rank_of(a), size_along(a, -1)
    if not size or rank < 2 or _axes(root, axes) != (rank - 1,) or not is_float(a):
        return None
    product = call("MatMul", a, like(a, np.ones((size, 1))))
    return product if int_attr(root.attrs, "keepdims", 1) else call("Squeeze", product, ints(rank - 1))


@substitution(is_op("ReduceMax", "ReduceMin")(is_op("Relu")(A), _AXES))
def relu_behind_extremum(root: Call, a: Expr, axes: Expr) -> Expr | None:
    """The largest or smallest of rectified values as the rectified one.

    Before:
        def @main(%a: Tensor[(N, 4), float32]) { ReduceMax(Relu(%a), meta[Constant][0]) }
    After:
        def @main(%a: Tensor[(N, 4), float32]) { Relu(ReduceMax(%a, meta[Constant][0])) }
    Constants:
        [1]
    """
    sizes = [size_along(a, axis) for axis in _axes(root, axes)]
    if not sizes or not all(sizes):  # the extremum of nothing is infinite
        return None
    return call("Relu", called(operator_name(root), root.attrs, a, axes))


@substitution(_ANY(is_op("Transpose")(A).named("b"), _AXES))
def reduce_before_transpose(root: Call, a: Expr, b: Call, axes: Expr) -> Expr | None:
    """A reduction of a transpose, keeping its axes, as the transpose of a reduction.

    Before:
        def @main(%a: Tensor[(N, 4, 5), float32]) {
          ReduceMax(Transpose(%a, perm=[2, 0, 1]), meta[Constant][0])
        }
    After:
        def @main(%a: Tensor[(N, 4, 5), float32]) {
          Transpose(ReduceMax(%a, meta[Constant][1]), perm=[2, 0, 1])
        }
    Constants:
        [2] [1]
    """
    order, reduced = permutation(b), _axes(root, axes)
    if order is None or not reduced or not int_attr(root.attrs, "keepdims", 1):
        return None
    moved = ints(*sorted(order[axis] for axis in reduced))
    return call("Transpose", called(operator_name(root), root.attrs, a, moved), perm=order)


@substitution(is_op("Reshape")(_SUM(A, _AXES).named("b"), is_constant()))
def drop_summed_axes(root: Call, a: Expr, b: Call, axes: Expr) -> Expr | None:
    """A sum that keeps its axes, reshaped so that they go, as a sum that does not keep them.

    Before:
        def @main(%a: Tensor[(3, 4), float32]) {
          Reshape(ReduceSum(%a, meta[Constant][0]), meta[Constant][1])
        }
    After:
        def @main(%a: Tensor[(3, 4), float32]) { ReduceSum(%a, meta[Constant][0], keepdims=0) }
    Constants:
        [1] [3]
    """
    shape, reduced = shape_sizes(a), _axes(b, axes)
    if shape is None or not reduced:
        return None
    kept = tuple(size for axis, size in enumerate(shape) if axis not in reduced)
    return call("ReduceSum", a, axes, keepdims=0) if kept == shape_sizes(root) else None
