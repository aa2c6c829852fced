"""ConvTranspose by definition: each result gathers what reaches it.

The input is spread out, with zeros between its elements and around them, and convolved with the kernel turned
around. Decomposition into stride-1 convolutions is scheduling, and not done here.
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
from intarsia.native.te.operators.windows import Window, places, spatial_names, tap_axes
from intarsia.native.te.tensor import Tensor


@dataclass(frozen=True, slots=True)
class _Spread:
    """One dimension of the input with zeros between: element i is at `first + i * stride`."""

    window: Window
    extent: int
    stride: int
    first: int

    def conditions(self, place: Expression) -> list[Expression]:
        """What holds where an element is."""
        found = [place >= self.first] if self.first > 0 else []
        if self.window.reach > self.first + (self.extent - 1) * self.stride + 1:
            found.append(place < self.first + (self.extent - 1) * self.stride + 1)
        if self.stride > 1:
            found.append(equal((place - self.first) % self.stride, 0))
        return found

    def own(self, place: Expression) -> Expression:
        """The index of the element at a place."""
        moved = place - self.first if self.first else place
        return moved if self.stride == 1 else moved // self.stride


@compute_rule("ConvTranspose")
@in_float32
def conv_transpose(call: ComputeCall) -> Sequence[Tensor]:
    """One to three spatial dimensions, any groups, strides, dilations, padding and output shape."""
    x, weight, groups = call.input(0), call.input(1), call.integer("group")
    spreads = _spreads(call, x.shape[2:], weight.shape[2:])
    source = _spread_out(x, spreads, f"{call.name}.spread")
    has_bias = call.has_input(2)
    name = f"{call.name}.conv" if has_bias else call.name
    found = _gather(source, weight, [spread.window for spread in spreads], groups, call.shape, name)
    return [add_channel_bias(found, call.input(2), call.name) if has_bias else found]


def _spreads(call: ComputeCall, extents: Sequence[int], taps: Sequence[int]) -> list[_Spread]:
    rank = len(extents)
    if rank not in (1, 2, 3):
        raise call.not_covered(f"{rank} spatial dimensions")
    ones, counts = (1,) * rank, call.shape[2:]
    strides, dilations = call.integers("strides", ones) or ones, call.integers("dilations", ones) or ones
    begins = _begins(call, extents, taps, strides, dilations)
    found = []
    for axis in range(rank):
        window = Window(extents[axis], counts[axis], taps[axis], 1, dilations[axis], 0, 0)
        first = (taps[axis] - 1) * dilations[axis] - begins[axis]
        found.append(_Spread(window, extents[axis], strides[axis], first))
    return found


def _begins(
    call: ComputeCall,
    extents: Sequence[int],
    taps: Sequence[int],
    strides: Sequence[int],
    dilations: Sequence[int],
) -> tuple[int, ...]:
    """How much is cut off before the first result: pads, or what auto_pad makes of the shape."""
    rank, auto_pad = len(extents), call.text("auto_pad", "NOTSET")
    pads = call.integers("pads", ())
    given = pads[:rank] if pads and auto_pad == "NOTSET" else (0,) * rank
    is_same = auto_pad in ("SAME_UPPER", "SAME_LOWER")
    if not is_same and not call.integers("output_shape", ()):
        return given
    more = call.integers("output_padding", ()) or (0,) * rank
    totals = [
        strides[a] * (extents[a] - 1) + more[a] + (taps[a] - 1) * dilations[a] + 1 - call.shape[2 + a]
        for a in range(rank)
    ]
    cut = [max(total, 0) for total in totals]
    found = tuple(total // 2 if auto_pad == "SAME_UPPER" else total - total // 2 for total in cut)
    if (is_same and cut != totals) or (not is_same and found != given):
        raise call.not_covered("an output_shape, or auto_pad, for which engines cut off in different places")
    return found


def _spread_out(x: Tensor, spreads: Sequence[_Spread], name: str) -> Tensor:
    """The input with zeros between and around, as far as windows reach."""

    def element(n: Expression, c: Expression, *at: Expression) -> Expression:
        spatial = list(zip(spreads, at, strict=True))
        conditions = [each for spread, place in spatial for each in spread.conditions(place)]
        value = x[(n, c, *(spread.own(place) for spread, place in spatial))]
        return if_then_else(logical_and(*conditions), value, 0.0) if conditions else value

    return compute((*x.shape[:2], *(spread.window.reach for spread in spreads)), element, name)


def _gather(
    source: Tensor, weight: Tensor, windows: Sequence[Window], groups: int, shape: Sequence[int], name: str
) -> Tensor:
    """A convolution with the kernel (C, M / groups, taps ...) turned around."""
    by_group, made_by_group = weight.shape[0] // groups, weight.shape[1]
    channel, taps = reduce_axis(by_group, "rc"), tap_axes(windows)

    def element(n: Expression, f: Expression, *positions: Expression) -> Reduction:
        source_channel = channel.expression
        if groups > 1:
            source_channel = f // made_by_group * by_group + source_channel
        turned = [window.taps - 1 - tap.expression for window, tap in zip(windows, taps, strict=True)]
        own = f % made_by_group if groups > 1 else f
        read = source[(n, source_channel, *places(windows, positions, taps))]
        return functions.sum(read * weight[(source_channel, own, *turned)], (channel, *taps))

    names = ("n", "f", *spatial_names(len(windows)))
    return compute(shape, element, name, names, layout_free(weight))
