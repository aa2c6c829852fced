"""Operators that compute each element by itself."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import reduce
from typing import Final

import torch
from torch.nn import functional

from intarsia.toolchain.torch.rule import Computation, NodeForm, Rule, Tensor, plain, refusal
from intarsia.toolchain.torch.types import torch_dtype

_GELU: Final = {"none": "none", "tanh": "tanh"}


def _divide(a: Tensor, b: Tensor) -> Tensor:
    """Whole numbers are divided towards zero."""
    return torch.div(a, b) if a.dtype.is_floating_point else torch.div(a, b, rounding_mode="trunc")


def _power(a: Tensor, b: Tensor) -> Tensor:
    return torch.pow(a, b).to(a.dtype)


def _folded(function: Callable[[Tensor, Tensor], Tensor]) -> Rule:
    return plain(lambda *values: reduce(function, values))


def _clip(_: NodeForm) -> Computation:
    def run(x: Tensor, low: Tensor = None, high: Tensor = None) -> Tensor:
        x = x if low is None else torch.maximum(x, low)
        return x if high is None else torch.minimum(x, high)

    return run


def _gelu(form: NodeForm) -> Computation:
    approximate = _GELU[form.text("approximate", "none")]
    return lambda x: functional.gelu(x, approximate=approximate)


def _cast(form: NodeForm) -> Computation:
    dtype = torch_dtype(form.attribute("to", 0))
    if dtype is None:
        raise refusal("operator 'Cast' to an element type that torch lacks")
    return lambda x: x.to(dtype)


def _dropout(form: NodeForm) -> Computation:
    form.require(form.outputs == 1 and len(form.fixed) <= 2, "with a mask or in training")
    return lambda x, *_: x


def _hard_sigmoid(form: NodeForm) -> Computation:
    alpha, beta = form.attribute("alpha", 0.2), form.attribute("beta", 0.5)
    return lambda x: torch.clamp(alpha * x + beta, 0, 1)


def _leaky(form: NodeForm) -> Computation:
    alpha = form.attribute("alpha", 0.01)
    return lambda x: functional.leaky_relu(x, alpha)


def _elu(form: NodeForm) -> Computation:
    alpha = form.attribute("alpha", 1.0)
    return lambda x: functional.elu(x, alpha)


ARITHMETIC: Mapping[str, Rule] = {
    **{
        name: plain(function)
        for name, function in {
            "Abs": torch.abs,
            "Add": torch.add,
            "And": torch.logical_and,
            "Ceil": torch.ceil,
            "Cos": torch.cos,
            "Div": _divide,
            "Equal": torch.eq,
            "Erf": torch.erf,
            "Exp": torch.exp,
            "Floor": torch.floor,
            "Greater": torch.gt,
            "GreaterOrEqual": torch.ge,
            "HardSwish": functional.hardswish,
            "Identity": lambda x: x,
            "Less": torch.lt,
            "LessOrEqual": torch.le,
            "Log": torch.log,
            "Mul": torch.mul,
            "Neg": torch.neg,
            "Not": torch.logical_not,
            "Or": torch.logical_or,
            "PRelu": lambda x, slope: torch.where(x < 0, x * slope, x),
            "Pow": _power,
            "Reciprocal": torch.reciprocal,
            "Relu": torch.relu,
            "Round": torch.round,
            "Sigmoid": torch.sigmoid,
            "Sign": torch.sign,
            "Sin": torch.sin,
            "Softplus": lambda x: torch.logaddexp(x, torch.zeros_like(x)),
            "Sqrt": torch.sqrt,
            "Sub": torch.sub,
            "Tanh": torch.tanh,
            "Where": torch.where,
            "Xor": torch.logical_xor,
        }.items()
    },
    "Max": _folded(torch.maximum),
    "Min": _folded(torch.minimum),
    "Sum": _folded(torch.add),
    "Cast": _cast,
    "Clip": _clip,
    "Dropout": _dropout,
    "Elu": _elu,
    "Gelu": _gelu,
    "HardSigmoid": _hard_sigmoid,
    "LeakyRelu": _leaky,
}
"""Rules by name of the operator."""
