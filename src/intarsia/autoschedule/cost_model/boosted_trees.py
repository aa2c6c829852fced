"""Gradient-boosted trees, through LightGBM."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from intarsia.autoschedule.cost_model.samples import LEAST_WEIGHT, Programs
from intarsia.support.errors import UsageError

_HELD_OUT: Final = 10
"""One program in this many is held out to decide when to stop adding trees."""


@dataclass(slots=True)
class BoostedTrees:
    """Predict the score of a program as the sum of its rows' predictions (Ansor's model, on LightGBM).

    The loss of a program is weight * (sum - label) ** 2 / 2. With `least_held_out` programs or more, one in
    ten is held out, and trees are added until its loss stops falling. Upstream stops by the loss of the
    training samples, and overfits. With fewer programs, `few_rounds` trees are grown. One thread and a seed
    make
    the result deterministic.

    Attributes:
        rounds: Maximum number of trees.
        few_rounds: Number of trees where no program is held out.
        patience: Number of trees without a lower held-out loss after which training stops.
        least_held_out: Least number of programs of which some are held out.
        learning_rate: Shrinkage of each tree, from 0 to 1.
        leaves: Maximum number of leaves of a tree.
        seed: Random seed of LightGBM.

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
    _row_mean: float = field(default=0.0, repr=False)
    _trees: Any = field(default=None, repr=False)

    def __post_init__(self) -> None:
        _import_lightgbm()

    def fit(self, programs: Programs, labels: NDArray[np.float64], weights: NDArray[np.float64]) -> None:
        """Train from scratch; an earlier fit is discarded."""
        sizes = np.bincount(programs.owners, minlength=programs.count)
        # The trees start from the least-squares constant per row, so that they only learn the residuals.
        self._row_mean = float(weights @ (sizes * labels)) / max(1.0, float(weights @ sizes**2))
        residuals = labels - self._row_mean * sizes
        has_held_out = programs.count >= self.least_held_out
        is_held_out = np.arange(programs.count) % _HELD_OUT == _HELD_OUT - 1
        is_training = ~is_held_out if has_held_out else np.ones(programs.count, bool)
        training = _Loss.of(programs, residuals, weights, is_training)
        varies = bool(np.ptp(training.programs.rows, axis=0).any()) if len(training.programs.rows) else False
        self._trees = None
        if varies:
            checking = _Loss.of(programs, residuals, weights, is_held_out) if has_held_out else None
            self._trees = self._grow_trees(training, checking)

    def _grow_trees(self, training: _Loss, checking: _Loss | None) -> Any:
        library = _import_lightgbm()
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
            expected += _predict(trees, checking.programs.rows, start_iteration=count - 1, num_iteration=1)
            error = checking.value(expected)
            if error < best:
                best, best_count = error, count
        while trees.current_iteration() > best_count:
            trees.rollback_one_iter()
        return trees

    def scores(self, programs: Programs) -> NDArray[np.float64]:
        """Return the expected label of each program."""
        expected = np.full(len(programs.rows), self._row_mean)
        if self.tree_count and len(programs.rows):
            expected += _predict(self._trees, programs.rows)
        return programs.sums(expected)

    @property
    def tree_count(self) -> int:
        """Number of trees of the fitted model."""
        return 0 if self._trees is None else int(self._trees.current_iteration())

    @property
    def _parameters(self) -> dict[str, Any]:
        """Parameters of LightGBM."""
        return {
            "learning_rate": self.learning_rate,
            "num_leaves": self.leaves,
            "max_depth": 10,
            "min_data_in_leaf": 2,
            # The Hessian of a row is the weight of its program, at least LEAST_WEIGHT; a smaller sum is a
            # rounding error, and LightGBM would stop there.
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
        """Return the loss over the chosen programs."""
        numbers = np.cumsum(chosen) - 1
        is_kept = chosen[programs.owners]
        part = Programs(programs.rows[is_kept], numbers[programs.owners[is_kept]], int(chosen.sum()))
        return cls(part, labels[chosen], weights[chosen])

    def gradient(self, rows: NDArray[np.float64]) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
        """Return the first and second derivative of the loss by the prediction of each row."""
        error = self.weights * (self.programs.sums(np.asarray(rows, np.float64)) - self.labels)
        owners = self.programs.owners
        return error[owners], self.weights[owners]

    def value(self, rows: NDArray[np.float64]) -> float:
        """Return the mean loss per program."""
        return float(np.mean(self.weights * (self.programs.sums(rows) - self.labels) ** 2) / 2)


def _predict(trees: Any, rows: NDArray[np.float32], **which: int) -> NDArray[np.float64]:
    """Predict the value of each row on one thread."""
    # LightGBM would otherwise use all threads here, and keep that setting for later training.
    return np.asarray(trees.predict(rows, num_threads=1, **which), np.float64)


def _import_lightgbm() -> Any:
    """Import LightGBM, which only this model needs."""
    try:
        import lightgbm
    except (ImportError, OSError) as error:
        raise UsageError(
            "gradient-boosted trees need LightGBM, which is not installed",
            help="pip install 'intarsia[tuning]', or use the ridge model",
        ) from error
    return lightgbm
