"""From scores to probabilities: the attribute `post_transform`."""

from __future__ import annotations

import math

import numpy as np

from intarsia.ir import DType, Expr, TensorType
from intarsia.op import call
from intarsia.passes.machine_learning.ml_call import MlCall, constant, scalar

_AXIS = 1

_NEARLY_ZERO = 1e-7
"""Scores up to here are zero to SOFTMAX_ZERO, as in onnxruntime and in onnx's reference."""

_WINITZKI = 0.147
"""The constant of S. Winitzki's approximation of the inverse error function; engines compute PROBIT so."""


def post_transformed(scores: Expr, ml: MlCall) -> Expr:
    """Return the scores after the operator's post_transform.

    Args:
        scores: Scores, shape (rows, classes).
        ml: The call that has the attribute.

    Raises:
        NotDecomposedError: There is no such transform.
    """
    match ml.text("post_transform", "NONE"):
        case "NONE":
            return scores
        case "SOFTMAX":
            return call("Softmax", scores, axis=_AXIS)
        case "LOGISTIC":
            return call("Sigmoid", scores)
        case "SOFTMAX_ZERO":
            return _softmax_but_zeros(scores)
        case "PROBIT":
            return _probit(scores)
        case other:
            raise ml.refusal(f"the post_transform {other}")


def _softmax_but_zeros(scores: Expr) -> Expr:
    """Softmax whose zeros stay (nearly) zero: they are multiplied by exp(-maximum) instead."""
    dtype = _dtype(scores)
    axes = constant(np.array([_AXIS]), DType.INT64)
    largest = call("ReduceMax", scores, axes, keepdims=1)
    is_zero = call("LessOrEqual", call("Abs", scores), scalar(_NEARLY_ZERO, dtype))
    zeros = call("Mul", scores, call("Exp", call("Neg", largest)))
    powers = call("Where", is_zero, zeros, call("Exp", call("Sub", scores, largest)))
    total = call("ReduceSum", powers, axes, keepdims=1)
    is_nothing = call("Equal", total, scalar(0.0, dtype))
    quotients = call("Div", powers, call("Where", is_nothing, scalar(1.0, dtype), total))
    return call("Where", is_nothing, scalar(0.5, dtype), quotients)


def _probit(scores: Expr) -> Expr:
    """The inverse of the normal distribution function: sqrt(2) * erfinv(2 x - 1)."""
    dtype = _dtype(scores)
    unit = scalar(1.0, dtype)
    x = call("Sub", call("Mul", scores, scalar(2.0, dtype)), unit)
    product = call("Mul", call("Sub", unit, x), call("Add", unit, x))
    log = call("Log", product)
    half = call("Add", scalar(2.0 / (math.pi * _WINITZKI), dtype), call("Mul", log, scalar(0.5, dtype)))
    root = call(
        "Sqrt", call("Sub", call("Mul", half, half), call("Mul", log, scalar(1.0 / _WINITZKI, dtype)))
    )
    size = call("Sqrt", call("Sub", root, half))
    is_negative = call("Less", x, scalar(0.0, dtype))
    signed = call("Where", is_negative, call("Neg", size), size)
    inverse = call("Where", call("Equal", product, scalar(0.0, dtype)), scalar(0.0, dtype), signed)
    return call("Mul", inverse, scalar(1.41421356, dtype))


def _dtype(scores: Expr) -> DType:
    assert isinstance(scores.checked_type, TensorType)
    return scores.checked_type.dtype
