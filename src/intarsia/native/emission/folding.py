"""Operations on constants, done when code is emitted: in unrolled loops counters are numbers."""

from __future__ import annotations

import struct
from collections.abc import Sequence

from intarsia.ir.dtype import DType
from intarsia.ir.prim_func import Arith, Cast, Intrinsic
from intarsia.ir.scalar_types import scalar_dtype
from intarsia.native.emission.types import Value, literal
from intarsia.native.tir.scalar_math import Number, literal_of_number, operation
from intarsia.support.errors import ExecutionError


def folded(scalar: Arith | Cast | Intrinsic, values: Sequence[Value]) -> Value | None:
    """Return the value of an operation on constants, rounded as the machine does; None for other operands.

    Args:
        scalar: The operation.
        values: Its operands.
    """
    if not values or any(value.lanes or value.text.startswith("%") for value in values):
        return None
    dtype = scalar_dtype(scalar)
    if dtype is None:
        return None
    try:
        number = operation(scalar, tuple(map(_number, values)), dtype)
    except ExecutionError:  # undefined: whatever the instruction gives
        return None
    return literal(literal_of_number(number, dtype).value, dtype)


def _number(value: Value) -> Number:
    if value.dtype is DType.BOOL:
        return value.text == "true"
    if not value.dtype.is_float:
        number = int(value.text)
        is_negative = number < 0 and value.dtype.value.startswith("uint")
        return number + (1 << 8 * value.dtype.numpy.itemsize) if is_negative else number
    (number,) = struct.unpack(">d", bytes.fromhex(value.text.removeprefix("0x")))
    return value.dtype.numpy.type(number)
