"""QuantizeLinear, DequantizeLinear and DynamicQuantizeLinear."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Final

import numpy as np
import numpy.typing as npt

from intarsia.ir import DType
from intarsia.native.te.compute import compute, reduce_axis
from intarsia.native.te.expression import Expression
from intarsia.native.te.functions import call as intrinsic
from intarsia.native.te.functions import const, equal, highest, lowest, maximum, minimum, select
from intarsia.native.te.functions import max as largest_of
from intarsia.native.te.functions import min as least_of
from intarsia.native.te.operators.compute_call import ComputeCall
from intarsia.native.te.operators.compute_rule import compute_rule
from intarsia.native.te.operators.index_arithmetic import ZERO, Indices, front
from intarsia.native.te.operators.saturation import clipped
from intarsia.native.te.tensor import Tensor

REQUANTISED: Final = "requantised"
"""Attribute of a QuantizeLinear of native kernels that computes no quotient: one of the numbers below."""
BY_PRODUCT: Final = 1
"""The scale is the reciprocal of that of the program."""
SCALED: Final = 2
"""The argument has been multiplied by that reciprocal."""


@compute_rule("QuantizeLinear")
def quantize_linear(call: ComputeCall) -> Sequence[Tensor]:
    """Declare quotients by the scale, rounded half to even, plus the zero point, clipped to the result."""
    x, dtype = call.input(0), call.output_type.dtype
    scale, zero = call.input(1), call.input(2) if call.has_input(2) else None
    precision, requantised = _precision(call, x.dtype), call.integer(REQUANTISED, 0)
    _check_type(call, dtype)
    if requantised:
        return [_requantized(call, zero, has_scale=requantised == BY_PRODUCT)]

    def element(*i: Expression) -> Expression:
        value, divisor = x[i].astype(precision), _parameter(call, scale, i).astype(precision)
        # ONNX rounds the quotient before the zero point is added: half to even depends on that order.
        rounded = intrinsic("round_even", (value / divisor).astype(DType.FLOAT32))
        if zero is None:
            return clipped(rounded, dtype)
        return clipped(rounded + _parameter(call, zero, i).astype(DType.FLOAT32), dtype)

    return [compute(call.shape, element, call.name)]


def _requantized(call: ComputeCall, zero: Tensor | None, *, has_scale: bool) -> Tensor:
    """Declare the same of float32 with products, and limits that a vector checks before it is rounded."""
    x, dtype = call.input(0), call.output_type.dtype
    limits = float(lowest(dtype)), float(highest(dtype))

    def element(*i: Expression) -> Expression:
        value = x[i] * _parameter(call, call.input(1), i) if has_scale else x[i]
        word = const(0, DType.INT32) if zero is None else _parameter(call, zero, i).astype(DType.INT32)
        offset = word.astype(DType.FLOAT32)
        low, high = limits[0] - offset, limits[1] - offset
        at_least = select(value > low, value, low)
        within = select(at_least < high, at_least, high)
        return (intrinsic("round_even", within).astype(DType.INT32) + word).astype(dtype)

    return compute(call.shape, element, call.name)


def _precision(call: ComputeCall, dtype: DType) -> DType:
    """Return the type in which the quotient is computed: that of the attribute, or of the scale."""
    number = call.integer("precision", 0)
    precision = {0: call.input(1).dtype, 1: DType.FLOAT32, 10: DType.FLOAT16, 16: DType.BFLOAT16}.get(number)
    if precision is None:
        raise call.not_covered(f"the precision {number}")
    return DType.FLOAT32 if dtype.is_integer and not number else precision


def _check_type(call: ComputeCall, dtype: DType) -> None:
    if dtype not in (DType.INT8, DType.UINT8, DType.INT16, DType.UINT16):
        raise call.not_covered(f"the result {dtype.value}")


@compute_rule("DequantizeLinear")
def dequantize_linear(call: ComputeCall) -> Sequence[Tensor]:
    """Declare (x - zero point) * scale, computed in float32."""
    x, scale = call.input(0), call.input(1)
    zero = call.input(2) if call.has_input(2) else None

    def element(*i: Expression) -> Expression:
        number = x[i].astype(DType.FLOAT32)
        if zero is not None:
            number = number - _parameter(call, zero, i).astype(DType.FLOAT32)
        value = number * _parameter(call, scale, i).astype(DType.FLOAT32)
        return value.astype(call.output_type.dtype)

    return [compute(call.shape, element, call.name)]


def dequantized_array(
    array: npt.NDArray[Any], scale: npt.NDArray[Any], zero: npt.NDArray[Any] | None, axis: int, block: int
) -> npt.NDArray[Any]:
    """Return what DequantizeLinear makes of a constant, in float32.

    Args:
        array: Quantized elements.
        scale: One scale, or one for each index or block of an axis.
        zero: Zero points likewise; None for zeros.
        axis: The axis.
        block: Number of indices of a block; 0 without blocks.
    """
    axis = front(axis, array.ndim)

    def spread(parameter: npt.NDArray[Any]) -> npt.NDArray[Any]:
        if parameter.size == 1:
            return parameter.reshape(())
        if block:
            wide = np.repeat(parameter, block, axis)
            return np.take(wide, range(array.shape[axis]), axis)
        return parameter.reshape([-1 if place == axis else 1 for place in range(array.ndim)])

    numbers = array.astype(np.float32)
    if zero is not None:
        numbers = numbers - spread(zero).astype(np.float32)
    return np.ascontiguousarray(numbers * spread(scale).astype(np.float32))


def _parameter(call: ComputeCall, parameter: Tensor, i: Indices) -> Expression:
    """Return the scale or zero point of an element: one for all, or for an index or block of an axis."""
    axis, block = front(call.integer("axis", 1), len(i)), call.integer("block_size", 0)
    if not block and len(parameter.shape) == 1 and parameter.shape != (1,):
        return parameter[i[axis]]
    if not block or parameter.shape in ((), (1,)):
        return parameter[(ZERO,) * len(parameter.shape)]
    return parameter[(*i[:axis], i[axis] // block, *i[axis + 1 :])]


@compute_rule("DynamicQuantizeLinear")
def dynamic_quantize_linear(call: ComputeCall) -> Sequence[Tensor]:
    """Declare values quantized to uint8 by the range of the values, extended to include 0."""
    x = call.input(0)
    name = call.name
    names = [f"r{axis}" for axis in range(len(x.shape))]
    axes = [reduce_axis(extent, each) for extent, each in zip(x.shape, names, strict=True)]
    places = tuple(axis.expression for axis in axes)
    least = compute((), lambda: least_of(x[places], axes), f"{name}.min")
    largest = compute((), lambda: largest_of(x[places], axes), f"{name}.max")

    def scale_of() -> Expression:
        low, high = minimum(least[()], 0.0), maximum(largest[()], 0.0)
        return select(equal(low, high), const(1.0), high - low) / 255.0

    scale = compute((), scale_of, f"{name}.out1")

    def zero_of() -> Expression:
        place = 0.0 - minimum(least[()], 0.0) / scale[()]
        return intrinsic("round_even", minimum(maximum(place, 0.0), 255.0)).astype(DType.UINT8)

    zero = compute((), zero_of, f"{name}.out2")

    def element(*i: Expression) -> Expression:
        moved = intrinsic("round_even", x[i] / scale[()]) + zero[()].astype(DType.FLOAT32)
        return clipped(moved, DType.UINT8)

    return [compute(x.shape, element, name), scale, zero][: len(call.output_types)]
