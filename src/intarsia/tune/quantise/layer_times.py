"""The time of each layer in float32 and in integers, measured on a toolchain; layers that are alike once."""

from __future__ import annotations

import time
from collections.abc import Callable, Hashable
from typing import Any, Final

import numpy as np
import numpy.typing as npt

from intarsia.ir import Call, Constant, DType, Expr, Function, IRModule, TensorType, Var, with_fields
from intarsia.op.call import call
from intarsia.op.infer import typed
from intarsia.passes.quantise.heavy_layer import HeavyLayer, heavy_layers, top_level
from intarsia.passes.quantise.realized_layer import dequantised, integer_bias, quantised_weight
from intarsia.tune.quantise.calibrators import weight_scale
from intarsia.tune.quantise.layer_errors import layer_borders
from intarsia.tune.quantise.precision_problem import Border, LayerCost, PrecisionProblem
from intarsia.tune.quantise.program_runner import running_program

Array = npt.NDArray[Any]
Clock = Callable[[], float]

_CALLS: Final = 7
"""Timed calls of a layer, of which the fastest counts: other work only ever adds time."""

_BORDER_ELEMENTS: Final = 1 << 18
"""Elements of the value whose conversion is timed: 1 MiB of float32, as in the middle of an image network."""

_SCALE: Final = Constant(np.array(0.05, np.float32))
_ZERO: Final = Constant(np.array(128, np.uint8))


def precision_problem(
    annotated: IRModule, errors: tuple[float, ...], toolchain: str, clock: Clock = time.perf_counter
) -> PrecisionProblem:
    """Return the choice of layers as a problem, with times that are measured on a toolchain.

    Args:
        annotated: Program with annotations of all its layers, of static shapes.
        errors: Mean squared error of each layer alone.
        toolchain: Name of the toolchain.
        clock: Function that returns seconds.

    Raises:
        ExecutionError: The toolchain does not run a layer.
    """
    layers = heavy_layers(top_level(annotated["main"].body))
    times: dict[Hashable, tuple[float, float]] = {}
    costs = []
    for layer, error in zip(layers, errors, strict=True):
        key = _likeness(layer)
        if key not in times:
            wide, narrow = (_seconds(mod, toolchain, clock) for mod in (_wide(layer), _narrow(layer)))
            times[key] = wide, narrow
        costs.append(LayerCost(*times[key], error))
    per_element = _seconds(_conversion(), toolchain, clock) / _BORDER_ELEMENTS
    borders = (Border(first, second, size * per_element) for first, second, size in layer_borders(annotated))
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


def _program(x: Var, body: Expr) -> IRModule:
    assert isinstance(body, Call)
    return IRModule.from_expr(Function((x,), body))


def _seconds(mod: IRModule, toolchain: str, clock: Clock) -> float:
    (x,) = mod["main"].params
    own_type = x.checked_type
    assert isinstance(own_type, TensorType)
    shape = tuple(dim for dim in own_type.shape or () if isinstance(dim, int))
    inputs = {x.name: np.random.default_rng(0).integers(0, 255, shape).astype(own_type.dtype.numpy)}
    with running_program(mod, (toolchain,)) as run:
        run(inputs)
        return min(_timed(lambda: run(inputs), clock) for _ in range(_CALLS))


def _timed(action: Callable[[], object], clock: Clock) -> float:
    start = clock()
    action()
    return clock() - start
