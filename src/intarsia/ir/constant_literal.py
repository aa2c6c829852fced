"""Short constants as they stand in program text: `float32(0.5)`, `int64[1, -1]`."""

from __future__ import annotations

import re
from typing import Any, Final

import numpy as np
import numpy.typing as npt

from intarsia.ir.dtype import DType

LONGEST_LITERAL: Final = 10
"""Elements of the longest constant that is written in place: pads of an image of three spatial axes."""

_WRITTEN: Final = frozenset(
    {
        DType.BOOL,
        *(DType.FLOAT64, DType.FLOAT32, DType.FLOAT16),
        *(DType.INT64, DType.INT32, DType.INT16, DType.INT8),
        *(DType.UINT64, DType.UINT32, DType.UINT16, DType.UINT8),
    }
)
_LITERAL: Final = re.compile(r"(\w+)\s*([(\[])(.*)[)\]]", re.DOTALL)
_TRUTH: Final = {"true": True, "false": False}


def literal_text(array: npt.NDArray[Any]) -> str | None:
    """Return a scalar or short vector as text; None for what is longer, or of another type.

    The text gives back the same bytes: a NaN with a payload of its own has none.
    """
    dtype = DType.of(array)
    if array.ndim > 1 or array.size > LONGEST_LITERAL or dtype not in _WRITTEN:
        return None
    items = ", ".join(map(_item_text, array.reshape(-1)))
    text = f"{dtype.value}[{items}]" if array.ndim else f"{dtype.value}({items})"
    if dtype.is_float and literal_array(text).tobytes() != array.tobytes():
        return None
    return text


def literal_array(text: str) -> npt.NDArray[Any]:
    """Return the array that `literal_text` has written.

    Raises:
        ValueError: A number is malformed, or does not fit the type.
    """
    match = _LITERAL.fullmatch(text)
    if match is None:
        raise ValueError("expected a type and numbers: float32(0.5) or int64[1, -1]")
    dtype = DType(match[1])
    words = [word.strip() for word in match[3].split(",")] if match[3].strip() else []
    values = np.array([_item(word, dtype) for word in words], dtype.numpy)
    return values if match[2] == "[" else values.reshape(())


def _item_text(item: Any) -> str:
    return str(item).lower() if isinstance(item, np.bool_) else str(item)


def _item(word: str, dtype: DType) -> bool | int | float:
    if dtype is DType.BOOL:
        if word not in _TRUTH:
            raise ValueError(f"{word} is neither true nor false")
        return _TRUTH[word]
    if not dtype.is_integer:
        return float(word)
    value, limits = int(word), np.iinfo(dtype.numpy)  # type: ignore[type-var]  # a NumPy integer
    if not limits.min <= value <= limits.max:
        raise ValueError(f"{word} does not fit {dtype.value}")
    return value
