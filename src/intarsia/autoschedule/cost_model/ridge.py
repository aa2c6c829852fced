"""Ridge regression on sums of features."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Final

import numpy as np
from numpy.typing import NDArray

from intarsia.autoschedule.cost_model.samples import Programs

_PENALTIES: Final = tuple(10.0**power for power in range(-4, 4))
"""Candidates, as parts of the mean square of the features of a program."""
_SMALLEST: Final = 1e-12


@dataclass(slots=True)
class Ridge:
    """A linear model of rows: what a program scores is the sum over its rows, and a constant.

    Features have mean 0 and variance 1; how much large factors are punished is what predicts best the
    programs that are left out one at a time. It needs NumPy only, and the same samples give the same factors.
    """

    _centre: NDArray[np.float64] = field(default_factory=lambda: np.zeros(0))
    _scale: NDArray[np.float64] = field(default_factory=lambda: np.zeros(0))
    _factors: NDArray[np.float64] = field(default_factory=lambda: np.zeros(0))
    _constant: float = 0.0

    def fit(self, programs: Programs, labels: NDArray[np.float64], weights: NDArray[np.float64]) -> None:
        """Learn, forgetting what was learned before."""
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
        """The label expected of each program."""
        standard = (_sums(programs) - self._centre) / self._scale
        return standard @ self._factors + self._constant


def _sums(programs: Programs) -> NDArray[np.float64]:
    """The sums of the features of each program, and its number of rows."""
    rows = programs.rows.astype(np.float64)
    return programs.sums(np.hstack([rows, np.ones((len(rows), 1))]))


def _best_filter(
    left: NDArray[np.float64],
    sizes: NDArray[np.float64],
    target: NDArray[np.float64],
    wanted: NDArray[np.float64],
    root: NDArray[np.float64],
) -> NDArray[np.float64]:
    """The filter of singular values that predicts best each program from all others (exact, by leverage)."""
    mean_square = max(float(np.mean(sizes**2)), _SMALLEST) if len(sizes) else 1.0
    best, best_error = np.zeros_like(sizes), np.inf
    for penalty in _PENALTIES:
        size = sizes / (sizes**2 + penalty * mean_square)
        leverage = np.minimum((left**2) @ (size * sizes) + root**2 / np.sum(root**2), 1 - _SMALLEST)
        error = float(np.sum(((wanted - left @ (size * sizes * target)) / (1 - leverage)) ** 2))
        if error < best_error:
            best, best_error = size, error
    return best
