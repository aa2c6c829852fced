"""Integer steps on plain tensors."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Final

import numpy as np

from intarsia.ir import DType
from intarsia.native.graph.integer_steps import IntegerStep, WordProduct
from intarsia.native.graph.region_plan import Array, RegionValue
from intarsia.native.te import Tensor, compute, placeholder
from intarsia.native.te.operators.integer_sums import (
    convolution_of_bytes,
    product_of_bytes,
    product_of_words,
    scaled_sums,
)

_WORD: Final = 4
"""Bytes of a word."""


@dataclass(eq=False)
class PlainIntegers:
    """Declares an integer step on plain tensors.

    Attributes:
        step: The step.
        name: Name of the tensor of its result.
        types: Values of its arguments, in the shape in which the kernel sees them.
        tensors: Tensors of the kernel, by value number.
        numbers: Values that new placeholders read.
        arrays: Constants that new placeholders read.
    """

    step: IntegerStep | WordProduct
    name: str
    types: Sequence[RegionValue | None]
    tensors: Mapping[int, Tensor]
    numbers: dict[Tensor, int] = field(default_factory=dict)
    arrays: dict[Tensor, Array] = field(default_factory=dict)

    def result(self) -> Tensor:
        """Declare the result, and record its placeholders."""
        step, is_convolution = self.step, str(self.step.op) == "Conv"
        if isinstance(step, WordProduct):
            return self._word_product(step)
        # A convolution in plain layout centres each byte, so that its padding is 0.
        arrays = step.parameters(is_centred=is_convolution)
        offset, scale, bias = (None if array is None else self._constant(array) for array in arrays)
        assert scale is not None, "a step has a scale"
        sums = self._convolution(step) if is_convolution else self._product(f"{self.name}.sum")
        return scaled_sums(
            sums, (offset, scale, bias), lambda i: (i[1 if is_convolution else -1],), self.name
        )

    def _word_product(self, step: WordProduct) -> Tensor:
        """Declare sums in int32, less those of the zero point."""
        if len(step.args) == 2:
            return self._product(self.name)
        sums, columns = self._product(f"{self.name}.sum"), self._constant_argument(3)
        number, value = step.args[2], self.types[2]
        assert number is not None, "the step has a zero point"
        assert value is not None, "the step has a zero point"
        zero = self.tensors.get(number)
        if zero is None:
            zero = placeholder(value.type.static_shape, value.type.dtype, f"{self.name}.zero")
            self.numbers[zero] = number
        first = (0,) * len(zero.shape)
        return compute(
            sums.shape,
            lambda *i: sums[i] - zero[first].astype(DType.INT32) * columns[i[-1]],
            self.name,
        )

    def _product(self, name: str) -> Tensor:
        number, value = self.step.args[0], self.types[0]
        assert number is not None, "the step has an input"
        assert value is not None, "the step has an input"
        weight = self._constant_argument(1)
        if number in self.tensors:
            return product_of_bytes(self.tensors[number], weight, name)
        *rows, depth = value.type.static_shape
        x = placeholder((*rows, depth // _WORD), DType.INT32, f"{self.name}.words")
        self.numbers[x] = number
        return product_of_words(x, weight, name)

    def _convolution(self, step: IntegerStep) -> Tensor:
        number, value = self.step.args[0], self.types[0]
        assert number is not None, "the step has an input"
        assert value is not None, "the step has an input"
        if number in self.tensors:
            x = self.tensors[number]
        else:
            x = placeholder(value.type.static_shape, value.type.dtype, f"{self.name}.bytes")
            self.numbers[x] = number
        weight, windows = self._constant_argument(1), step.windows(x.shape)
        is_depthwise = step.is_depthwise
        name, zero = f"{self.name}.sum", step.zero
        return convolution_of_bytes(x, weight, windows, zero, name, is_grouped=is_depthwise)

    def _constant_argument(self, position: int) -> Tensor:
        number, value = self.step.args[position], self.types[position]
        assert number is not None, "the step has weights"
        assert value is not None, "the step has weights"
        name = f"{self.name}.a{position}"
        tensor = placeholder(value.type.static_shape, value.type.dtype, name, {"constant": 1})
        self.numbers[tensor] = number
        return tensor

    def _constant(self, array: Array) -> Tensor:
        name = f"{self.name}.c{len(self.arrays)}"
        tensor = placeholder(array.shape, DType.of(array), name, {"constant": 1})
        self.arrays[tensor] = np.ascontiguousarray(array)
        return tensor
