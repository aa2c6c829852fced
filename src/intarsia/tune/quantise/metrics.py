"""Metrics of a program's outputs on the inputs of a user: by name, or as functions of the user."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from types import MappingProxyType
from typing import Any, Final, TypeAlias

import numpy as np
import numpy.typing as npt

from intarsia.support.errors import UsageError

Array = npt.NDArray[Any]
Outputs = Sequence[Array]

Metric: TypeAlias = Callable[[Outputs, Outputs, Array | None], float]
"""Function of outputs, those of float32, and labels or None; larger is better."""

TOP_1: Final = "top-1"

_IMAGE: Final = 4
"""Least rank of a tensor of images, whose channels stand along axis 1."""

_OTHERS: Final = "give another metric: cosine, or a Python function (--metric FILE.py:FUNCTION)"


def top_1(outputs: Outputs, expected: Outputs, labels: Array | None) -> float:
    """Return the share of examples with the class of the label; without labels, of float32.

    Raises:
        UsageError: The first output has no classes, or there is another number of labels.
    """
    predicted = _classes(outputs[0])
    wanted = _classes(expected[0]) if labels is None else np.reshape(labels, -1)
    if predicted.size != wanted.size:
        raise UsageError(
            f"an example has {wanted.size} labels, but the first output has {predicted.size} classes for it",
            help="give a label for each row of the output, or a Python function (--metric FILE.py:FUNCTION)",
        )
    return float(np.mean(predicted == wanted)) if predicted.size else 1.0


def _classes(output: Array) -> Array:
    """Return the class of each example: the largest of its values, or the output if it has integers.

    Classes of images, (N, C, H, W), stand along axis 1, those of others along the last axis with more than
    one element: networks end in (N, C, 1, 1), (N, C, 1) and (N, C).
    """
    if output.dtype.kind in "iub":
        return output.reshape(-1)
    axes = [1] if output.ndim >= _IMAGE else [axis for axis in range(output.ndim) if output.shape[axis] > 1]
    if not axes or output.shape[axes[-1]] < 2 or (axes[-1] == 0 and output.ndim > 1):
        raise UsageError(
            f"top-1 needs classes, but the first output has the shape {output.shape}", help=_OTHERS
        )
    return np.asarray(np.argmax(output, axis=axes[-1])).reshape(-1)


def cosine(outputs: Outputs, expected: Outputs, labels: Array | None) -> float:  # noqa: ARG001  # of all metrics
    """Return the cosine of the angle between the first output and that of float32."""
    left, right = (np.ravel(array).astype(np.float64) for array in (outputs[0], expected[0]))
    size = float(np.linalg.norm(left) * np.linalg.norm(right))
    return float(left @ right) / size if size else 1.0


METRICS: Final[Mapping[str, Metric]] = MappingProxyType({TOP_1: top_1, "cosine": cosine})
"""Metrics by name."""


def metric_of(metric: str | Metric) -> Metric:
    """Return a metric of a name, or the function that is given; a function that fails is a wrong argument.

    Raises:
        UsageError: There is no such metric.
    """
    if callable(metric):
        return _checked(metric)
    if metric.lower() == "sqnr":
        raise UsageError(
            "the ratio of signal to noise is no metric that drops: float32 has no noise",
            help="limit the noise itself: --tolerance 30dB",
        )
    if metric not in METRICS:
        raise UsageError(
            f"unknown metric {metric!r}", help=f"there are: {', '.join(METRICS)}, or a Python function"
        )
    return METRICS[metric]


def _checked(metric: Metric) -> Metric:
    def measured(outputs: Outputs, expected: Outputs, labels: Array | None) -> float:
        name = getattr(metric, "__name__", "function")
        try:
            value = float(metric(outputs, expected, labels))
        except Exception as error:  # the function is the user's, and may raise anything
            raise UsageError(
                f"the metric {name} raised {type(error).__name__}: {error}",
                help="it is called with lists of outputs and of those of float32, and labels or None",
            ) from error
        if not math.isfinite(value):
            raise UsageError(
                f"the metric {name} returned {value}", help="it has to return a number, larger being better"
            )
        return value

    return measured
