"""What a DequantizeLinear reads, and what it makes of constants."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

import numpy as np

from intarsia.ir import DType
from intarsia.native.graph.region_plan import Array, RegionValue
from intarsia.native.graph.straight_line import KernelStep
from intarsia.native.te.operators.quantization import dequantized_array

BYTES: Final = (DType.INT8, DType.UINT8)
"""Element types of bytes."""


@dataclass(frozen=True, slots=True)
class Dequantised:
    """The quantised argument of a step.

    Attributes:
        number: Number of the bytes.
        scale: Scale of all elements, or of each index of an axis.
        zero: Zero point likewise.
        axis: Axis of several scales.
    """

    number: int
    scale: Array
    zero: Array
    axis: int


def dequantised_by(step: KernelStep, values: Sequence[RegionValue]) -> Dequantised | None:
    """Return the bytes that a DequantizeLinear reads, with constant scales; None for other forms."""
    source, scale_number, *zeros = step.args
    if attribute(step, "block_size", 0) or source is None or scale_number is None:
        return None
    scale = values[scale_number].constant
    zero = values[zeros[0]].constant if zeros and zeros[0] is not None else np.zeros(1, np.int8)
    if scale is None or zero is None or scale.dtype != np.float32:
        return None
    if values[source].type.dtype not in BYTES or scale.ndim > 1:
        return None
    rank = len(values[source].type.static_shape)
    axis = attribute(step, "axis", 1) % max(1, rank)
    return Dequantised(source, scale.reshape(-1), zero.reshape(-1).astype(np.int64), axis)


def dequantised_constant(step: KernelStep, values: Sequence[RegionValue]) -> Array | None:
    """Return the elements of a dequantised constant; None for other values."""
    arrays = [None if arg is None else values[arg].constant for arg in step.args]
    if arrays[0] is None or arrays[1] is None:
        return None
    zero, block = arrays[2] if len(arrays) > 2 else None, attribute(step, "block_size", 0)
    return dequantized_array(arrays[0], arrays[1], zero, attribute(step, "axis", 1), block)


def attribute(step: KernelStep, name: str, default: int) -> int:
    """Return an attribute that is an integer."""
    value = step.call.attrs.get(name, default)
    assert isinstance(value, int), "the schema says so"
    return value
