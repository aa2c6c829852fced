"""Integer convolutions on blocked tensors: the words of neighbouring channels lie side by side."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

import numpy as np

from intarsia.ir import DType
from intarsia.native.graph.blocked_arguments import BlockedArguments, NotBlockedError
from intarsia.native.graph.channel_order import ChannelOrder
from intarsia.native.graph.integer_steps import IntegerStep
from intarsia.native.graph.region_plan import Array
from intarsia.native.te import Tensor, compute
from intarsia.native.te.operators.blocked_convolution import (
    blocked_convolution,
    depthwise_convolution,
    pack_depthwise_weight,
)
from intarsia.native.te.operators.blocked_layout import axis_names, blocked_array
from intarsia.native.te.operators.integer_sums import dot, scaled_sums, word_of

_WORD: Final = 4
"""Bytes of a word; an input with as few channels has blocks of one word."""


def blocked_integers(
    step: IntegerStep,
    name: str,
    arguments: BlockedArguments,
    orders: tuple[ChannelOrder, ChannelOrder],
    computed: Mapping[int, Tensor],
) -> Tensor:
    """Declare an integer convolution of a blocked tensor.

    Args:
        step: The step.
        name: Name of the tensor of its result.
        arguments: Placeholders of the group.
        orders: Channel orders of the input, if it has blocks, and of the result.
        computed: Tensors that the group computes.

    Raises:
        NotBlockedError: The group computes the input.
    """
    number, (source, order) = step.args[0], orders
    if str(step.op) != "Conv" or number is None or number in computed:
        raise NotBlockedError
    shape = arguments.values[number].type.static_shape
    windows, weight = step.windows(shape), arguments.constant(step.args[1])
    packed, lanes, sums_name = arguments.packed, order.lanes, f"{name}.sum"

    def of_channels(array: Array) -> Tensor:
        return packed(blocked_array(order.arranged(array, 0), lanes, 0))

    if step.is_depthwise:
        # Sums of some taps are whole numbers in float32, and padding is skipped as a number less its zero.
        x, zero = arguments.blocked(number, source), float(step.zero)
        centred = compute(x.shape, lambda *i: x[i].astype(DType.FLOAT32) - zero, f"{name}.centred")
        taps = packed(pack_depthwise_weight(source.arranged(weight, 0), lanes).astype(np.float32))
        sums = depthwise_convolution(centred, taps, windows, sums_name)
    else:
        read = ChannelOrder.natural(shape[1], _WORD) if shape[1] <= _WORD else source
        words = packed(packed_blocks(read.arranged(weight, 1), read.lanes, lanes))
        x, pad = arguments.words(number, read), word_of(step.zero)
        sums = blocked_convolution(x, words, windows, sums_name, padding=pad, product=dot)
    arrays = step.parameters(is_centred=step.is_depthwise)
    offset, scale, bias = (None if array is None else of_channels(array) for array in arrays)
    assert scale is not None, "a step has a scale"
    names = axis_names(len(windows))
    return scaled_sums(sums, (offset, scale, bias), lambda i: (i[1], i[-1]), name, names)


def packed_blocks(weight: Array, read: int, lanes: int) -> Array:
    """Pack narrow numbers (M, C, taps ...) as words (M / lanes, C / read, taps ..., read / 4, lanes).

    The last but one extent is that of signed bytes; it is read / 2 for bfloat16 numbers.

    Args:
        weight: The weights.
        read: Channels in a block of the input.
        lanes: Channels in a block of the result.
    """
    blocks = blocked_array(blocked_array(weight, lanes, axis=0), read, axis=1)
    count = _WORD // weight.itemsize
    words = blocks.reshape(*blocks.shape[:-1], read // count, count)
    return np.ascontiguousarray(np.swapaxes(words, -3, -2)).view(np.int32)[..., 0]
