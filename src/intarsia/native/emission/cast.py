"""Casts between element types, as the loop language defines them."""

from __future__ import annotations

from typing import Final

from intarsia.ir.dtype import DType
from intarsia.native.emission.builder import Builder
from intarsia.native.emission.half import rounded
from intarsia.native.emission.types import (
    Value,
    constant,
    held_type,
    is_signed,
    overload,
    stored_bytes,
    vector_type,
)
from intarsia.native.emission.vector_parts import joined_vectors, vector_part
from intarsia.native.machine.isa import Isa

_HALVES = (DType.FLOAT16, DType.BFLOAT16)
_NIBBLES: Final = 16
"""Number of values of four bits, which is that of the lanes of a vector of 512 bits."""


def cast(builder: Builder, value: Value, dtype: DType, has_f16c: bool) -> Value:
    """Emit a cast of a value to another type."""
    if value.dtype is dtype:
        return value
    return Value(_text(builder, value, dtype, has_f16c), dtype, value.lanes)


def nearest_word(builder: Builder, isa: Isa, value: Value) -> Value | None:
    """Emit a float32 rounded half to even to an int32 as one instruction; None where there is none.

    The instruction rounds by the mode of the thread, which no code of ours changes from half to even.
    """
    if isa.architecture != "x86_64" or value.dtype is not DType.FLOAT32 or value.lanes not in (4, 8, 16):
        return None
    kind, word = held_type(value.dtype, value.lanes), held_type(DType.INT32, value.lanes)
    name = f"llvm.lrint.{overload('i32', value.lanes)}.{overload('float', value.lanes)}"
    number = builder.call(word, name, f"{kind} {value.text}")
    return Value(builder.pure(f"freeze {word} {number}"), DType.INT32, value.lanes)


def nibbles_as_floats(builder: Builder, isa: Isa, words: Value, middle: float) -> Value | None:
    """Emit the lowest four bits of int32, less a number, in float32; None where that takes instructions.

    One instruction looks them up in a vector of sixteen, and ignores higher bits of their positions: that
    saves the mask, the difference and the conversion.
    """
    lanes, width = words.lanes, _NIBBLES
    if "avx512f" not in isa.features or lanes % width or lanes & (lanes - 1) or not lanes:
        return None
    kind, word = vector_type("float", width), vector_type("i32", width)
    table = ", ".join(f"float {constant(number - middle, 'float', 0)}" for number in range(width))
    parts = [
        builder.call(
            kind,
            "llvm.x86.avx512.permvar.sf.512",
            f"{kind} <{table}>, {word} {vector_part(builder, words.text, lanes, first, width)}",
        )
        for first in range(0, lanes, width)
    ]
    return Value(joined_vectors(builder, parts, width, "float"), DType.FLOAT32, lanes)


def _text(builder: Builder, value: Value, dtype: DType, has_f16c: bool) -> str:
    source, lanes = value.dtype, value.lanes
    kind, target = held_type(source, lanes), held_type(dtype, lanes)
    if dtype is DType.BOOL:
        test = "fcmp une" if source.is_float else "icmp ne"
        return builder.pure(
            f"{test} {kind} {value.text}, {constant(0.0 if source.is_float else 0, held_type(source), lanes)}"
        )
    if source.is_float and dtype.is_float:
        return _between_floats(builder, value, dtype, has_f16c)
    if dtype.is_float:
        return _to_float(builder, value, dtype, has_f16c)
    if source.is_float:
        if stored_bytes(dtype) < stored_bytes(DType.INT32):
            # Machines convert to 32 bits, and LLVM makes worse code of a conversion to fewer.
            word, wide = vector_type("i32", lanes), f"fptosi {kind} {value.text} to"
            number = builder.pure(f"freeze {word} {builder.pure(f'{wide} {word}')}")
            return builder.pure(f"trunc {word} {number} to {target}")
        sign = "s" if is_signed(dtype) else "u"
        number = builder.pure(f"fpto{sign}i {kind} {value.text} to {target}")
        return builder.pure(f"freeze {target} {number}")  # NaN gives some number, the same for every use
    return _between_integers(builder, value, dtype)


def _between_integers(builder: Builder, value: Value, dtype: DType) -> str:
    kind, target = held_type(value.dtype, value.lanes), held_type(dtype, value.lanes)
    if value.dtype is not DType.BOOL:
        before, after = stored_bytes(value.dtype), stored_bytes(dtype)
        if before == after:
            return value.text
        if before > after:
            return builder.pure(f"trunc {kind} {value.text} to {target}")
    extend = "sext" if is_signed(value.dtype) else "zext"
    return builder.pure(f"{extend} {kind} {value.text} to {target}")


def _between_floats(builder: Builder, value: Value, dtype: DType, has_f16c: bool) -> str:
    lanes, target = value.lanes, held_type(dtype, value.lanes)
    text = value.text
    if value.dtype is DType.FLOAT64:
        if dtype in _HALVES:
            text = _to_odd(builder, text, lanes)
        else:
            return builder.pure(f"fptrunc {held_type(value.dtype, lanes)} {text} to {target}")
    elif dtype is DType.FLOAT64:
        return builder.pure(f"fpext {held_type(value.dtype, lanes)} {text} to {target}")
    return rounded(builder, text, dtype, lanes, has_f16c) if dtype in _HALVES else text


def _to_float(builder: Builder, value: Value, dtype: DType, has_f16c: bool) -> str:
    lanes = value.lanes
    convert = "sitofp" if is_signed(value.dtype) else "uitofp"
    kind = held_type(value.dtype, lanes)
    if dtype not in _HALVES:
        return builder.pure(f"{convert} {kind} {value.text} to {held_type(dtype, lanes)}")
    if value.dtype is DType.BOOL or stored_bytes(value.dtype) <= 2:
        text = builder.pure(f"{convert} {kind} {value.text} to {vector_type('float', lanes)}")
    else:
        wide = builder.pure(f"{convert} {kind} {value.text} to {vector_type('double', lanes)}")
        text = _to_odd(builder, wide, lanes)
    return rounded(builder, text, dtype, lanes, has_f16c)


def _to_odd(builder: Builder, text: str, lanes: int) -> str:
    """Round a double to odd: towards zero, with the last bit set if the result is inexact."""
    double, single = vector_type("double", lanes), vector_type("float", lanes)
    bits_type, mask, pure = vector_type("i32", lanes), vector_type("i1", lanes), builder.pure
    unit = constant(1, "i32", lanes)
    # Rounding twice (double to float to half) can round a tie the wrong way. A float rounded to odd has
    # enough bits\nto break every tie of the second rounding.
    near = pure(f"fptrunc {double} {text} to {single}")
    back = pure(f"fpext {single} {near} to {double}")
    bits = pure(f"bitcast {single} {near} to {bits_type}")
    size = pure(f"call {double} @{_fabs(builder, double, lanes)}({double} {text})")
    near_size = pure(f"call {double} @{_fabs(builder, double, lanes)}({double} {back})")
    lost = pure(f"fcmp one {double} {near_size}, {size}")
    is_above = pure(f"fcmp ogt {double} {near_size}, {size}")
    lower = pure(f"sub {bits_type} {bits}, {unit}")
    towards_zero = pure(f"select {mask} {is_above}, {bits_type} {lower}, {bits_type} {bits}")
    odd = pure(f"or {bits_type} {towards_zero}, {unit}")
    kept = pure(f"select {mask} {lost}, {bits_type} {odd}, {bits_type} {bits}")
    return pure(f"bitcast {bits_type} {kept} to {single}")


def _fabs(builder: Builder, double: str, lanes: int) -> str:
    name = f"llvm.fabs.v{lanes}f64" if lanes else "llvm.fabs.f64"
    builder.declare(double, name, f"{double} x")
    return name
