"""The operator intarsia::token_append: keys or values of the past with those of new tokens behind them.

token_append(past, new, starts)

past    (texts, heads, past tokens, size), of any type
new     (texts, heads, tokens, size)
starts  position of the first new token of each text, int64 (texts,); absent where that is behind the past

The result is (texts, heads, past tokens + tokens, size), Concat on axis 2. With starts new tokens are written
over the past and as many zeros behind it; starts are brought into the range 0 to past tokens. It is an
operator of its own because its arguments are stored differently where tokens are the rows of all values: the
past as the caller passes it, head by head, and what is new token by token.
"""

from __future__ import annotations

from typing import Any, Final

import numpy as np
import numpy.typing as npt

from intarsia.ir import ANY, Attrs, DType, TensorType, Type
from intarsia.support.errors import InvalidModelError

APPENDED_TOKENS: Final = "token_append"
TOKEN_APPEND_ARGUMENTS: Final = 3
_RANK, _AXIS = 4, 2

Array = npt.NDArray[Any]


def token_append_type(args: tuple[Type | None, ...], _: Attrs) -> Type | None:
    """The type of the result: that of the past with more tokens.

    Raises:
        InvalidModelError: The arguments are no tensors of four axes and one type.
    """
    past, new, *starts = args
    if not isinstance(past, TensorType) or not isinstance(new, TensorType):
        return None
    if past.shape is None or new.shape is None:
        return TensorType(None, past.dtype)
    if len(past.shape) != _RANK or len(new.shape) != _RANK or past.dtype is not new.dtype:
        raise InvalidModelError(f"operator 'intarsia::token_append' cannot append {new} to {past}")
    if any(isinstance(item, TensorType) and item.dtype is not DType.INT64 for item in starts):
        raise InvalidModelError(f"operator 'intarsia::token_append' has starts {starts[0]}, expected int64")
    before, added = past.shape[_AXIS], new.shape[_AXIS]
    total = before + added if isinstance(before, int) and isinstance(added, int) else ANY
    return TensorType((*past.shape[:_AXIS], total, past.shape[_AXIS + 1]), past.dtype)


def token_append_value(past: Array, new: Array, starts: Array | None = None) -> Array:
    """Compute the result of the operator."""
    if starts is None:
        return np.concatenate([past, new], _AXIS)
    result = np.concatenate([past, np.zeros_like(new)], _AXIS)
    for text, start in enumerate(np.clip(starts, 0, past.shape[_AXIS]).tolist()):
        result[text, :, start : start + new.shape[_AXIS]] = new[text]
    return result
