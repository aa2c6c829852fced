"""The expected size of the values in a network: their mean and mean square, node by node.

Weights are scaled by it (`weights.py`), which keeps every layer's output near unit variance without running
the model, and so with the same bits on every machine. The idea is He initialisation (He et al. 2015, section
2.2), carried on through the operators between two weighted layers.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from math import erf, exp, pi, prod, sqrt
from typing import TYPE_CHECKING, Any

import numpy as np

from intarsia.frontend.zoo.fan_in import CONTRACTIONS, Shape, attribute, fan_in

if TYPE_CHECKING:
    from onnx import NodeProto


@dataclass(frozen=True, slots=True)
class Moments:
    """Expected mean, and expected mean of the squares, of the elements of a tensor.

    Attributes:
        mean: Expected mean of the elements.
        square: Expected mean of the elements' squares.
        pooled: Expected mean square of the channels' averages; None where elements are treated alike.
    """

    mean: float
    square: float
    pooled: float | None = None

    @property
    def variance(self) -> float:
        """Expected variance of the elements."""
        return max(self.square - self.mean**2, 0.0)

    def scaled(self, factor: float) -> Moments:
        """The moments after multiplication by a number."""
        return Moments(self.mean * factor, self.square * factor**2)


@dataclass(frozen=True, slots=True)
class Signal:
    """The shape and the moments of a tensor."""

    shape: Shape
    moments: Moments


Samples = np.ndarray[Any, np.dtype[np.float64]]

DEVIATIONS: Samples = np.linspace(-8, 8, 257)
DENSITY: Samples = np.exp(-(DEVIATIONS**2) / 2) / np.exp(-(DEVIATIONS**2) / 2).sum()

STANDARD_NORMAL = Moments(0.0, 1.0)
LSTM = Moments(0.0, 0.05)  # moments of hidden states; measured on the LSTM of this zoo
OF_NORMAL = {"Gelu": Moments(0.282, 0.425), "LSTM": LSTM, "Tanh": Moments(0.0, 0.394)}
"""Moments of functions of standard normal values."""
MAX_POOL = (1.4, 2.0)  # factors on both moments of rectified values; measured on the models of this zoo
BETWEEN_CHANNELS = 0.3  # share of the channels' averages in the variance before a Swish; measured likewise
SWISH = 1.1  # factor on the squares, since channels differ in variance; measured on EfficientNet-B0


def output_moments(node: NodeProto, inputs: tuple[Signal, ...], output: Shape) -> Moments:
    """The expected moments of a node's outputs, its inputs being independent and weights having mean zero.

    Operators that only move elements, and averages (of elements taken to be alike), keep the first input's.
    """
    moments = [signal.moments for signal in inputs]
    match node.op_type:
        case operator if operator in CONTRACTIONS:
            products = fan_in(node, inputs[0].shape, inputs[1].shape, output)
            return _sum([Moments(0.0, products * moments[0].square * moments[1].square), *moments[2:]])
        case "Add" | "Sum":
            return _sum(moments)
        case "Sub":
            return _sum([moments[0], moments[1].scaled(-1.0)])
        case "Mul":
            return _product(moments)
        case "Concat":
            return _mixture((s.moments, prod(s.shape) / prod(output)) for s in inputs)
        case "Where":
            return moments[1]
        case "BatchNormalization":
            data, scale, shift, mean, variance = moments
            centred = _sum([data, mean.scaled(-1.0)])
            return _sum([_product([centred, scale, _reciprocal_root(variance)]), shift])
        case "LayerNormalization":
            return _sum([_product([STANDARD_NORMAL, moments[1]]), moments[2]])
        case _:
            return _of_one(node, inputs[0], output)


def _of_one(node: NodeProto, data: Signal, output: Shape) -> Moments:
    moments = data.moments
    match node.op_type:
        case "Relu" | "Clip":
            return rectified(moments)
        case operator if operator in OF_NORMAL:
            return OF_NORMAL[operator]
        case "Sigmoid":
            return of_normal(_sigmoid, moments)
        case "MaxPool":
            return Moments(moments.mean * MAX_POOL[0], moments.square * MAX_POOL[1])
        case "GlobalAveragePool" if moments.pooled is not None:
            return Moments(moments.mean, moments.pooled)
        case "Pad":
            return _mixture([(moments, prod(data.shape) / prod(output))])
        case "LRN":
            return moments.scaled(attribute(node, "bias", 1.0) ** -attribute(node, "beta", 0.75))
        case "Softmax":  # equal weights: then attention averages its values, and the sum of weights is 1
            return Moments(1 / data.shape[-1], 1 / data.shape[-1])
        case _:
            return moments


def rectified(moments: Moments) -> Moments:
    """The moments of max(x, 0) for a normal x."""
    mean, deviation = moments.mean, sqrt(moments.variance)
    if deviation == 0:
        return Moments(max(mean, 0.0), max(mean, 0.0) ** 2)
    ratio = mean / deviation
    positive = (1 + erf(ratio / sqrt(2))) / 2
    density = exp(-(ratio**2) / 2) / sqrt(2 * pi)
    # Mean and mean square of a rectified normal variable, from its truncated moments.
    first = mean * positive + deviation * density
    return Moments(first, moments.square * positive + mean * deviation * density)


def swish(moments: Moments) -> Moments:
    """The moments of x sigmoid(x) for a normal x; the factors are strongly dependent."""
    whole = of_normal(_swish, moments)
    between = Moments(moments.mean, moments.mean**2 + BETWEEN_CHANNELS * moments.variance)
    within = (1 - BETWEEN_CHANNELS) * moments.variance
    return Moments(
        whole.mean, whole.square * SWISH, of_normal(lambda x: _averages(x, within), between).square
    )


def of_normal(function: Callable[[Samples], Samples], moments: Moments) -> Moments:
    """The moments of a smooth function of a normal x, by the trapezoidal rule over 8 deviations."""
    values = function(moments.mean + sqrt(moments.variance) * DEVIATIONS)
    return Moments(float(DENSITY @ values), float(DENSITY @ values**2))


def _averages(means: Samples, variance: float) -> Samples:
    """The expected swish of normal values of each of several means."""
    return _swish(means[:, None] + sqrt(variance) * DEVIATIONS) @ DENSITY


def _swish(x: Samples) -> Samples:
    return x * _sigmoid(x)


def _sigmoid(x: Samples) -> Samples:
    return 1 / (1 + np.exp(-x))


def _sum(terms: list[Moments]) -> Moments:
    mean = sum(term.mean for term in terms)
    return Moments(mean, mean**2 + sum(term.variance for term in terms))


def _product(factors: list[Moments]) -> Moments:
    return Moments(prod(factor.mean for factor in factors), prod(factor.square for factor in factors))


def _reciprocal_root(x: Moments) -> Moments:
    """The moments of 1 / sqrt(x) for an x of little spread, to second order."""
    spread = x.variance / x.mean**2
    return Moments((1 + 3 / 8 * spread) / sqrt(x.mean), (1 + spread) / x.mean)


def _mixture(shares: Iterable[tuple[Moments, float]]) -> Moments:
    """The moments of a tensor made of parts, each with its share of the elements; the rest is zero."""
    parts = list(shares)
    mean = sum(moments.mean * share for moments, share in parts)
    return Moments(mean, sum(moments.square * share for moments, share in parts))
