"""Integer steps on plain tensors."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Final

from intarsia.ir import DType
from intarsia.native.graph.blocked_steps import CONVOLUTIONS
from intarsia.native.graph.integer_steps import IntegerStep, WordProduct
from intarsia.native.graph.step_declaration import StepDeclaration
from intarsia.native.te import Tensor, compute
from intarsia.native.te.expression import Expression
from intarsia.native.te.operators import compute as compute_operator
from intarsia.native.te.operators import compute_call_of
from intarsia.native.te.operators.integer_sums import (
    convolution_of_bytes,
    convolution_of_words,
    product_of_bytes,
    product_of_words,
    scaled_sums,
    words_of_bytes,
)

_WORD: Final = 4
"""Bytes of a word."""


@dataclass(eq=False)
class PlainIntegers(StepDeclaration):
    """Declares an integer step on plain tensors."""

    step: IntegerStep | WordProduct

    def result(self) -> Tensor:
        """Declare the result, and record its placeholders."""
        step, is_convolution = self.step, str(self.step.op) in CONVOLUTIONS
        if isinstance(step, WordProduct):
            return self._word_product(step)
        # A convolution of single bytes centres each of them, so that its padding is 0.
        is_centred = is_convolution and not self._has_channel_words()
        arrays = step.parameters(is_centred=is_centred)
        offset, scale, bias = (None if array is None else self.constant(array) for array in arrays)
        assert scale is not None, "a step has a scale"
        sums = self._convolution(step) if is_convolution else self._product(f"{self.name}.sum")
        return scaled_sums(
            sums, (offset, scale, bias), lambda i: (i[1 if is_convolution else -1],), self.name
        )

    def _word_product(self, step: WordProduct) -> Tensor:
        """Declare sums in int32, less those of the zero point."""
        if len(step.args) == 2:
            return self._product(self.name)
        sums, columns = self._product(f"{self.name}.sum"), self.read(3, is_constant=True)
        zero = self.tensor_of(2)
        first = (0,) * len(zero.shape)
        return compute(
            sums.shape,
            lambda *i: sums[i] - zero[first].astype(DType.INT32) * columns[i[-1]],
            self.name,
        )

    def _product(self, name: str) -> Tensor:
        number, _ = self.argument(0)
        weight = self.read(1, is_constant=True)
        if number in self.tensors:
            return product_of_bytes(self.tensors[number], weight, name)
        if self.argument(0)[1].type.static_shape[-1] % _WORD:
            return product_of_words(words_of_bytes(self.read(0), f"{self.name}.words"), weight, name)
        return product_of_words(self.read_words(0, _WORD), weight, name)

    def _convolution(self, step: IntegerStep) -> Tensor:
        x, weight = self.tensor_of(0), self.read(1, is_constant=True)
        if str(step.op) == "ConvTranspose":
            return self._upsampling(step, x, weight)
        name, windows = f"{self.name}.sum", step.windows(x.shape)
        if self._has_channel_words():
            return convolution_of_words(x, weight, windows, step.zero, name)
        return convolution_of_bytes(
            x,
            weight,
            windows,
            step.zero,
            name,
            is_grouped=step.is_depthwise,
            is_unsigned=step.is_by_words,
        )

    def _has_channel_words(self) -> bool:
        """Return whether the weights of a convolution are words of four channels."""
        return self.argument(1)[1].type.dtype is DType.INT32

    def _upsampling(self, step: IntegerStep, x: Tensor, weight: Tensor) -> Tensor:
        """Declare sums of a transposed convolution as whole numbers in float64, and these as integers."""

        def number(*i: Expression) -> Expression:
            return (x[i].astype(DType.UINT8).astype(DType.INT32) - step.zero).astype(DType.FLOAT64)

        def tap(c: Expression, m: Expression, *taps: Expression) -> Expression:
            return weight[(m, c, *taps)].astype(DType.FLOAT64)

        name, (filters, channels, *extents) = f"{self.name}.sum", weight.shape
        centred = compute(x.shape, number, f"{name}.centred")
        wide = compute((channels, filters, *extents), tap, f"{name}.weight")
        described = compute_call_of(step.call, f"{name}.whole")
        type_ = replace(described.output_type, dtype=DType.FLOAT64)
        described = replace(described, inputs=(centred, wide), constants=(None, None), output_types=(type_,))
        (sums,) = compute_operator(described)
        return compute(sums.shape, lambda *i: sums[i].astype(DType.INT32), name)
