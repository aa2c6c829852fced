"""Kernels of convolutions: larger, smaller, composed with what comes before or behind."""

from __future__ import annotations

import numpy as np

from intarsia.ir import Call, Expr
from intarsia.ir.pattern import is_constant, is_op, wildcard
from intarsia.op import call
from intarsia.passes.rules.tensor_facts import ints_attr
from intarsia.tune.substitution.building import (
    called,
    constant_of,
    is_scalar_constant,
    like,
    rank_of,
    size_along,
)
from intarsia.tune.substitution.convolution import Convolution
from intarsia.tune.substitution.rule import A, B, substitution

_CONV, _ADD, _MUL = is_op("Conv"), is_op("Add"), is_op("Mul")


@substitution(_CONV(A, is_constant().named("b"), ...))
def enlarge_kernel(root: Call, b: Expr) -> Expr | None:
    """A convolution with zeros around its kernel, so that it can be merged with one of that size (TASO).

    Before:
        def @main(%a: Tensor[(N, 1, 3, 3), float32]) { Conv(%a, meta[Constant][0]) }
    After:
        def @main(%a: Tensor[(N, 1, 3, 3), float32]) { Conv(%a, meta[Constant][1], pads=[1, 1, 1, 1]) }
    Constants:
        [[[[2.0]]]] [[[[0.0, 0.0, 0.0], [0.0, 2.0, 0.0], [0.0, 0.0, 0.0]]]]
    """
    convolution, weight = Convolution.of(root), constant_of(b)
    if convolution is None or weight is None or max(convolution.kernel, default=3) > 1:
        return None
    rank = len(convolution.kernel)
    kernel = np.zeros((*weight.shape[:2], *[size + 2 for size in convolution.kernel]), weight.dtype)
    inner = (slice(None), slice(None), *[slice(1, -1)] * rank)
    kernel[inner] = weight
    pads = tuple(
        pad + step
        for pad, step in zip(convolution.pads, (*convolution.dilations, *convolution.dilations), strict=True)
    )
    return convolution.rebuilt(
        weight=like(b, kernel), bias=convolution.bias, pads=pads, has_kernel_shape=False
    )


@substitution(_CONV(A, is_constant().named("b"), ...))
def shrink_kernel(root: Call, b: Expr) -> Expr | None:
    """A convolution without the zeros around its kernel.

    Before:
        def @main(%a: Tensor[(N, 1, 3, 3), float32]) { Conv(%a, meta[Constant][1], pads=[1, 1, 1, 1]) }
    After:
        def @main(%a: Tensor[(N, 1, 3, 3), float32]) { Conv(%a, meta[Constant][0], pads=[0, 0, 0, 0]) }
    Constants:
        [[[[2.0]]]] [[[[0.0, 0.0, 0.0], [0.0, 2.0, 0.0], [0.0, 0.0, 0.0]]]]
    """
    convolution, weight = Convolution.of(root), constant_of(b)
    if convolution is None or weight is None or min(convolution.kernel, default=0) < 3:
        return None
    rank = len(convolution.kernel)
    inner = (slice(None), slice(None), *[slice(1, -1)] * rank)
    borders = [np.moveaxis(weight, axis, 0)[[0, -1]] for axis in range(2, 2 + rank)]
    pads = tuple(
        pad - step
        for pad, step in zip(convolution.pads, (*convolution.dilations, *convolution.dilations), strict=True)
    )
    if any(border.any() for border in borders) or min(pads) < 0:
        return None
    return convolution.rebuilt(
        weight=like(b, weight[inner]), bias=convolution.bias, pads=pads, has_kernel_shape=False
    )


@substitution(_CONV(_CONV(...).named("c"), is_constant().named("b"), ...))
def pointwise_behind(root: Call, b: Expr, c: Expr) -> Expr | None:
    """A convolution with a kernel of one element behind another as one, with the product of the weights.

    Before:
        def @main(%a: Tensor[(N, 1, 3, 3), float32]) { Conv(Conv(%a, meta[Constant][0]), meta[Constant][1]) }
    After:
        def @main(%a: Tensor[(N, 1, 3, 3), float32]) { Conv(%a, meta[Constant][2]) }
    Constants:
        [[[[1.0, 2.0]]], [[[3.0, 4.0]]]] [[[[1.0]], [[2.0]]]] [[[[7.0, 10.0]]]]
    """
    outer, inner = Convolution.of(root), Convolution.of(c)
    if outer is None or inner is None or not outer.is_pointwise or inner.group != 1:
        return None
    mixing, weight = constant_of(b), constant_of(inner.weight)
    if mixing is None or weight is None:
        return None
    matrix = mixing.reshape(mixing.shape[:2]).astype(np.float64)
    kernel = np.tensordot(matrix, weight.astype(np.float64), 1)
    bias = outer.bias
    if inner.bias is not None:
        inner_bias = constant_of(inner.bias)
        if inner_bias is None:
            return None
        moved = like(root, matrix @ inner_bias.astype(np.float64))
        bias = moved if bias is None else call("Add", bias, moved)
    return inner.rebuilt(weight=like(b, kernel), bias=bias)


@substitution(_CONV(_CONV(...).named("c"), is_constant().named("b"), ...))
def pointwise_before(root: Call, b: Expr, c: Expr) -> Expr | None:
    """A convolution behind one with a kernel of one element and without bias as one.

    Before:
        def @main(%a: Tensor[(N, 1, 3, 3), float32]) { Conv(Conv(%a, meta[Constant][0]), meta[Constant][1]) }
    After:
        def @main(%a: Tensor[(N, 1, 3, 3), float32]) { Conv(%a, meta[Constant][2]) }
    Constants:
        [[[[2.0]]], [[[3.0]]]] [[[[1.0, 0.0]], [[0.0, 1.0]]]] [[[[2.0, 3.0]]]]
    """
    outer, inner = Convolution.of(root), Convolution.of(c)
    if outer is None or inner is None or not inner.is_pointwise or outer.group != 1 or inner.bias is not None:
        return None
    weight, mixing = constant_of(b), constant_of(inner.weight)
    if mixing is None or weight is None:
        return None
    matrix = mixing.reshape(mixing.shape[:2]).astype(np.float64)
    kernel = np.moveaxis(np.tensordot(weight.astype(np.float64), matrix, ((1,), (0,))), -1, 1)
    return outer.rebuilt(inner.x, like(b, kernel), outer.bias)


@substitution(_ADD.commutative(_CONV(A, is_constant().named("b"), ...).named("c"), A))
def identity_into_kernel(b: Expr, c: Expr) -> Expr | None:
    """A convolution plus its input as a convolution with one added in the middle of its kernel (RepVGG).

    Before:
        def @main(%a: Tensor[(N, 1, 3, 3), float32]) {
          Add(Conv(%a, meta[Constant][0], pads=[0, 1, 0, 1]), %a)
        }
    After:
        def @main(%a: Tensor[(N, 1, 3, 3), float32]) { Conv(%a, meta[Constant][1], pads=[0, 1, 0, 1]) }
    Constants:
        [[[[1.0, 2.0, 3.0]]]] [[[[1.0, 3.0, 3.0]]]]
    """
    convolution, weight = Convolution.of(c), constant_of(b)
    if (
        convolution is None
        or weight is None
        or convolution.group != 1
        or convolution.inputs != convolution.outputs
    ):
        return None
    middle = tuple((size - 1) // 2 for size in convolution.kernel)
    reach = tuple(at * step for at, step in zip(middle, convolution.dilations, strict=True))
    is_centred = all(size % 2 for size in convolution.kernel) and convolution.pads == (*reach, *reach)
    if not is_centred or set(convolution.strides) != {1}:
        return None
    kernel = weight.copy()
    for channel in range(convolution.outputs):
        kernel[(channel, channel, *middle)] += 1
    return convolution.rebuilt(weight=like(b, kernel), bias=convolution.bias)


@substitution(_MUL.commutative(_CONV(A, is_constant(), ...).named("c"), is_constant().named("b")))
def scale_into_kernel(b: Expr, c: Expr) -> Expr | None:
    """A convolution times a number, or one number a channel, as a convolution with scaled weights.

    Before:
        def @main(%a: Tensor[(N, 1, 3, 3), float32]) { Mul(Conv(%a, meta[Constant][0]), meta[Constant][1]) }
    After:
        def @main(%a: Tensor[(N, 1, 3, 3), float32]) { Conv(%a, meta[Constant][2]) }
    Constants:
        [[[[1.0, 2.0]]], [[[3.0, 4.0]]]] [[[2.0]], [[3.0]]] [[[[2.0, 4.0]]], [[[9.0, 12.0]]]]
    """
    convolution, scale = Convolution.of(c), constant_of(b)
    if convolution is None or scale is None:
        return None
    rank = len(convolution.kernel)
    plain = scale.reshape(scale.shape[1:]) if scale.ndim == rank + 2 and scale.shape[0] == 1 else scale
    if not is_scalar_constant(b) and plain.shape != (convolution.outputs, *(1,) * rank):
        return None
    channels = np.broadcast_to(plain.reshape(-1), (convolution.outputs,))
    weight = call("Mul", convolution.weight, like(b, channels.reshape(-1, *(1,) * (rank + 1))))
    bias = None if convolution.bias is None else call("Mul", convolution.bias, like(b, channels))
    return convolution.rebuilt(weight=weight, bias=bias)


@substitution(_ADD.commutative(_CONV(A, B).named("c"), is_constant().named("d")))
def addend_as_bias(c: Expr, d: Expr) -> Expr | None:
    """A convolution plus one number a channel as a convolution with a bias.

    Before:
        def @main(%a: Tensor[(N, 1, 3, 3), float32], %b: Tensor[(2, 1, 2, 2), float32]) {
          Add(Conv(%a, %b), meta[Constant][0])
        }
    After:
        def @main(%a: Tensor[(N, 1, 3, 3), float32], %b: Tensor[(2, 1, 2, 2), float32]) {
          Conv(%a, %b, meta[Constant][1])
        }
    Constants:
        [[[2.0]], [[3.0]]] [2.0, 3.0]
    """
    convolution, addend = Convolution.of(c), constant_of(d)
    if convolution is None or addend is None:
        return None
    rank = len(convolution.kernel)
    plain = addend.reshape(addend.shape[1:]) if addend.ndim == rank + 2 and addend.shape[0] == 1 else addend
    if plain.shape != (convolution.outputs, *(1,) * rank):
        return None
    return convolution.rebuilt(bias=like(d, plain.reshape(-1)))


@substitution(_CONV(A, B, wildcard().named("c")))
def bias_as_addend(root: Call, c: Expr) -> Expr | None:
    """A convolution with a constant bias as one without, plus one number a channel.

    Before:
        def @main(%a: Tensor[(N, 1, 3, 3), float32], %b: Tensor[(2, 1, 2, 2), float32]) {
          Conv(%a, %b, meta[Constant][1])
        }
    After:
        def @main(%a: Tensor[(N, 1, 3, 3), float32], %b: Tensor[(2, 1, 2, 2), float32]) {
          Add(Conv(%a, %b), meta[Constant][0])
        }
    Constants:
        [[[2.0]], [[3.0]]] [2.0, 3.0]
    """
    convolution, bias = Convolution.of(root), constant_of(c)
    if convolution is None or bias is None:
        return None
    return call("Add", convolution.rebuilt(), like(c, bias.reshape(-1, *(1,) * len(convolution.kernel))))


@substitution(is_op("AveragePool")(A))
def average_pooling_as_convolution(root: Call, a: Expr) -> Expr | None:
    """An average without pads as a convolution of each channel with equal weights (TASO, table 2).

    Before:
        def @main(%a: Tensor[(N, 2, 3, 3), float32]) { AveragePool(%a, kernel_shape=[2, 2]) }
    After:
        def @main(%a: Tensor[(N, 2, 3, 3), float32]) {
          Conv(%a, meta[Constant][0], group=2, strides=[1, 1], dilations=[1, 1])
        }
    Constants:
        [[[[0.25, 0.25], [0.25, 0.25]]], [[[0.25, 0.25], [0.25, 0.25]]]]
    """
    kernel, channels, attrs = ints_attr(root.attrs, "kernel_shape"), size_along(a, 1), root.attrs
    is_plain = attrs.get("auto_pad", "NOTSET") == "NOTSET" and not attrs.get("ceil_mode", 0)
    if not kernel or channels is None or not is_plain or any(ints_attr(attrs, "pads") or ()):
        return None
    if rank_of(a) != len(kernel) + 2:
        return None
    weight = like(a, np.full((channels, 1, *kernel), 1 / np.prod(kernel)))
    strides, dilations = (ints_attr(attrs, name) or (1,) * len(kernel) for name in ("strides", "dilations"))
    return call("Conv", a, weight, group=channels, strides=strides, dilations=dilations)


@substitution(_CONV(A, is_constant().named("b"), ...))
def ungroup_convolution(root: Call, a: Expr, b: Expr) -> Expr | None:
    """A convolution in groups as one of all channels, with zeros where groups do not meet (TASO).

    Before:
        def @main(%a: Tensor[(N, 2, 3, 3), float32]) { Conv(%a, meta[Constant][0], group=2) }
    After:
        def @main(%a: Tensor[(N, 2, 3, 3), float32]) { Conv(%a, meta[Constant][1], group=1) }
    Constants:
        [[[[1.0]]], [[[2.0]]]] [[[[1.0]], [[0.0]]], [[[0.0]], [[2.0]]]]
    """
    convolution, weight = Convolution.of(root), constant_of(b)
    if convolution is None or weight is None or not 1 < convolution.group <= 4:
        return None
    outputs = convolution.outputs // convolution.group
    kernel = np.zeros(
        (convolution.outputs, convolution.inputs * convolution.group, *convolution.kernel), weight.dtype
    )
    for group in range(convolution.group):
        rows, columns = slice(group * outputs, (group + 1) * outputs), group * convolution.inputs
        kernel[rows, columns : columns + convolution.inputs] = weight[rows]
    attrs = {**root.attrs, "group": 1}
    return called("Conv", attrs, a, like(b, kernel), *root.args[2:])
