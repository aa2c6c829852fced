"""A cost model that learns from measurements."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Protocol

import numpy as np
from numpy.typing import NDArray

from intarsia.autoschedule.cost_model.cost_model import CostModel, Scores
from intarsia.autoschedule.cost_model.samples import Programs, Samples
from intarsia.autoschedule.features import FeatureOptions, is_failed, state_features
from intarsia.autoschedule.task import SearchTask
from intarsia.native.loop_state import LoopState
from intarsia.support.errors import DatabaseError


class Regressor(Protocol):
    """Fits a number per row so that the sum over the rows of a program is its label."""

    def fit(self, programs: Programs, labels: NDArray[np.float64], weights: NDArray[np.float64]) -> None:
        """Train from scratch; an earlier fit is discarded.

        Args:
            programs: Feature rows of at least one program.
            labels: Label of each program, from 0 to 1.
            weights: Weight of each program in the loss.
        """

    def scores(self, programs: Programs) -> NDArray[np.float64]:
        """Return the expected label of each program; requires an earlier `fit`."""


@dataclass(slots=True)
class LearnedModel:
    """Score states by a regressor on their features: about 1 for the best of a task, 0 for failures.

    The model keeps the features and costs of all samples, of any task, and refits on all of them:
    labels are relative to the best cost of a task, which may have improved. So it can also start from the
    samples of other tasks on the same machine (`load`).

    Attributes:
        regressor: Regressor that is fitted to the samples.
        before: Model that predicts until there are enough samples.
        warm_up: Number of samples from which on the regressor predicts.
        growth: Relative growth of the samples that triggers a refit; 0 refits at each update.
        options: Features that the model sees.
    """

    regressor: Regressor
    before: CostModel
    warm_up: int = 100
    growth: float = 0.0
    options: FeatureOptions = field(default_factory=FeatureOptions)
    _samples: Samples = field(init=False, repr=False)
    _learned: int = field(default=0, init=False, repr=False)

    def __post_init__(self) -> None:
        self._samples = Samples(self.options.names)

    def __len__(self) -> int:
        """Return the number of samples."""
        return len(self._samples)

    def update(self, task: SearchTask, states: Sequence[LoopState], costs: Sequence[float]) -> None:
        """Add measurements to the samples, and refit if they have grown enough.

        States that cannot be lowered are left out: they have no features, and always score -inf.
        """
        for state, cost in zip(states, costs, strict=True):
            features = state_features(task, state, self.options)
            if not is_failed(features):
                self._samples.add(task.workload_key, features, cost)
        self.before.update(task, states, costs)
        if len(self) >= max(1, self._learned * (1 + self.growth)) and len(self) > self._learned:
            self._learn()

    def _learn(self) -> None:
        self._learned = len(self)
        if self.is_warm:
            self.regressor.fit(self._samples.programs, self._samples.labels, self._samples.weights)

    @property
    def is_warm(self) -> bool:
        """Whether the regressor was fitted to enough samples."""
        return self._learned >= max(1, self.warm_up)

    def predict(self, task: SearchTask, states: Sequence[LoopState]) -> Scores:
        """Return a score per state; -inf for states that cannot be lowered."""
        features = [state_features(task, state, self.options) for state in states]
        fails = np.array([is_failed(rows) for rows in features], bool)
        if self.is_warm:
            scores = self.regressor.scores(Programs.of(features, len(self.options.names)))
        else:
            scores = self.before.predict(task, states)
        return np.where(fails, -np.inf, scores)

    def save(self, path: Path) -> None:
        """Write the samples to a file.

        Raises:
            OutputError: The file cannot be written.
        """
        self._samples.save(path)

    def load(self, path: Path) -> None:
        """Replace the samples by those of a file of `save`, and refit, however few samples it has.

        Raises:
            DatabaseError: The file is missing or damaged, or has other features.
        """
        samples = Samples.load(path)
        if samples.names != self._samples.names:
            count, expected = len(samples.names), len(self._samples.names)
            raise DatabaseError(
                f"the samples in {path} have other features: {count}; expected {expected}",
                help="load the file with the FeatureOptions that wrote it",
            )
        self._samples, self._learned = samples, 0
        self.warm_up = 0
        if len(self):
            self._learn()
