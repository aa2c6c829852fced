"""Sums of products of bytes, by words of four, and what makes float32 of them."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Final

from intarsia.ir import DType
from intarsia.native.te import functions
from intarsia.native.te.combiner import Reduction
from intarsia.native.te.compute import compute, reduce_axis
from intarsia.native.te.expression import Expression
from intarsia.native.te.operators.blocked_layout import BLOCKED, PADDING
from intarsia.native.te.operators.convolution import layout_free
from intarsia.native.te.operators.windows import Window, padded, tap_axes, tap_indices
from intarsia.native.te.tensor import Tensor

_WORD: Final = 4
"""Bytes of a word."""
_EVEN_BYTES: Final = 0x00FF00FF


def dot(unsigned: Expression, signed: Expression) -> Expression:
    """Return the sum of products of the four bytes of two words."""
    return functions.call("dot_u8s8", unsigned, signed)


def dot_of_halves(left: Expression, right: Expression) -> Expression:
    """Return the sum of products of the two signed halves of two words."""
    return functions.call("dot_s16", left, right)


def widened_words_of(x: Tensor, name: str) -> Tensor:
    """Declare the bytes of words (..., words) in 16 bits, as words (..., 2 words) of two.

    Behind the word of the even bytes of a word is that of its odd ones.
    """
    even = functions.const(_EVEN_BYTES, DType.INT32)

    def element(*i: Expression) -> Expression:
        shift = (i[-1] % 2 * 8).astype(DType.INT32)
        word = functions.call("shift_right", x[(*i[:-1], i[-1] // 2)], shift)
        return functions.call("bit_and", word, even)

    return compute((*x.shape[:-1], 2 * x.shape[-1]), element, name, attrs={BLOCKED: PADDING})


def word_of(byte: int) -> int:
    """Return the word of four equal unsigned bytes, as an int32."""
    return int.from_bytes(bytes([byte]) * 4, "little", signed=True)


def product_of_words(x: Tensor, weight: Tensor, name: str) -> Tensor:
    """Declare a product (..., K / 4) times (K / 4, N) of words of four bytes, in int32."""
    k = reduce_axis(weight.shape[0], "rk")

    def element(*i: Expression) -> Reduction:
        return functions.sum(dot(x[(*i[:-1], k.expression)], weight[k, i[-1]]), k)

    return compute((*x.shape[:-1], weight.shape[1]), element, name, attrs=layout_free(weight))


def words_of_bytes(x: Tensor, name: str) -> Tensor:
    """Declare the words (..., K / 4) of bytes (..., K); those behind a row are 0."""
    depth = x.shape[-1]

    def element(*i: Expression) -> Expression:
        word = functions.const(0, DType.INT32)
        for number in range(_WORD):
            position = i[-1] * _WORD + number
            byte = x[(*i[:-1], position)].astype(DType.UINT8).astype(DType.INT32)
            if depth % _WORD and number >= depth % _WORD:
                byte = functions.if_then_else(position < depth, byte, 0)
            word = word + functions.call("shift_left", byte, functions.const(8 * number, DType.INT32))
        return word

    return compute((*x.shape[:-1], -(-depth // _WORD)), element, name)


def product_of_bytes(x: Tensor, weight: Tensor, name: str) -> Tensor:
    """Declare `product_of_words` of bytes (..., K) that the same kernel computes."""
    k = reduce_axis(x.shape[-1], "rk")

    def element(*i: Expression) -> Reduction:
        word = x[(*i[:-1], k.expression)].astype(DType.UINT8).astype(DType.INT32)
        shift = (k % 4 * 8).astype(DType.INT32)
        byte = functions.call("shift_right", weight[k // 4, i[-1]], shift).astype(DType.INT8)
        return functions.sum(word * byte.astype(DType.INT32), k)

    return compute((*x.shape[:-1], weight.shape[1]), element, name)


def convolution_of_bytes(
    x: Tensor,
    weight: Tensor,
    windows: Sequence[Window],
    zero: int,
    name: str,
    *,
    is_grouped: bool,
    is_unsigned: bool,
) -> Tensor:
    """Declare sums of products of plain bytes (N, C, spatial ...) less their zero point, in int32.

    Args:
        x: The bytes.
        weight: Signed bytes (M, C / groups, taps ...).
        windows: Windows, one for each spatial dimension.
        zero: Zero point of the input.
        name: Name of the operation.
        is_grouped: Whether each channel is convolved on its own.
        is_unsigned: Whether the bytes are read as unsigned ones, to which the zero point belongs.
    """

    def number(*i: Expression) -> Expression:
        byte = x[i].astype(DType.UINT8) if is_unsigned else x[i]
        return byte.astype(DType.INT32) - zero

    centred = compute(x.shape, number, f"{name}.centred")
    image = padded(centred, windows, 0, f"{name}.pad")
    channel, taps = reduce_axis(weight.shape[1], "rc"), tap_axes(windows)

    written = weight.shape[0] * weight.shape[1] // x.shape[1]

    def element(n: Expression, c: Expression, *positions: Expression) -> Reduction:
        first = c // written * weight.shape[1] if weight.shape[1] < x.shape[1] else 0
        source = c if is_grouped else channel.expression + first
        pixel = image[(n, source, *tap_indices(windows, positions, taps))]
        tap = weight[(c, channel.expression, *(axis.expression for axis in taps))]
        return functions.sum(pixel * tap.astype(DType.INT32), (channel, *taps))

    shape = (x.shape[0], weight.shape[0], *(window.count for window in windows))
    return compute(shape, element, name)


def convolution_of_words(
    x: Tensor, weight: Tensor, windows: Sequence[Window], zero: int, name: str
) -> Tensor:
    """Declare sums of products of unsigned bytes (N, C, spatial ...) and signed ones, in int32.

    Padding is the zero point, which is not subtracted.

    Args:
        x: The bytes, read as unsigned ones.
        weight: Words of the signed bytes of four channels (M, C / 4, taps ...).
        windows: Windows, one for each spatial dimension.
        zero: Zero point of the input.
        name: Name of the operation.
    """
    channels = x.shape[1]

    def word(*i: Expression) -> Expression:
        total = functions.const(0, DType.INT32)
        for number in range(_WORD):
            channel = i[1] * _WORD + number
            byte = x[(i[0], channel, *i[2:])].astype(DType.UINT8).astype(DType.INT32)
            if channels % _WORD and number >= channels % _WORD:
                byte = functions.if_then_else(channel < channels, byte, 0)
            total = total + functions.call("shift_left", byte, functions.const(8 * number, DType.INT32))
        return total

    words = compute((x.shape[0], -(-channels // _WORD), *x.shape[2:]), word, f"{name}.words")
    image = padded(words, windows, word_of(zero), f"{name}.pad")
    channel, taps = reduce_axis(weight.shape[1], "rc"), tap_axes(windows)

    def element(n: Expression, c: Expression, *positions: Expression) -> Reduction:
        pixel = image[(n, channel.expression, *tap_indices(windows, positions, taps))]
        tap = weight[(c, channel.expression, *(axis.expression for axis in taps))]
        return functions.sum(dot(pixel, tap), (channel, *taps))

    shape = (x.shape[0], weight.shape[0], *(window.count for window in windows))
    return compute(shape, element, name)


Channel = Callable[[tuple[Expression, ...]], tuple[Expression, ...]]
"""Function from the indices of an element to those of its channel."""


def scaled_sums(
    sums: Tensor,
    parameters: tuple[Tensor | None, Tensor, Tensor | None],
    channel: Channel,
    name: str,
    axis_names: Sequence[str] = (),
) -> Tensor:
    """Declare `(sums + offset) * scale + bias` in float32.

    Args:
        sums: Sums of products, int32 or whole numbers in float32.
        parameters: Offset in int32 or None, scale, and bias or None, of each channel.
        channel: Indices of the channel of an element.
        name: Name of the operation.
        axis_names: Names of the axes.
    """
    offset, scale, bias = parameters

    def element(*i: Expression) -> Expression:
        total = sums[i] if offset is None else sums[i] + offset[channel(i)]
        value = total.astype(DType.FLOAT32) * scale[channel(i)]
        return value if bias is None else value + bias[channel(i)]

    return compute(sums.shape, element, name, axis_names)
