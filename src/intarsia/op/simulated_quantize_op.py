"""The operator intarsia::simulated_quantize: where a value is to be quantised, and with which scale.

simulated_quantize(x, scale, zero_point, mean, axis=, dtype=, key=)

x           the value, float32
scale       float32 of one element, or of one for each index of `axis`; left out before calibration
zero_point  of the type `dtype`, shaped as `scale`; left out before calibration
mean        float32: the mean of each channel of x over the calibration inputs, for bias correction; may be
            left out
axis        axis of the channels of a weight; -1 for one scale for all of x
dtype       "uint8" or "int8"
key         number of the value in the program that was annotated

Without a scale the result is x. With one it is x rounded to the steps of the type:
DequantizeLinear(QuantizeLinear(x, scale, zero_point), scale, zero_point).

Source: simulated_quantize of TVM's Relay, with ONNX's rounding.
"""

from __future__ import annotations

from typing import Any, Final

import numpy as np
import numpy.typing as npt

from intarsia.ir import Attrs, DType, TensorType, Type
from intarsia.support.errors import InvalidModelError

SIMULATED_QUANTIZE: Final = "simulated_quantize"
SIMULATED_QUANTIZE_ARGUMENTS: Final = 4
"""Largest number of arguments; all but the first may be left out from the end."""

SIMULATED_QUANTIZE_ATTRIBUTES: Final = ("axis", "dtype", "key")

PER_TENSOR: Final = -1
"""Value of `axis` for one scale for the whole value."""

QUANTISED_TYPES: Final = ("uint8", "int8")

Array = npt.NDArray[Any]


def simulated_quantize_type(args: tuple[Type | None, ...], attrs: Attrs) -> Type | None:
    """The type of the result, which is that of x.

    Raises:
        InvalidModelError: x is not float32, or the type to quantise to is unknown.
    """
    x = args[0]
    if isinstance(x, TensorType) and x.dtype is not DType.FLOAT32:
        raise InvalidModelError(f"operator 'intarsia::simulated_quantize' is for float32, not {x}")
    if attrs["dtype"] not in QUANTISED_TYPES:
        raise InvalidModelError(
            f"operator 'intarsia::simulated_quantize' has dtype={attrs['dtype']!r}, "
            f"expected {' or '.join(QUANTISED_TYPES)}"
        )
    return x


def simulated_quantize_value(x: Array, scale: Array | None, zero_point: Array | None, axis: int) -> Array:
    """Round x to the steps of a quantised type; without a scale return x itself."""
    if scale is None or zero_point is None:
        return x
    limits = np.iinfo(zero_point.dtype)
    steps, zero = along_axis(scale, axis, x.ndim), along_axis(zero_point, axis, x.ndim).astype(np.float32)
    quantised = np.clip(np.rint(x / steps) + zero, limits.min, limits.max)
    return np.asarray((quantised - zero) * steps, np.float32)


def along_axis(values: Array, axis: int, rank: int) -> Array:
    """Return values of one axis in a shape that broadcasts with an array of a rank."""
    if values.ndim == 0 or axis == PER_TENSOR:
        return values.reshape(())
    return values.reshape(tuple(-1 if number == axis else 1 for number in range(rank)))
