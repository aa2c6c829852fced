"""The operator intarsia::token_attention: attention of texts with themselves, for any number of tokens.

token_attention(q, k, v, bias, later_bias, table, starts, anchor=, clears=, replaces=, scale=)

q           queries, float32 (texts, heads, tokens, size)
k           keys, float32 (texts, shared heads, keys, size)
v           values, float32 (texts, shared heads, keys, value size)
bias        what is added to the scaled scores by key, float32 (texts or 1, heads or 1, 1, keys or 1)
later_bias  the same for keys behind the query's position; absent if `bias` is for all keys
table       what is added to the scaled scores by the position of the key, float32 (heads or 1, width)
starts      position of the first query of each text among its keys, int64 (texts,); absent where the last
            query is at the position of the last key

The result is softmax(scale * q k^T + bias) v, (texts, heads, tokens, value size). Some heads in a row may
share their keys and values. There may be more keys than tokens, those of the past. With replaces=1
later_bias is not added to the scores of later keys, but replaces them. With clears=1 a row of scores that
are all -inf gives 0, as in ONNX's Attention; else it gives NaN. Biases have no axis of queries: tokens are
the rows of all arguments, so that kernels need no number of tokens when they are compiled.

The anchor is where positions in the table count from: "first" from the first key, "last" back from the last
key, whose number is the last one of the table, "query" from the query's position, which the middle of the
table is for. The anchor "apart" is for keys of other texts, such as those of an encoder: their number is
independent of that of the queries, and there is neither a table nor a bias for later keys.
"""

from __future__ import annotations

from typing import Any, Final

import numpy as np
import numpy.typing as npt

from intarsia.ir import ABSENT, Attrs, DType, TensorType, Type
from intarsia.support.errors import InvalidModelError

ATTENTION_OF_TOKENS: Final = "token_attention"
TOKEN_ATTENTION_ARGUMENTS: Final = 7
TOKEN_ATTENTION_ATTRIBUTES: Final = ("anchor", "clears", "replaces", "scale")
ANCHORS: Final = ("first", "last", "query")
"""Origins of the positions in a table."""
APART: Final = "apart"
"""Anchor where keys are those of other texts."""
_BIASES: Final = 3
"""Position of the first argument that may be absent."""
_RANKS: Final = (4, 4, 4, 4, 4, 2, 1)

Array = npt.NDArray[Any]


def token_attention_type(args: tuple[Type | None, ...], attrs: Attrs) -> Type | None:
    """The type of the result: that of q with the size of a value.

    Raises:
        InvalidModelError: An argument is no tensor of its type and rank, or an attribute is not as described.
    """
    scale, flags, anchor = attrs["scale"], (attrs["clears"], attrs["replaces"]), attrs["anchor"]
    if not isinstance(scale, float) or not {*flags} <= {0, 1} or anchor not in (*ANCHORS, APART):
        raise InvalidModelError(
            f"operator 'intarsia::token_attention' has scale={scale!r}, clears={flags[0]!r}, "
            f"replaces={flags[1]!r} and anchor={anchor!r}, expected a float, 0 or 1, and one of "
            + ", ".join((*ANCHORS, APART))
        )
    for position, (arg, rank) in enumerate(zip(args, _RANKS, strict=False)):
        if arg is None or (position >= _BIASES and arg == ABSENT):
            continue
        dtype = DType.INT64 if rank == 1 else DType.FLOAT32
        shape = arg.shape if isinstance(arg, TensorType) else None
        is_tensor = isinstance(arg, TensorType) and arg.dtype is dtype
        if not is_tensor or (shape is not None and len(shape) != rank):
            raise InvalidModelError(
                f"argument {position} of operator 'intarsia::token_attention' is a {dtype} tensor of rank "
                f"{rank}, not {arg}"
            )
    query, _, value = args[:3]
    if not isinstance(query, TensorType) or not isinstance(value, TensorType):
        return None
    if query.shape is None or value.shape is None:
        return TensorType(None, DType.FLOAT32)
    return TensorType((*query.shape[:-1], value.shape[-1]), DType.FLOAT32)


def token_attention_value(
    q: Array,
    k: Array,
    v: Array,
    bias: Array | None = None,
    later_bias: Array | None = None,
    table: Array | None = None,
    starts: Array | None = None,
    *,
    replaces: bool,
    scale: float,
    clears: bool = False,
    anchor: str = "query",
) -> Array:
    """Compute the result of the operator."""
    groups, (tokens, count) = q.shape[1] // k.shape[1], (q.shape[2], k.shape[2])
    keys, values = (np.repeat(item, groups, 1) for item in (k, v))
    first = np.array([count - tokens]) if starts is None else starts
    positions, key = first[:, None] + np.arange(tokens), np.arange(count)
    scores = np.float32(scale) * (q @ keys.swapaxes(-1, -2))
    if table is not None:
        scores = scores + table[:, _columns(positions, key, table.shape[1], anchor)].swapaxes(0, 1)
    biased = scores if bias is None else scores + bias
    if later_bias is not None:
        later = later_bias if replaces else scores + later_bias
        biased = np.where((key <= positions[..., None])[:, None], biased, later)
    with np.errstate(all="ignore"):  # infinities and NaNs are results like others
        largest = biased.max(-1, keepdims=True, initial=-np.inf)
        powers = np.exp(biased - (np.where(largest == -np.inf, 0, largest) if clears else largest))
        total = powers.sum(-1, keepdims=True)
        result: Array = (powers / (np.where(total == 0, 1, total) if clears else total)) @ values
    return result.astype(v.dtype)


def _columns(positions: Array, key: Array, width: int, anchor: str) -> Array:
    """Return the columns of a table (texts, queries, keys), given positions of queries (texts, queries)."""
    if anchor == "query":
        return np.asarray(key - positions[..., None] + width // 2)
    begin = 0 if anchor == "first" else width - len(key)
    return np.broadcast_to(begin + key, (*positions.shape, len(key)))
