"""The model that knows nothing."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from intarsia.autoschedule.cost_model.cost_model import Scores
from intarsia.autoschedule.task import SearchTask
from intarsia.native.loop_state import LoopState


@dataclass(frozen=True, slots=True)
class RandomModel:
    """Scores between 0 and 1 by chance.

    Attributes:
        rng: Where they come from.
    """

    rng: np.random.Generator

    def update(self, task: SearchTask, states: Sequence[LoopState], costs: Sequence[float]) -> None:
        """Nothing is learned."""

    def predict(self, task: SearchTask, states: Sequence[LoopState]) -> Scores:  # noqa: ARG002 - the protocol's
        """As many numbers as states."""
        return self.rng.random(len(states))
