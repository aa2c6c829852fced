"""Integer steps on plain tensors."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Final

import numpy as np

from intarsia.ir import DType
from intarsia.native.graph.integer_steps import IntegerStep
from intarsia.native.graph.region_plan import Array, RegionValue
from intarsia.native.te import Tensor, placeholder
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

    step: IntegerStep
    name: str
    types: Sequence[RegionValue | None]
    tensors: Mapping[int, Tensor]
    numbers: dict[Tensor, int] = field(default_factory=dict)
    arrays: dict[Tensor, Array] = field(default_factory=dict)

    def result(self) -> Tensor:
        """Declare the result, and record its placeholders."""
        step, is_convolution = self.step, str(self.step.op) == "Conv"
        # A convolution in plain layout centres each byte, so that its padding is 0.
        offset = step.offset if is_convolution else step.offset + step.correction
        parameters = self._constant(offset), self._constant(step.scale), self._bias()
        sums = self._convolution() if is_convolution else self._product()
        return scaled_sums(sums, parameters, lambda i: (i[1 if is_convolution else -1],), self.name)

    def _bias(self) -> Tensor | None:
        return None if self.step.bias is None else self._constant(self.step.bias)

    def _product(self) -> Tensor:
        number, value, name = self.step.args[0], self.types[0], f"{self.name}.sum"
        assert number is not None, "the step has an input"
        assert value is not None, "the step has an input"
        weight = self._weight()
        if number in self.tensors:
            return product_of_bytes(self.tensors[number], weight, name)
        *rows, depth = value.type.static_shape
        x = placeholder((*rows, depth // _WORD), DType.INT32, f"{self.name}.words")
        self.numbers[x] = number
        return product_of_words(x, weight, name)

    def _convolution(self) -> Tensor:
        number, value = self.step.args[0], self.types[0]
        assert number is not None, "the step has an input"
        assert value is not None, "the step has an input"
        if number in self.tensors:
            x = self.tensors[number]
        else:
            x = placeholder(value.type.static_shape, value.type.dtype, f"{self.name}.bytes")
            self.numbers[x] = number
        weight, windows = self._weight(), self.step.windows(x.shape)
        is_depthwise = self.step.is_depthwise
        name, zero = f"{self.name}.sum", self.step.zero
        return convolution_of_bytes(x, weight, windows, zero, name, is_grouped=is_depthwise)

    def _weight(self) -> Tensor:
        number, value = self.step.args[1], self.types[1]
        assert number is not None, "the step has weights"
        assert value is not None, "the step has weights"
        tensor = placeholder(
            value.type.static_shape, value.type.dtype, f"{self.name}.weights", {"constant": 1}
        )
        self.numbers[tensor] = number
        return tensor

    def _constant(self, array: Array) -> Tensor:
        name = f"{self.name}.c{len(self.arrays)}"
        tensor = placeholder(array.shape, DType.of(array), name, {"constant": 1})
        self.arrays[tensor] = np.ascontiguousarray(array)
        return tensor
