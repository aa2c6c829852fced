"""The time of each layer in each type, measured on a toolchain; layers that are alike once."""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Hashable
from dataclasses import dataclass
from functools import cached_property
from typing import Any, Final

import numpy as np
import numpy.typing as npt

from intarsia.ir import Call, Constant, DType, Expr, Function, IRModule, TensorType, Var, with_fields
from intarsia.op.call import call
from intarsia.op.infer import typed
from intarsia.op.onnx_types import elem_type_of
from intarsia.passes.quantise.heavy_layer import HeavyLayer, heavy_layers, top_level
from intarsia.passes.quantise.realized_layer import dequantised, integer_bias, quantised_weight
from intarsia.support.errors import ExecutionError
from intarsia.target import Target
from intarsia.tune.quantise.calibrators import weight_scale
from intarsia.tune.quantise.layer_errors import LayerErrors, layer_borders
from intarsia.tune.quantise.precision_problem import Border, LayerCost, PrecisionProblem
from intarsia.tune.quantise.program_times import program_times

Array = npt.NDArray[Any]
Clock = Callable[[], float]

_CALLS: Final = 7
"""Timed calls of a layer, of which the fastest counts: other work only ever adds time."""

_LEAST: Final = 0.1
"""Least fraction of a program's time that is not the call's."""

_BORDER_ELEMENTS: Final = 1 << 18
"""Elements of the value whose conversion is timed: 1 MiB of float32, as in the middle of an image network."""

_SCALE: Final = Constant(np.array(0.05, np.float32))
_ZERO: Final = Constant(np.array(128, np.uint8))


def precision_problem(
    annotated: IRModule, errors: LayerErrors, target: Target, clock: Clock = time.perf_counter
) -> PrecisionProblem:
    """Return the choice of layers as a problem, with times that are measured on a target.

    Args:
        annotated: Program with annotations of all its layers, of static shapes.
        errors: Mean squared errors of each layer alone. Bfloat16 is a choice if its errors are measured, and
            the target runs the layer in it.
        target: Target that runs the layers.
        clock: Function that returns seconds.

    Raises:
        ExecutionError: The target does not run a layer.
    """
    layers = heavy_layers(top_level(annotated["main"].body))
    timing = _Timing(target, clock)
    has_bfloat16 = bool(errors.bfloat16)
    times: dict[Hashable, tuple[float, float, float]] = {}
    costs = []
    for layer, error in zip(layers, errors.int8, strict=True):
        key = _likeness(layer)
        if key not in times:
            wide, narrow = (timing.seconds(mod) for mod in (_wide(layer), _narrow(layer)))
            middle = timing.seconds_if_it_runs(_half(layer)) if has_bfloat16 else math.inf
            times[key] = wide, narrow, middle
        wide, narrow, middle = times[key]
        middle_error = errors.bfloat16[layer.number] if has_bfloat16 else 0.0
        costs.append(LayerCost(wide, narrow, error, middle, middle_error))
    quantising = timing.seconds(_conversion()) / _BORDER_ELEMENTS
    rounding = timing.seconds_if_it_runs(_rounding()) / _BORDER_ELEMENTS if has_bfloat16 else 0.0
    rounding = quantising if math.isinf(rounding) else rounding
    borders = (
        Border(first, second, size * quantising, size * rounding, size * quantising)
        for first, second, size in layer_borders(annotated)
    )
    return PrecisionProblem(tuple(costs), tuple(borders))


def _likeness(layer: HeavyLayer) -> Hashable:
    bias = layer.bias is not None
    return layer.operator, layer.call.attrs, layer.call.args[0].checked_type, layer.weight.data.shape, bias


def _input(layer: HeavyLayer, dtype: DType) -> Var:
    own_type = layer.call.args[0].checked_type
    assert isinstance(own_type, TensorType)
    return Var("x", checked_type=TensorType(own_type.shape, dtype))


def _wide(layer: HeavyLayer) -> IRModule:
    x = _input(layer, DType.FLOAT32)
    bias = () if layer.bias is None else (layer.bias,)
    return _program(x, typed(with_fields(layer.call, args=(x, layer.weight, *bias))))


def _half(layer: HeavyLayer) -> IRModule:
    """Return a layer that reads and writes bfloat16."""
    x = _input(layer, DType.BFLOAT16)
    constants = (layer.weight,) if layer.bias is None else (layer.weight, layer.bias)
    narrow = [Constant(constant.data.astype(DType.BFLOAT16.numpy)) for constant in constants]
    return _program(x, typed(with_fields(layer.call, args=(x, *narrow), checked_type=None)))


def _narrow(layer: HeavyLayer) -> IRModule:
    """Return a layer that reads and writes integers."""
    x = _input(layer, DType.UINT8)
    scale = weight_scale(layer.weight.data, layer.weight_axis, "minmax")
    integers = quantised_weight(layer.weight.data, scale, layer.weight_axis)
    weight = dequantised(integers, scale, layer.weight_axis, layer.weight)
    args: list[Expr] = [call("DequantizeLinear", x, _SCALE, _ZERO), weight]
    if layer.bias is not None:
        args.append(integer_bias(layer.bias.data, scale * _SCALE.data, layer.bias))
    return _program(
        x, call("QuantizeLinear", typed(with_fields(layer.call, args=tuple(args))), _SCALE, _ZERO)
    )


def _conversion() -> IRModule:
    x = Var("x", checked_type=TensorType((1, _BORDER_ELEMENTS), DType.FLOAT32))
    return _program(x, call("QuantizeLinear", x, _SCALE, _ZERO))


def _rounding() -> IRModule:
    x = Var("x", checked_type=TensorType((1, _BORDER_ELEMENTS), DType.FLOAT32))
    return _program(x, call("Cast", x, to=elem_type_of(DType.BFLOAT16)))


def _program(x: Var, body: Expr) -> IRModule:
    assert isinstance(body, Call)
    return IRModule.from_expr(Function((x,), body))


@dataclass(eq=False)
class _Timing:
    """Times of small programs without that of the call.

    Attributes:
        target: Target that runs them.
        clock: Function that returns seconds.
    """

    target: Target
    clock: Clock

    @cached_property
    def _call(self) -> float:
        """Seconds of a call that computes nothing to speak of."""
        x = Var("x", checked_type=TensorType((1,), DType.FLOAT32))
        seconds = self._whole(_program(x, call("Relu", x)))
        return seconds if seconds < math.inf else 0.0

    def seconds(self, mod: IRModule) -> float:
        """Return the time of a program.

        Raises:
            ExecutionError: The toolchain does not run it.
        """
        seconds = self.seconds_if_it_runs(mod)
        if seconds == math.inf:
            raise ExecutionError(f"{self.target.toolchain} does not run {str(mod['main'].body)[:80]}")
        return seconds

    def seconds_if_it_runs(self, mod: IRModule) -> float:
        """Return the time of a program, infinite if the toolchain does not run it."""
        whole = self._whole(mod)
        return max(_LEAST * whole, whole - self._call)

    def _whole(self, mod: IRModule) -> float:
        (x,) = mod["main"].params
        own_type = x.checked_type
        assert isinstance(own_type, TensorType)
        shape = tuple(dim for dim in own_type.shape or () if isinstance(dim, int))
        inputs = {x.name: np.random.default_rng(0).integers(0, 255, shape).astype(own_type.dtype.numpy)}
        (seconds,) = program_times([mod], self.target, inputs, _CALLS, self.clock)
        return seconds
