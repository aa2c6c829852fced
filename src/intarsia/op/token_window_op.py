"""The operator intarsia::token_window: for each token its neighbours in the text, side by side.

token_window(x, first=, count=, step=)

x      (texts or 1, tokens, ...), numbers of any type
first  position of the first neighbour, counted from the token itself: -1 is the token before
count  number of neighbours, 1 or more
step   distance from one neighbour to the next, 1 or more

The result is (texts or 1, tokens, count, ...), with zeros beyond the ends of a text. It stands for what a
convolution over tokens reads, or for tokens that are moved along the text, in a program that is written so
that its tokens are the rows of all values: kernels are compiled without a number of tokens.
"""

from __future__ import annotations

from typing import Any, Final

import numpy as np
import numpy.typing as npt

from intarsia.ir import Attrs, TensorType, Type
from intarsia.support.errors import InvalidModelError

WINDOW_OF_TOKENS: Final = "token_window"
TOKEN_WINDOW_ATTRIBUTES: Final = ("count", "first", "step")
_TOKENS: Final = 1
"""Axis of the tokens."""

Array = npt.NDArray[Any]


def window_of(attrs: Attrs) -> tuple[int, int, int]:
    """Return first, count and step.

    Raises:
        InvalidModelError: An attribute is not as described.
    """
    first, count, step = attrs["first"], attrs["count"], attrs["step"]
    if isinstance(first, int) and isinstance(count, int) and isinstance(step, int) and min(count, step) > 0:
        return first, count, step
    raise InvalidModelError(
        f"operator 'intarsia::token_window' has first={first!r}, count={count!r} and step={step!r}, "
        "expected integers, the last two positive"
    )


def token_window_type(args: tuple[Type | None, ...], attrs: Attrs) -> Type | None:
    """The type of the result: that of x with an axis of neighbours behind its tokens.

    Raises:
        InvalidModelError: An attribute is not as described, or x has no tokens.
    """
    _, count, _ = window_of(attrs)
    (x,) = args
    if not isinstance(x, TensorType) or x.shape is None:
        return x
    if len(x.shape) <= _TOKENS:
        raise InvalidModelError(f"operator 'intarsia::token_window' is for (texts, tokens, ...), not {x}")
    return TensorType((*x.shape[: _TOKENS + 1], count, *x.shape[_TOKENS + 1 :]), x.dtype)


def token_window_value(x: Array, first: int, count: int, step: int) -> Array:
    """Compute the result of the operator."""
    tokens = x.shape[_TOKENS]
    result = np.zeros((*x.shape[: _TOKENS + 1], count, *x.shape[_TOKENS + 1 :]), x.dtype)
    for at in range(count):
        moved = first + at * step
        begin, end = max(0, -moved), min(tokens, tokens - moved)
        if begin < end:
            result[:, begin:end, at] = x[:, begin + moved : end + moved]
    return result
