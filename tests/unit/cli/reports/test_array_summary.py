import math

import ml_dtypes
import numpy as np
import pytest

from intarsia.cli.reports.array_summary import ArraySummary
from intarsia.runtime.kernel import Value


@pytest.mark.parametrize(
    ("value", "cells"),
    [
        (
            np.arange(8, dtype=np.float32).reshape(2, 4) / 2,
            ("y", "float32", "2x4", "0", "1.75", "3.5", "0 0.5 1 1.5 2 2.5 ..."),
        ),
        (np.array(7, np.int64), ("y", "int64", "scalar", "7", "7", "7", "7")),
        (np.array([True, False]), ("y", "bool", "2", "0", "0.5", "1", "True False")),
        (np.zeros((0, 3), np.float32), ("y", "float32", "0x3", "-", "-", "-", "")),
        (np.array(["a", "b c"], object), ("y", "string", "2", "-", "-", "-", "a b c")),
        (np.array([1 + 2j]), ("y", "complex128", "1", "-", "-", "-", "(1+2j)")),
        (np.array([1.5], ml_dtypes.bfloat16), ("y", "bfloat16", "1", "1.5", "1.5", "1.5", "1.5")),
        (np.array([1, math.nan]), ("y", "float64", "2", "nan", "nan", "nan", "1 nan")),
        (np.array([math.inf, 1]), ("y", "float64", "2", "1", "inf", "inf", "inf 1")),
        ([np.zeros(2), np.zeros(3)], ("y", "sequence of 2", "-", "-", "-", "-", "")),
        (None, ("y", "absent", "-", "-", "-", "-", "")),
    ],
)
def test_rows(value: Value, cells: tuple[str, ...]) -> None:
    assert ArraySummary.of("y", value).cells() == cells


def test_plain_data() -> None:
    assert ArraySummary.of("y", np.array([[1, 2]], np.uint8)).to_json() == {
        "name": "y",
        "dtype": "uint8",
        "shape": [1, 2],
        "min": 1.0,
        "mean": 1.5,
        "max": 2.0,
        "first": [1, 2],
    }
