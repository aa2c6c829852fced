"""Transposed convolutions to a few channels, with a blocked input and a plain result."""

from __future__ import annotations

from collections.abc import Sequence
from math import prod
from typing import Final

from intarsia.ir import DType
from intarsia.native.graph.blocked_steps import given_order
from intarsia.native.graph.kernel_dag import KernelDag, Source, SourceForm, kernel_dag
from intarsia.native.graph.region_plan import RegionValue
from intarsia.native.graph.straight_line import KernelStep
from intarsia.native.te import Tensor, placeholder
from intarsia.native.te.operators import compute_call_of
from intarsia.native.te.operators.convolution import add_channel_bias
from intarsia.native.te.operators.narrow_transposed_convolution import (
    pack_weight_to_few,
    transposed_convolution_to_few,
)
from intarsia.native.te.operators.upsampling import dense_upsamplings_of

_MOST_SUMMANDS: Final = 25
"""Maximum number of products of one phase, which one expression adds up."""


def narrow_dag(steps: Sequence[KernelStep], values: Sequence[RegionValue], lanes: int) -> KernelDag | None:
    """Declare consecutive calls; None if there is no such transposed convolution.

    Args:
        steps: Steps in order; the last one computes the only result.
        values: Values so far, with their chosen layouts.
        lanes: Number of channels of a block.
    """
    transposed = [step for step in steps if str(step.op) == "ConvTranspose"]
    if len(transposed) != 1 or not _is_worthwhile(transposed[0], values, lanes):
        return None
    (step,) = transposed
    declared = _declared(step, values, lanes)
    if declared is None:
        return None
    result, sources = declared
    rest = [other for other in steps if other is not step]
    return kernel_dag(rest, values, steps[-1].outputs, {step.outputs[0]: result}, sources)


def _is_worthwhile(step: KernelStep, values: Sequence[RegionValue], lanes: int) -> bool:
    """Return whether a step maps enough channels for a block to fewer, in float32."""
    type_ = values[step.outputs[0]].type
    x, weight = (values[number] for number in step.args[:2] if number is not None)
    is_given = x.constant is None and weight.constant is not None
    is_narrow = x.type.static_shape[1] * 2 >= lanes > type_.static_shape[1] * 2
    return is_given and is_narrow and type_.dtype is DType.FLOAT32 and 0 not in type_.static_shape


def _declared(
    step: KernelStep, values: Sequence[RegionValue], lanes: int
) -> tuple[Tensor, dict[Tensor, Source]] | None:
    """Return the plain result, and the sources of its placeholders."""
    described = compute_call_of(step.call, "convtranspose")
    dimensions = dense_upsamplings_of(described)
    number, weight_number = step.args[:2]
    assert number is not None, "an argument that must be there"
    assert weight_number is not None, "an argument that must be there"
    weight = values[weight_number].constant
    if (
        dimensions is None
        or weight is None
        or prod(dimension.phase_taps for dimension in dimensions) > _MOST_SUMMANDS
    ):
        return None
    order = given_order(values[number], lanes)
    packed = pack_weight_to_few(order.arranged(weight, 0), lanes, lanes)
    batch, _, *spatial = values[number].type.static_shape
    x = placeholder((batch, order.blocks, *spatial, lanes), DType.FLOAT32, "x")
    w = placeholder(packed.shape, DType.FLOAT32, "w", {"constant": 1})
    sources = {
        x: Source(number, SourceForm.BLOCKED, order=order),
        w: Source(-1, SourceForm.PLAIN, packed),
    }
    has_bias = described.has_input(2)
    name = "convtranspose.sum" if has_bias else "convtranspose"
    result = transposed_convolution_to_few(x, w, weight.shape[1], dimensions, name)
    if not has_bias:
        return result, sources
    bias = placeholder(described.input(2).shape, DType.FLOAT32, "b")
    sources[bias] = Source(step.args[2] or 0)
    return add_channel_bias(result, bias, "convtranspose"), sources
