"""Ternary weights, four to a byte."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt

Array = npt.NDArray[Any]

PER_BYTE = 4
"""Number of weights in a byte, two bits each; the first has the lowest bits."""


def pack(weights: Array) -> Array:
    """Pack weights of -1, 0 and 1.

    Args:
        weights: Integers [rows, columns]; the number of rows is a multiple of 4.

    Returns:
        Bytes [rows / 4, columns], each with four weights of one column.
    """
    rows, columns = weights.shape
    codes = (weights + 1).astype(np.uint8).reshape(rows // PER_BYTE, PER_BYTE, columns)
    packed: Array = np.bitwise_or.reduce(codes << _shifts()[:, None], axis=1)
    return packed


def unpack(packed: Array) -> Array:
    """Return the weights [rows, columns] of packed ones, as int8."""
    rows, columns = packed.shape
    codes = (packed[:, None, :] >> _shifts()[:, None]) & 3
    return codes.astype(np.int8).reshape(rows * PER_BYTE, columns) - np.int8(1)


def _shifts() -> Array:
    return np.arange(0, 2 * PER_BYTE, 2, dtype=np.uint8)
