"""LLVM types of elements in registers and in memory, and texts of constants.

Integers keep their type, bool is i1 (i8 in memory), float16 and bfloat16 are a float that is rounded to them
after each operation (half and i16 in memory).
"""

from __future__ import annotations

import struct
from functools import cache
from typing import Final, NamedTuple

from intarsia.ir.dtype import DType

_HELD: Final = {
    DType.FLOAT64: "double",
    DType.FLOAT32: "float",
    DType.FLOAT16: "float",
    DType.BFLOAT16: "float",
    DType.INT64: "i64",
    DType.INT32: "i32",
    DType.INT16: "i16",
    DType.INT8: "i8",
    DType.UINT64: "i64",
    DType.UINT32: "i32",
    DType.UINT16: "i16",
    DType.UINT8: "i8",
    DType.BOOL: "i1",
}
_STORED: Final = _HELD | {DType.FLOAT16: "half", DType.BFLOAT16: "i16", DType.BOOL: "i8"}
_SUFFIX: Final = {"float": "f32", "double": "f64", "half": "f16", "ptr": "p0"}


class Value(NamedTuple):
    """An LLVM value.

    Attributes:
        text: Name or constant.
        dtype: Element type in the loop language.
        lanes: Number of lanes of a vector; 0 for a scalar, which all lanes share.
    """

    text: str
    dtype: DType
    lanes: int


@cache
def vector_type(element: str, lanes: int) -> str:
    """Return the LLVM type of a vector; 0 lanes is a scalar."""
    return f"<{lanes} x {element}>" if lanes else element


@cache
def held_type(dtype: DType, lanes: int = 0) -> str:
    """Return the LLVM type of an element type in registers."""
    return vector_type(_HELD[dtype], lanes)


@cache
def stored_type(dtype: DType, lanes: int = 0) -> str:
    """Return the LLVM type of an element type in memory."""
    return vector_type(_STORED[dtype], lanes)


@cache
def stored_bytes(dtype: DType) -> int:
    """Return the size of one element in memory, in bytes."""
    return 1 if dtype is DType.BOOL else dtype.numpy.itemsize


@cache
def held_bytes(dtype: DType) -> int:
    """Return the size of one element in a vector register, in bytes; a bool adapts to its neighbours."""
    return 4 if _HELD[dtype] == "float" else stored_bytes(dtype)


@cache
def overload(element: str, lanes: int) -> str:
    """Return the type suffix of an intrinsic's name: `v8f32`, `i64`."""
    suffix = _SUFFIX.get(element, element)
    return f"v{lanes}{suffix}" if lanes else suffix


def is_signed(dtype: DType) -> bool:
    """Return whether integers of a type are signed."""
    return dtype.value.startswith("int")


def scalar_constant(number: float, element: str) -> str:
    """Return a constant of an LLVM type, in which a float must be exact."""
    if element == "i1":
        return "true" if number else "false"
    if element.startswith("i"):
        bits = int(element[1:])
        wrapped = int(number) & ((1 << bits) - 1)
        return str(wrapped - (1 << bits) if wrapped >> (bits - 1) else wrapped)
    if number != number:
        return "0x7FF8000000000000"
    return f"0x{struct.unpack('>Q', struct.pack('>d', number))[0]:016X}"


def constant(number: float, element: str, lanes: int) -> str:
    """Return a constant in all lanes."""
    text = scalar_constant(number, element)
    return f"splat ({element} {text})" if lanes else text


def literal(number: float, dtype: DType, lanes: int = 0) -> Value:
    """Return a number of the loop language as a value."""
    return Value(constant(number, _HELD[dtype], lanes), dtype, lanes)


def zero(dtype: DType, lanes: int) -> str:
    """Return the constant for elements that were never stored."""
    return constant(0, _HELD[dtype], lanes)


@cache
def lane_numbers(lanes: int, step: int, base: int) -> str:
    """Return the int64 constant vector `base + step * lane`."""
    return "<" + ", ".join(f"i64 {base + step * lane}" for lane in range(lanes)) + ">"


@cache
def shuffle_mask(lanes: tuple[int, ...]) -> str:
    """Return the mask operand of a shufflevector."""
    if not any(lanes):
        return f"<{len(lanes)} x i32> zeroinitializer"
    return f"<{len(lanes)} x i32> <" + ", ".join(f"i32 {lane}" for lane in lanes) + ">"
