"""The rule of comparison."""

from __future__ import annotations

from typing import Any

import ml_dtypes
import numpy as np
import pytest
from tests.backend.similar import mismatch

ONE = np.array([1.0], np.float32)


@pytest.mark.parametrize(
    ("found", "wanted"),
    [
        (ONE, np.array([1.0009], np.float32)),
        (np.array([np.nan, np.inf]), np.array([np.nan, np.inf])),
        (np.array(["a"], object), np.array(["a"])),
        (np.array([1], ml_dtypes.int4), np.array([1], ml_dtypes.int4)),
        (np.array([1.0], ml_dtypes.bfloat16), np.array([1.0078], ml_dtypes.bfloat16)),
        (np.array([1 + 2j]), np.array([1 + 2j])),
        ([ONE, ONE], [ONE, ONE]),
        (None, None),
        (np.array(True), np.array(True)),
        (np.empty((0, 2)), np.empty((0, 2))),
    ],
)
def test_equal_enough(found: Any, wanted: Any) -> None:
    assert mismatch([found], [wanted], 1e-3, 1e-7) == ""


@pytest.mark.parametrize(
    ("found", "wanted", "complaint"),
    [
        (ONE, 2 * ONE, "output 0: 1 of 1 elements differ, first [0]: 1.0, expected 2.0"),
        (ONE, ONE.astype(np.float64), "output 0: element type float32, expected float64"),
        (ONE, np.ones((1, 1), np.float32), "output 0: shape (1,), expected (1, 1)"),
        (ONE, np.array(["1.0"], object), "output 0: element type float32, expected object"),
        (np.array(["a"], object), np.array(["b"], object), "output 0: another text"),
        (
            np.array([np.nan]),
            np.array([1.0]),
            "output 0: 1 of 1 elements differ, first [0]: nan, expected 1.0",
        ),
        (None, ONE, "output 0: absent, expected an array"),
        (ONE, [ONE], "output 0: an array, expected a list"),
        ([ONE], [ONE, ONE], "output 0: 1 outputs, expected 2"),
        (
            np.array([1 + 2j]),
            np.array([1 - 2j]),
            "output 0: 1 of 1 elements differ, first [0]: (1+2j), expected (1-2j)",
        ),
    ],
)
def test_different(found: Any, wanted: Any, complaint: str) -> None:
    assert mismatch([found], [wanted], 1e-3, 1e-7) == complaint


def test_count_of_outputs() -> None:
    assert mismatch([ONE], [ONE, ONE], 1e-3, 1e-7) == "1 outputs, expected 2"
