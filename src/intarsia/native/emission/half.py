"""float16 and bfloat16, represented as rounded float32 values."""

from __future__ import annotations

from typing import Final

from intarsia.ir.dtype import DType
from intarsia.native.emission.builder import Builder
from intarsia.native.emission.types import constant, vector_type
from intarsia.native.machine.isa import Isa

_BFLOATS_OF: Final = {16: "llvm.x86.avx512bf16.cvtneps2bf16.512", 8: "llvm.x86.avx512bf16.cvtneps2bf16.256"}

_HALF_OF: Final = "half of"
"""Notes of the builder on float32 that were widened: the half of each."""


def rounded(builder: Builder, text: str, dtype: DType, lanes: int, has_f16c: bool) -> str:
    """Round a float32 to nearest even in float16 or bfloat16, and return it as float32."""
    if dtype is DType.BFLOAT16:
        return from_bfloat_bits(builder, _nearest_bfloat_bits(builder, text, lanes), lanes)
    return from_half_bits(builder, half_bits(builder, text, lanes, has_f16c), lanes, has_f16c)


def _nearest_bfloat_bits(builder: Builder, text: str, lanes: int) -> str:
    """Return the i16 of a float32 rounded to bfloat16; NaN stays NaN."""
    float_type, int_type = vector_type("float", lanes), vector_type("i32", lanes)

    def number(value: int) -> str:
        return constant(value, "i32", lanes)

    bits = builder.pure(f"bitcast {float_type} {text} to {int_type}")
    high = builder.pure(f"lshr {int_type} {bits}, {number(16)}")
    odd = builder.pure(f"and {int_type} {high}, {number(1)}")
    # Round to nearest even on the bits: add 0x7FFF, plus 1 if the kept part is odd, then cut 16 bits.
    half = builder.pure(f"add {int_type} {odd}, {number(0x7FFF)}")
    sum_ = builder.pure(f"add {int_type} {bits}, {half}")
    nearest = builder.pure(f"lshr {int_type} {sum_}, {number(16)}")
    # Rounding could carry a NaN into infinity, so a NaN is cut and made quiet instead.
    quiet = builder.pure(f"or {int_type} {high}, {number(0x40)}")
    is_nan = builder.pure(f"fcmp uno {float_type} {text}, {text}")
    mask_type = vector_type("i1", lanes)
    kept = builder.pure(f"select {mask_type} {is_nan}, {int_type} {quiet}, {int_type} {nearest}")
    return builder.pure(f"trunc {int_type} {kept} to {vector_type('i16', lanes)}")


def flushed_bfloat(builder: Builder, text: str, lanes: int, isa: Isa) -> str | None:
    """Return a float32 rounded to bfloat16 as float32, 0 if it is subnormal.

    Returns:
        None if there is no instruction for it.
    """
    if not isa.has_bf16_dot or lanes not in _BFLOATS_OF:
        return None
    float_type, numbers = vector_type("float", lanes), vector_type("bfloat", lanes)
    nearest = builder.call(numbers, _BFLOATS_OF[lanes], f"{float_type} {text}")
    bits = builder.pure(f"bitcast {numbers} {nearest} to {vector_type('i16', lanes)}")
    return from_bfloat_bits(builder, bits, lanes)


def pair_of_bfloats(builder: Builder, isa: Isa, numbers: tuple[str, str], lanes: int) -> str:
    """Return the words (i32) of two float32 rounded to bfloat16, the first one in the lower half."""
    word, half = vector_type("i32", lanes), vector_type("i16", lanes)
    parts = []
    for text in numbers:
        if isa.has_bf16_dot and lanes in _BFLOATS_OF:
            narrow = vector_type("bfloat", lanes)
            nearest = builder.call(narrow, _BFLOATS_OF[lanes], f"{vector_type('float', lanes)} {text}")
            bits = builder.pure(f"bitcast {narrow} {nearest} to {half}")
        else:
            bits = _nearest_bfloat_bits(builder, text, lanes)
        parts.append(builder.pure(f"zext {half} {bits} to {word}"))
    upper = builder.pure(f"shl {word} {parts[1]}, {constant(16, 'i32', lanes)}")
    return builder.pure(f"or {word} {parts[0]}, {upper}")


def rounded_bfloat_bits(builder: Builder, text: str, lanes: int) -> str:
    """Return the i16 of a float32 that is a bfloat16."""
    int_type = vector_type("i32", lanes)
    bits = builder.pure(f"bitcast {vector_type('float', lanes)} {text} to {int_type}")
    high = builder.pure(f"lshr {int_type} {bits}, {constant(16, 'i32', lanes)}")
    return builder.pure(f"trunc {int_type} {high} to {vector_type('i16', lanes)}")


def from_bfloat_bits(builder: Builder, text: str, lanes: int) -> str:
    """Return the float32 of a bfloat16's i16."""
    int_type = vector_type("i32", lanes)
    wide = builder.pure(f"zext {vector_type('i16', lanes)} {text} to {int_type}")
    bits = builder.pure(f"shl {int_type} {wide}, {constant(16, 'i32', lanes)}")
    return builder.pure(f"bitcast {int_type} {bits} to {vector_type('float', lanes)}")


def half_bits(builder: Builder, text: str, lanes: int, has_f16c: bool) -> str:
    """Return the half of a float32; without instructions for it, the i16 of that half.

    What was widened from a half is that half: elements that are only moved are not converted.
    """
    given = builder.noted((_HALF_OF, text))
    if given is not None:
        return str(given)
    if has_f16c:
        return builder.pure(f"fptrunc {vector_type('float', lanes)} {text} to {vector_type('half', lanes)}")
    return _half_by_integers(builder, text, lanes)


def from_half_bits(builder: Builder, text: str, lanes: int, has_f16c: bool) -> str:
    """Return the float32 of a result of `half_bits`."""
    if has_f16c:
        wide = builder.pure(f"fpext {vector_type('half', lanes)} {text} to {vector_type('float', lanes)}")
    else:
        wide = _float_by_integers(builder, text, lanes)
    if builder.noted((_HALF_OF, wide)) is None:
        builder.note((_HALF_OF, wide), text)
    return wide


def _half_by_integers(builder: Builder, text: str, lanes: int) -> str:
    """Round float32 to half with integer operations."""
    float_type, int_type = vector_type("float", lanes), vector_type("i32", lanes)
    mask_type = vector_type("i1", lanes)
    pure = builder.pure

    def number(value: int) -> str:
        return constant(value, "i32", lanes)

    bits = pure(f"bitcast {float_type} {text} to {int_type}")
    size = pure(f"and {int_type} {bits}, {number(0x7FFFFFFF)}")
    high = pure(f"lshr {int_type} {bits}, {number(16)}")
    sign = pure(f"and {int_type} {high}, {number(0x8000)}")
    shifted = pure(f"lshr {int_type} {size}, {number(13)}")
    odd = pure(f"and {int_type} {shifted}, {number(1)}")
    # Normal: round to nearest even on the bits (13 are cut), then move the exponent bias from 127 to 15 (112
    # less).
    carry = pure(f"add {int_type} {odd}, {number(0xFFF)}")
    sum_ = pure(f"add {int_type} {size}, {carry}")
    again = pure(f"lshr {int_type} {sum_}, {number(13)}")
    normal = pure(f"sub {int_type} {again}, {number(112 << 10)}")
    magnitude = pure(f"bitcast {int_type} {size} to {float_type}")
    # Denormal: adding 0.5 aligns the last bit of the sum with that of a half denormal, and the addition
    # rounds.
    aligned = pure(f"fadd {float_type} {magnitude}, {constant(0.5, 'float', lanes)}")
    small = pure(f"bitcast {float_type} {aligned} to {int_type}")
    tiny = pure(f"sub {int_type} {small}, {number(0x3F000000)}")

    def choose(cond: str, first: str, second: str) -> str:
        test = pure(f"icmp {cond}")
        return pure(f"select {mask_type} {test}, {int_type} {first}, {int_type} {second}")

    # 113 << 23 is 2**-14, the least normal half; 0x47800000 is 2**16, from which on the result is infinity or
    # NaN.
    finite = choose(f"ult {int_type} {size}, {number(113 << 23)}", tiny, normal)
    large = choose(f"ugt {int_type} {size}, {number(0x7F800000)}", number(0x7E00), number(0x7C00))
    result = choose(f"uge {int_type} {size}, {number(0x47800000)}", large, finite)
    signed = pure(f"or {int_type} {result}, {sign}")
    return pure(f"trunc {int_type} {signed} to {vector_type('i16', lanes)}")


def _float_by_integers(builder: Builder, text: str, lanes: int) -> str:
    """Convert half to float32 with integer operations and a multiplication."""
    float_type, int_type = vector_type("float", lanes), vector_type("i32", lanes)
    mask_type = vector_type("i1", lanes)
    pure = builder.pure

    def number(value: int) -> str:
        return constant(value, "i32", lanes)

    wide = pure(f"zext {vector_type('i16', lanes)} {text} to {int_type}")
    sign = pure(f"and {int_type} {wide}, {number(0x8000)}")
    high = pure(f"shl {int_type} {sign}, {number(16)}")
    size = pure(f"and {int_type} {wide}, {number(0x7FFF)}")
    moved = pure(f"shl {int_type} {size}, {number(13)}")
    as_float = pure(f"bitcast {int_type} {moved} to {float_type}")
    # Multiplying by 2**112 changes the exponent bias, and normalises denormals as well.
    scaled = pure(f"fmul {float_type} {as_float}, {constant(2.0**112, 'float', lanes)}")
    finite = pure(f"bitcast {float_type} {scaled} to {int_type}")
    special = pure(f"or {int_type} {moved}, {number(0x7F800000)}")
    is_special = pure(f"icmp uge {int_type} {size}, {number(0x7C00)}")
    bits = pure(f"select {mask_type} {is_special}, {int_type} {special}, {int_type} {finite}")
    signed = pure(f"or {int_type} {bits}, {high}")
    return pure(f"bitcast {int_type} {signed} to {float_type}")
