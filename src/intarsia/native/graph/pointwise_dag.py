"""Pointwise convolutions between plain tensors: products of matrices, without copies into blocks and back.

Conv (N, C, H, W) with weights (K, C, 1, 1)   ->   (K, C) times (C, H x W), for each image
"""

from __future__ import annotations

from collections.abc import Sequence
from math import prod
from typing import Final

from intarsia.ir import DType
from intarsia.native.graph.blocked_steps import POINTWISE
from intarsia.native.graph.kernel_dag import KernelDag, Source, kernel_dag
from intarsia.native.graph.region_plan import RegionValue
from intarsia.native.graph.straight_line import KernelStep
from intarsia.native.te import Tensor, compute, functions, placeholder, reduce_axis
from intarsia.native.te.combiner import Reduction
from intarsia.native.te.expression import Expression
from intarsia.native.te.operators import compute_call_of
from intarsia.native.te.operators.convolution import add_channel_bias
from intarsia.native.te.operators.windows import windows_of

_MOST_CHANNELS: Final = 128
"""Maximum number of input channels: with 256 the product and the convolution take the same time.

Both kernels compute and load alike, so this border of two kernels is not read from the machine model.
"""
_FEWEST_PIXELS: Final = 256
"""Minimum number of pixels: of 49 the product takes 1.5 times as long as the convolution with its copies."""

_Shape = tuple[int, ...]


def pointwise_dag(
    steps: Sequence[KernelStep], values: Sequence[RegionValue], outputs: Sequence[int]
) -> KernelDag | None:
    """Declare a pointwise convolution of a plain tensor, and elementwise calls behind it, on merged pixels.

    Args:
        steps: Steps in order; a step may read results of earlier steps.
        values: Values so far, with their chosen layouts.
        outputs: Numbers of results of the steps that other groups need.

    Returns:
        None if there is no such convolution, or blocks pay.
    """
    first, *rest = steps
    if not _is_pointwise(first, values) or any(str(step.op) not in POINTWISE for step in rest):
        return None
    shapes = _merged_shapes(first, rest, values)
    if shapes is None:
        return None
    result, sources = _declared(first, values)
    return kernel_dag(rest, values, outputs, {first.outputs[0]: result}, sources, shapes)


def _is_pointwise(step: KernelStep, values: Sequence[RegionValue]) -> bool:
    """Return whether a step is a convolution of a plain tensor, with sizes for which a product is faster."""
    if str(step.op) != "Conv":
        return False
    x, weight = (None if number is None else values[number] for number in step.args[:2])
    if x is None or weight is None or weight.constant is None:
        return False
    is_plain = x.order is None and values[x.same_as].order is None and x.constant is None
    shape, taps = x.type.static_shape, weight.constant.shape[2:]
    fits = x.type.dtype is DType.FLOAT32 and shape[1] <= _MOST_CHANNELS and prod(shape[2:]) >= _FEWEST_PIXELS
    if not is_plain or not fits or set(taps) != {1} or weight.constant.shape[1] != shape[1]:
        return False
    windows = windows_of(compute_call_of(step.call, "conv"), shape[2:], taps)
    return all(window.stride == 1 and window.is_inside for window in windows)


def _merged_shapes(
    first: KernelStep, rest: Sequence[KernelStep], values: Sequence[RegionValue]
) -> dict[int, _Shape] | None:
    """Return the shapes of all values behind the convolution with one dimension of pixels.

    None if one has another broadcast than along all pixels or none.
    """
    shape = values[first.outputs[0]].type.static_shape
    numbers = {*first.outputs, *(number for step in rest for number in (*step.args, *step.outputs))} - {None}
    shapes: dict[int, _Shape] = {}
    for number in numbers:
        assert number is not None
        given_shape = values[number].type.static_shape
        padded = (1,) * (len(shape) - len(given_shape)) + given_shape
        if len(given_shape) > len(shape) or padded[2:] not in (shape[2:], (1,) * (len(shape) - 2)):
            return None
        if prod(given_shape) > 1:
            shapes[number] = (*padded[:2], prod(padded[2:]))
    return shapes


def _declared(step: KernelStep, values: Sequence[RegionValue]) -> tuple[Tensor, dict[Tensor, Source]]:
    """Return the result (N, K, pixels), and the sources of its placeholders."""
    number, weight_number = step.args[:2]
    assert number is not None, "an argument that must be there"
    assert weight_number is not None, "an argument that must be there"
    batch, channels, *spatial = values[number].type.static_shape
    filters = values[weight_number].type.static_shape[0]
    x = placeholder((batch, channels, prod(spatial)), DType.FLOAT32, "x")
    weight = placeholder((filters, channels), DType.FLOAT32, "w", {"constant": 1})
    channel = reduce_axis(channels, "rk")

    def element(n: Expression, k: Expression, p: Expression) -> Reduction:
        return functions.sum(weight[k, channel] * x[n, channel, p], channel)

    bias_number = step.args[2] if len(step.args) > 2 else None
    name = "conv" if bias_number is None else "conv.sum"
    result = compute((batch, filters, prod(spatial)), element, name, ("n", "k", "p"))
    sources = {x: Source(number), weight: Source(weight_number)}
    if bias_number is None:
        return result, sources
    bias = placeholder((filters,), DType.FLOAT32, "b")
    sources[bias] = Source(bias_number)
    return add_channel_bias(result, bias, "conv"), sources
