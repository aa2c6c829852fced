"""The operator intarsia::token_attention: attention of one text with itself, for any number of tokens.

token_attention(q, k, v, bias, later_bias, replaces=, scale=)

q, k        queries and keys, float32 (1, heads, tokens, size)
v           values, float32 (1, heads, tokens, value size)
bias        what is added to the scaled scores by key, float32 (1, heads or 1, 1, tokens or 1)
later_bias  the same for keys behind the query's position; absent if `bias` is for all keys

The result is softmax(scale * q k^T + bias) v, of the shape of v. With replaces=1 later_bias is not added to
the scores of later keys, but replaces them. Biases have no axis of queries: tokens are the rows of all
arguments, so that kernels need no number of tokens when they are compiled.
"""

from __future__ import annotations

from typing import Any, Final

import numpy as np
import numpy.typing as npt

from intarsia.ir import ABSENT, Attrs, DType, TensorType, Type
from intarsia.support.errors import InvalidModelError

ATTENTION_OF_TOKENS: Final = "token_attention"
TOKEN_ATTENTION_ARGUMENTS: Final = 5
TOKEN_ATTENTION_ATTRIBUTES: Final = ("replaces", "scale")

Array = npt.NDArray[Any]


def token_attention_type(args: tuple[Type | None, ...], attrs: Attrs) -> Type | None:
    """The type of the result: that of v.

    Raises:
        InvalidModelError: An argument is no float32 tensor of four axes, or the scale is no number.
    """
    scale, replaces = attrs["scale"], attrs["replaces"]
    if not isinstance(scale, float) or replaces not in (0, 1):
        raise InvalidModelError(
            f"operator 'intarsia::token_attention' has scale={scale!r} and replaces={replaces!r}, "
            "expected a float, and 0 or 1"
        )
    for position, arg in enumerate(args):
        if arg is None or (position >= 3 and arg == ABSENT):
            continue
        is_tensor = isinstance(arg, TensorType) and arg.dtype is DType.FLOAT32
        if not is_tensor or (isinstance(arg, TensorType) and arg.shape is not None and len(arg.shape) != 4):
            raise InvalidModelError(
                f"operator 'intarsia::token_attention' is for float32 tensors of four axes, not {arg}"
            )
    return args[2]


def token_attention_value(
    q: Array,
    k: Array,
    v: Array,
    bias: Array | None = None,
    later_bias: Array | None = None,
    *,
    replaces: bool,
    scale: float,
) -> Array:
    """Compute the result of the operator."""
    scores = np.float32(scale) * (q @ k.swapaxes(-1, -2))
    biased = scores if bias is None else scores + bias
    if later_bias is not None:
        later = later_bias if replaces else scores + later_bias
        biased = np.where(np.tri(q.shape[2], dtype=np.bool_), biased, later)
    powers = np.exp(biased - biased.max(-1, keepdims=True))
    result: Array = (powers / powers.sum(-1, keepdims=True)) @ v
    return result.astype(v.dtype)
