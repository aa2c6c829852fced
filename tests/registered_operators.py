"""Operators that tests register, for the duration of a block."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

import numpy as np
import numpy.typing as npt
from tests.onnx_models import model_of

from intarsia.frontend.onnx import from_onnx
from intarsia.ir import IRModule, TensorType
from intarsia.native import te
from intarsia.op.operator_definition import OperatorDefinition, holding_definition
from intarsia.op.register_operator import define_operator

Array = npt.NDArray[Any]

GATED = "acme::Gated"
MODEL = """
g (float[4,16] x, float[16,24] a, float[16,24] b) => (float[4,24] y) {
    r = Relu(x)
    h = acme.Gated<alpha = 0.5>(r, a, b)
    y = Neg(h)
}
"""
SHAPES = {"x": (4, 16), "a": (16, 24), "b": (16, 24)}


def gated_type(x: TensorType, gate: TensorType, up: TensorType, *, alpha: float) -> TensorType:
    """The type of the product of x and a weight."""
    del up, alpha
    assert x.shape is not None
    assert gate.shape is not None
    return TensorType((x.shape[0], gate.shape[1]), x.dtype)


def gated_kernel(x: te.Tensor, gate: te.Tensor, up: te.Tensor, *, alpha: float) -> te.Tensor:
    """Two products and the gate, in three stages."""
    shape = (x.shape[0], gate.shape[1])
    k, m = te.reduce_axis(x.shape[1], "k"), te.reduce_axis(x.shape[1], "m")
    g = te.compute(shape, lambda i, j: te.sum(x[i, k] * gate[k, j], axis=k), name="gate_sum")
    u = te.compute(shape, lambda i, j: te.sum(x[i, m] * up[m, j], axis=m), name="up_sum")
    return te.compute(shape, lambda i, j: g[i, j] / (1.0 + te.exp(-alpha * g[i, j])) * u[i, j], name="gated")


def gated(x: Array, gate: Array, up: Array, *, alpha: float = 1.0) -> Array:
    """The definition, in float64."""
    g = x.astype(np.float64) @ gate
    return np.asarray(g / (1 + np.exp(-alpha * g)) * (x @ up))


def gated_definition(**changes: Any) -> OperatorDefinition:
    """Return the definition of acme::Gated, with other functions and options if they are given."""
    functions: dict[str, Any] = {"infer": gated_type, "compute": gated_kernel, "reference": gated}
    return define_operator(GATED, **{**functions, **changes})


@contextmanager
def registered(name: str, *functions: Callable[..., Any] | None, **options: Any) -> Iterator[None]:
    """Register an operator; functions are infer, compute and reference."""
    with holding_definition(name, define_operator(name, *functions, **options)):  # type: ignore[arg-type]
        yield


@contextmanager
def gated_registered(**changes: Any) -> Iterator[None]:
    """Register acme::Gated."""
    with holding_definition(GATED, gated_definition(**changes)):
        yield


def gated_module() -> IRModule:
    """Return the program of `MODEL`."""
    return from_onnx(model_of(MODEL, imports='"acme": 1'))


def gated_inputs() -> dict[str, Array]:
    """Return arrays for `MODEL`."""
    rng = np.random.default_rng(0)
    return {name: rng.standard_normal(shape).astype(np.float32) for name, shape in SHAPES.items()}


def gated_result(inputs: dict[str, Array]) -> Array:
    """Return the result of `MODEL`."""
    return -gated(np.maximum(inputs["x"], 0), inputs["a"], inputs["b"], alpha=0.5)
