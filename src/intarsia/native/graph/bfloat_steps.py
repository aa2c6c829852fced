"""Convolutions and products of bfloat16 numbers as steps with sums in float32, and their declarations."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Final

import numpy as np

from intarsia.ir import AttrValue, DType
from intarsia.ir.attributes import NO_ATTRS
from intarsia.native.graph.region_plan import Array
from intarsia.native.graph.step_declaration import StepDeclaration
from intarsia.native.graph.straight_line import KernelStep
from intarsia.native.te import Tensor, compute
from intarsia.native.te.expression import Expression
from intarsia.native.te.operators import compute as compute_operator
from intarsia.native.te.operators import compute_call_of
from intarsia.native.te.operators.bfloat_sums import product_of_bfloats, product_of_pairs
from intarsia.native.te.operators.windows import Window, windows_of

PAIR: Final = 2
"""Numbers of a word, which one dot product reads."""


@dataclass(frozen=True, slots=True, eq=False)
class BfloatStep(KernelStep):
    """A convolution or product of bfloat16 numbers, with the result in float32.

    The call is that of the operator; `args` are the numbers, and the weights: bfloat16 numbers of a
    convolution, words of a product.

    Attributes:
        bias: Bias of each output channel, float32; None for none.
    """

    bias: Array | None

    def windows(self, shape: tuple[int, ...]) -> tuple[Window, ...]:
        """Return the windows of a convolution of an input (N, C, spatial ...)."""
        described = compute_call_of(self.call, "conv")
        return windows_of(described, shape[2:], described.input(1).shape[2:])


def packed_pairs(weight: Array) -> Array:
    """Return a matrix (K, N) of bfloat16 numbers as words (K / 2, N) of two numbers of a column."""
    depth, columns = weight.shape
    pairs = weight.reshape(depth // PAIR, PAIR, columns).transpose(0, 2, 1)
    return np.ascontiguousarray(pairs).view(np.int32)[..., 0]


@dataclass(eq=False)
class PlainBfloats(StepDeclaration):
    """Declares a step of bfloat16 numbers on plain tensors."""

    step: BfloatStep

    def result(self) -> Tensor:
        """Declare the result, and record its placeholders."""
        is_convolution, bias = str(self.step.op) == "Conv", self.step.bias
        name = self.name if bias is None else f"{self.name}.sum"
        sums = self._convolution(name) if is_convolution else self._product(name)
        if bias is None:
            return sums
        added, axis = self.constant(bias), 1 if is_convolution else -1
        return compute(sums.shape, lambda *i: sums[i] + added[i[axis]], self.name)

    def _product(self, name: str) -> Tensor:
        number, _ = self.argument(0)
        weight = self.read(1, is_constant=True)
        if number in self.tensors:
            return product_of_bfloats(self.tensors[number], weight, name)
        return product_of_pairs(self.read_words(0, PAIR), weight, name)

    def _convolution(self, name: str) -> Tensor:
        """Declare a convolution of the numbers in float32, on any layout of taps."""
        x, weight = self.tensor_of(0), self.read(1, is_constant=True)
        inputs = widened(x, f"{self.name}.x"), widened(weight, f"{self.name}.w")
        described = replace(compute_call_of(self.step.call, name), inputs=inputs, constants=(None, None))
        type_ = replace(described.output_type, dtype=DType.FLOAT32)
        return compute_operator(replace(described, output_types=(type_,)))[0]


def widened(x: Tensor, name: str, attrs: Mapping[str, AttrValue] = NO_ATTRS) -> Tensor:
    """Declare the numbers of a tensor in float32."""

    def number(*i: Expression) -> Expression:
        return x[i].astype(DType.FLOAT32)

    return compute(x.shape, number, name, attrs=attrs)
