"""Transposed convolutions with stride 1 as convolutions, whose kernels and algorithms are more.

ConvTranspose (C, M, taps), pads p   ->   Conv (M, C, taps reversed), pads taps - 1 - p
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace

import numpy as np

from intarsia.ir import DType, TensorType, Var
from intarsia.native.graph.region_plan import Array, RegionValue
from intarsia.native.graph.straight_line import KernelStep, StraightLine
from intarsia.native.te.operators import NotCoveredError, compute_call_of
from intarsia.native.te.operators.compute_call import ComputeCall
from intarsia.native.te.operators.upsampling import dilations_of, upsamplings_of
from intarsia.op import call


def with_forward_convolutions(line: StraightLine) -> StraightLine:
    """Return a region in which transposed convolutions of float32 with stride 1 are convolutions."""
    region = _Region(list(line.values))
    steps = [region.written(step) for step in line.steps]
    return StraightLine(region.values, steps, line.params, line.results)


@dataclass(eq=False)
class _Region:
    """The values of a region, with the weights that are added.

    Attributes:
        values: Values so far.
    """

    values: list[RegionValue]
    _reversed: dict[tuple[int, int], int] = field(default_factory=dict)

    def written(self, step: KernelStep) -> KernelStep:
        """Return a step as a convolution, if it is a transposed one without strides."""
        number, weight = (*step.args, None, None)[:2]
        if str(step.op) != "ConvTranspose" or number is None or weight is None:
            return step
        constant = self.values[weight].constant
        described = compute_call_of(step.call, "conv")
        pads = None if constant is None or constant.dtype != np.float32 else _pads(described, constant)
        if constant is None or pads is None:
            return step
        groups = described.integer("group")
        args = (number, self._reversed_weight(weight, constant, groups), *step.args[2:])
        given = [Var(f"x{arg}", checked_type=self.values[arg].type) for arg in args if arg is not None]
        conv = call("Conv", *given, pads=pads, group=groups)
        forward = replace(step.call, op=conv.op, args=conv.args, attrs=conv.attrs)
        return replace(step, call=forward, args=tuple(arg for arg in args if arg is not None))

    def _reversed_weight(self, number: int, weight: Array, groups: int) -> int:
        """Return the number of weights (M, C / groups, taps ...) with reversed taps, added once."""
        key = number, groups
        if key not in self._reversed:
            array = reversed_weight(weight, groups)
            self._reversed[key] = len(self.values)
            self.values.append(RegionValue(TensorType(array.shape, DType.FLOAT32), len(self.values), array))
        return self._reversed[key]


def reversed_weight(weight: Array, groups: int) -> Array:
    """Return the weights (M, C / groups, taps ...) of the convolution that a transposed one is.

    Args:
        weight: (C, M / groups, taps ...).
        groups: Number of groups of channels.
    """
    channels, filters, *taps = weight.shape
    grouped = weight.reshape(groups, channels // groups, filters, *taps).swapaxes(1, 2)
    return np.ascontiguousarray(
        np.flip(grouped.reshape(groups * filters, channels // groups, *taps), tuple(range(2, 2 + len(taps))))
    )


def _pads(described: ComputeCall, weight: Array) -> tuple[int, ...] | None:
    """Return the padding before the first and behind the last elements; None where there is no convolution.

    One pixel is the row of a product, which has a kernel of its own.
    """
    extents, taps = described.input(0).shape[2:], weight.shape[2:]
    if set(extents) == {1} or set(dilations_of(described, len(extents))) != {1}:
        return None
    try:
        dimensions = upsamplings_of(described, extents, taps)
    except NotCoveredError:
        return None
    begins = [item.taps - 1 - item.begin for item in dimensions]
    ends = [
        item.count - item.extent - begin + item.taps - 1
        for item, begin in zip(dimensions, begins, strict=True)
    ]
    has_strides = any(item.stride > 1 for item in dimensions)
    return None if has_strides or min(*begins, *ends) < 0 else (*begins, *ends)
