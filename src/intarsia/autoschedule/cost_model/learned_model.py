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


@dataclass(slots=True)
class LearnedModel:
    """Scores are what a regressor expects of the features: about 1 for the best of a task, 0 for failures.

    It keeps the features and costs of all it was taught, of any tasks, and learns from all of them again:
    labels are relative to the best of a task, which may have become better. So it can also begin with what
    other tasks taught it on the same machine (`load`).

    Attributes:
        regressor: What learns.
        before: Predicts until there are enough samples.
        warm_up: How many samples are enough.
        growth: By which part samples must have grown before it learns again; 0 is each time.
        options: Which features.
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
        """How many samples there are."""
        return len(self._samples)

    def update(self, task: SearchTask, states: Sequence[LoopState], costs: Sequence[float]) -> None:
        """Keep measurements, and learn from all.

        States that cannot be lowered teach nothing: they have no features, and are known to fail.
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
        """Whether it has learned from enough samples."""
        return self._learned >= max(1, self.warm_up)

    def predict(self, task: SearchTask, states: Sequence[LoopState]) -> Scores:
        """A score for each state; -inf for those that cannot be lowered."""
        features = [state_features(task, state, self.options) for state in states]
        fails = np.array([is_failed(each) for each in features], bool)
        if self.is_warm:
            scores = self.regressor.scores(Programs.of(features, len(self.options.names)))
        else:
            scores = self.before.predict(task, states)
        return np.where(fails, -np.inf, scores)

    def save(self, path: Path) -> None:
        """Write what it keeps.

        Raises:
            OutputError: It cannot be written.
        """
        self._samples.save(path)

    def load(self, path: Path) -> None:
        """Forget all, and learn from what `save` wrote, however few samples these are.

        Raises:
            DatabaseError: The file is missing or damaged, or has other features.
        """
        samples = Samples.load(path)
        if samples.names != self._samples.names:
            found, expected = len(samples.names), len(self._samples.names)
            raise DatabaseError(
                f"the samples in {path} have other features: {found}; expected {expected}",
                help="load them with the options they were written with",
            )
        self._samples, self._learned = samples, 0
        self.warm_up = 0
        if len(self):
            self._learn()
