"""A range check of computed indices or lengths; running a saved region needs no more than this."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy.typing as npt

from intarsia.support.errors import ExecutionError


@dataclass(frozen=True, slots=True)
class IndexCheck:
    """Two hidden results of a region, and the range that they must be in.

    Attributes:
        smallest: Position of the result with the smallest index, or the smallest of each coordinate.
        largest: Position of the result with the largest index, or the largest of each coordinate.
        subject: Node and operator of the model and what one number is, for the message: "node 'y' (Gather):
            index".
        limits: Number of valid values, counted from 0, of each coordinate.
        is_signed: Whether negative indices, from -limit on, count from the end.
    """

    smallest: int
    largest: int
    subject: str
    limits: tuple[int, ...]
    is_signed: bool

    def require_in_range(self, smallest: npt.NDArray[Any], largest: npt.NDArray[Any]) -> None:
        """Compare the results of a run with the limits.

        Args:
            smallest: The result at position `smallest`, (coordinates,).
            largest: The result at position `largest`, (coordinates,).

        Raises:
            ExecutionError: An index is out of range.
        """
        lows, highs = smallest.tolist(), largest.tolist()
        for coordinate, (low, high, limit) in enumerate(zip(lows, highs, self.limits, strict=True)):
            first = -limit if self.is_signed else 0
            if low >= first and high < limit:
                continue
            index = low if low < first else high
            where = f" at coordinate {coordinate} of index tuples" if len(self.limits) > 1 else ""
            expected = f"{first} to {limit - 1}" if limit else "none, as the axis is empty"
            raise ExecutionError(f"{self.subject} {index}{where} is out of range, expected {expected}")
