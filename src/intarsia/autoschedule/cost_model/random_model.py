"""The baseline model: random scores."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from intarsia.autoschedule.cost_model.cost_model import Scores
from intarsia.autoschedule.task import SearchTask
from intarsia.native.loop_state import LoopState


@dataclass(frozen=True, slots=True)
class RandomModel:
    """Random scores between 0 and 1.

    Attributes:
        rng: Generator of the scores.
    """

    rng: np.random.Generator

    def update(self, task: SearchTask, states: Sequence[LoopState], costs: Sequence[float]) -> None:
        """Do nothing: the model has no parameters to fit."""

    def predict(self, task: SearchTask, states: Sequence[LoopState]) -> Scores:  # noqa: ARG002 - the protocol's
        """Return a random score per state."""
        return self.rng.random(len(states))
