"""The operator intarsia::token_positions: positions of tokens, counted in masks or from a first position.

token_positions(x, like, mode=)

x     signed integers, as the mode says
like  any tensor (texts or 1, tokens, ...) whose second axis has the new tokens
mode  sum        x (texts, n): the sum of each number and those before it, (texts, n)
      tail       x (texts, n): the last numbers, one for each new token, (texts, tokens)
      positions  x (texts, 1): x, x + 1, ..., (texts, tokens)
      start      x (texts,): x without the number of new tokens, at least 0, (texts,)

Programs write them as CumSum, Slice, and sums with a Range or a Shape. Here they have no numbers of tokens,
so that kernels are compiled without one.
"""

from __future__ import annotations

from typing import Any, Final

import numpy as np
import numpy.typing as npt

from intarsia.ir import Attrs, TensorType, Type
from intarsia.support.errors import InvalidModelError

COUNTED_POSITIONS: Final = "token_positions"
TOKEN_POSITIONS_ARGUMENTS: Final = 2
TOKEN_POSITIONS_ATTRIBUTES: Final = ("mode",)
POSITION_MODES: Final = ("sum", "tail", "positions", "start")

Array = npt.NDArray[Any]


def token_positions_type(args: tuple[Type | None, ...], attrs: Attrs) -> Type | None:
    """The type of the result.

    Raises:
        InvalidModelError: The mode is not one of them, or an argument is not as described.
    """
    mode, (x, like) = attrs["mode"], args
    if mode not in POSITION_MODES:
        raise InvalidModelError(
            f"operator 'intarsia::token_positions' has mode={mode!r}, expected one of "
            + ", ".join(POSITION_MODES)
        )
    if not isinstance(x, TensorType) or not isinstance(like, TensorType):
        return None
    rank = 1 if mode == "start" else 2
    has_rank = x.shape is None or len(x.shape) == rank
    if x.dtype.numpy.kind != "i" or not has_rank or (like.shape is not None and len(like.shape) < 2):
        raise InvalidModelError(
            f"operator 'intarsia::token_positions' with mode={mode!r} is for signed integers of rank {rank} "
            f"and a tensor of tokens, not {x} and {like}"
        )
    if mode in ("sum", "start") or x.shape is None or like.shape is None:
        return x if mode in ("sum", "start") else TensorType(None, x.dtype)
    return TensorType((x.shape[0], like.shape[1]), x.dtype)


def token_positions_value(x: Array, like: Array, mode: str) -> Array:
    """Compute the result of the operator."""
    tokens = like.shape[1]
    match mode:
        case "sum":
            result = np.cumsum(x, 1)
        case "tail":
            result = x[:, x.shape[1] - tokens :]
        case "positions":
            result = x + np.arange(tokens)
        case _:
            result = np.maximum(x - tokens, 0)
    return np.asarray(result).astype(x.dtype)
