"""What learns labels of programs from their features."""

from __future__ import annotations

from typing import Protocol

import numpy as np
from numpy.typing import NDArray

from intarsia.autoschedule.cost_model.samples import Programs


class Regressor(Protocol):
    """Learns a number for each row whose sum over a program is its label."""

    def fit(self, programs: Programs, labels: NDArray[np.float64], weights: NDArray[np.float64]) -> None:
        """Learn, forgetting what was learned before.

        Args:
            programs: At least one.
            labels: One a program, from 0 to 1.
            weights: How much each program counts.
        """

    def scores(self, programs: Programs) -> NDArray[np.float64]:
        """The label expected of each program; `fit` was called before."""
