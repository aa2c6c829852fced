"""The static cost of schedules for GPUs as a model: it orders them, and learns nothing."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from intarsia.autoschedule.cost_model.cost_model import Scores
from intarsia.autoschedule.features.lowered_state import lower_state
from intarsia.autoschedule.task import SearchTask
from intarsia.native.gpu.schedule_cost import schedule_cost
from intarsia.native.gpu.static_cost import GpuFacts
from intarsia.native.loop_state import LoopState

_SCALE = 1e6


@dataclass(frozen=True, slots=True)
class StaticGpuModel:
    """Ranks schedules by `schedule_cost`: arithmetic, tensor cores, sectors, banks, occupancy, and launches.

    The score is a million over the cost. It is compared with other scores only, and never shown.

    Attributes:
        facts: Peaks of the GPU.
    """

    facts: GpuFacts

    def update(self, task: SearchTask, states: Sequence[LoopState], costs: Sequence[float]) -> None:
        """Do nothing: the model has no parameters to fit."""

    def predict(self, task: SearchTask, states: Sequence[LoopState]) -> Scores:
        """Return a score per state; -inf for states that no GPU can launch."""
        return np.array([self._score(task, state) for state in states], np.float64)

    def _score(self, task: SearchTask, state: LoopState) -> float:
        lowered = lower_state(task, state)
        if lowered is None or lowered.kernels is None:
            return float("-inf")
        cost = schedule_cost(lowered.kernels, self.facts)
        return _SCALE / cost if cost < float("inf") else float("-inf")
