"""Operators on quantised numbers as steps that native fuses.

QLinearConv(x, weights) -> DequantizeLinear(x), DequantizeLinear(weights), Conv, QuantizeLinear
MatMulInteger(x, constant) -> WordProduct(x, words, zero point of x, sums of columns)
MatMulInteger(x, y) -> BatchedStep(x, y, zero points)
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from math import prod
from typing import Final

import numpy as np

from intarsia.ir import Attrs, DType, Op, TensorType, Var
from intarsia.native.graph.batched_integers import BatchedStep, are_matrices
from intarsia.native.graph.blocked_steps import has_byte_words
from intarsia.native.graph.dequantised import BYTES, attribute
from intarsia.native.graph.integer_steps import HALF, WordProduct, packed_words, signed_weight
from intarsia.native.graph.quantised_weights import ByteForms
from intarsia.native.graph.region_plan import Array, RegionValue
from intarsia.native.graph.straight_line import KernelStep, StraightLine
from intarsia.op import call

_FLOATS: Final = {"QLinearConv": "Conv", "QLinearMatMul": "MatMul"}
_PRODUCT: Final = "MatMulInteger"
_FEW_ROWS: Final = 4
"""Maximum number of rows for which single bytes of a computed matrix are multiplied: packing them in words
takes longer (768 columns, Zen 5: 1.2 to 1.5 times the time with one to three rows)."""
_MOST_TAPS: Final = 256
"""Maximum number of taps of a depthwise convolution, whose sums float32 holds."""


def with_fusible_operators(line: StraightLine, forms: ByteForms) -> StraightLine:
    """Return a region whose operators on quantised numbers are steps that fuse, where integers are as exact.

    Args:
        line: Region as it was read.
        forms: Forms of convolutions of bytes; those that have none stay as they are.
    """
    if not any(str(step.op) in (*_FLOATS, _PRODUCT) for step in line.steps):
        return line
    return _Expansion(line, forms).result()


@dataclass(eq=False)
class _Expansion:
    """The region as it is written again, step by step.

    Attributes:
        line: Region as it was read.
        forms: Forms of convolutions of bytes.
        values: Values, with those that are added.
    """

    line: StraightLine
    forms: ByteForms
    values: list[RegionValue] = field(init=False)

    def __post_init__(self) -> None:
        self.values = list(self.line.values)

    def result(self) -> StraightLine:
        """Return the region with all steps written."""
        steps = [written for step in self.line.steps for written in self._written(step)]
        return StraightLine(self.values, steps, self.line.params, self.line.results)

    def _written(self, step: KernelStep) -> list[KernelStep]:
        match str(step.op):
            case "QLinearConv" | "QLinearMatMul":
                return self._as_floats(step) or [step]
            case "MatMulInteger":
                product = self._product(step)
                return self._batched(step) if product is None else [product]
            case _:
                return [step]

    def _constant(self, number: int | None) -> Array | None:
        return None if number is None else self.values[number].constant

    def _add(self, type_: TensorType, constant: Array | None = None) -> int:
        self.values.append(RegionValue(type_, len(self.values), constant))
        return len(self.values) - 1

    def _add_constant(self, array: Array) -> int:
        return self._add(TensorType(array.shape, DType.of(array)), array)

    def _as_floats(self, step: KernelStep) -> list[KernelStep] | None:
        """Return the steps of a quantised convolution or product; None if integers would not compute it."""
        x, x_scale, x_zero, weight, weight_scale, weight_zero, scale, zero, *biases = step.args
        given = (x_scale, x_zero, weight, weight_scale, weight_zero, scale, zero)
        constants = [array for number in given if (array := self._constant(number)) is not None]
        is_known = len(constants) == len(given) and self._has_integers(step, constants)
        if not is_known and not self._multiplies_matrices(step):
            return None
        is_convolution = str(step.op) == "QLinearConv"
        axis = 0 if is_convolution else 1
        left, first = self._dequantised((x, x_scale, x_zero), 0)
        right, second = self._dequantised((weight, weight_scale, weight_zero), axis)
        steps, args = [left, right], [first, second]
        if biases and biases[0] is not None:
            channels = self.values[biases[0]].type.static_shape
            of_bias = np.broadcast_to(constants[0].reshape(-1) * constants[3].reshape(-1), channels)
            bias, third = self._dequantised((biases[0], self._add_constant(of_bias.astype(np.float32))), 0)
            steps, args = [*steps, bias], [*args, third]
        type_ = TensorType(self.values[step.outputs[0]].type.static_shape, DType.FLOAT32)
        operands = tuple(Var(f"x{arg}", checked_type=self.values[arg].type) for arg in args)
        operator = Op(_FLOATS[str(step.op)])
        summing = replace(step.call, op=operator, args=operands, checked_type=type_)
        total = self._add(type_)
        read = [Var(f"x{arg}", checked_type=self.values[arg or 0].type) for arg in (total, scale, zero)]
        quantising = replace(call("QuantizeLinear", *read), span=step.call.span)
        return [
            *steps,
            KernelStep(summing, tuple(args), (total,)),
            KernelStep(quantising, (total, scale, zero), step.outputs),
        ]

    def _dequantised(self, args: tuple[int | None, ...], axis: int) -> tuple[KernelStep, int]:
        """Return a DequantizeLinear, and the number of its result."""
        given = [Var(f"x{arg}", checked_type=self.values[arg].type) for arg in args if arg is not None]
        shape = self.values[args[0] or 0].type.static_shape
        output = self._add(TensorType(shape, DType.FLOAT32))
        return KernelStep(call("DequantizeLinear", *given, axis=axis), args, (output,)), output

    def _multiplies_matrices(self, step: KernelStep) -> bool:
        """Return whether a product is of two computed matrices of bytes, with one known scale for each."""
        if str(step.op) != "QLinearMatMul":
            return False
        x, x_scale, x_zero, y, y_scale, y_zero, scale, zero = step.args
        constants = [self._constant(number) for number in (x_scale, x_zero, y_scale, y_zero, scale, zero)]
        scales = {array.dtype for array in constants[::2] if array is not None}
        if any(array is None or array.size != 1 for array in constants) or scales != {np.dtype(np.float32)}:
            return False
        return x is not None and y is not None and are_matrices(self.values[x], self.values[y])

    def _has_integers(self, step: KernelStep, constants: list[Array]) -> bool:
        """Return whether sums of integers compute a quantised convolution or product."""
        x_scale, x_zero, weight, weight_scale, weight_zero, scale, zero = constants
        if max(x_scale.size, x_zero.size, scale.size, zero.size) > 1 or weight_scale.ndim > 1:
            return False
        if {x_scale.dtype, weight_scale.dtype, scale.dtype} != {np.dtype(np.float32)}:
            return False
        if signed_weight(weight, weight_zero.astype(np.int64)) is None:
            return False
        x = step.args[0]
        if x is None or self._constant(x) is not None:
            return False
        if str(step.op) == "QLinearMatMul":
            is_matrix = weight.ndim == 2 and len(self.values[x].type.static_shape) > 1
            return is_matrix and weight.shape[0] > 0
        groups, filters = attribute(step, "group", 1), weight.shape[0]
        is_depthwise, lanes = groups == filters == weight.shape[1] * groups, self.forms.lanes
        if self.forms.are_dense_words(weight.shape, groups):
            return True
        if not lanes or filters * 2 < lanes:
            return False
        if is_depthwise and groups > 1:
            return prod(weight.shape[2:]) <= _MOST_TAPS
        return groups == 1 or has_byte_words(step.call, weight.shape, lanes, has_dot=self.forms.has_dot)

    def _product(self, step: KernelStep) -> WordProduct | None:
        """Return a product of integers by words; None if the factors do not fit."""
        x, weight, x_zero, weight_zero = (*step.args, None, None)[:4]
        array = self._constant(weight)
        if x is None or array is None or array.ndim != 2 or self._constant(x) is not None:
            return None
        middle = np.zeros(1, np.int64) if weight_zero is None else self._constant(weight_zero)
        if middle is None or not array.shape[0]:
            return None
        signed = signed_weight(array, middle.astype(np.int64))
        type_ = self.values[x].type
        if signed is None or type_.dtype not in BYTES[1:] or len(type_.static_shape) < 2:
            return None
        if x_zero is not None and prod(self.values[x_zero].type.static_shape) != 1:
            return None
        words = self._add_constant(packed_words(signed))
        columns = self._add_constant(signed.sum(0, np.int32))
        args = (x, words) if x_zero is None else (x, words, x_zero, columns)
        return WordProduct(replace(step.call, attrs=Attrs()), args, step.outputs)

    def _batched(self, step: KernelStep) -> list[KernelStep]:
        """Return a product of two computed matrices by words; the step alone if they do not fit."""
        x, y, *zeros = (*step.args, None, None)[:4]
        if x is None or y is None or not are_matrices(self.values[x], self.values[y]):
            return [step]
        if self.values[x].type.static_shape[-2] <= _FEW_ROWS:
            return [step]
        if any(zero is not None and prod(self.values[zero].type.static_shape) != 1 for zero in zeros):
            return [step]
        flip = self.values[x].type.dtype is DType.INT8
        offsets = HALF if flip else 0, -HALF if self.values[y].type.dtype is DType.UINT8 else 0
        constants = [np.zeros(1) if zero is None else self._constant(zero) for zero in zeros]
        numbers = [
            offset if array is None else offset + int(array.reshape(-1)[0])
            for offset, array in zip(offsets, constants, strict=True)
        ]
        read = [zero if array is None else None for zero, array in zip(zeros, constants, strict=True)]
        steps, left = [], x
        if flip:
            highest, left = self._add_constant(np.array(-HALF, np.int8)), self._add(self.values[x].type)
            given = [Var("x", checked_type=self.values[number].type) for number in (x, highest)]
            steps.append(KernelStep(call("BitwiseXor", *given), (x, highest), (left,)))
        product = BatchedStep(step.call, (left, y, *read), step.outputs, (numbers[0], numbers[1]), None)
        return [*steps, product]
