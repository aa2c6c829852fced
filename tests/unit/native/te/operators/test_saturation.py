"""Floats rounded into a type."""

from __future__ import annotations

import numpy as np
import pytest
from tests.te_evaluator import evaluate

from intarsia.ir import DType
from intarsia.native import te
from intarsia.native.te.operators.saturation import saturated

VALUES = [np.nan, np.inf, -np.inf, 0.5, 1.5, -2.5, 1e30, -1e30, 7.0]
INTEGERS = [dtype for dtype in DType if dtype.is_integer and dtype.value.endswith(("8", "16", "32", "64"))]


@pytest.mark.parametrize("target", INTEGERS)
@pytest.mark.parametrize("source", [DType.FLOAT32, DType.FLOAT64])
def test_integers(source: DType, target: DType) -> None:
    x = te.placeholder((len(VALUES),), source, "x")
    rounded = te.compute(x.shape, lambda i: saturated(x[i], target), "rounded")
    (found,) = evaluate([rounded], {"x": np.array(VALUES, source.numpy)})
    limits = np.iinfo(target.value)
    below = max(limits.min, -2)
    assert found[[0, 2, 7]].tolist() == [limits.min] * 3
    assert found[[3, 4, 5, 8]].tolist() == [0, 2, below, 7]
    for value in found[[1, 6]]:  # the largest integer that is a float of that type
        above = np.nextafter(np.array(value, source.numpy), np.inf)
        assert value == limits.max or int(above) > limits.max


def test_floats_are_only_rounded() -> None:
    x = te.placeholder((2,), DType.FLOAT32, "x")
    rounded = te.compute((2,), lambda i: saturated(x[i], DType.FLOAT16), "rounded")
    (found,) = evaluate([rounded], {"x": np.array([0.1, 1e9], np.float32)})
    assert found.tolist() == [float(np.float16(0.1)), np.inf]
