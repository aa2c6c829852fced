"""ConvTranspose by definition: each result gathers the elements that reach it.

The input is spread out, with zeros between its elements and around them, and convolved with the kernel turned
around. Blocked tensors have a form without these zeros (blocked_transposed_convolution).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from intarsia.native.te import functions
from intarsia.native.te.combiner import Reduction
from intarsia.native.te.compute import compute, reduce_axis
from intarsia.native.te.expression import Expression
from intarsia.native.te.functions import equal, if_then_else, logical_and
from intarsia.native.te.operators.compute_call import ComputeCall
from intarsia.native.te.operators.compute_rule import compute_rule
from intarsia.native.te.operators.convolution import add_channel_bias, layout_free
from intarsia.native.te.operators.float32_arithmetic import in_float32
from intarsia.native.te.operators.upsampling import dilations_of, upsamplings_of
from intarsia.native.te.operators.windows import Window, spatial_names, tap_axes, tap_indices
from intarsia.native.te.tensor import Tensor


@dataclass(frozen=True, slots=True)
class _Spread:
    """One dimension of the input with zeros between: element i is at `first + i * stride`."""

    window: Window
    extent: int
    stride: int
    first: int

    def conditions(self, position: Expression) -> list[Expression]:
        """Return the conditions for an element to be at a position."""
        conditions = [position >= self.first] if self.first > 0 else []
        if self.window.reach > self.first + (self.extent - 1) * self.stride + 1:
            conditions.append(position < self.first + (self.extent - 1) * self.stride + 1)
        if self.stride > 1:
            conditions.append(equal((position - self.first) % self.stride, 0))
        return conditions

    def element_index(self, position: Expression) -> Expression:
        """Return the index of the element at a position."""
        moved = position - self.first if self.first else position
        return moved if self.stride == 1 else moved // self.stride


@compute_rule("ConvTranspose")
@in_float32
def conv_transpose(call: ComputeCall) -> Sequence[Tensor]:
    """Declare a transposed convolution of one to three spatial dimensions, with all attributes."""
    x, weight, groups = call.input(0), call.input(1), call.integer("group")
    spreads = _spreads(call, x.shape[2:], weight.shape[2:])
    source = _spread_out(x, spreads, f"{call.name}.spread")
    has_bias = call.has_input(2)
    name = f"{call.name}.conv" if has_bias else call.name
    convolved = _gather(source, weight, [spread.window for spread in spreads], groups, call.shape, name)
    return [add_channel_bias(convolved, call.input(2), call.name) if has_bias else convolved]


def _spreads(call: ComputeCall, extents: Sequence[int], taps: Sequence[int]) -> list[_Spread]:
    rank = len(extents)
    if rank not in (1, 2, 3):
        raise call.not_covered(f"{rank} spatial dimensions")
    spreads = []
    for upsampling, dilation in zip(
        upsamplings_of(call, extents, taps), dilations_of(call, rank), strict=True
    ):
        window = Window(upsampling.extent, upsampling.count, upsampling.taps, 1, dilation, 0, 0)
        first = (upsampling.taps - 1) * dilation - upsampling.begin
        spreads.append(_Spread(window, upsampling.extent, upsampling.stride, first))
    return spreads


def _spread_out(x: Tensor, spreads: Sequence[_Spread], name: str) -> Tensor:
    """Declare the input with zeros between and around its elements, as far as windows reach."""

    def element(n: Expression, c: Expression, *at: Expression) -> Expression:
        spatial = list(zip(spreads, at, strict=True))
        conditions = [condition for spread, position in spatial for condition in spread.conditions(position)]
        value = x[(n, c, *(spread.element_index(position) for spread, position in spatial))]
        return if_then_else(logical_and(*conditions), value, 0.0) if conditions else value

    return compute((*x.shape[:2], *(spread.window.reach for spread in spreads)), element, name)


def _gather(
    source: Tensor, weight: Tensor, windows: Sequence[Window], groups: int, shape: Sequence[int], name: str
) -> Tensor:
    """Declare a convolution with the kernel (C, M / groups, taps ...) turned around."""
    by_group, group_outputs = weight.shape[0] // groups, weight.shape[1]
    channel, taps = reduce_axis(by_group, "rc"), tap_axes(windows)

    def element(n: Expression, f: Expression, *positions: Expression) -> Reduction:
        source_channel = channel.expression
        if groups > 1:
            source_channel = f // group_outputs * by_group + source_channel
        turned = [window.taps - 1 - tap.expression for window, tap in zip(windows, taps, strict=True)]
        filter_index = f % group_outputs if groups > 1 else f
        read = source[(n, source_channel, *tap_indices(windows, positions, taps))]
        return functions.sum(read * weight[(source_channel, filter_index, *turned)], (channel, *taps))

    names = ("n", "f", *spatial_names(len(windows)))
    return compute(shape, element, name, names, layout_free(weight))
