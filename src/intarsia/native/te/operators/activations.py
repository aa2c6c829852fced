"""Activation functions of one argument: Relu, Gelu, HardSwish and their kind."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence

from intarsia.native.te.expression import Expression
from intarsia.native.te.functions import const, erf, maximum, select
from intarsia.native.te.operators.broadcasting import elementwise
from intarsia.native.te.operators.compute_call import ComputeCall
from intarsia.native.te.operators.compute_rule import compute_rule
from intarsia.native.te.operators.float32_arithmetic import in_float32
from intarsia.native.te.operators.scalar_functions import (
    absolute,
    clip,
    expm1_below_0,
    mish,
    sigmoid,
    softplus,
)
from intarsia.native.te.tensor import Tensor

_PLAIN: dict[str, Callable[[Expression], Expression]] = {
    "Relu": lambda x: maximum(x, 0),
    "Sigmoid": sigmoid,
    "HardSwish": lambda x: x * clip(x * (1 / 6) + 0.5, 0.0, 1.0),
    "Softplus": softplus,
    "Softsign": lambda x: x / (absolute(x) + 1.0),
    "Mish": mish,
}
_ALPHA: dict[str, Callable[[Expression, float], Expression]] = {
    "LeakyRelu": lambda x, alpha: select(x < 0.0, x * alpha, x),
    "Elu": lambda x, alpha: select(x < 0.0, expm1_below_0(x) * alpha, x),
    "Celu": lambda x, alpha: select(x < 0.0, expm1_below_0(x / alpha) * alpha, x),
    "ThresholdedRelu": lambda x, alpha: select(x > alpha, x, const(0.0, x.dtype)),
    "Swish": lambda x, alpha: x * sigmoid(x * alpha),
}


@compute_rule(*_PLAIN)
@in_float32
def activation(call: ComputeCall) -> Sequence[Tensor]:
    """Declare an activation function of floats, element by element; Relu of integers as well."""
    return elementwise(call, _PLAIN[call.op_name])


@compute_rule(*_ALPHA)
@in_float32
def activation_with_alpha(call: ComputeCall) -> Sequence[Tensor]:
    """Declare an activation function with the attribute alpha, of floats, element by element."""
    alpha = call.real("alpha", 1.0)
    return elementwise(call, lambda x: _ALPHA[call.op_name](x, alpha))


@compute_rule("Selu")
@in_float32
def selu(call: ComputeCall) -> Sequence[Tensor]:
    """Declare gamma * x above 0, gamma * alpha * (exp(x) - 1) below."""
    alpha, gamma = call.real("alpha"), call.real("gamma")
    return elementwise(call, lambda x: select(x < 0.0, expm1_below_0(x) * (alpha * gamma), x * gamma))


@compute_rule("HardSigmoid")
@in_float32
def hard_sigmoid(call: ComputeCall) -> Sequence[Tensor]:
    """Declare alpha * x + beta, clamped between 0 and 1."""
    alpha, beta = call.real("alpha"), call.real("beta")
    return elementwise(call, lambda x: clip(x * alpha + beta, 0.0, 1.0))


@compute_rule("Gelu")
@in_float32
def gelu(call: ComputeCall) -> Sequence[Tensor]:
    """Declare x times the normal distribution function, by erf or by an approximation with tanh."""
    if call.text("approximate") == "tanh":
        return elementwise(call, _gelu_tanh)
    return elementwise(call, lambda x: x * 0.5 * (erf(x * math.sqrt(0.5)) + 1.0))


def _gelu_tanh(x: Expression) -> Expression:
    """Return x * (1 + tanh(u)) / 2 as x * sigmoid(2 u), which keeps its digits for negative u."""
    return x * sigmoid((x + x * x * x * 0.044715) * (2 * math.sqrt(2 / math.pi)))


@compute_rule("Shrink")
@in_float32
def shrink(call: ComputeCall) -> Sequence[Tensor]:
    """Declare x moved towards 0 by bias beyond lambd, and 0 for the rest."""
    if not call.output_type.dtype.is_float:
        raise call.not_covered("integers")
    bias, lambd = call.real("bias"), call.real("lambd")
    return elementwise(
        call,
        lambda x: select(x < -lambd, x + bias, select(x > lambd, x - bias, const(0.0, x.dtype))),
    )


@compute_rule("PRelu")
@in_float32
def prelu(call: ComputeCall) -> Sequence[Tensor]:
    """Declare x above 0, x times a slope that is broadcast below."""
    return elementwise(call, lambda x, slope: select(x > 0, x, x * slope))
