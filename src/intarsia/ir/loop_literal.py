"""How names, buffers and numbers are written in the text of loop functions, and read back."""

from __future__ import annotations

import json
import re
from functools import lru_cache
from math import isfinite
from typing import Final

from intarsia.ir.dtype import DType
from intarsia.ir.prim_func import Buffer, Literal, MemoryScope

_PLAIN: Final = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")
_RESERVED: Final = frozenset(
    {
        *("alloc", "and", "else", "false", "floordiv", "for", "if", "in", "mod", "not", "or", "true"),
        *("async", "barrier", "block", "mma", "parallel", "serial", "signed", "thread"),
        *("unrolled", "vectorized"),
    }
)
_DTYPE: Final = re.compile(r"(?:bfloat|float|uint|int)[0-9]+(?:_[a-z0-9]+)?|bool|complex[0-9]+|string")
_NUMBER: Final = re.compile(
    r"(?P<digits>-?(?:inf|nan|[0-9]+(?P<fraction>\.[0-9]*)?(?P<exponent>e[+-]?[0-9]+)?))"
    r"(?:_?(?P<suffix>(?:bf|f|u|i)[0-9]+(?:_[a-z0-9]+)?))?"
)
_BUFFER: Final = re.compile(
    r"Buffer\s*\[\s*\((?P<shape>[\s0-9,]*)\)\s*,\s*(?P<dtype>\w+)\s*(?:,\s*(?P<scope>\w+)\s*)?\]"
)
_WIDEST: Final = 17  # digits that distinguish any two float64


def loop_name_text(name: str) -> str:
    """The name of a buffer, a loop variable or an intrinsic: plain where it can be, else quoted."""
    is_taken = name in _RESERVED or _DTYPE.fullmatch(name) or _NUMBER.fullmatch(name)
    return name if _PLAIN.fullmatch(name) and not is_taken else json.dumps(name)


@lru_cache(4096)  # 0.0 and -0.0 are different literals, but equal floats
def number_text(literal: Literal) -> str:
    """The shortest text that reads back as the literal: `3` (int64), `true`, `0.5f32`, `nan_f16`, `7u8`."""
    value, dtype = literal.value, literal.dtype
    if isinstance(value, bool) and dtype is DType.BOOL:
        return "true" if value else "false"
    suffix = dtype.value.replace("float", "f").replace("uint", "u").replace("int", "i")
    if isinstance(value, int):
        return str(value) if dtype is DType.INT64 else f"{value:d}{suffix}"
    return _float_text(value, dtype) + suffix if isfinite(value) else f"{value}_{suffix}"


def _float_text(value: float, dtype: DType) -> str:
    for digits in range(1, _WIDEST):
        text = f"{value:.{digits}g}"
        if Literal(float(text), dtype).value == value:
            break
    else:
        text = repr(value)
    return text if "." in text or "e" in text else f"{text}.0"


def number_of(text: str) -> Literal:
    """The literal that `number_text` wrote.

    Raises:
        ValueError: No type is given, or there is none of that name, or the number is not of it.
    """
    if text in ("true", "false"):
        return Literal(text == "true", DType.BOOL)
    match = _NUMBER.fullmatch(text)
    if match is None:
        raise ValueError("expected a number such as 3, 0.5f32 or 7u8")
    is_whole = match["digits"].lstrip("-").isdigit()
    if match["suffix"] is None and not is_whole:
        raise ValueError(f"a number that is not whole needs a type, such as {text}f32")
    dtype = DType.INT64 if match["suffix"] is None else _dtype_of_suffix(match["suffix"])
    value = int(match["digits"]) if is_whole else float(match["digits"])
    literal = Literal(float(match["digits"]) if dtype.is_float else value, dtype)  # -0f32 is -0.0
    if not literal.is_in_type:
        raise ValueError(f"{dtype.value} has no such number")
    return literal


def _dtype_of_suffix(suffix: str) -> DType:
    stem = suffix.lstrip("bfui")
    kind = {"bf": "bfloat", "f": "float", "u": "uint", "i": "int"}[suffix[: -len(stem)]]
    return dtype_of(kind + stem)


def dtype_of(text: str) -> DType:
    """The element type of that name.

    Raises:
        ValueError: There is none.
    """
    try:
        return DType(text)
    except ValueError:
        raise ValueError(f"unknown element type {text}") from None


def buffer_of(name: str, text: str) -> Buffer:
    """Parse the type that `str(Buffer)` wrote, as a buffer of that name.

    Raises:
        ValueError: Malformed shape, or an unknown element type or scope.
    """
    match = _BUFFER.fullmatch(text)
    if match is None:
        raise ValueError("expected Buffer[(4, 8), float32]")
    extents = [part.strip() for part in match["shape"].split(",")]
    if extents and not extents[-1]:
        extents.pop()
    if not all(extents) or any(len(extent.split()) > 1 for extent in extents):
        raise ValueError("expected Buffer[(4, 8), float32]")
    scope = match["scope"] or MemoryScope.GLOBAL.value
    if scope not in set(MemoryScope):
        raise ValueError(f"unknown scope {scope}; the scopes are {', '.join(MemoryScope)}")
    return Buffer(name, tuple(map(int, extents)), dtype_of(match["dtype"]), MemoryScope(scope))
