"""Convolutions and products of quantised numbers as steps on integers."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Final

import numpy as np

from intarsia.native.graph.region_plan import Array
from intarsia.native.graph.straight_line import KernelStep
from intarsia.native.te.operators import compute_call_of
from intarsia.native.te.operators.windows import Window, windows_of

WORD: Final = 4
"""Bytes of a word, which one dot product reads."""
HALF: Final = 128
"""Difference between the unsigned and the signed number of a byte with another highest bit."""


@dataclass(frozen=True, slots=True, eq=False)
class IntegerStep(KernelStep):
    """A convolution or product of bytes, with the result in float32.

    The result is `(sum of (x - zero) * weight + offset) * scale + bias`. The call is that of the float32
    operator; `args` are the bytes, and the weights: signed bytes of a convolution, words of a product.

    Attributes:
        zero: Zero point of the unsigned bytes of the input; of its bytes as they are if not `is_by_words`.
        scale: Product of the scales of the input and of the weights of each output channel, float32.
        offset: Bias of each output channel as a multiple of the scale, int32.
        correction: Number to add to sums of uncentred bytes, int32: -zero times the sum of weights.
        bias: Bias of each output channel that is no such multiple, float32; None for none.
        is_exact: Whether float32 holds each sum, with offset and correction.
        is_by_words: Whether words of bytes are summed, or single bytes of a depthwise convolution.
        widens: Whether bytes of blocked tensors are better multiplied in 16 bits, as on machines without an
            instruction for words of bytes.
    """

    zero: int
    scale: Array
    offset: Array
    correction: Array
    bias: Array | None
    is_exact: bool
    is_by_words: bool = True
    widens: bool = False

    def scaled_by(self, factor: Array) -> IntegerStep:
        """Return the step with its result multiplied by a number."""
        return replace(
            self, scale=self.scale * factor, bias=None if self.bias is None else self.bias * factor
        )

    def parameters(self, *, is_centred: bool) -> tuple[Array | None, Array, Array | None]:
        """Return what to add to sums as integers, their scale, and what to add then; None for nothing.

        Args:
            is_centred: Whether the bytes are summed less their zero point.
        """
        offset = self.offset if is_centred else self.offset + self.correction
        if not self.is_exact:
            return offset, self.scale, self.bias
        whole = offset * self.scale.astype(np.float64)
        whole = whole if self.bias is None else whole + self.bias
        return None, self.scale, whole.astype(np.float32) if whole.any() else None

    @property
    def is_depthwise(self) -> bool:
        """Whether each channel is convolved on its own."""
        filters, channels = compute_call_of(self.call, "conv").input(1).shape[:2]
        return channels == 1 and self.call.attrs.get("group", 1) == filters > 1

    def windows(self, shape: tuple[int, ...]) -> tuple[Window, ...]:
        """Return the windows of a convolution of an input (N, C, spatial ...)."""
        described = compute_call_of(self.call, "conv")
        return windows_of(described, shape[2:], described.input(1).shape[2:])


@dataclass(frozen=True, slots=True, eq=False)
class WordProduct(KernelStep):
    """A MatMulInteger by a constant matrix, which is packed in words.

    `args` are the bytes and the words; with a zero point of the bytes also that, and the sums of columns.
    """


def packed_words(weight: Array) -> Array:
    """Return a matrix (K, N) of signed bytes as words (K / 4, N) of four bytes of a column, at last zeros."""
    depth, columns = weight.shape
    padded = np.pad(weight, ((0, -depth % WORD), (0, 0)))
    quads = padded.reshape(-1, WORD, columns).transpose(0, 2, 1)
    return np.ascontiguousarray(quads).view(np.int32)[..., 0]


def packed_channels(weight: Array) -> Array:
    """Return weights (M, C, taps ...) of signed bytes as words (M, C / 4, taps ...) of four channels."""
    padded = np.pad(weight, ((0, 0), (0, -weight.shape[1] % WORD), *((0, 0) for _ in weight.shape[2:])))
    quads = padded.reshape(weight.shape[0], -1, WORD, *weight.shape[2:])
    return np.ascontiguousarray(np.moveaxis(quads, 2, -1)).view(np.int32)[..., 0]


def signed_weight(array: Array, zero: Array) -> Array | None:
    """Return weights as signed bytes whose zero point is 0; None if it is another one."""
    middle = HALF if array.dtype == np.uint8 else 0
    if np.any(zero != middle):
        return None
    return array if middle == 0 else (array ^ np.uint8(HALF)).view(np.int8)


def is_plain_gemm(step: KernelStep) -> bool:
    """Return whether a Gemm is a product, perhaps by a transposed matrix, and a sum with its bias."""
    attrs = step.call.attrs
    has_bias = len(step.args) > 2 and step.args[2] is not None
    return (
        attrs.get("alpha", 1.0) == 1
        and not attrs.get("transA", 0)
        and (not has_bias or attrs.get("beta", 1.0) == 1)
    )
