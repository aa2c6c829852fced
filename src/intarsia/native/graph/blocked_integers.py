"""Integer convolutions on blocked tensors: the words of neighbouring channels lie side by side."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from math import prod
from typing import Final

import numpy as np

from intarsia.ir import DType
from intarsia.native.graph.blocked_arguments import BlockedArguments, NotBlockedError
from intarsia.native.graph.blocked_steps import given_order, numbers_of_word
from intarsia.native.graph.channel_order import ChannelOrder
from intarsia.native.graph.channel_words import channel_words
from intarsia.native.graph.convolution_form import ConvolutionForm, ConvolutionKind, arranged_weight
from intarsia.native.graph.integer_steps import IntegerStep
from intarsia.native.graph.region_plan import Array
from intarsia.native.te import Tensor, compute
from intarsia.native.te.operators import compute_call_of
from intarsia.native.te.operators.bfloat_sums import dot_of_pairs
from intarsia.native.te.operators.blocked_convolution import (
    blocked_convolution,
    depthwise_convolution,
    pack_depthwise_weight,
    pack_weight,
    pack_weight_of_plain,
)
from intarsia.native.te.operators.blocked_layout import BLOCKED, PADDING, axis_names, blocked_array
from intarsia.native.te.operators.blocked_transposed_convolution import (
    WordSums,
    blocked_transposed_convolution,
    pack_transposed_weight,
)
from intarsia.native.te.operators.channel_tables import first_pixels
from intarsia.native.te.operators.depthwise_words import depthwise_by_words, pack_words_of_rows
from intarsia.native.te.operators.grouped_convolution import grouped_convolution
from intarsia.native.te.operators.integer_sums import (
    dot,
    dot_of_halves,
    scaled_sums,
    widened_words_of,
    word_of,
)
from intarsia.native.te.operators.upsampling import dense_upsamplings_of
from intarsia.native.te.operators.windows import Window

_WORD: Final = 4
"""Bytes of a word; an input with as few channels has blocks of one word."""
_BOTH_HALVES: Final = 0x00010001
"""Word with 1 in both halves."""
_BITS: Final = {1: DType.UINT8, 2: DType.UINT16}
"""Type of the bits of a number of a word, by its size in bytes."""


def blocked_integers(
    step: IntegerStep,
    name: str,
    arguments: BlockedArguments,
    forms: tuple[ConvolutionForm, ChannelOrder],
    computed: Mapping[int, Tensor],
) -> Tensor:
    """Declare an integer convolution of a blocked tensor.

    Args:
        step: The step.
        name: Name of the tensor of its result.
        arguments: Placeholders of the group.
        forms: Form of the convolution, and channel order of the result.
        computed: Tensors that the group computes.

    Raises:
        NotBlockedError: The group computes the input.
    """
    number, (form, order) = step.args[0], forms
    if str(step.op) != "Conv" or number is None or number in computed:
        raise NotBlockedError
    shape = arguments.values[number].type.static_shape
    windows, weight = step.windows(shape), arguments.constant(step.args[1])
    packed, lanes, sums_name = arguments.packed, order.lanes, f"{name}.sum"

    def of_channels(array: Array) -> Tensor:
        return packed(blocked_array(order.arranged(array, 0), lanes, 0))

    is_centred = step.is_depthwise and not step.is_by_words
    if step.is_depthwise and step.is_by_words:
        tap_words = packed(pack_words_of_rows(pack_depthwise_weight(form.source.arranged(weight, 0), lanes)))
        x = arguments.blocked(number, form.source)
        sums = depthwise_by_words(x, tap_words, windows, step.zero, sums_name)
    elif step.is_depthwise:
        # Sums of some taps are whole numbers in float32, and padding is skipped as a number less its zero.
        x, zero = arguments.blocked(number, form.source), float(step.zero)
        centred = compute(
            x.shape,
            lambda *i: x[i].astype(DType.FLOAT32) - zero,
            f"{name}.centred",
            attrs={BLOCKED: PADDING},
        )
        taps = packed(pack_depthwise_weight(form.source.arranged(weight, 0), lanes).astype(np.float32))
        sums = depthwise_convolution(centred, taps, windows, sums_name)
    elif form.kind is ConvolutionKind.BY_TABLE:
        sums = convolution_by_table(arguments, number, weight, form, windows, sums_name)
    else:
        if shape[1] <= _WORD and form.groups == 1:
            form = replace(form, source=ChannelOrder.natural(shape[1], _WORD))
        x, words = arguments.words(number, form.source), packed_blocks(weight, form)
        pad, product = word_of(step.zero), dot_of_halves if step.widens else dot
        if step.widens:
            x, words = widened_words_of(x, f"{name}.wide"), widened_words(words)
            pad = step.zero * _BOTH_HALVES
        sums = blocked_convolution(x, packed(words), windows, sums_name, form.blocks, pad, product)
    arrays = step.parameters(is_centred=is_centred)
    offset, scale, bias = (None if array is None else of_channels(array) for array in arrays)
    assert scale is not None, "a step has a scale"
    names = axis_names(len(windows))
    return scaled_sums(sums, (offset, scale, bias), lambda i: (i[1], i[-1]), name, names)


def blocked_upsampling(
    step: IntegerStep,
    name: str,
    arguments: BlockedArguments,
    order: ChannelOrder,
    computed: Mapping[int, Tensor],
) -> Tensor:
    """Declare a transposed integer convolution of a blocked tensor.

    Args:
        step: The step, with weights (M, C, taps ...).
        name: Name of the tensor of its result.
        arguments: Placeholders of the group.
        order: Channel order of the result.
        computed: Tensors that the group computes.

    Raises:
        NotBlockedError: The group computes the input.
    """
    number, dimensions = step.args[0], dense_upsamplings_of(compute_call_of(step.call, "conv"))
    if number is None or number in computed or dimensions is None:
        raise NotBlockedError
    weight, packed, lanes = arguments.constant(step.args[1]), arguments.packed, order.lanes
    source = given_order(arguments.values[number], lanes)
    taps = source.arranged(weight, 1).swapaxes(0, 1)
    by_phase = pack_transposed_weight(taps, dimensions, lanes, lanes)
    # (M / lanes, phases ..., blocks, taps ..., channels, lanes): each phase has a sum of weights of its own.
    summed = tuple(range(1 + len(dimensions), by_phase.ndim - 1))
    of_phases = (-step.zero * by_phase.sum(summed, np.int64)).astype(np.int32)
    words = WordSums(word_of(step.zero), packed(np.ascontiguousarray(of_phases)))
    weights = packed(words_of_channels(by_phase))
    sums = blocked_transposed_convolution(
        arguments.words(number, source), weights, dimensions, f"{name}.sum", words
    )
    offset, scale, bias = (
        None if array is None else packed(blocked_array(order.arranged(array, 0), lanes, 0))
        for array in step.parameters(is_centred=True)
    )
    assert scale is not None, "a step has a scale"
    names = axis_names(len(dimensions))
    return scaled_sums(sums, (offset, scale, bias), lambda i: (i[1], i[-1]), name, names)


def convolution_by_table(
    arguments: BlockedArguments,
    number: int,
    weight: Array,
    form: ConvolutionForm,
    windows: Sequence[Window],
    name: str,
) -> Tensor:
    """Declare sums of products of words that begin at any channel of a blocked tensor.

    Args:
        arguments: Placeholders of the group.
        number: Number of the input.
        weight: Signed bytes or bfloat16 numbers (M, C / groups, taps ...).
        form: Form of the convolution.
        windows: Windows, which do not leave the image.
        name: Name of the operation.
    """
    numbers, lanes = numbers_of_word(weight.itemsize), form.source.lanes
    words = channel_words(form.source, form.groups, numbers)
    arranged = form.result.arranged(words.arranged(weight), 0)
    by_lane = np.moveaxis(pack_weight_of_plain(arranged, form.result.lanes), 1, -2)
    taps = np.ascontiguousarray(np.moveaxis(words_of_channels(by_lane), -2, 1))
    pixels = prod(window.extent for window in windows)
    first = first_pixels(tuple(map(int, words.places.ravel())), pixels, lanes).reshape(words.places.shape)
    x = arguments.images(number, form.source, _BITS[weight.itemsize])
    product = dot if weight.itemsize == 1 else dot_of_pairs
    table, packed = arguments.packed(first), arguments.packed(taps)
    return grouped_convolution(x, table, packed, windows, name, numbers, product)


def packed_blocks(weight: Array, form: ConvolutionForm) -> Array:
    """Pack narrow numbers (M, C / groups, taps ...) as words (M / lanes, blocks, taps ..., words, lanes).

    Args:
        weight: Signed bytes, four of which are a word, or bfloat16 numbers, of which two are.
        form: Form of the convolution.
    """
    arranged = arranged_weight(weight, form)
    return words_of_channels(pack_weight(arranged, form.source.lanes, form.result.lanes, form.groups))


def widened_words(words: Array) -> Array:
    """Return packed words of bytes (..., words, lanes) as words of 16 bits (..., 2 words, lanes).

    They lie as those of the input do (`widened_words_of`).
    """
    wide = words.view(np.int8).astype(np.int16).reshape(*words.shape, 2, 2)
    both = np.stack([np.ascontiguousarray(wide[..., half]).view(np.int32)[..., 0] for half in (0, 1)], -2)
    return both.reshape(*words.shape[:-2], 2 * words.shape[-2], words.shape[-1])


def words_of_channels(packed: Array) -> Array:
    """Return packed narrow numbers (..., channels, lanes) as words (..., words, lanes), at last zeros."""
    count, channels = _WORD // packed.itemsize, packed.shape[-2]
    outer, lanes, missing = packed.shape[:-2], packed.shape[-1], -channels % count
    if missing:
        packed = np.concatenate([packed, np.zeros_like(packed, shape=(*outer, missing, lanes))], -2)
    words = packed.reshape(*outer, (channels + missing) // count, count, lanes)
    return np.ascontiguousarray(np.swapaxes(words, -1, -2)).view(np.int32)[..., 0]
