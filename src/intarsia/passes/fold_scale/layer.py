"""Operators with constant weights: which scales their weights take, and the layer with the weights after it.

Conv           weight (out, in / group, ...)       output channels axis 1   input channels axis 1
ConvTranspose  weight (in, out / group, ...)       the same
Gemm           weight (in, out), or transposed     output axis 1            input axis 1, or 0 if transposed
MatMul         weight (..., in, out) on the right  last axis                last axis
               weight (..., out, in) on the left   last but one             last but one
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from intarsia.ir import ABSENT, Call, Constant, DType, Expr, with_fields
from intarsia.passes.fold_scale.scale import FLOATS, Acceptance, Scale, acceptance_of, scaled_constant
from intarsia.passes.rules.tensor_facts import Array, dims_of, int_attr, operator_name

WITH_BIAS = frozenset({"Conv", "ConvTranspose", "Gemm"})
"""Layers that have a bias of their own."""


@dataclass(frozen=True, slots=True, eq=False)
class Layer:
    """A layer with constant weights.

    Attributes:
        call: The call.
        weight: Its weights.
        weight_position: Index of the weights among the arguments.
        bias: Its bias; None if it has none.
    """

    call: Call
    weight: Constant
    weight_position: int
    bias: Constant | None

    @property
    def data_position(self) -> int:
        """Which argument the data are."""
        return 1 - self.weight_position

    @property
    def output_axis(self) -> int:
        """The axis of the output channels."""
        if operator_name(self.call) != "MatMul":
            return 1
        return _rank(self.call) - (1 if self.weight_position else 2)

    @property
    def input_axis(self) -> int:
        """The axis of the input channels."""
        data = self.call.args[self.data_position]
        match operator_name(self.call):
            case "MatMul":
                return _rank(data) - (1 if self.weight_position else 2)
            case "Gemm":
                return 0 if int_attr(self.call.attrs, "transA", 0) else 1
            case _:
                return 1

    def accepts_output(self) -> Acceptance:
        """Which scales of its result it takes."""
        constants = (self.weight,) if self.bias is None else (self.weight, self.bias)
        return acceptance_of(self.output_axis, *constants)

    def accepts_input(self) -> Acceptance:
        """Which scales of its data it takes."""
        return acceptance_of(self.input_axis, self.weight)

    def with_output_scaled(self, scale: Scale) -> Call:
        """The layer whose result is multiplied by a scale."""
        args = list(self.call.args)
        factors = scale.factors if scale.axis is None else self._by_output(scale.factors)
        args[self.weight_position] = scaled_constant(self.weight, factors)
        if self.bias is not None:
            args[2] = scaled_constant(self.bias, scale.factors)
        return with_fields(self.call, args=tuple(args))

    def with_input_scaled(self, scale: Scale) -> Call:
        """The layer whose data have been multiplied by a scale before."""
        args = list(self.call.args)
        factors = scale.factors if scale.axis is None else self._by_input(scale.factors)
        args[self.weight_position] = scaled_constant(self.weight, factors)
        return with_fields(self.call, args=tuple(args))

    def _by_output(self, factors: Array) -> Array:
        """Factors of output channels in a shape that fits the weights."""
        spatial = (1,) * (self.weight.data.ndim - 2)
        match operator_name(self.call):
            case "Conv":
                return factors.reshape(-1, 1, *spatial)
            case "ConvTranspose":
                return self._by_group(factors).reshape(*self.weight.data.shape[:2], *spatial)
            case "Gemm":
                return factors.reshape(-1, 1) if int_attr(self.call.attrs, "transB", 0) else factors
            case _:
                return factors if self.weight_position else factors.reshape(-1, 1)

    def _by_input(self, factors: Array) -> Array:
        """Factors of input channels in a shape that fits the weights."""
        spatial = (1,) * (self.weight.data.ndim - 2)
        match operator_name(self.call):
            case "Conv":
                return self._by_group(factors).reshape(*self.weight.data.shape[:2], *spatial)
            case "ConvTranspose":
                return factors.reshape(-1, 1, *spatial)
            case "Gemm":
                return factors if int_attr(self.call.attrs, "transB", 0) else factors.reshape(-1, 1)
            case _:
                return factors.reshape(-1, 1) if self.weight_position else factors

    def _by_group(self, factors: Array) -> Array:
        """Factors of the channels that weights have per group, for each channel that they have for all."""
        groups = int_attr(self.call.attrs, "group", 1)
        rows = self.weight.data.shape[0] // groups
        return np.repeat(factors.reshape(groups, 1, -1), rows, axis=1)


def layer_of(expr: Expr) -> Layer | None:
    """The layer that an expression calls, if its weights and bias are constant floats, and ranks known."""
    match operator_name(expr):
        case "Conv" | "ConvTranspose" | "Gemm":
            assert isinstance(expr, Call)
            return _with_bias(expr)
        case "MatMul":
            assert isinstance(expr, Call)
            return _product(expr)
        case _:
            return None


def _with_bias(call: Call) -> Layer | None:
    match call.args:
        case (_, Constant() as weight) if _is_float(weight):
            return Layer(call, weight, 1, None)
        case (_, Constant() as weight, bias) if _is_float(weight) and bias.checked_type == ABSENT:
            return Layer(call, weight, 1, None)
        case (_, Constant() as weight, Constant() as bias) if _is_float(weight) and bias.data.size:
            return Layer(call, weight, 1, bias)
        case _:
            return None


def _product(call: Call) -> Layer | None:
    left, right = call.args
    if dims_of(left) is None or dims_of(right) is None or dims_of(call) is None:
        return None
    if isinstance(right, Constant) and right.data.ndim >= 2 and _is_float(right):
        return Layer(call, right, 1, None)
    if isinstance(left, Constant) and left.data.ndim >= 2 and _rank(right) >= 2 and _is_float(left):
        return Layer(call, left, 0, None)
    return None


def _rank(expr: Expr) -> int:
    dims = dims_of(expr)
    assert dims is not None
    return len(dims)


def _is_float(constant: Constant) -> bool:
    return DType.of(constant.data) in FLOATS
