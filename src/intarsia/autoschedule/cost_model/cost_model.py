"""The protocol of cost models: scores of states that were not measured."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Protocol

import numpy as np
from numpy.typing import NDArray

from intarsia.autoschedule.task import SearchTask
from intarsia.native.loop_state import LoopState

Scores = NDArray[np.float64]
"""A score per state; higher is better, -inf marks a state that cannot be lowered."""


class CostModel(Protocol):
    """Ranks states of a task, and learns from measurements."""

    def update(self, task: SearchTask, states: Sequence[LoopState], costs: Sequence[float]) -> None:
        """Learn from measurements.

        Args:
            task: Task of the measured states.
            states: Measured states.
            costs: Seconds per call of each state; inf for a failure.
        """

    def predict(self, task: SearchTask, states: Sequence[LoopState]) -> Scores:
        """Return a score per state; higher is better, -inf marks a state that cannot be lowered."""
