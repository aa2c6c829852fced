"""The operator intarsia::token_pool: one value of all tokens of each text, for any number of tokens.

token_pool(x, axis=, keepdims=, mode=)

x         numbers of any type, with the tokens in one axis
axis      that axis, not negative
keepdims  1 if the result has the axis, with an extent of 1; 0 if it has not
mode      sum, mean, max, min, first or last: what becomes of the tokens

It stands for a reduction over tokens, or for a Gather of the first or the last one, in a program that is
written so that its tokens are the rows of all values: kernels are compiled without a number of tokens.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from types import MappingProxyType
from typing import Any, Final

import numpy as np
import numpy.typing as npt

from intarsia.ir import Attrs, TensorType, Type
from intarsia.support.errors import InvalidModelError

POOL_OF_TOKENS: Final = "token_pool"
TOKEN_POOL_ATTRIBUTES: Final = ("axis", "keepdims", "mode")
POOL_MODES: Final = ("sum", "mean", "max", "min", "first", "last")

Array = npt.NDArray[Any]
_REDUCTIONS: Final[Mapping[str, Callable[..., Any]]] = MappingProxyType(
    {"sum": np.sum, "mean": np.mean, "max": np.max, "min": np.min}
)


def token_pool_type(args: tuple[Type | None, ...], attrs: Attrs) -> Type | None:
    """The type of the result: that of x without its tokens.

    Raises:
        InvalidModelError: An attribute is not as described, or x is no tensor with this axis.
    """
    axis, keepdims, mode = (attrs[name] for name in TOKEN_POOL_ATTRIBUTES)
    if not isinstance(axis, int) or keepdims not in (0, 1) or mode not in POOL_MODES:
        raise InvalidModelError(
            f"operator 'intarsia::token_pool' has axis={axis!r}, keepdims={keepdims!r} and mode={mode!r}, "
            f"expected an axis, 0 or 1, and one of {', '.join(POOL_MODES)}"
        )
    (x,) = args
    if not isinstance(x, TensorType) or x.shape is None:
        return x
    if not 0 <= axis < len(x.shape):
        raise InvalidModelError(f"operator 'intarsia::token_pool' has axis={axis}, its argument is {x}")
    kept = (1,) if keepdims else ()
    return TensorType((*x.shape[:axis], *kept, *x.shape[axis + 1 :]), x.dtype)


def token_pool_value(x: Array, axis: int, keepdims: bool, mode: str) -> Array:
    """Compute the result of the operator."""
    if mode in ("first", "last"):
        at = 0 if mode == "first" else x.shape[axis] - 1
        return x.take([at], axis) if keepdims else x.take(at, axis)
    result: Array = np.asarray(_REDUCTIONS[mode](x, axis=axis, keepdims=keepdims))
    return result.astype(x.dtype)
