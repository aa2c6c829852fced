"""Parallel convolutions as one, and one as several."""

from __future__ import annotations

from intarsia.ir import Call, Expr, TupleGetItem
from intarsia.ir.pattern import is_constant, is_op, is_tuple_get
from intarsia.op import call, tuple_get
from intarsia.passes.rules.tensor_facts import constant_ints, has_same_shape
from intarsia.tune.substitution.building import (
    axis_of,
    concatenated,
    ints,
    part,
    rank_of,
    same_dims,
    size_along,
)
from intarsia.tune.substitution.convolution import Convolution, added_bias, joined_bias
from intarsia.tune.substitution.rule import A, B, C, substitution

_CONV, _CONCAT, _ADD = is_op("Conv"), is_op("Concat"), is_op("Add")


def _alike(one: Expr, other: Expr, *, grouped: bool = False) -> tuple[Convolution, Convolution] | None:
    """Two convolutions of the same geometry, without groups unless these are allowed."""
    first, second = Convolution.of(one), Convolution.of(other)
    if first is None or second is None or first.geometry != second.geometry:
        return None
    return (first, second) if grouped or first.group == 1 else None


def _below(first: Convolution, second: Convolution) -> Expr | None:
    """Return one convolution that computes the channels of both; they share their input."""
    if first.inputs != second.inputs:
        return None
    weight = concatenated((first.weight, second.weight), 0)
    return first.rebuilt(weight=weight, bias=joined_bias(first, second))


@substitution(_CONCAT(_CONV(A, ...).named("c"), _CONV(A, ...).named("d")))
def merge_convolutions(root: Call, c: Expr, d: Expr) -> Expr | None:
    """The channels of two convolutions of one value, concatenated, as one convolution.

    Before:
        def @main(%a: Tensor[(N, 1, 3, 3), float32],
                  %b: Tensor[(1, 1, 2, 2), float32], %c: Tensor[(2, 1, 2, 2), float32]) {
          Concat(Conv(%a, %b), Conv(%a, %c), axis=1)
        }
    After:
        def @main(%a: Tensor[(N, 1, 3, 3), float32],
                  %b: Tensor[(1, 1, 2, 2), float32], %c: Tensor[(2, 1, 2, 2), float32]) {
          Conv(%a, Concat(%b, %c, axis=0))
        }
    """
    pair = _alike(c, d)
    return _below(*pair) if pair and axis_of(root, rank_of(root)) == 1 else None


@substitution(_CONV(A, ...), _CONV(A, ...))
def merge_parallel_convolutions(first: Call, second: Call) -> tuple[Expr, ...] | None:
    """Two convolutions of one value as the two parts of one convolution (TASO, figure 10).

    Before:
        def @main(%a: Tensor[(N, 1, 3, 3), float32],
                  %b: Tensor[(1, 1, 2, 2), float32], %c: Tensor[(2, 1, 2, 2), float32]) {
          (Conv(%a, %b), Conv(%a, %c))
        }
    After:
        def @main(%a: Tensor[(N, 1, 3, 3), float32],
                  %b: Tensor[(1, 1, 2, 2), float32], %c: Tensor[(2, 1, 2, 2), float32]) {
          %s = Split(Conv(%a, Concat(%b, %c, axis=0)), meta[Constant][0], axis=1, outputs=2);
          (%s.0, %s.1)
        }
    Constants:
        [1, 2]
    """
    pair = _alike(first, second)
    merged = _below(*pair) if pair else None
    if merged is None or pair is None:
        return None
    split = call("Split", merged, ints(pair[0].outputs, pair[1].outputs), axis=1, outputs=2)
    return tuple_get(split, 0), tuple_get(split, 1)


@substitution(
    is_tuple_get(is_op("Split")(_CONV(...).named("c"), is_constant().named("sizes")).named("split"))
)
def field_of_convolution(root: TupleGetItem, c: Expr, sizes: Expr, split: Call) -> Expr | None:
    """Some channels of a convolution as a convolution with their weights.

    Before:
        def @main(%a: Tensor[(N, 1, 3, 3), float32], %b: Tensor[(3, 1, 2, 2), float32]) {
          Split(Conv(%a, %b), meta[Constant][0], axis=1, outputs=2).1
        }
    After:
        def @main(%a: Tensor[(N, 1, 3, 3), float32], %b: Tensor[(3, 1, 2, 2), float32]) {
          Conv(%a, Slice(%b, meta[Constant][1], meta[Constant][2], meta[Constant][3]))
        }
    Constants:
        [1, 2] [1] [3] [0]
    """
    convolution, counts = Convolution.of(c), constant_ints(sizes)
    if convolution is None or counts is None or convolution.group != 1 or axis_of(split, rank_of(c)) != 1:
        return None
    start, count = sum(counts[: root.index]), counts[root.index]
    bias = None if convolution.bias is None else part(convolution.bias, 0, start, count)
    return convolution.rebuilt(weight=part(convolution.weight, 0, start, count), bias=bias)


@substitution(_ADD(_CONV(A, ...).named("c"), _CONV(A, ...).named("d")))
def add_kernels(c: Expr, d: Expr) -> Expr | None:
    """The sum of two convolutions of one value as a convolution with the sum of their weights.

    Before:
        def @main(%a: Tensor[(N, 1, 3, 3), float32],
                  %b: Tensor[(2, 1, 2, 2), float32], %c: Tensor[(2, 1, 2, 2), float32]) {
          Add(Conv(%a, %b), Conv(%a, %c))
        }
    After:
        def @main(%a: Tensor[(N, 1, 3, 3), float32],
                  %b: Tensor[(2, 1, 2, 2), float32], %c: Tensor[(2, 1, 2, 2), float32]) {
          Conv(%a, Add(%b, %c))
        }
    """
    pair = _alike(c, d, grouped=True)
    if pair is None or not has_same_shape(pair[0].weight, pair[1].weight):
        return None
    return pair[0].rebuilt(weight=call("Add", pair[0].weight, pair[1].weight), bias=added_bias(*pair))


@substitution(_ADD(_CONV(A, ...).named("c"), _CONV(B, ...).named("d")))
def sum_of_convolutions_as_one(a: Expr, b: Expr, c: Expr, d: Expr) -> Expr | None:
    """The sum of two convolutions as one convolution of the two values' channels.

    Before:
        def @main(%a: Tensor[(N, 1, 3, 3), float32], %b: Tensor[(N, 2, 3, 3), float32],
                  %v: Tensor[(4, 1, 2, 2), float32], %w: Tensor[(4, 2, 2, 2), float32]) {
          Add(Conv(%a, %v), Conv(%b, %w))
        }
    After:
        def @main(%a: Tensor[(N, 1, 3, 3), float32], %b: Tensor[(N, 2, 3, 3), float32],
                  %v: Tensor[(4, 1, 2, 2), float32], %w: Tensor[(4, 2, 2, 2), float32]) {
          Conv(Concat(%a, %b, axis=1), Concat(%v, %w, axis=1))
        }
    """
    pair = _alike(c, d)
    if pair is None or not same_dims(a, b, but=1) or pair[0].outputs != pair[1].outputs:
        return None
    weight = concatenated((pair[0].weight, pair[1].weight), 1)
    return pair[0].rebuilt(concatenated((a, b), 1), weight, added_bias(*pair))


@substitution(_CONV(_CONCAT(A, B).named("c"), ...))
def convolution_of_concat_as_sum(root: Call, a: Expr, b: Expr, c: Expr) -> Expr | None:
    """A convolution of concatenated channels as the sum of a convolution of each.

    Before:
        def @main(%a: Tensor[(N, 1, 3, 3), float32], %b: Tensor[(N, 2, 3, 3), float32]) {
          Conv(Concat(%a, %b, axis=1), meta[Constant][0])
        }
    After:
        def @main(%a: Tensor[(N, 1, 3, 3), float32], %b: Tensor[(N, 2, 3, 3), float32]) {
          Add(Conv(%a, meta[Constant][1]), Conv(%b, meta[Constant][2]))
        }
    Constants:
        [[[[1.0]], [[2.0]], [[3.0]]]] [[[[1.0]]]] [[[[2.0]], [[3.0]]]]
    """
    convolution, first, second = Convolution.of(root), size_along(a, 1), size_along(b, 1)
    if (
        convolution is None
        or convolution.group != 1
        or first is None
        or second is None
        or axis_of(c, rank_of(c)) != 1
    ):
        return None
    left = convolution.rebuilt(a, part(convolution.weight, 1, 0, first), convolution.bias)
    return call("Add", left, convolution.rebuilt(b, part(convolution.weight, 1, first, second)))


@substitution(_ADD(_CONV(A, C), _CONV(B, C)))
def add_images(root: Call, a: Expr, b: Expr) -> Expr | None:
    """The sum of convolutions of two values with the same weights as one of the values' sum.

    Before:
        def @main(%a: Tensor[(N, 1, 3, 3), float32], %b: Tensor[(N, 1, 3, 3), float32],
                  %c: Tensor[(2, 1, 2, 2), float32]) {
          Add(Conv(%a, %c), Conv(%b, %c))
        }
    After:
        def @main(%a: Tensor[(N, 1, 3, 3), float32], %b: Tensor[(N, 1, 3, 3), float32],
                  %c: Tensor[(2, 1, 2, 2), float32]) {
          Conv(Add(%a, %b), %c)
        }
    """
    pair = _alike(*root.args, grouped=True)
    return pair[0].rebuilt(call("Add", a, b)) if pair and has_same_shape(a, b) else None


@substitution(_CONV(_ADD(A, B), C, ...))
def convolution_of_sum(root: Call, a: Expr, b: Expr) -> Expr | None:
    """A convolution of a sum as the sum of two convolutions.

    Before:
        def @main(%a: Tensor[(N, 1, 3, 3), float32], %b: Tensor[(N, 1, 3, 3), float32],
                  %c: Tensor[(2, 1, 2, 2), float32]) {
          Conv(Add(%a, %b), %c)
        }
    After:
        def @main(%a: Tensor[(N, 1, 3, 3), float32], %b: Tensor[(N, 1, 3, 3), float32],
                  %c: Tensor[(2, 1, 2, 2), float32]) {
          Add(Conv(%a, %c), Conv(%b, %c))
        }
    """
    convolution = Convolution.of(root)
    if convolution is None or not has_same_shape(a, b):
        return None
    return call("Add", convolution.rebuilt(a, bias=convolution.bias), convolution.rebuilt(b))
