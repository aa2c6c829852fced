"""The operators of ONNX that NumPy computes."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, Final, TypeAlias

import numpy as np

from intarsia.runtime.kernel import Array

Compute: TypeAlias = Callable[..., Any]
"""Called with the operands, and with `out`, the array to write the result into."""


def _relu(x: Array, *, out: Array) -> None:
    np.maximum(x, 0, out=out)


def _sigmoid(x: Array, *, out: Array) -> None:
    np.negative(x, out=out)
    np.exp(out, out=out)
    np.add(out, 1, out=out)
    np.reciprocal(out, out=out)


ELEMENTWISE: Final[Mapping[str, Compute]] = {
    "Abs": np.absolute,
    "Add": np.add,
    "Div": np.divide,
    "Exp": np.exp,
    "Identity": np.positive,
    "Log": np.log,
    "Mul": np.multiply,
    "Neg": np.negative,
    "Relu": _relu,
    "Sigmoid": _sigmoid,
    "Sqrt": np.sqrt,
    "Sub": np.subtract,
    "Tanh": np.tanh,
}
"""Elementwise operators. Each reads an element before it writes the result there: `out` may be an operand."""

MATMUL: Final = "MatMul"

OPERATORS: Final = frozenset({*ELEMENTWISE, MATMUL})
"""Operators of ONNX's own domain, on float32 and float64."""
