"""The operators that ONNX lacks, in the domain "intarsia" (DESIGN section 2).

on_device(x, constrain_body=1, constrain_result=0)
                                      x itself; its device is the call's virtual_device. With constrain_body x
                                      is computed there, with constrain_result the value of the call is there
device_copy(x)                        a copy of x on the call's virtual device
layout_transform(x, src_layout=, dst_layout=)
                                      x with its axes permuted; layouts are axis letters: "NCHW" to "NHWC"
counted_indices(x)                    the rows of NonZero, their number first
counted_boxes(boxes, scores, ...)     the rows of NonMaxSuppression, their number first (op/counted_rows_op)
simulated_quantize(x, ...)            x rounded to the steps of a quantised type (op/simulated_quantize_op)
token_attention(q, k, v, ...)         attention of one text of any length with itself (op/token_attention_op)
token_append(past, new, starts)       keys or values with new ones behind them (op/token_append_op)
token_pool(x, ...)                     one value of all tokens of each text (op/token_pool_op)
token_positions(x, like, mode=)        positions of tokens, counted in masks (op/token_positions_op)
token_window(x, ...)                   neighbours of each token in its text (op/token_window_op)
token_filter(x, taps, ...)             weighted sums of these neighbours (op/token_filter_op)
tree_ensemble(x, ...)                 what decision trees add up to (op/tree_ensemble_op)
"""

from __future__ import annotations

from collections.abc import Callable
from types import MappingProxyType
from typing import TypeAlias

from intarsia.ir import Attrs, TensorType, Type
from intarsia.op.counted_rows_op import (
    COUNTED_BOXES,
    COUNTED_BOXES_ARGUMENTS,
    COUNTED_BOXES_ATTRIBUTES,
    COUNTED_INDICES,
    counted_boxes_type,
    counted_indices_type,
)
from intarsia.op.simulated_quantize_op import (
    SIMULATED_QUANTIZE,
    SIMULATED_QUANTIZE_ARGUMENTS,
    SIMULATED_QUANTIZE_ATTRIBUTES,
    simulated_quantize_type,
)
from intarsia.op.token_append_op import APPENDED_TOKENS, TOKEN_APPEND_ARGUMENTS, token_append_type
from intarsia.op.token_attention_op import (
    ATTENTION_OF_TOKENS,
    TOKEN_ATTENTION_ARGUMENTS,
    TOKEN_ATTENTION_ATTRIBUTES,
    token_attention_type,
)
from intarsia.op.token_filter_op import (
    FILTER_OF_TOKENS,
    TOKEN_FILTER_ARGUMENTS,
    TOKEN_FILTER_ATTRIBUTES,
    token_filter_type,
)
from intarsia.op.token_pool_op import POOL_OF_TOKENS, TOKEN_POOL_ATTRIBUTES, token_pool_type
from intarsia.op.token_positions_op import (
    COUNTED_POSITIONS,
    TOKEN_POSITIONS_ARGUMENTS,
    TOKEN_POSITIONS_ATTRIBUTES,
    token_positions_type,
)
from intarsia.op.token_window_op import TOKEN_WINDOW_ATTRIBUTES, WINDOW_OF_TOKENS, token_window_type
from intarsia.op.tree_ensemble_op import (
    TREE_ARGUMENTS,
    TREE_ATTRIBUTES,
    TREE_ENSEMBLE,
    tree_ensemble_type,
)
from intarsia.support.errors import InvalidModelError

TypeRule: TypeAlias = Callable[[tuple[Type | None, ...], Attrs], Type | None]


def _same_type(args: tuple[Type | None, ...], _: Attrs) -> Type | None:
    return args[0]


def layout_permutation(source: str, destination: str) -> tuple[int, ...]:
    """Where each axis of the result comes from: "NCHW" to "NHWC" is (0, 2, 3, 1).

    Raises:
        InvalidModelError: The layouts are not the same set of distinct axes.
    """
    if sorted(source) != sorted(destination) or len(set(source)) != len(source):
        raise InvalidModelError(f"layout {source!r} cannot be transformed to {destination!r}")
    return tuple(source.index(axis) for axis in destination)


def _layout_transform(args: tuple[Type | None, ...], attrs: Attrs) -> Type | None:
    source, destination = attrs["src_layout"], attrs["dst_layout"]
    order = layout_permutation(str(source), str(destination))
    match args[0]:
        case TensorType(shape=shape, dtype=dtype) if shape is not None:
            if len(shape) != len(order):
                raise InvalidModelError(f"layout {source!r} has {len(order)} axes, the value is {args[0]}")
            return TensorType(tuple(shape[axis] for axis in order), dtype)
        case other:
            return other


INTARSIA_OPS: MappingProxyType[str, TypeRule] = MappingProxyType(
    {
        "on_device": _same_type,
        "device_copy": _same_type,
        "layout_transform": _layout_transform,
        COUNTED_INDICES: counted_indices_type,
        COUNTED_BOXES: counted_boxes_type,
        SIMULATED_QUANTIZE: simulated_quantize_type,
        ATTENTION_OF_TOKENS: token_attention_type,
        APPENDED_TOKENS: token_append_type,
        POOL_OF_TOKENS: token_pool_type,
        COUNTED_POSITIONS: token_positions_type,
        WINDOW_OF_TOKENS: token_window_type,
        FILTER_OF_TOKENS: token_filter_type,
        TREE_ENSEMBLE: tree_ensemble_type,
    }
)
"""Type rule of each operator; those that are not in `_ARGUMENTS` take one argument."""

_ARGUMENTS = MappingProxyType(
    {
        ATTENTION_OF_TOKENS: TOKEN_ATTENTION_ARGUMENTS,
        APPENDED_TOKENS: TOKEN_APPEND_ARGUMENTS,
        COUNTED_POSITIONS: TOKEN_POSITIONS_ARGUMENTS,
        FILTER_OF_TOKENS: TOKEN_FILTER_ARGUMENTS,
        TREE_ENSEMBLE: TREE_ARGUMENTS,
        COUNTED_BOXES: COUNTED_BOXES_ARGUMENTS,
        SIMULATED_QUANTIZE: SIMULATED_QUANTIZE_ARGUMENTS,
    }
)

_LEAST_ARGUMENTS = MappingProxyType({SIMULATED_QUANTIZE: 1, ATTENTION_OF_TOKENS: 3, APPENDED_TOKENS: 2})

_ATTRIBUTES = MappingProxyType(
    {
        "layout_transform": ("dst_layout", "src_layout"),
        COUNTED_BOXES: COUNTED_BOXES_ATTRIBUTES,
        SIMULATED_QUANTIZE: SIMULATED_QUANTIZE_ATTRIBUTES,
        ATTENTION_OF_TOKENS: TOKEN_ATTENTION_ATTRIBUTES,
        POOL_OF_TOKENS: TOKEN_POOL_ATTRIBUTES,
        COUNTED_POSITIONS: TOKEN_POSITIONS_ATTRIBUTES,
        WINDOW_OF_TOKENS: TOKEN_WINDOW_ATTRIBUTES,
        FILTER_OF_TOKENS: TOKEN_FILTER_ATTRIBUTES,
        TREE_ENSEMBLE: TREE_ATTRIBUTES,
    }
)

ON_DEVICE_FLAGS = MappingProxyType({"constrain_body": 1, "constrain_result": 0})
"""The attributes of on_device, which may be left out, and what they are then."""


def intarsia_operator_type(name: str, args: tuple[Type | None, ...], attrs: Attrs) -> Type | None:
    """The type of a call of one of `INTARSIA_OPS`.

    Raises:
        InvalidModelError: Wrong number of arguments, wrong attributes, or layouts that do not fit.
    """
    count = _ARGUMENTS.get(name, 1)
    least = _LEAST_ARGUMENTS.get(name, count)
    if not least <= len(args) <= count:
        wanted = str(count) if least == count else f"{least} to {count}"
        raise InvalidModelError(f"operator 'intarsia::{name}' has {len(args)} arguments, expected {wanted}")
    expected = _ATTRIBUTES.get(name, ())
    if name == "on_device":
        _check_flags(attrs)
    elif tuple(attrs) != expected:
        raise InvalidModelError(
            f"operator 'intarsia::{name}' has the attributes ({', '.join(attrs)}), "
            f"expected ({', '.join(expected)})"
        )
    return INTARSIA_OPS[name](args, attrs)


def _check_flags(attrs: Attrs) -> None:
    for name, value in attrs.items():
        if name not in ON_DEVICE_FLAGS:
            raise InvalidModelError(
                f"operator 'intarsia::on_device' has no attribute {name!r}",
                help=f"its attributes: {', '.join(ON_DEVICE_FLAGS)}",
            )
        if type(value) is not int or value not in (0, 1):
            raise InvalidModelError(f"operator 'intarsia::on_device' has {name}={value!r}, expected 0 or 1")
