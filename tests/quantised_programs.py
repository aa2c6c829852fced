"""Small programs that can be quantised, and what tests measure of them."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt
from tests.parallel_programs import image

from intarsia.ir import Call, Constant, Expr, Function, IRModule, Op, Tuple, Var, post_order
from intarsia.op import call
from intarsia.op.evaluate import evaluate_call

Array = npt.NDArray[Any]


def weights(*shape: int, seed: int = 0, scale: float = 0.3) -> Constant:
    """Normally distributed constants of float32."""
    values = np.random.default_rng(seed).standard_normal(shape) * scale
    return Constant(values.astype(np.float32))


def residual_network(channels: int = 4) -> IRModule:
    """Two convolutions with a residual connection, a pool and a classifier.

    Heavy layers: 0 and 1 are the convolutions of the block, 2 is the classifier.
    """
    x = image(2, channels, 6, 6)
    bias = weights(channels, seed=1)
    first = call("Relu", call("Conv", x, weights(channels, channels, 3, 3), bias, pads=(1, 1, 1, 1)))
    second = call("Conv", first, weights(channels, channels, 1, 1, seed=2), weights(channels, seed=3))
    joined = call("Relu", call("Add", second, first))
    pooled = call("Flatten", call("GlobalAveragePool", joined))
    return program(call("Add", call("MatMul", pooled, weights(channels, 5, seed=4)), weights(5, seed=5)))


def program(*results: Expr) -> IRModule:
    """A program of its free variables and some results."""
    params = tuple(dict.fromkeys(node for node in post_order(*results) if isinstance(node, Var)))
    return IRModule.from_expr(Function(params, results[0] if len(results) == 1 else Tuple(results)))


def marks(mod: IRModule) -> list[Call]:
    """The annotations of a program."""
    return [
        node
        for node in post_order(mod["main"])
        if isinstance(node, Call) and isinstance(node.op, Op) and node.op.name == "simulated_quantize"
    ]


def signal_to_noise(expected: Array, actual: Array) -> float:
    """Ratio of the power of a signal to that of the difference, in decibels."""
    wide = expected.astype(np.float64)
    noise = float(np.sum((wide - actual) ** 2))
    return float(10 * np.log10(np.sum(wide * wide) / max(noise, 1e-30)))


def by_onnx(x: Array, scale: Array, zero: Array, axis: int) -> Array:
    """What QuantizeLinear and DequantizeLinear make of an array."""
    parts, number = (Constant(scale), Constant(zero)), max(axis, 0)  # of a scalar scale the axis is ignored
    quantised = evaluate_call(call("QuantizeLinear", Constant(x), *parts, axis=number))
    assert isinstance(quantised, np.ndarray)
    result = evaluate_call(call("DequantizeLinear", Constant(quantised), *parts, axis=number))
    assert isinstance(result, np.ndarray)
    return result
