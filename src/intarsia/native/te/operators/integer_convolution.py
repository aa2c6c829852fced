"""ConvInteger and QLinearConv: convolutions of quantized integers, summed in int32."""

from __future__ import annotations

from collections.abc import Sequence

from intarsia.native.te.compute import compute, reduce_axis
from intarsia.native.te.expression import Expression
from intarsia.native.te.functions import sum as te_sum
from intarsia.native.te.operators.compute_call import ComputeCall
from intarsia.native.te.operators.compute_rule import compute_rule
from intarsia.native.te.operators.index_arithmetic import ZERO, Indices
from intarsia.native.te.operators.integer_products import Parameter, centered, requantized
from intarsia.native.te.operators.windows import padded, tap_axes, tap_indices, windows_of
from intarsia.native.te.tensor import Tensor


@compute_rule("ConvInteger")
def conv_integer(call: ComputeCall) -> Sequence[Tensor]:
    """Declare a convolution in int32; padding is the zero point, which counts as 0."""
    return [_convolved(call, 0, 1, 2, 3, call.name)]


@compute_rule("QLinearConv")
def qlinear_conv(call: ComputeCall) -> Sequence[Tensor]:
    """Declare a convolution of quantized integers, brought to the scale and zero point of the result."""
    bias = call.input(8) if call.has_input(8) else None
    total = _convolved(call, 0, 3, 2, 5, f"{call.name}.sum")
    if bias is not None:
        whole = total
        total = compute(whole.shape, lambda *i: whole[i] + bias[i[1]], f"{call.name}.biased")
    scales = _uniform(call, 1), _of_channels(call, 4, 1), _uniform(call, 6)
    return [requantized(call, total, scales, _uniform(call, 7))]


def _convolved(call: ComputeCall, x_at: int, w_at: int, x_zero: int, w_zero: int, name: str) -> Tensor:
    x, w = call.input(x_at), call.input(w_at)
    windows = windows_of(call, x.shape[2:], w.shape[2:])
    image = centered(x, _uniform(call, x_zero) if call.has_input(x_zero) else None, f"{name}.x")
    kernel = centered(w, _of_channels(call, w_zero, 0) if call.has_input(w_zero) else None, f"{name}.w")
    image = padded(image, windows, 0, f"{name}.pad")
    channels, taps = reduce_axis(w.shape[1], "rc"), tap_axes(windows)
    outputs = w.shape[0] // call.integer("group", 1)

    def element(n: Expression, c: Expression, *positions: Expression) -> Expression:
        channel = channels.expression
        source = channel if outputs == w.shape[0] else (c // outputs) * channels.extent + channel
        pixel = image[(n, source, *tap_indices(windows, positions, taps))]
        return pixel * kernel[(c, channel, *(tap.expression for tap in taps))]

    axes = (channels, *taps)
    return compute(call.shape, lambda *i: te_sum(element(*i), axes), name)


def _uniform(call: ComputeCall, position: int) -> Parameter:
    parameter = call.input(position)
    return lambda _: parameter[(ZERO,) * len(parameter.shape)]


def _of_channels(call: ComputeCall, position: int, axis: int) -> Parameter:
    """Return a parameter for all elements, or for each output channel, which is an axis."""
    parameter = call.input(position)
    if parameter.shape in ((), (1,)):
        return _uniform(call, position)

    def element(i: Indices) -> Expression:
        return parameter[i[axis]]

    return element
