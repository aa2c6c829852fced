"""Conv: padding, one reduction, bias (the workload of Ansor's paper, section 7.1)."""

from __future__ import annotations

from collections.abc import Sequence

from intarsia.native.te import functions
from intarsia.native.te.combiner import Reduction
from intarsia.native.te.compute import compute, reduce_axis
from intarsia.native.te.expression import Expression
from intarsia.native.te.op_attrs import LAYOUT_FREE
from intarsia.native.te.operators.column_phases import (
    has_column_phases,
    in_column_phases,
    tap_indices_in_phases,
)
from intarsia.native.te.operators.compute_call import ComputeCall
from intarsia.native.te.operators.compute_rule import compute_rule
from intarsia.native.te.operators.float32_arithmetic import in_float32
from intarsia.native.te.operators.windows import (
    Window,
    padded,
    spatial_names,
    tap_axes,
    tap_indices,
    windows_of,
)
from intarsia.native.te.tensor import PlaceholderOp, Tensor


@compute_rule("Conv")
@in_float32
def conv(call: ComputeCall) -> Sequence[Tensor]:
    """Declare a convolution: one to three spatial dimensions, any groups, strides, dilations and padding."""
    x, weight = call.input(0), call.input(1)
    windows = windows_of(call, x.shape[2:], weight.shape[2:])
    copy = in_column_phases if has_column_phases(windows) else padded
    source = copy(x, windows, 0.0, f"{call.name}.pad")
    if not call.has_input(2):
        return [convolve(source, weight, windows, call.integer("group"), call.shape, call.name)]
    convolved = convolve(source, weight, windows, call.integer("group"), call.shape, f"{call.name}.conv")
    return [add_channel_bias(convolved, call.input(2), call.name)]


def convolve(
    source: Tensor, weight: Tensor, windows: Sequence[Window], groups: int, shape: Sequence[int], name: str
) -> Tensor:
    """Declare the reduction of a convolution.

    Args:
        source: Padded input, (N, C, spatial ...), or as `in_column_phases` declares it.
        weight: (M, C / groups, taps ...).
        windows: Windows, one for each spatial dimension.
        groups: Number of groups of channels; each computes M / groups of the results.
        shape: (N, M, spatial ...).
        name: Name of the operation.
    """
    channels, letters = weight.shape[1], spatial_names(len(windows))
    group_outputs = max(weight.shape[0] // groups, 1)
    channel, taps = reduce_axis(channels, "rc"), tap_axes(windows)
    axes = taps if channels == 1 else (channel, *taps)
    indices_of = tap_indices if len(source.shape) == len(shape) else tap_indices_in_phases

    def element(n: Expression, f: Expression, *positions: Expression) -> Reduction:
        within: Expression | int = 0 if channels == 1 else channel.expression
        group = f if group_outputs == 1 else f // group_outputs
        first = 0 if groups == 1 else group if channels == 1 else group * channels
        read = source[(n, within + first, *indices_of(windows, positions, taps))]
        return functions.sum(read * weight[(f, within, *taps)], axes)

    return compute(shape, element, name, ("n", "f", *letters), layout_free(weight) if groups == 1 else {})


def add_channel_bias(x: Tensor, bias: Tensor, name: str) -> Tensor:
    """Declare a tensor with a number added to each channel, the second dimension."""
    return compute(x.shape, lambda n, c, *i: x[(n, c, *i)] + bias[c], name)


def layout_free(*weights: Tensor) -> dict[str, tuple[str, ...]]:
    """Return the attribute `layout_free_placeholders` for those of some tensors that are constants."""
    names = tuple(
        weight.buffer.name
        for weight in weights
        if isinstance(weight.op, PlaceholderOp) and "constant" in weight.op.attrs
    )
    return {LAYOUT_FREE: names} if names else {}
