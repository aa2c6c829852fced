"""Gradient-boosted trees, through LightGBM."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from intarsia.autoschedule.cost_model.samples import LEAST_WEIGHT, Programs
from intarsia.support.errors import UsageError

_HELD_OUT: Final = 10
"""One program of as many is held out to tell when to stop."""


@dataclass(slots=True)
class BoostedTrees:
    """Trees of rows: what a program scores is the sum over its rows (Ansor; XGBoost there, LightGBM here).

    The loss of a program is weight * (sum - label) ** 2 / 2. With `least_held_out` programs or more, one of
    ten is held out and trees are added until they no longer help it: upstream stops by the loss of the
    samples it learns from, and overfits. With fewer, there are `few_rounds` trees. One thread and a seed make
    it deterministic.

    Attributes:
        rounds: Most trees.
        few_rounds: Trees where nothing is held out.
        patience: How many trees may come without a better loss.
        least_held_out: From how many programs on some are held out.
        learning_rate: How much of its step a tree makes.
        leaves: Of a tree, at most.
        seed: Of LightGBM.

    Raises:
        UsageError: LightGBM is not installed.
    """

    rounds: int = 300
    few_rounds: int = 60
    patience: int = 20
    least_held_out: int = 100
    learning_rate: float = 0.2
    leaves: int = 63
    seed: int = 43
    _each_row: float = field(default=0.0, repr=False)
    _trees: Any = field(default=None, repr=False)

    def __post_init__(self) -> None:
        _library()

    def fit(self, programs: Programs, labels: NDArray[np.float64], weights: NDArray[np.float64]) -> None:
        """Learn, forgetting what was learned before."""
        sizes = np.bincount(programs.owners, minlength=programs.count)
        self._each_row = float(weights @ (sizes * labels)) / max(1.0, float(weights @ sizes**2))
        rest = labels - self._each_row * sizes
        has_held_out = programs.count >= self.least_held_out
        is_held_out = np.arange(programs.count) % _HELD_OUT == _HELD_OUT - 1
        learns = ~is_held_out if has_held_out else np.ones(programs.count, bool)
        training = _Loss.of(programs, rest, weights, learns)
        varies = bool(np.ptp(training.programs.rows, axis=0).any()) if len(training.programs.rows) else False
        self._trees = None
        if varies:
            checking = _Loss.of(programs, rest, weights, is_held_out) if has_held_out else None
            self._trees = self._grown(training, checking)

    def _grown(self, training: _Loss, checking: _Loss | None) -> Any:
        library = _library()
        rows, parameters = training.programs.rows, self._parameters
        trees = library.Booster(
            {**parameters, "objective": "none"},
            library.Dataset(rows, label=np.zeros(len(rows)), params=parameters),
        )
        if checking is None:
            for _ in range(self.few_rounds):
                if trees.update(fobj=lambda values, _: training.gradient(values)):
                    break
            return trees
        best, best_count = checking.value(np.zeros(len(checking.programs.rows))), 0
        expected = np.zeros(len(checking.programs.rows))
        for count in range(1, self.rounds + 1):
            is_over = trees.update(fobj=lambda values, _: training.gradient(values))
            if is_over or count - best_count > self.patience:
                break
            expected += _predicted(trees, checking.programs.rows, start_iteration=count - 1, num_iteration=1)
            error = checking.value(expected)
            if error < best:
                best, best_count = error, count
        while trees.current_iteration() > best_count:
            trees.rollback_one_iter()
        return trees

    def scores(self, programs: Programs) -> NDArray[np.float64]:
        """The label expected of each program."""
        expected = np.full(len(programs.rows), self._each_row)
        if self.tree_count and len(programs.rows):
            expected += _predicted(self._trees, programs.rows)
        return programs.sums(expected)

    @property
    def tree_count(self) -> int:
        """How many trees were learned."""
        return 0 if self._trees is None else int(self._trees.current_iteration())

    @property
    def _parameters(self) -> dict[str, Any]:
        """A leaf with rows weighs at least the least weight; one below is a rounding error: LightGBM ends."""
        return {
            "learning_rate": self.learning_rate,
            "num_leaves": self.leaves,
            "max_depth": 10,
            "min_data_in_leaf": 2,
            "min_sum_hessian_in_leaf": LEAST_WEIGHT / 2,
            "min_data_in_bin": 1,
            "feature_pre_filter": False,
            "seed": self.seed,
            "deterministic": True,
            "force_row_wise": True,
            "num_threads": 1,
            "verbosity": -1,
        }


@dataclass(frozen=True, slots=True)
class _Loss:
    programs: Programs
    labels: NDArray[np.float64]
    weights: NDArray[np.float64]

    @classmethod
    def of(
        cls,
        programs: Programs,
        labels: NDArray[np.float64],
        weights: NDArray[np.float64],
        chosen: NDArray[np.bool_],
    ) -> _Loss:
        """The loss of some of the programs."""
        numbers = np.cumsum(chosen) - 1
        is_kept = chosen[programs.owners]
        part = Programs(programs.rows[is_kept], numbers[programs.owners[is_kept]], int(chosen.sum()))
        return cls(part, labels[chosen], weights[chosen])

    def gradient(self, rows: NDArray[np.float64]) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
        """First and second derivative by each row."""
        error = self.weights * (self.programs.sums(np.asarray(rows, np.float64)) - self.labels)
        owners = self.programs.owners
        return error[owners], self.weights[owners]

    def value(self, rows: NDArray[np.float64]) -> float:
        """The mean loss of a program."""
        return float(np.mean(self.weights * (self.programs.sums(rows) - self.labels) ** 2) / 2)


def _predicted(trees: Any, rows: NDArray[np.float32], **which: int) -> NDArray[np.float64]:
    """On one thread: else LightGBM uses all for this, and from then on for learning too."""
    return np.asarray(trees.predict(rows, num_threads=1, **which), np.float64)


def _library() -> Any:
    """LightGBM, which is imported where trees are used only."""
    try:
        import lightgbm
    except (ImportError, OSError) as error:
        raise UsageError(
            "gradient-boosted trees need LightGBM, which is not installed",
            help="pip install 'intarsia[tuning]', or use the ridge model",
        ) from error
    return lightgbm
