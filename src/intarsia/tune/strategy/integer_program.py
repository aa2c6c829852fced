"""The best combination of decisions by integer programming."""

from __future__ import annotations

from dataclasses import dataclass
from itertools import combinations
from math import isfinite
from typing import TYPE_CHECKING

import numpy as np

from intarsia.support.errors import UsageError
from intarsia.transform.option_type import option_type
from intarsia.tune.strategy.effects import Decision, Effects
from intarsia.tune.strategy.trials import Point, Trials

if TYPE_CHECKING:
    from numpy.typing import NDArray


@option_type
@dataclass(frozen=True, slots=True)
class IntegerProgram:
    """Exact where no three decisions depend on each other (runs to its end).

    It tries the start, each other decision alone, and each pair; then the optimum of the sum of what these
    change, by SciPy's solver: one variable of 0 or 1 for each decision, and one for each pair that changes
    anything, as usual for products. If costs are not of that form, the result is still the best point that
    was tried.

    Attributes:
        pairs: Whether pairs are tried; without, decisions count as independent of each other.

    Raises:
        UsageError: SciPy is not installed.
    """

    pairs: bool = True

    def search(self, trials: Trials) -> Point:
        """The best of those tried, with the optimum of the model among them."""
        between = combinations(range(len(trials.choices)), 2) if self.pairs else ()
        effects = Effects.measure(trials, between)
        optimum = _optimum(trials, effects)
        if optimum is not None:
            trials.try_points([optimum])
        return trials.best


def _optimum(trials: Trials, effects: Effects) -> Point | None:
    """The point of least modelled cost; None if the model allows none."""
    try:
        from scipy.optimize import Bounds, LinearConstraint, milp
    except ImportError as error:
        raise UsageError("integer programs need SciPy", help="pip install 'intarsia[tuning]'") from error
    decisions: list[Decision] = [(at, key) for at, keys in enumerate(trials.choices) for key in keys]
    pairs = [pair for pair, effect in effects.pairs.items() if effect and _is_open(effects, pair)]
    index = {decision: number for number, decision in enumerate(decisions)}
    single = np.array([effects.effect(decision) for decision in decisions])
    both = np.array([effects.pairs[pair] for pair in pairs])
    costs = np.concatenate([single, both])
    # Infinite costs become variables fixed to 0: a solver rejects infinite coefficients.
    upper = np.where(np.isfinite(costs), 1.0, 0.0)
    rows, lower, higher = _one_each(trials, index, len(costs))
    for number, (first, second) in enumerate(pairs, len(decisions)):
        # The pair's variable is 1 exactly if both are: z <= x, z <= y, z >= x + y - 1.
        for which, low, high in (
            ({number: 1.0, index[first]: -1.0}, -np.inf, 0.0),
            ({number: 1.0, index[second]: -1.0}, -np.inf, 0.0),
            ({number: 1.0, index[first]: -1.0, index[second]: -1.0}, -1.0, np.inf),
        ):
            rows.append(_row(which, len(costs)))
            lower.append(low)
            higher.append(high)
    solved = milp(
        np.where(np.isfinite(costs), costs, 0.0),
        integrality=np.ones(len(costs)),
        bounds=Bounds(0.0, upper),
        constraints=LinearConstraint(np.array(rows), lower, higher),
    )
    if solved.x is None:
        return None
    taken = {decisions[number] for number in range(len(decisions)) if solved.x[number] > 0.5}
    return tuple(next(key for key in keys if (at, key) in taken) for at, keys in enumerate(trials.choices))


def _is_open(effects: Effects, pair: tuple[Decision, Decision]) -> bool:
    """Whether neither of two is ruled out by itself."""
    return all(isfinite(effects.effect(one)) for one in pair)


def _one_each(
    trials: Trials, index: dict[Decision, int], width: int
) -> tuple[list[NDArray[np.float64]], list[float], list[float]]:
    """Return the constraints that each instruction has exactly one decision: rows, lower and upper bounds."""
    rows = [_row({index[at, key]: 1.0 for key in keys}, width) for at, keys in enumerate(trials.choices)]
    return rows, [1.0] * len(rows), [1.0] * len(rows)


def _row(entries: dict[int, float], width: int) -> NDArray[np.float64]:
    row = np.zeros(width)
    row[list(entries)] = list(entries.values())
    return row
