"""Calibrated annotations become QuantizeLinear and DequantizeLinear."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from intarsia.ir import (
    Call,
    Constant,
    Expr,
    Function,
    IRModule,
    Op,
    children,
    with_children,
    with_fields,
)
from intarsia.op.call import call
from intarsia.op.infer import typed
from intarsia.op.simulated_quantize_op import SIMULATED_QUANTIZE_ARGUMENTS
from intarsia.passes.quantise.absorbed_activation import is_absorbed
from intarsia.passes.quantise.heavy_layer import HeavyLayer, heavy_layers, is_annotation, top_level
from intarsia.passes.quantise.integer_values import MOVING
from intarsia.passes.quantise.realized_layer import (
    LARGEST_BIAS,
    dequantised,
    integer_bias,
    quantised_weight,
    safe_scale,
    weight_error,
)
from intarsia.support.errors import UsageError
from intarsia.transform import ModulePass, PassContext, register_pass

Array = npt.NDArray[Any]
QuantisedParts = tuple[Expr, Constant, Constant]
"""A quantised value, its scale and its zero point."""


@register_pass
@dataclass(frozen=True)
class RealizeQuantization(ModulePass, opt_level=0, required=("InferType",)):
    """Replaces calibrated marks of @main by integers, in the form that exporters of quantised models write.

    A marked value becomes DequantizeLinear(QuantizeLinear(value)). Marked weights become DequantizeLinear of
    int8 constants, with a scale for each output channel, and biases DequantizeLinear of int32 constants with
    the product of both scales. Operators that move elements of a dequantised value move the integers instead.
    Toolchains make integer kernels of that form; computed as written it says what these have to compute.

    A Relu or Clip is left out where the range of the integers does the same.

    Rounding weights shifts the mean of a layer's outputs. Where calibration has stored the means of its
    inputs, the bias is corrected by that shift.

    Source: the quantise group of TVM's Relay (annotate, calibrate, realize; seed relax_pass_infra).

    Attributes:
        corrects_bias: Whether biases are corrected.

    Raises:
        UsageError: A mark has no scale.

    Before:
        def @main(%x: Tensor[(1, 2), float32]) {
          %a = intarsia::simulated_quantize(
            %x, float32(0.5), uint8(3), axis=-1, dtype="uint8", key=0);
          %w = intarsia::simulated_quantize(
            meta[Constant][0], float32[1, 1, 1], int8[0, 0, 0], axis=1, dtype="int8", key=1);
          MatMul(%a, %w)
        }
    After:
        def @main(%x: Tensor[(1, 2), float32]) {
          %q = QuantizeLinear(%x, float32(0.5), uint8(3));
          %a = DequantizeLinear(%q, float32(0.5), uint8(3));
          %w = DequantizeLinear(meta[Constant][1], float32[1, 1, 1], int8[0, 0, 0], axis=1);
          MatMul(%a, %w)
        }
    Constants:
        ones(2, 3) full(2, 3, 1, int8)
    """

    corrects_bias: bool = True

    def transform_module(self, mod: IRModule, ctx: PassContext) -> IRModule:  # of all passes
        """The module with integers in @main; linear in the program."""
        if "main" not in mod:
            return mod
        function = mod["main"]
        nodes = tuple(top_level(function.body))
        if not any(map(is_annotation, nodes)):
            return mod
        return mod.with_function("main", self._realized(function, nodes))

    def _realized(self, function: Function, nodes: tuple[Expr, ...]) -> Function:
        realization = _Realization(nodes, corrects_bias=self.corrects_bias)
        return with_fields(function, body=realization.body(), checked_type=None)


class _Realization:
    """Rewrites one function."""

    def __init__(self, nodes: tuple[Expr, ...], *, corrects_bias: bool) -> None:
        self._nodes, self._corrects_bias = nodes, corrects_bias
        self._layers = {
            layer.call: layer for layer in heavy_layers(nodes) if is_annotation(layer.call.args[1])
        }
        self._uses = Counter(child for node in nodes for child in children(node))
        self._new: dict[Expr, Expr] = {}
        self._parts: dict[Expr, QuantisedParts] = {}
        self._products: dict[Expr, tuple[Array, Array | None]] = {}

    def body(self) -> Expr:
        """Return the body with integers."""
        for node in self._nodes:
            self._new[node] = self._rewritten(node)
        return self._new[self._nodes[-1]]

    def _rewritten(self, node: Expr) -> Expr:
        if isinstance(node, Call):
            if is_annotation(node):
                return self._annotation(node)
            if node in self._layers:
                return self._layer(self._layers[node])
            if isinstance(node.op, Op) and not node.op.domain:
                if node.op.name in MOVING and self._new.get(node.args[0]) in self._parts:
                    return self._moved(node)
                if node.op.name == "Add":
                    return self._sum(node)
        return self._over_rewritten(node)

    def _over_rewritten(self, node: Expr) -> Expr:
        new = with_children(node, tuple(self._new.get(child, child) for child in children(node)))
        return node if new is node else typed(_without_unit_dilations(new))

    def _annotation(self, mark: Call) -> Expr:
        value = mark.args[0]
        scale, zero = (*mark.args[1:], None, None)[:2]
        if not isinstance(scale, Constant) or not isinstance(zero, Constant):
            raise UsageError(
                "a value is marked for quantisation, but has no scale",
                help="run CalibrateQuantization before RealizeQuantization",
            )
        if isinstance(value, Constant):
            return mark  # of a weight: its layer takes it from here
        source = self._new[value]
        while is_absorbed(source, scale.data, zero.data):
            source = source.args[0]
        quantised = call("QuantizeLinear", source, scale, zero, span=mark.span)
        return self._dequantised((quantised, scale, zero), mark)

    def _dequantised(self, parts: QuantisedParts, like: Expr) -> Expr:
        result = call("DequantizeLinear", *parts, span=like.span)
        result = with_fields(result, virtual_device=like.virtual_device)
        self._parts[result] = parts
        return result

    def _moved(self, node: Call) -> Expr:
        """Return the elements of a dequantised value moved as integers."""
        quantised, scale, zero = self._parts[self._new[node.args[0]]]
        rest = (self._new.get(arg, arg) for arg in node.args[1:])
        moved = typed(with_fields(node, args=(quantised, *rest), checked_type=None))
        return self._dequantised((moved, scale, zero), node)

    def _layer(self, layer: HeavyLayer) -> Expr:
        data, mark = self._new[layer.call.args[0]], layer.call.args[1]
        if data not in self._parts or not isinstance(mark, Call):
            return self._over_rewritten(layer.call)
        steps = mark.args[1]
        assert isinstance(steps, Constant)
        input_scale = self._parts[data][1].data.astype(np.float32)
        bias = None if layer.bias is None else layer.bias.data
        scale = safe_scale(steps.data, bias, float(input_scale))
        weight = quantised_weight(layer.weight.data, scale, layer.weight_axis)
        shift = self._shift(layer, scale)
        args = [data, dequantised(weight, scale, layer.weight_axis, layer.weight)]
        third = layer.call.args[2:]
        if bias is not None or (shift is not None and not third and layer.operator != "MatMul"):
            total = np.zeros(scale.shape, np.float32) if bias is None else bias
            total = total if shift is None else total - shift.reshape(total.shape)
            args.append(integer_bias(total, scale * input_scale, layer.bias or layer.call))
        else:
            args += [self._new.get(arg, arg) for arg in third]
        result = typed(with_fields(layer.call, args=tuple(args)))
        if layer.operator == "MatMul" and self._uses[layer.call] == 1:
            self._products[result] = scale * input_scale, shift
        return result

    def _shift(self, layer: HeavyLayer, scale: Array) -> Array | None:
        """Return the shift of the means of a layer's outputs; None if it is unknown or to be left."""
        mark = layer.call.args[0]
        has_mean = (
            isinstance(mark, Call) and is_annotation(mark) and len(mark.args) == SIMULATED_QUANTIZE_ARGUMENTS
        )
        mean = mark.args[-1] if has_mean and isinstance(mark, Call) else None
        if not self._corrects_bias or not isinstance(mean, Constant):
            return None
        if mean.data.size != layer.input_channels:  # the means are those of another axis
            return None
        return weight_error(layer, scale, mean.data)

    def _sum(self, node: Call) -> Expr:
        """Return a sum of a product and its bias, with the bias as integers, and corrected.

        onnxruntime makes Gemm of the two, which is one in integers only if its bias is.
        """
        new = [self._new.get(arg, arg) for arg in node.args]
        for product, other in ((0, 1), (1, 0)):
            bias = new[other]
            if new[product] not in self._products or not isinstance(bias, Constant):
                continue
            scale, shift = self._products[new[product]]
            if bias.data.shape != scale.shape:
                continue
            total = bias.data if shift is None else bias.data - shift
            fits = bool((np.abs(total) < scale * LARGEST_BIAS).all())
            new[other] = integer_bias(total, scale, bias) if fits else with_fields(bias, data=total)
            return typed(with_fields(node, args=tuple(new)))
        return self._over_rewritten(node)


def _without_unit_dilations(node: Expr) -> Expr:
    """Return a pool without dilations of 1: the default, which onnxruntime refuses in integers."""
    if not isinstance(node, Call) or not isinstance(node.op, Op) or node.op.name != "AveragePool":
        return node
    dilations = node.attrs.get("dilations")
    is_unit = isinstance(dilations, tuple) and set(dilations) == {1}
    return with_fields(node, attrs=node.attrs.updated(dilations=None)) if is_unit else node
