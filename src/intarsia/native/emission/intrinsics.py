"""Intrinsics: instructions where the machine has them, polynomials on float32 lanes, or the C library."""

from __future__ import annotations

from collections.abc import Callable
from typing import Final

from intarsia.ir.dtype import DType
from intarsia.ir.prim_func import Intrinsic, Literal
from intarsia.native.emission.builder import Builder
from intarsia.native.emission.dot_products import dot_of_words, is_dot
from intarsia.native.emission.half import pair_of_bfloats, rounded
from intarsia.native.emission.types import Value, constant, held_type, is_signed, overload
from intarsia.native.emission.vector_math.double import exp_double, in_double, log_double, power_double
from intarsia.native.emission.vector_math.double_angles import (
    acos_double,
    asin_double,
    atan_double,
    cosh_double,
    sinh_double,
    tanh_double,
)
from intarsia.native.emission.vector_math.double_trig import (
    cos_double,
    erf_double,
    sin_double,
    tan_double,
)
from intarsia.native.emission.vector_math.exp import erf, exp, exp2, tanh
from intarsia.native.emission.vector_math.lanes import Lanes
from intarsia.native.emission.vector_math.libm import each_lane
from intarsia.native.emission.vector_math.log import log, log2
from intarsia.native.emission.vector_math.trig import cos, sin
from intarsia.native.machine.isa import Isa

_HALVES: Final = (DType.FLOAT16, DType.BFLOAT16)
_OF_LANES: Final[dict[str, Callable[[Lanes, str], str]]] = {
    "exp": exp,
    "exp2": exp2,
    "log": log,
    "log2": log2,
    "tanh": tanh,
    "erf": erf,
}
_ANGLES: Final = {"sin": sin, "cos": cos}
"""Functions on float32 lanes that leave large numbers to another one."""
_IN_DOUBLE: Final[dict[str, Callable[..., str]]] = {
    "exp": exp_double,
    "log": log_double,
    "pow": power_double,
    "sinh": sinh_double,
    "cosh": cosh_double,
    "tanh": tanh_double,
    "asin": asin_double,
    "acos": acos_double,
    "atan": atan_double,
    "sin": sin_double,
    "cos": cos_double,
    "tan": tan_double,
    "erf": erf_double,
}
"""Functions with code in float64."""
_WITHOUT_LIBRARY: Final = "nvptx64"
"""Architecture without a C library."""
_ROUNDING: Final = {"floor": "floor", "ceil": "ceil", "trunc": "trunc", "round_even": "roundeven"}
_BITS: Final = {"bit_and": "and", "bit_or": "or", "bit_xor": "xor", "shift_left": "shl"}


def intrinsic(builder: Builder, isa: Isa, call: Intrinsic, args: list[Value]) -> Value:
    """Emit a call of an intrinsic on values of one type."""
    lanes = max(arg.lanes for arg in args)
    texts = [builder.splat(arg, lanes) for arg in args]
    if is_dot(call.name):
        text = dot_of_words(builder, isa, call.name, (texts[0], texts[1]), lanes)
        return Value(text, call.dtype, lanes)
    if call.name == "pair_bf16":
        return Value(pair_of_bfloats(builder, isa, (texts[0], texts[1]), lanes), call.dtype, lanes)
    if call.dtype.is_integer:
        return Value(_of_integers(builder, call.name, texts, call.dtype, lanes), call.dtype, lanes)
    text = _of_floats(builder, isa, call, texts, lanes)
    if call.dtype in _HALVES and call.name != "abs" and call.name not in _ROUNDING:
        text = rounded(builder, text, call.dtype, lanes, isa.has_f16c)
    return Value(text, call.dtype, lanes)


def _of_integers(builder: Builder, name: str, texts: list[str], dtype: DType, lanes: int) -> str:
    kind, element = held_type(dtype, lanes), held_type(dtype)
    match name:
        case "abs":
            if not is_signed(dtype):
                return texts[0]
            return builder.call(kind, f"llvm.abs.{overload(element, lanes)}", f"{kind} {texts[0]}, i1 false")
        case "bit_not":
            return builder.pure(f"xor {kind} {texts[0]}, {constant(-1, element, lanes)}")
        case "shift_right":
            op = "ashr" if is_signed(dtype) else "lshr"
            return builder.pure(f"{op} {kind} {texts[0]}, {texts[1]}")
    return builder.pure(f"{_BITS[name]} {kind} {texts[0]}, {texts[1]}")


def _of_floats(builder: Builder, isa: Isa, call: Intrinsic, texts: list[str], lanes: int) -> str:
    element = held_type(call.dtype)
    kind, suffix = held_type(call.dtype, lanes), overload(element, lanes)
    name = call.name
    if name == "flushed":
        return texts[0]
    if name in ("sqrt", "abs"):
        full = f"llvm.{'fabs' if name == 'abs' else name}.{suffix}"
        return builder.call(kind, full, f"{kind} {texts[0]}")
    if name in _ROUNDING and _has_rounding(isa):
        return builder.call(kind, f"llvm.{_ROUNDING[name]}.{suffix}", f"{kind} {texts[0]}")
    if name == "fma":
        return _fma(builder, isa, call.dtype, texts, lanes)
    if name == "pow":
        by_constant = _power(builder, call, texts, lanes)
        if by_constant is not None:
            return by_constant
    if element == "float" and name in _ANGLES:
        return _angle(builder, isa, name, texts[0], lanes)
    if element == "float" and name in _OF_LANES:
        return _OF_LANES[name](Lanes(builder, lanes, "avx512f" in isa.features), texts[0])
    if isa.architecture == _WITHOUT_LIBRARY and name in _IN_DOUBLE:
        return in_double(builder, _IN_DOUBLE[name], texts, element, lanes)
    library = _ROUNDING.get(name, name) + ("f" if element == "float" else "")
    return each_lane(builder, library, texts, element, lanes)


def _angle(builder: Builder, isa: Isa, name: str, x: str, lanes: int) -> str:
    """Emit the sine or cosine of float32.

    That of large numbers is the C library's, or computed in float64 where there is none.
    """

    def of_large() -> str:
        if isa.architecture == _WITHOUT_LIBRARY:
            return in_double(builder, _IN_DOUBLE[name], (x,), "float", lanes)
        return each_lane(builder, f"{name}f", (x,), "float", lanes)

    return _ANGLES[name](Lanes(builder, lanes, "avx512f" in isa.features), x, of_large)


def _has_rounding(isa: Isa) -> bool:
    return isa.architecture != "x86_64" or "sse4.1" in isa.features


def _fma(builder: Builder, isa: Isa, dtype: DType, texts: list[str], lanes: int) -> str:
    element, kind = held_type(dtype), held_type(dtype, lanes)
    if isa.has_fma:
        args = ", ".join(f"{kind} {text}" for text in texts)
        return builder.call(kind, f"llvm.fma.{overload(element, lanes)}", args)
    return each_lane(builder, "fma" if element == "double" else "fmaf", texts, element, lanes)


def _power(builder: Builder, call: Intrinsic, texts: list[str], lanes: int) -> str | None:
    """Emit a power by a constant as one or two instructions, if that is as accurate as `pow`; else None."""
    exponent, element = call.args[1], held_type(call.dtype)
    if not isinstance(exponent, Literal):
        return None
    kind, x = held_type(call.dtype, lanes), texts[0]
    match float(exponent.value):
        case 0.0:
            return constant(1.0, element, lanes)
        case 1.0:
            return x
        case 2.0:
            return builder.pure(f"fmul {kind} {x}, {x}")
        case 3.0 if element == "float" and call.dtype in _HALVES:
            square = builder.pure(f"fmul {kind} {x}, {x}")
            return builder.pure(f"fmul {kind} {square}, {x}")
        case -1.0:
            return builder.pure(f"fdiv {kind} {constant(1.0, element, lanes)}, {x}")
    return None
