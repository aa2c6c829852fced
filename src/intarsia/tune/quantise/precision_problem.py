"""Which layers to compute in integers: the least time within one budget of errors, as an integer program.

Each layer has a time in float32 and in int8, and an error in int8. Where one of two neighbours is in integers
and the other is not, their border costs a conversion. Errors add up as mean squared errors: the budget is one
linear constraint. Borders are variables of their own, which are 1 if the two layers differ.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Final

import numpy as np
import numpy.typing as npt

from intarsia.support.errors import UsageError

_FEW: Final = 12
"""Number of layers up to which all combinations are tried: 4096."""


@dataclass(frozen=True, slots=True)
class LayerCost:
    """Times and the error of a layer.

    Attributes:
        wide: Seconds in float32.
        narrow: Seconds in int8.
        error: Mean squared error of the outputs with this layer alone in int8, as a fraction of their power.
    """

    wide: float
    narrow: float
    error: float


@dataclass(frozen=True, slots=True)
class Border:
    """Two layers, one of which reads what the other computes.

    Attributes:
        first: Number of a layer.
        second: Number of the other layer.
        seconds: Seconds of converting the value between them.
    """

    first: int
    second: int
    seconds: float


@dataclass(frozen=True, slots=True)
class PrecisionProblem:
    """The layers of a program, and the conversions between them.

    Attributes:
        layers: Costs of the layers, by number.
        borders: Pairs of neighbours.
    """

    layers: tuple[LayerCost, ...]
    borders: tuple[Border, ...] = ()

    def seconds(self, chosen: frozenset[int]) -> float:
        """Return the predicted time of a program with some layers in integers."""
        times = (layer.narrow if number in chosen else layer.wide for number, layer in enumerate(self.layers))
        crossed = (border for border in self.borders if (border.first in chosen) != (border.second in chosen))
        return math.fsum(times) + math.fsum(border.seconds for border in crossed)

    def error(self, chosen: frozenset[int]) -> float:
        """Return the predicted mean squared error, as a fraction of the power of the outputs."""
        return math.fsum(self.layers[number].error for number in chosen)

    def solve(self, budget: float) -> frozenset[int]:
        """Return the layers to compute in integers: the fastest program within a budget of errors.

        Args:
            budget: Largest sum of the mean squared errors.

        Raises:
            UsageError: There are many layers, and SciPy is not installed.
        """
        if len(self.layers) <= _FEW:
            return self._best_of_all(budget)
        return self._by_integer_program(budget)

    def _best_of_all(self, budget: float) -> frozenset[int]:
        count = len(self.layers)
        chosen = (
            frozenset(number for number in range(count) if code >> number & 1) for code in range(1 << count)
        )
        allowed = (layers for layers in chosen if self.error(layers) <= budget)
        return min(allowed, key=lambda layers: (self.seconds(layers), len(layers)))

    def _by_integer_program(self, budget: float) -> frozenset[int]:
        try:
            from scipy.optimize import Bounds, LinearConstraint, milp
        except ImportError as error:
            raise UsageError(
                "choosing the precision of many layers needs SciPy", help="pip install 'intarsia[tuning]'"
            ) from error
        count = len(self.layers)
        gains = [layer.narrow - layer.wide for layer in self.layers]
        costs = np.array([*gains, *(border.seconds for border in self.borders)])
        scale = float(np.abs(costs).max(initial=0.0)) or 1.0
        rows, lower, upper = self._constraints(budget)
        solved = milp(
            costs / scale,
            integrality=np.ones(costs.size),
            bounds=Bounds(0.0, 1.0),
            constraints=LinearConstraint(rows, lower, upper),
        )
        if solved.x is None:
            return frozenset()
        chosen = frozenset(number for number in range(count) if solved.x[number] > 0.5)
        return chosen if self.seconds(chosen) < self.seconds(frozenset()) else frozenset()

    def _constraints(self, budget: float) -> tuple[npt.NDArray[Any], npt.NDArray[Any], npt.NDArray[Any]]:
        """Return rows, lower and upper limits: the budget, and two rows for each border."""
        count = len(self.layers)
        rows = np.zeros((1 + 2 * len(self.borders), count + len(self.borders)))
        upper = np.zeros(len(rows))
        # In units of the budget, so that errors of 1e-6 are not below the solver's tolerance.
        unit = budget if budget > 0 else 1.0
        rows[0, :count] = [layer.error / unit for layer in self.layers]
        upper[0] = budget / unit
        for number, border in enumerate(self.borders):
            for row, sign in ((1 + 2 * number, 1.0), (2 + 2 * number, -1.0)):
                rows[row, border.first] += sign
                rows[row, border.second] -= sign
                rows[row, count + number] = -1.0
        return rows, np.full(len(rows), -np.inf), upper


def solve_with_repair(
    problem: PrecisionProblem, budget: float, measured: Sequence[tuple[frozenset[int], float]]
) -> frozenset[int]:
    """Solve again after predictions were measured, with errors scaled by the worst of actual and predicted.

    Args:
        problem: The layers.
        budget: Largest mean squared error.
        measured: Programs that were tried, with their measured errors.
    """
    ratios = (error / problem.error(chosen) for chosen, error in measured if problem.error(chosen) > 0)
    return problem.solve(budget / max(ratios, default=1.0))
