"""Ridge regression on sums of features."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Final

import numpy as np
from numpy.typing import NDArray

from intarsia.autoschedule.cost_model.samples import Programs

_PENALTIES: Final = tuple(10.0**power for power in range(-4, 4))
"""Candidate penalties, relative to the mean square of the singular values of the features."""
_SMALLEST: Final = 1e-12
"""Floor of standard deviations and of 1 - leverage: below it a feature is constant in float64 arithmetic."""


@dataclass(slots=True)
class Ridge:
    """A linear model of rows: the score of a program is the sum over its rows plus a constant.

    Features are standardised. The penalty is the one with the least leave-one-out error over the
    programs. The model needs NumPy only, and is deterministic.
    """

    _centre: NDArray[np.float64] = field(default_factory=lambda: np.zeros(0))
    _scale: NDArray[np.float64] = field(default_factory=lambda: np.zeros(0))
    _factors: NDArray[np.float64] = field(default_factory=lambda: np.zeros(0))
    _constant: float = 0.0

    def fit(self, programs: Programs, labels: NDArray[np.float64], weights: NDArray[np.float64]) -> None:
        """Train from scratch; an earlier fit is discarded."""
        sums = _sums(programs)
        share = weights / weights.sum()
        self._centre = share @ sums
        centred = sums - self._centre
        spread = np.sqrt(share @ centred**2)
        self._scale = np.where(spread > _SMALLEST, spread, np.inf)
        self._constant = float(share @ labels)
        root = np.sqrt(weights)
        left, sizes, right = np.linalg.svd(root[:, None] * (centred / self._scale), full_matrices=False)
        target = left.T @ (root * (labels - self._constant))
        filtered = _best_filter(left, sizes, target, root * (labels - self._constant), root)
        self._factors = right.T @ (filtered * target)

    def scores(self, programs: Programs) -> NDArray[np.float64]:
        """Return the expected label of each program."""
        standard = (_sums(programs) - self._centre) / self._scale
        return standard @ self._factors + self._constant


def _sums(programs: Programs) -> NDArray[np.float64]:
    """Return the sums of the features of each program, and its number of rows as the last column."""
    rows = programs.rows.astype(np.float64)
    return programs.sums(np.hstack([rows, np.ones((len(rows), 1))]))


def _best_filter(
    left: NDArray[np.float64],
    sizes: NDArray[np.float64],
    target: NDArray[np.float64],
    labels: NDArray[np.float64],
    root: NDArray[np.float64],
) -> NDArray[np.float64]:
    """Return the filter of singular values with the least leave-one-out error (exact, by leverage)."""
    mean_square = max(float(np.mean(sizes**2)), _SMALLEST) if len(sizes) else 1.0
    best, best_error = np.zeros_like(sizes), np.inf
    for penalty in _PENALTIES:
        # Leave-one-out residuals of ridge regression are residual / (1 - leverage), so one SVD serves all
        # penalties.
        size = sizes / (sizes**2 + penalty * mean_square)
        leverage = np.minimum((left**2) @ (size * sizes) + root**2 / np.sum(root**2), 1 - _SMALLEST)
        error = float(np.sum(((labels - left @ (size * sizes * target)) / (1 - leverage)) ** 2))
        if error < best_error:
            best, best_error = size, error
    return best
