"""Samples of a value over many runs, for its histogram once its limits are known."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any, Final

import numpy as np
import numpy.typing as npt

from intarsia.tune.quantise.calibrators import BINS, Range

Array = npt.NDArray[Any]

SAMPLES: Final = 1 << 17
"""Maximum number of elements of a value that are kept over all runs: 64 for each bin, 512 KiB."""


@dataclass(eq=False)
class Samples:
    """Elements of a value, each with the number of elements that it stands for.

    Where a run computes more than its share, elements are drawn; the least and the largest one are kept
    beside them, since a single one far from all others may be what matters most.

    Attributes:
        share: Maximum number of elements kept of each run.
    """

    share: int
    _kept: list[tuple[Array, float]] = field(default_factory=list)

    @classmethod
    def of_runs(cls, count: int) -> Samples:
        """Return an empty collection for a number of runs."""
        return cls(max(1, SAMPLES // count))

    def add(self, array: Array, limits: Range) -> None:
        """Keep elements of a run.

        Args:
            array: The value.
            limits: Its least and its largest element.
        """
        if array.size <= self.share:
            self._kept.append((array.ravel(), 1.0))
            return
        # Drawn, not in equal steps: steps may meet the same few channels again and again.
        numbers = np.random.default_rng(len(self._kept)).integers(array.size, size=self.share)
        self._kept.append((array.ravel()[numbers], array.size / self.share))
        self._kept.append((np.array(limits, array.dtype), 1.0))

    def counts(self, limits: Range) -> Array:
        """Return how many elements lie in each bin between the limits; one bin if these are equal."""
        low, high = limits
        if not self._kept or not high > low:
            return np.ones(1, np.int64)
        counts = np.zeros(BINS)
        for array, weight in self._kept:
            counts += weight * np.histogram(array, BINS, (low, high))[0]
        return counts
