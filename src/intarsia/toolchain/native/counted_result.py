"""A result of a region whose rows are counted at run time; loading a saved region needs no more than this."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt


@dataclass(frozen=True, slots=True)
class CountedResult:
    """A result that the region gives as a counted vector: the number of rows, the rows, and room for more.

    Attributes:
        position: Its place among the results.
        width: Numbers in a row.
        is_transposed: Whether the caller gets a row as a column, as NonZero has it.
    """

    position: int
    width: int
    is_transposed: bool

    def delivered(self, vector: npt.NDArray[Any], target: npt.NDArray[Any] | None) -> npt.NDArray[Any]:
        """Return the rows in memory of their own, or in the caller's array."""
        count = int(vector[0])
        rows = vector[1 : 1 + count * self.width].reshape(count, self.width)
        result = np.array(rows.T if self.is_transposed else rows, order="C")
        if target is None:
            return result
        np.copyto(target, result)
        return target
