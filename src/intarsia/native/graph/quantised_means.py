"""Means of quantised numbers as steps that sum bytes as integers.

    DequantizeLinear(x), AveragePool   ->   AveragePool(x, zero_point), Mul(scale)

The sum is exact; rounding begins with the product by the reciprocal of the number of elements.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Final

from intarsia.ir import DType, TensorType, Var
from intarsia.native.graph.dequantised import Dequantised
from intarsia.native.graph.region_plan import RegionValue
from intarsia.native.graph.straight_line import KernelStep
from intarsia.native.te.operators.pooling import ZERO_POINT
from intarsia.op import call

MEANS: Final = ("AveragePool", "GlobalAveragePool")


def mean_of_bytes(
    step: KernelStep, parts: Dequantised | None, values: list[RegionValue]
) -> tuple[KernelStep, KernelStep] | None:
    """Return the mean of bytes less their zero point, in float32, and its product by their scale.

    Args:
        step: Step that may be a mean.
        parts: Bytes that its argument is dequantised from; None for others.
        values: Values of the region, to which those between both steps are added.
    """
    if str(step.op) not in MEANS or parts is None or parts.scale.size > 1:
        return None
    source = values[parts.number]
    if source.constant is not None:
        return None
    attrs = step.call.attrs.updated(**{ZERO_POINT: int(parts.zero[0])})
    averaging = replace(step.call, args=(Var("x", checked_type=source.type),), attrs=attrs)
    mean, scale, type_ = len(values), len(values) + 1, values[step.outputs[0]].type
    factor = TensorType((), DType.FLOAT32)
    values += [RegionValue(type_, mean), RegionValue(factor, scale, parts.scale.reshape(()))]
    given = Var("x", checked_type=type_), Var("y", checked_type=factor)
    product = replace(call("Mul", *given), span=step.call.span)
    return (
        KernelStep(averaging, (parts.number,), (mean,)),
        KernelStep(product, (mean, scale), step.outputs),
    )
