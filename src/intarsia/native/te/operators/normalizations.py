"""Normalizations with statistics of the argument: LayerNormalization, GroupNormalization and their kind.

Mean and variance are two reductions, one after the other, so that large means cost no digits.
"""

from __future__ import annotations

import math
from collections.abc import Sequence

from intarsia.ir import DType
from intarsia.native.te import functions
from intarsia.native.te.compute import compute
from intarsia.native.te.expression import Expression
from intarsia.native.te.functions import sqrt
from intarsia.native.te.operators.broadcasting import element_at
from intarsia.native.te.operators.compute_call import ComputeCall
from intarsia.native.te.operators.compute_rule import compute_rule
from intarsia.native.te.operators.float32_arithmetic import in_float32
from intarsia.native.te.operators.reduced_axes import (
    keeping_dimensions,
    normalized_axis,
    reduce_over,
    reduced_element,
)
from intarsia.native.te.tensor import Tensor


@compute_rule("LayerNormalization")
@in_float32
def layer_normalization(call: ComputeCall) -> Sequence[Tensor]:
    """Normalize over all dimensions from `axis` on; also return the mean and the inverse deviation."""
    x, name = call.input(0), call.name
    axes = _axes_from(call)
    mean = _mean(x, axes, f"{name}.mean")
    centered = _centered(x, mean, axes, name)
    inverse = _inverse_deviation(centered, axes, call.real("epsilon"), name)
    scale, bias = call.input(1), call.input(2) if call.has_input(2) else None

    def element(*i: Expression) -> Expression:
        value = centered[i] * reduced_element(inverse, i, axes) * element_at(scale, i)
        return value if bias is None else value + element_at(bias, i)

    results = [compute(call.shape, element, name)]
    for tensor, type_, suffix in zip(
        (mean, inverse), call.output_types[1:], ("mean", "inverse"), strict=False
    ):
        kept = keeping_dimensions(tensor, type_.static_shape, axes, f"{name}.kept_{suffix}")
        results.append(_as_type(kept, type_.dtype, f"{name}.{suffix}_result"))
    return results


@compute_rule("RMSNormalization")
@in_float32
def rms_normalization(call: ComputeCall) -> Sequence[Tensor]:
    """Normalize by the root of the mean of squares, over all dimensions from `axis` on."""
    x, axes, scale = call.input(0), _axes_from(call), call.input(1)
    inverse = _inverse_deviation(x, axes, call.real("epsilon"), call.name)
    return [
        compute(
            call.shape,
            lambda *i: x[i] * reduced_element(inverse, i, axes) * element_at(scale, i),
            call.name,
        )
    ]


@compute_rule("InstanceNormalization")
@in_float32
def instance_normalization(call: ComputeCall) -> Sequence[Tensor]:
    """Normalize over the spatial dimensions of each channel of each example."""
    x, name = call.input(0), call.name
    axes = tuple(range(2, len(x.shape)))
    centered = _centered(x, _mean(x, axes, f"{name}.mean"), axes, name)
    inverse = _inverse_deviation(centered, axes, call.real("epsilon"), name)
    scale, bias = call.input(1), call.input(2)
    return [
        compute(
            call.shape,
            lambda *i: centered[i] * reduced_element(inverse, i, axes) * scale[i[1]] + bias[i[1]],
            name,
        )
    ]


@compute_rule("GroupNormalization")
@in_float32
def group_normalization(call: ComputeCall) -> Sequence[Tensor]:
    """Normalize over the channels of a group and the spatial dimensions of each example."""
    x, groups, name = call.input(0), call.integer("num_groups"), call.name
    if groups < 1 or x.shape[1] % groups:
        raise call.not_covered(f"{x.shape[1]} channels in {groups} groups")
    size = x.shape[1] // groups
    grouped = compute(
        (x.shape[0], groups, size, *x.shape[2:]),
        lambda n, g, c, *i: x[(n, g * size + c, *i)],
        f"{name}.grouped",
    )
    axes = tuple(range(2, len(grouped.shape)))
    mean = _mean(grouped, axes, f"{name}.mean")
    inverse = _inverse_deviation(_centered(grouped, mean, axes, name), axes, call.real("epsilon"), name)
    scale, bias = call.input(1), call.input(2)

    def element(n: Expression, c: Expression, *i: Expression) -> Expression:
        group = c // max(size, 1)
        return (x[(n, c, *i)] - mean[n, group]) * inverse[n, group] * scale[c] + bias[c]

    return [compute(call.shape, element, name)]


@compute_rule("MeanVarianceNormalization")
@in_float32
def mean_variance_normalization(call: ComputeCall) -> Sequence[Tensor]:
    """Normalize by the standard deviation over `axes`, plus 1e-9 as in ONNX's function."""
    x, name = call.input(0), call.name
    axes = tuple(normalized_axis(axis, len(x.shape)) for axis in call.integers("axes"))
    centered = _centered(x, _mean(x, axes, f"{name}.mean"), axes, name)
    variance = _mean_square(centered, axes, name)
    deviation = compute(variance.shape, lambda *i: sqrt(variance[i]) + 1e-9, f"{name}.deviation")
    return [compute(call.shape, lambda *i: centered[i] / reduced_element(deviation, i, axes), name)]


def _axes_from(call: ComputeCall) -> tuple[int, ...]:
    rank = len(call.shape)
    return tuple(range(normalized_axis(call.integer("axis"), rank), rank))


def _mean(x: Tensor, axes: Sequence[int], name: str) -> Tensor:
    count = float(math.prod(x.shape[axis] for axis in axes))
    total = reduce_over(x, axes, functions.sum, f"{name}_sum")
    return compute(total.shape, lambda *i: total[i] / count, name)


def _centered(x: Tensor, mean: Tensor, axes: Sequence[int], name: str) -> Tensor:
    return compute(x.shape, lambda *i: x[i] - reduced_element(mean, i, axes), f"{name}.centered")


def _mean_square(x: Tensor, axes: Sequence[int], name: str) -> Tensor:
    count = float(math.prod(x.shape[axis] for axis in axes))
    total = reduce_over(x, axes, functions.sum, f"{name}.square_sum", lambda value: value * value)
    return compute(total.shape, lambda *i: total[i] / count, f"{name}.variance")


def _inverse_deviation(centered: Tensor, axes: Sequence[int], epsilon: float, name: str) -> Tensor:
    variance = _mean_square(centered, axes, name)
    return compute(variance.shape, lambda *i: 1.0 / sqrt(variance[i] + epsilon), f"{name}.inverse")


def _as_type(tensor: Tensor, dtype: DType, name: str) -> Tensor:
    if tensor.dtype is dtype:
        return tensor
    return compute(tensor.shape, lambda *i: tensor[i].astype(dtype), name)
