"""Pooling, before and behind what commutes with it."""

from __future__ import annotations

from intarsia.ir import Call, Expr
from intarsia.ir.pattern import is_op
from intarsia.op import call
from intarsia.passes.rules.tensor_facts import has_same_shape, ints_attr, operator_name
from intarsia.tune.substitution.building import (
    argument_calls,
    axis_of,
    called,
    concatenated,
    ints,
    is_float,
    rank_of,
)
from intarsia.tune.substitution.convolution import Convolution
from intarsia.tune.substitution.rule import A, B, substitution

_MAX, _AVERAGE = is_op("MaxPool"), is_op("AveragePool")
_GROWING = ("Relu", "Sigmoid", "Tanh")
"""Monotone operators: they commute with the maximum."""


@substitution(is_op(*_GROWING)(_MAX(A).named("b")))
def activation_before_max_pooling(root: Call, a: Expr, b: Call) -> Expr:
    """An activation that never falls, of a maximum, as the maximum of activations.

    Before:
        def @main(%a: Tensor[(N, 1, 4, 4), float32]) { Relu(MaxPool(%a, kernel_shape=[2, 2])) }
    After:
        def @main(%a: Tensor[(N, 1, 4, 4), float32]) { MaxPool(Relu(%a), kernel_shape=[2, 2]) }
    """
    return called("MaxPool", b.attrs, call(operator_name(root), a))


@substitution(_MAX(is_op(*_GROWING)(A).named("b")))
def activation_behind_max_pooling(root: Call, a: Expr, b: Call) -> Expr | None:
    """The maximum of activations that never fall as the activation of the maximum.

    Before:
        def @main(%a: Tensor[(N, 1, 4, 4), float32]) { MaxPool(Relu(%a), kernel_shape=[2, 2]) }
    After:
        def @main(%a: Tensor[(N, 1, 4, 4), float32]) { Relu(MaxPool(%a, kernel_shape=[2, 2])) }
    """
    return call(operator_name(b), called("MaxPool", root.attrs, a)) if is_float(root) else None


def _pools_nothing_but_values(pool: Call) -> bool:
    """Whether each result is the same weighted sum of values: no pads that are left out of the average."""
    has_pads = any(ints_attr(pool.attrs, "pads") or ()) or pool.attrs.get("auto_pad", "NOTSET") != "NOTSET"
    return not has_pads and not pool.attrs.get("ceil_mode", 0)


@substitution(_AVERAGE(is_op("Add")(A, B)))
def average_of_sum(root: Call, a: Expr, b: Expr) -> Expr | None:
    """The average of a sum as the sum of averages.

    Before:
        def @main(%a: Tensor[(N, 1, 4, 4), float32], %b: Tensor[(N, 1, 4, 4), float32]) {
          AveragePool(Add(%a, %b), kernel_shape=[2, 2], pads=[1, 1, 0, 0])
        }
    After:
        def @main(%a: Tensor[(N, 1, 4, 4), float32], %b: Tensor[(N, 1, 4, 4), float32]) {
          Add(AveragePool(%a, kernel_shape=[2, 2], pads=[1, 1, 0, 0]),
              AveragePool(%b, kernel_shape=[2, 2], pads=[1, 1, 0, 0]))
        }
    """
    if not has_same_shape(a, b):
        return None
    return call("Add", called("AveragePool", root.attrs, a), called("AveragePool", root.attrs, b))


@substitution(is_op("Add")(_AVERAGE(A), _AVERAGE(B)))
def sum_of_averages(root: Call, a: Expr, b: Expr) -> Expr | None:
    """The sum of averages as the average of a sum.

    Before:
        def @main(%a: Tensor[(N, 1, 4, 4), float32], %b: Tensor[(N, 1, 4, 4), float32]) {
          Add(AveragePool(%a, kernel_shape=[2, 2]), AveragePool(%b, kernel_shape=[2, 2]))
        }
    After:
        def @main(%a: Tensor[(N, 1, 4, 4), float32], %b: Tensor[(N, 1, 4, 4), float32]) {
          AveragePool(Add(%a, %b), kernel_shape=[2, 2])
        }
    """
    calls = argument_calls("AveragePool", root)
    return (
        called("AveragePool", calls[0].attrs, call("Add", a, b)) if calls and has_same_shape(a, b) else None
    )


@substitution(is_op("Conv")(_AVERAGE(A).named("b"), ...))
def pointwise_before_average(root: Call, a: Expr, b: Call) -> Expr | None:
    """A convolution with a kernel of one element, behind an average, as the average of a convolution.

    Before:
        def @main(%a: Tensor[(N, 1, 4, 4), float32], %b: Tensor[(2, 1, 1, 1), float32]) {
          Conv(AveragePool(%a, kernel_shape=[2, 2]), %b)
        }
    After:
        def @main(%a: Tensor[(N, 1, 4, 4), float32], %b: Tensor[(2, 1, 1, 1), float32]) {
          AveragePool(Conv(%a, %b), kernel_shape=[2, 2])
        }
    """
    convolution = Convolution.of(root)
    if convolution is None or not convolution.is_pointwise or not _pools_nothing_but_values(b):
        return None
    return called("AveragePool", b.attrs, convolution.rebuilt(a, bias=convolution.bias))


@substitution(_AVERAGE(is_op("Conv")(A, ...).named("b")))
def pointwise_behind_average(root: Call, a: Expr, b: Call) -> Expr | None:
    """The average of a convolution with a kernel of one element as the convolution of an average.

    Before:
        def @main(%a: Tensor[(N, 1, 4, 4), float32], %b: Tensor[(2, 1, 1, 1), float32]) {
          AveragePool(Conv(%a, %b), kernel_shape=[2, 2])
        }
    After:
        def @main(%a: Tensor[(N, 1, 4, 4), float32], %b: Tensor[(2, 1, 1, 1), float32]) {
          Conv(AveragePool(%a, kernel_shape=[2, 2]), %b)
        }
    """
    convolution = Convolution.of(b)
    if convolution is None or not convolution.is_pointwise or not _pools_nothing_but_values(root):
        return None
    return convolution.rebuilt(called("AveragePool", root.attrs, a), bias=convolution.bias)


@substitution(is_op("Concat")(...))
def pool_concat(root: Call) -> Expr | None:
    """Pooled tensors, concatenated along channels, as the pooled concatenation.

    Before:
        def @main(%a: Tensor[(N, 1, 4, 4), float32], %b: Tensor[(N, 2, 4, 4), float32]) {
          Concat(MaxPool(%a, kernel_shape=[2, 2]), MaxPool(%b, kernel_shape=[2, 2]), axis=1)
        }
    After:
        def @main(%a: Tensor[(N, 1, 4, 4), float32], %b: Tensor[(N, 2, 4, 4), float32]) {
          MaxPool(Concat(%a, %b, axis=1), kernel_shape=[2, 2])
        }
    """
    calls = argument_calls("MaxPool", root) or argument_calls("AveragePool", root)
    if len(calls) < 2 or axis_of(root, rank_of(root)) != 1 or "outputs" in calls[0].attrs:
        return None
    inner = concatenated([argument.args[0] for argument in calls], 1)
    return called(operator_name(calls[0]), calls[0].attrs, inner)


@substitution(is_op("MaxPool", "AveragePool")(is_op("Concat")(...).named("b")))
def concat_pools(root: Call, b: Call) -> Expr | None:
    """A pooled concatenation along channels as the concatenation of pooled tensors.

    Before:
        def @main(%a: Tensor[(N, 1, 4, 4), float32], %b: Tensor[(N, 2, 4, 4), float32]) {
          MaxPool(Concat(%a, %b, axis=1), kernel_shape=[2, 2])
        }
    After:
        def @main(%a: Tensor[(N, 1, 4, 4), float32], %b: Tensor[(N, 2, 4, 4), float32]) {
          Concat(MaxPool(%a, kernel_shape=[2, 2]), MaxPool(%b, kernel_shape=[2, 2]), axis=1)
        }
    """
    if axis_of(b, rank_of(b)) != 1 or "outputs" in root.attrs:
        return None
    return concatenated([called(operator_name(root), root.attrs, each) for each in b.args], 1)


@substitution(_MAX(_MAX(A).named("b")))
def merge_max_pooling(root: Call, a: Expr, b: Call) -> Expr | None:
    """Two maxima of windows that move by one step, without pads, as one of larger windows.

    Before:
        def @main(%a: Tensor[(N, 1, 5, 5), float32]) {
          MaxPool(MaxPool(%a, kernel_shape=[2, 3]), kernel_shape=[2, 2])
        }
    After:
        def @main(%a: Tensor[(N, 1, 5, 5), float32]) { MaxPool(%a, kernel_shape=[3, 4]) }
    """
    outer, inner = (ints_attr(pool.attrs, "kernel_shape") for pool in (root, b))
    if outer is None or inner is None:
        return None
    for pool in (root, b):
        steps = (*(ints_attr(pool.attrs, "strides") or ()), *(ints_attr(pool.attrs, "dilations") or ()))
        if any(step != 1 for step in steps) or not _pools_nothing_but_values(pool) or "outputs" in pool.attrs:
            return None
    kernel = tuple(one + other - 1 for one, other in zip(outer, inner, strict=True))
    return call("MaxPool", a, kernel_shape=kernel)


@substitution(is_op("GlobalAveragePool")(A))
def global_average_as_mean(a: Expr) -> Expr | None:
    """The average of each channel as a mean over the spatial axes.

    Before:
        def @main(%a: Tensor[(N, 2, 3, 3), float32]) { GlobalAveragePool(%a) }
    After:
        def @main(%a: Tensor[(N, 2, 3, 3), float32]) { ReduceMean(%a, meta[Constant][0], keepdims=1) }
    Constants:
        [2, 3]
    """
    rank = rank_of(a)
    return call("ReduceMean", a, ints(*range(2, rank)), keepdims=1) if rank > 2 else None
