"""What a search asks about states that were not measured."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Protocol

import numpy as np
from numpy.typing import NDArray

from intarsia.autoschedule.task import SearchTask
from intarsia.native.loop_state import LoopState

Scores = NDArray[np.float64]
"""A number for each state; higher is better, -inf is a state that cannot work."""


class CostModel(Protocol):
    """Ranks states of a task; learns from what was measured."""

    def update(self, task: SearchTask, states: Sequence[LoopState], costs: Sequence[float]) -> None:
        """Learn from measurements.

        Args:
            task: What was measured.
            states: How.
            costs: Seconds of each; inf for a failure.
        """

    def predict(self, task: SearchTask, states: Sequence[LoopState]) -> Scores:
        """A score for each state; higher is better, -inf is a state that cannot be lowered."""
