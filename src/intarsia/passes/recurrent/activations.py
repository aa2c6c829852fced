"""Activation functions of recurrent layers, by the names that ONNX gives them."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Final

import numpy as np
import numpy.typing as npt

from intarsia.ir import Constant, Expr
from intarsia.op import call


@dataclass(frozen=True, slots=True)
class Activation:
    """One activation function with its parameters.

    Attributes:
        name: Its name in lower case, a key of `_BUILDERS`.
        alpha: First parameter, 0 for a function without parameters.
        beta: Second parameter, 0 for a function with fewer parameters.
    """

    name: str
    alpha: float = 0.0
    beta: float = 0.0

    def of(self, value: Expr, dtype: npt.DTypeLike) -> Expr:
        """Apply the function to a value.

        Args:
            value: The value, of any shape.
            dtype: Its element type.
        """
        return _BUILDERS[self.name](value, self.alpha, self.beta, np.dtype(dtype))


def parse_activations(
    names: Sequence[str], alphas: Sequence[float], betas: Sequence[float]
) -> tuple[Activation, ...] | None:
    """Return the functions of the attributes `activations`, `activation_alpha` and `activation_beta`.

    A function with a parameter takes the next value of its list; where the list has ended, the parameter has
    the default of the ONNX operator of that name. This is how onnxruntime reads the lists.

    Returns:
        The functions in order; None if a name is unknown, or a parameter without default is missing.
    """
    waiting_alphas, waiting_betas = list(alphas), list(betas)
    parsed = []
    for name in map(str.lower, names):
        if name not in _BUILDERS:
            return None
        parameters = []
        for waiting, defaults in ((waiting_alphas, _ALPHAS), (waiting_betas, _BETAS)):
            value: float | None = 0.0
            if name in defaults:
                value = waiting.pop(0) if waiting else defaults[name]
            if value is None:
                return None
            parameters.append(value)
        parsed.append(Activation(name, *parameters))
    return tuple(parsed)


_Builder = Callable[[Expr, float, float, "np.dtype[np.generic]"], Expr]

_ALPHAS: Final[dict[str, float | None]] = {
    "affine": None,
    "leakyrelu": 0.01,
    "thresholdedrelu": 1.0,
    "scaledtanh": None,
    "hardsigmoid": 0.2,
    "elu": 1.0,
}
"""Functions with a first parameter, and its default; None where ONNX has none."""

_BETAS: Final[dict[str, float | None]] = {"affine": None, "scaledtanh": None, "hardsigmoid": 0.5}
"""Functions with a second parameter, and its default."""


def _scalar(number: float, dtype: np.dtype[np.generic]) -> Constant:
    return Constant(np.array(number, dtype))


def _scaled_tanh(x: Expr, alpha: float, beta: float, dtype: np.dtype[np.generic]) -> Expr:
    inner = call("Tanh", call("Mul", x, _scalar(beta, dtype)))
    return call("Mul", inner, _scalar(alpha, dtype))


_BUILDERS: Final[dict[str, _Builder]] = {
    "relu": lambda x, _a, _b, _d: call("Relu", x),
    "tanh": lambda x, _a, _b, _d: call("Tanh", x),
    "sigmoid": lambda x, _a, _b, _d: call("Sigmoid", x),
    "softsign": lambda x, _a, _b, _d: call("Softsign", x),
    "softplus": lambda x, _a, _b, _d: call("Softplus", x),
    "affine": lambda x, a, b, d: call("Add", call("Mul", x, _scalar(a, d)), _scalar(b, d)),
    "leakyrelu": lambda x, a, _b, _d: call("LeakyRelu", x, alpha=a),
    "thresholdedrelu": lambda x, a, _b, _d: call("ThresholdedRelu", x, alpha=a),
    "scaledtanh": _scaled_tanh,
    "hardsigmoid": lambda x, a, b, _d: call("HardSigmoid", x, alpha=a, beta=b),
    "elu": lambda x, a, _b, _d: call("Elu", x, alpha=a),
}
