"""The operator intarsia::token_filter: a weighted sum of each token's neighbours, channel by channel.

token_filter(x, taps, first=, step=)

x      (texts or 1, tokens, channels), float32 or float64
taps   (neighbours, channels) of the same type: the weight of each neighbour in each channel
first  position of the first neighbour, counted from the token itself: -1 is the token before
step   distance from one neighbour to the next, 1 or more

The result is (texts or 1, tokens, channels). What is beyond the ends of a text counts as zero. It stands for
a convolution over tokens with one filter for each channel, in a program that is written so that its tokens
are the rows of all values: kernels are compiled without a number of tokens.
"""

from __future__ import annotations

from typing import Any, Final

import numpy.typing as npt

from intarsia.ir import Attrs, TensorType, Type
from intarsia.op.token_window_op import token_window_value
from intarsia.support.errors import InvalidModelError

FILTER_OF_TOKENS: Final = "token_filter"
TOKEN_FILTER_ARGUMENTS: Final = 2
TOKEN_FILTER_ATTRIBUTES: Final = ("first", "step")

Array = npt.NDArray[Any]


def filter_of(attrs: Attrs) -> tuple[int, int]:
    """Return first and step.

    Raises:
        InvalidModelError: An attribute is not as described.
    """
    first, step = attrs["first"], attrs["step"]
    if isinstance(first, int) and isinstance(step, int) and step > 0:
        return first, step
    raise InvalidModelError(
        f"operator 'intarsia::token_filter' has first={first!r} and step={step!r}, "
        "expected integers, the last one positive"
    )


def token_filter_type(args: tuple[Type | None, ...], attrs: Attrs) -> Type | None:
    """The type of the result: that of x.

    Raises:
        InvalidModelError: An attribute is not as described, or an argument has another rank or type.
    """
    filter_of(attrs)
    x, taps = args
    if not isinstance(x, TensorType) or not isinstance(taps, TensorType):
        return x
    ranks = [None if item.shape is None else len(item.shape) for item in (x, taps)]
    if (
        ranks[0] not in (None, 3)
        or ranks[1] not in (None, 2)
        or not x.dtype.is_float
        or x.dtype != taps.dtype
    ):
        raise InvalidModelError(
            "operator 'intarsia::token_filter' is for (texts, tokens, channels) and (neighbours, channels) "
            f"of one floating-point type, not {x} and {taps}"
        )
    return x


def token_filter_value(x: Array, taps: Array, first: int, step: int) -> Array:
    """Compute the result of the operator."""
    result: Array = (token_window_value(x, first, len(taps), step) * taps).sum(axis=2, dtype=x.dtype)
    return result
