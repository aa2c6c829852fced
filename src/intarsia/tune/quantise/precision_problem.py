"""Which layers to compute in which type: the least time within one budget of errors, as an integer program.

Each layer has a time in float32, int8 and, where the CPU has it, bfloat16, and an error in narrower types.
Where two neighbours are of different types, their border costs a conversion, which is a cost of the pair of
types. Errors add up as mean squared errors: the budget is one linear constraint.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import permutations, product
from typing import Any, Final

import numpy as np
import numpy.typing as npt

from intarsia.support.errors import UsageError
from intarsia.tune.quantise.layer_types import LayerTypes

_MOST_COMBINATIONS: Final = 4096
"""Number of combinations of types up to which all are tried: 12 layers in two types, 7 in three."""

_BEYOND: Final = 4.0
"""Multiple of the budget that stands for all larger errors."""

WIDE, INT8, BFLOAT16 = range(3)

_CROSSINGS: Final = tuple(permutations((WIDE, INT8, BFLOAT16), 2))
"""Pairs of different types of the first and second layer of a border."""


@dataclass(frozen=True, slots=True)
class LayerCost:
    """Times and the error of a layer.

    Attributes:
        wide: Seconds in float32.
        narrow: Seconds in int8.
        error: Mean squared error of the outputs with this layer alone in int8, as a fraction of their power.
        bfloat16: Seconds in bfloat16; infinite if it is no choice.
        bfloat16_error: Mean squared error likewise with this layer alone in bfloat16.
    """

    wide: float
    narrow: float
    error: float
    bfloat16: float = math.inf
    bfloat16_error: float = 0.0


@dataclass(frozen=True, slots=True)
class Border:
    """Two layers, one of which reads what the other computes.

    Attributes:
        first: Number of a layer.
        second: Number of the other layer.
        seconds: Seconds of converting the value between int8 and float32.
        wide_bfloat16: Seconds of converting it between float32 and bfloat16; None for the same.
        int8_bfloat16: Seconds of converting it between int8 and bfloat16; None for the same.
    """

    first: int
    second: int
    seconds: float
    wide_bfloat16: float | None = None
    int8_bfloat16: float | None = None

    def cost(self, first: int, second: int) -> float:
        """Return the seconds of a conversion between two types, which are 0 for one type."""
        if first == second:
            return 0.0
        others = {WIDE + BFLOAT16: self.wide_bfloat16, INT8 + BFLOAT16: self.int8_bfloat16}
        other = others.get(first + second)
        return self.seconds if other is None else other


@dataclass(frozen=True, slots=True)
class PrecisionProblem:
    """The layers of a program, and the conversions between them.

    Attributes:
        layers: Costs of the layers, by number.
        borders: Pairs of neighbours.
    """

    layers: tuple[LayerCost, ...]
    borders: tuple[Border, ...] = ()

    def seconds(self, chosen: LayerTypes) -> float:
        """Return the predicted time of a program with some layers in narrower types."""
        types = types_of(chosen, len(self.layers))
        times = (
            (layer.wide, layer.narrow, layer.bfloat16)[type_]
            for layer, type_ in zip(self.layers, types, strict=True)
        )
        crossed = (border.cost(types[border.first], types[border.second]) for border in self.borders)
        return math.fsum(times) + math.fsum(crossed)

    def error(self, chosen: LayerTypes) -> float:
        """Return the predicted mean squared error, as a fraction of the power of the outputs."""
        return math.fsum(
            (
                *(self.layers[number].error for number in chosen.int8),
                *(self.layers[number].bfloat16_error for number in chosen.bfloat16),
            )
        )

    def solve(self, budget: float) -> LayerTypes:
        """Return the types of the layers: the fastest program within a budget of errors.

        Args:
            budget: Largest sum of the mean squared errors.

        Raises:
            UsageError: There are many layers, and SciPy is not installed.
        """
        halves = ((BFLOAT16,) if layer.bfloat16 < math.inf else () for layer in self.layers)
        choices = [(WIDE, INT8, *half) for half in halves]
        if math.prod(map(len, choices)) <= _MOST_COMBINATIONS:
            return self._best_of_all(choices, budget)
        return self._by_integer_program(budget)

    def _best_of_all(self, choices: Sequence[tuple[int, ...]], budget: float) -> LayerTypes:
        chosen = (layer_types(types) for types in product(*choices))
        allowed = (types for types in chosen if self.error(types) <= budget)
        return min(allowed, key=lambda types: (self.seconds(types), len(types.int8) + len(types.bfloat16)))

    def _by_integer_program(self, budget: float) -> LayerTypes:
        try:
            from scipy.optimize import Bounds, LinearConstraint, milp
        except ImportError as error:
            raise UsageError(
                "choosing the precision of many layers needs SciPy", help="pip install 'intarsia[tuning]'"
            ) from error
        count = len(self.layers)
        halves = [layer.bfloat16 < math.inf for layer in self.layers]
        gains = [layer.narrow - layer.wide for layer in self.layers]
        gains += [
            layer.bfloat16 - layer.wide if is_choice else 0.0
            for layer, is_choice in zip(self.layers, halves, strict=True)
        ]
        crossed = [border.cost(*types) for border in self.borders for types in _CROSSINGS]
        costs = np.array([*gains, *crossed])
        scale = float(np.abs(costs).max(initial=0.0)) or 1.0
        rows, lower, upper = self._constraints(budget)
        most = np.ones(costs.size)
        most[count : 2 * count] = halves
        solved = milp(
            costs / scale,
            integrality=np.ones(costs.size),
            bounds=Bounds(0.0, most),
            constraints=LinearConstraint(rows, lower, upper),
        )
        if solved.x is None:
            return LayerTypes()
        integers, bfloats = (
            frozenset(number for number in range(count) if solved.x[first + number] > 0.5)
            for first in (0, count)
        )
        chosen = LayerTypes(integers, bfloats)
        return chosen if self.seconds(chosen) < self.seconds(LayerTypes()) else LayerTypes()

    def _constraints(self, budget: float) -> tuple[npt.NDArray[Any], npt.NDArray[Any], npt.NDArray[Any]]:
        """Return rows, lower and upper limits of the variables.

        The variables are whether each layer is in int8, whether it is in bfloat16, and for each border the
        six pairs of different types. The rows are the budget, one for each layer, as it has one type, and
        five for each border: pairs whose first type is the first layer's less those whose second type is, as
        many as the layers differ by (two narrower types), and no pair whose first type is another one
        (three types). In a tree of borders, the relaxation has only whole solutions but for the budget.
        """
        count = len(self.layers)
        types, pairs = (WIDE, INT8, BFLOAT16), len(_CROSSINGS)
        rows = np.zeros((1 + count + 5 * len(self.borders), 2 * count + pairs * len(self.borders)))
        lower, upper = np.full(len(rows), -np.inf), np.zeros(len(rows))
        # In units of the budget, so that errors of 1e-6 are not below the solver's tolerance.
        unit = budget if budget > 0 else 1.0
        # An error beyond the budget excludes a choice, whatever its size; large ones cost the solver digits.
        errors = [*(layer.error for layer in self.layers), *(layer.bfloat16_error for layer in self.layers)]
        rows[0, : 2 * count] = np.minimum(np.array(errors) / unit, _BEYOND)
        upper[0] = budget / unit
        for number in range(count):
            rows[1 + number, [number, count + number]] = 1.0
            upper[1 + number] = 1.0
        columns = {INT8: 0, BFLOAT16: count}
        for number, border in enumerate(self.borders):
            first_pair, row = 2 * count + pairs * number, 1 + count + 5 * number
            leaving = np.array([[pair[0] == type_ for pair in _CROSSINGS] for type_ in types], np.float64)
            entering = np.array([[pair[1] == type_ for pair in _CROSSINGS] for type_ in types], np.float64)
            ends = slice(first_pair, first_pair + pairs)
            for type_, first_column in columns.items():
                rows[row, ends] = entering[type_] - leaving[type_]
                rows[row, first_column + border.first] += 1.0
                rows[row, first_column + border.second] -= 1.0
                lower[row] = 0.0
                row += 1
            for type_ in types:
                rows[row, ends] = leaving[type_]
                if type_ == WIDE:
                    rows[row, [border.first, count + border.first]] += 1.0
                    upper[row] = 1.0
                else:
                    rows[row, columns[type_] + border.first] -= 1.0
                row += 1
        return rows, lower, upper


def types_of(chosen: LayerTypes, count: int) -> list[int]:
    """Return the type of each of some layers."""
    return [
        INT8 if number in chosen.int8 else BFLOAT16 if number in chosen.bfloat16 else WIDE
        for number in range(count)
    ]


def layer_types(types: Sequence[int]) -> LayerTypes:
    """Return layers by type, of the type of each layer."""
    integers, bfloats = (
        frozenset(number for number, type_ in enumerate(types) if type_ == wanted)
        for wanted in (INT8, BFLOAT16)
    )
    return LayerTypes(integers, bfloats)
