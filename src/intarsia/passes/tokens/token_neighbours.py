"""Convolutions over tokens, and tokens that are moved along their text, become intarsia::token_window.

    Before: Conv(x, w, pads=[1, 1])           x (texts, channels, tokens), w (filters, channels, 3)
    After:  rows = token_window(Transpose(x), first=-1, count=3, step=1)
            Transpose(MatMul(Reshape(rows), w as a matrix))

Only what leaves the number of tokens as it is can be expressed so.
"""

from __future__ import annotations

from functools import partial
from typing import Final

import numpy as np

from intarsia.ir import Call, Constant, DType, Expr
from intarsia.op import call
from intarsia.op.opset import INTARSIA_DOMAIN
from intarsia.op.token_filter_op import FILTER_OF_TOKENS
from intarsia.op.token_window_op import WINDOW_OF_TOKENS
from intarsia.passes.batches.item_axes import has_argument
from intarsia.passes.rules.tensor_facts import dtype_of, int_attr, ints_attr, operator_name
from intarsia.passes.tokens.token_twins import LENGTHS, Array, TokenTwins

_TOKENS: Final = LENGTHS[0]
_ROWS: Final = 1
"""Axis of the tokens in what token_window takes."""
_LAST: Final = 2
"""Axis of the tokens in the operand of a convolution over them: (texts, channels, tokens)."""
_MOST_ELEMENTS: Final = 16_384
"""Maximum number of elements of the neighbours of a token, which are written to memory."""
_FLOATS: Final = frozenset({DType.FLOAT32, DType.FLOAT64})
_NUMBERS: Final = _FLOATS | {DType.INT32, DType.INT64}


def neighbouring_tokens(node: Call, current: Call, twins: TokenTwins) -> Expr | None:
    """Return what replaces a call that reads neighbours of its tokens; None for other calls.

    Args:
        node: Conv over tokens, or Pad, Slice or Concat that move them.
        current: The call over rewritten arguments.
        twins: The program bound to numbers of tokens.
    """
    match operator_name(node):
        case "Conv":
            return _convolution(node, current, twins) if twins.token_axis(node) == _LAST else None
        case "Pad":
            return _moved_by_pad(node, current, twins)
        case "Slice":
            return _cut_convolution(node, current, twins) or _moved_by_slice(node, current, twins)
        case "Concat":
            return _moved_by_concat(node, current, twins)
        case _:
            return None


def _window(x: Expr, first: int, count: int, step: int) -> Call:
    return call(WINDOW_OF_TOKENS, x, domain=INTARSIA_DOMAIN, first=first, count=count, step=step)


def _reshaped(x: Expr, *shape: int) -> Call:
    return call("Reshape", x, Constant(np.array(shape, np.int64)))


def _convolution(node: Call, current: Call, twins: TokenTwins, begin: int = 0) -> Expr | None:
    """Return a convolution as a product, or as a sum for each channel, of the neighbours of each token.

    Args:
        node: The convolution.
        current: The call over rewritten arguments.
        twins: The program bound to numbers of tokens.
        begin: Position in its result of what belongs to the first token.
    """
    data, rewritten, before = _without_pad(node.args[0], current.args[0], twins)
    weight, bias = current.args[1], current.args[2:3]
    shape, filters = twins.shape(data, _TOKENS), twins.shape(node.args[1], _TOKENS)
    if shape is None or filters is None or len(shape) != _LAST + 1 or dtype_of(data) not in _FLOATS:
        return None
    if twins.token_axis(data) != _LAST:
        return None
    if not _has_texts_first(data, twins) or ints_attr(node.attrs, "strides") not in (None, (1,)):
        return None
    outputs, inputs, count = filters
    step, groups = (ints_attr(node.attrs, "dilations") or (1,))[0], int_attr(node.attrs, "group", 1)
    if count * shape[1] > _MOST_ELEMENTS:
        return None
    first = begin - before - _front_padding(node, step * (count - 1))
    tokens = call("Transpose", rewritten, perm=(0, 2, 1))
    rows = _window(tokens, first, count, step)
    if groups == shape[1] == outputs:
        taps = _reshaped(call("Transpose", weight, perm=(2, 0, 1)), count, outputs)
        product = call(FILTER_OF_TOKENS, tokens, taps, domain=INTARSIA_DOMAIN, first=first, step=step)
    elif groups == 1:
        matrix = _reshaped(call("Transpose", weight, perm=(2, 1, 0)), count * inputs, outputs)
        product = call("MatMul", _reshaped(rows, 0, 0, -1), matrix)
    else:
        by_group = call("Transpose", _reshaped(rows, 0, 0, count, groups, inputs), perm=(0, 1, 3, 2, 4))
        turned = call("Transpose", _reshaped(weight, groups, -1, inputs, count), perm=(0, 3, 2, 1))
        matrices = _reshaped(turned, groups, count * inputs, -1)
        products = call("MatMul", _reshaped(by_group, 0, 0, groups, 1, -1), matrices)
        product = _reshaped(products, 0, 0, -1)
    total = call("Add", product, bias[0]) if bias else product
    return call("Transpose", total, perm=(0, 2, 1), span=node.span)


def _cut_convolution(node: Call, current: Call, twins: TokenTwins) -> Expr | None:
    """Return as many results of a convolution as there are tokens, if a Slice cuts these out of more."""
    data, rewritten = node.args[0], current.args[0]
    is_longer = operator_name(data) == operator_name(rewritten) == "Conv" and twins.token_axis(data) is None
    if not is_longer or twins.token_axis(node) != _LAST:
        return None
    begin = _start(node, _LAST, twins)
    if begin is None or not isinstance(data, Call) or not isinstance(rewritten, Call):
        return None
    return _convolution(data, rewritten, twins, begin)


def _front_padding(node: Call, total: int) -> int:
    """Return the number of zeros in front of the tokens that a convolution adds by itself.

    Args:
        node: The convolution.
        total: Number of zeros on both sides that leave the number of tokens as it is.
    """
    match node.attrs.get("auto_pad", "NOTSET"):
        case "SAME_UPPER":
            return total // 2
        case "SAME_LOWER":
            return total - total // 2
        case "VALID":
            return 0
        case _:
            return (ints_attr(node.attrs, "pads") or (0,))[0]


def _without_pad(node: Expr, current: Expr, twins: TokenTwins) -> tuple[Expr, Expr, int]:
    """Return what a Pad of tokens pads, the same rewritten, and the number of zeros in front of the tokens.

    Another expression is returned as it is, with no zeros in front of it.
    """
    if not isinstance(node, Call) or operator_name(node) != "Pad" or operator_name(current) != "Pad":
        return node, current, 0
    assert isinstance(current, Call)
    axis, pads = twins.token_axis(node.args[0]), _pads(node, twins)
    if axis is None or pads is None:
        return node, current, 0
    begins, ends = pads
    others = [
        extent for at, pair in enumerate(zip(begins, ends, strict=True)) if at != axis for extent in pair
    ]
    if any(others):
        return node, current, 0
    return node.args[0], current.args[0], begins[axis]


def _pads(node: Call, twins: TokenTwins) -> tuple[tuple[int, ...], tuple[int, ...]] | None:
    """Return the zeros that a Pad adds before and behind each axis; None if it adds something else."""
    rank = len(twins.shape(node.args[0], _TOKENS) or ())
    if node.attrs.get("mode", "constant") != "constant" or not rank:
        return None
    amounts, value, axes = (_numbers(node, at, twins) for at in (1, 2, 3))
    if amounts is None or value is None or axes is None or any(value):
        return None
    begins, ends = [0] * rank, [0] * rank
    named = [axis % rank for axis in axes] or list(range(rank))
    if len(amounts) != 2 * len(named):
        return None
    for at, axis in enumerate(named):
        begins[axis], ends[axis] = amounts[at], amounts[len(named) + at]
    return tuple(begins), tuple(ends)


def _moved_by_pad(node: Call, current: Call, twins: TokenTwins) -> Expr | None:
    """Return a Pad that adds at one end what it cuts off at the other one as a window of one neighbour."""
    data, rewritten, before = _without_pad(node, current, twins)
    if data is node or twins.token_axis(node) != twins.token_axis(data):
        return None
    return _moved(data, rewritten, -before, twins)


def _moved_by_slice(node: Call, current: Call, twins: TokenTwins) -> Expr | None:
    """Return a Slice of padded tokens as a window of one neighbour."""
    data, rewritten, before = _without_pad(node.args[0], current.args[0], twins)
    axis = twins.token_axis(data)
    if data is node.args[0] or axis is None or twins.token_axis(node) != axis:
        return None
    start = _start(node, axis, twins)
    return None if start is None else _moved(data, rewritten, start - before, twins)


def _start(node: Call, axis: int, twins: TokenTwins) -> int | None:
    """Return where a Slice begins that cuts an axis alone, in steps of 1; None for another one."""
    before, after = (twins.shape(item, _TOKENS) for item in (node.args[0], node))
    if before is None or after is None:
        return None
    if before[:axis] + before[axis + 1 :] != after[:axis] + after[axis + 1 :]:
        return None
    starts, axes, steps = (_numbers(node, at, twins) for at in (1, 3, 4))
    if not starts or axes is None or steps is None or any(step != 1 for step in steps):
        return None
    named = axes or range(len(starts))
    given = [start for start, item in zip(starts, named, strict=True) if item % len(before) == axis]
    return given[0] if len(given) == 1 and given[0] >= 0 else None


def _moved_by_concat(node: Call, current: Call, twins: TokenTwins) -> Expr | None:
    """Return zeros beside all tokens but as many of them as a window of one neighbour."""
    axis = twins.token_axis(node)
    if (
        axis is None
        or len(node.args) != 2
        or int_attr(node.attrs, "axis", 0) % len(_shape(node, twins)) != axis
    ):
        return None
    for at in (0, 1):
        zeros, kept, rewritten = node.args[at], node.args[1 - at], current.args[1 - at]
        if zeros not in twins.free or not isinstance(kept, Call) or operator_name(kept) != "Slice":
            continue
        count = twins.common(zeros, partial(_zeros_along, axis=axis))
        if count is None or not isinstance(rewritten, Call) or operator_name(rewritten) != "Slice":
            return None
        data, start = kept.args[0], _start(kept, axis, twins)
        has_all = twins.token_axis(data) == axis and start == (0 if at == 0 else count)
        return _moved(data, rewritten.args[0], -count if at == 0 else count, twins) if has_all else None
    return None


def _shape(node: Expr, twins: TokenTwins) -> tuple[int, ...]:
    return twins.shape(node, _TOKENS) or ()


def _zeros_along(value: Array | None, *, axis: int) -> int | None:
    """Return the extent of zeros along an axis; None for other values."""
    return None if value is None or value.any() or value.ndim <= axis else value.shape[axis]


def _moved(data: Expr, rewritten: Expr, first: int, twins: TokenTwins) -> Expr | None:
    """Return tokens in whose stead stand others of their text, or zeros."""
    axis, rank = twins.token_axis(data), len(_shape(data, twins))
    if axis is None or not axis or dtype_of(data) not in _NUMBERS or not _has_texts_first(data, twins):
        return None
    to_front = (0, axis, *(at for at in range(1, rank) if at != axis))
    back = tuple(to_front.index(at) for at in range(rank))
    rows = rewritten if axis == _ROWS else call("Transpose", rewritten, perm=to_front)
    window = _window(rows, first, 1, 1)
    near = call("Squeeze", window, Constant(np.array([_ROWS + 1], np.int64)))
    return near if axis == _ROWS else call("Transpose", near, perm=back)


def _has_texts_first(node: Expr, twins: TokenTwins) -> bool:
    """Return whether the first axis of a tensor has the texts, and no other one has."""
    shape = twins.shape(node, _TOKENS)
    expected = () if twins.texts is None else (0,)
    return shape is not None and shape[:1] == (1,) and twins.texts_axes(node) == expected


def _numbers(node: Call, at: int, twins: TokenTwins) -> tuple[int, ...] | None:
    """Return the integers of an argument, none for one that is absent; None if they vary."""
    if not has_argument(node, at):
        return ()
    arg = node.args[at]
    return twins.common(arg, _as_integers) if arg in twins.free else None


def _as_integers(value: Array | None) -> tuple[int, ...] | None:
    """Return integers; None for other numbers."""
    if value is None or not all(float(item).is_integer() for item in value.reshape(-1).tolist()):
        return None
    return tuple(map(int, value.reshape(-1).tolist()))
