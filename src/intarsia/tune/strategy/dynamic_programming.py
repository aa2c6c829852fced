"""The best of a chain of decisions."""

from __future__ import annotations

from dataclasses import dataclass
from itertools import pairwise

from intarsia.transform.option_type import option_type
from intarsia.tune.strategy.effects import Effects
from intarsia.tune.strategy.trials import Point, Trials


@option_type
@dataclass(frozen=True, slots=True)
class DynamicProgramming:
    """Exact where only decisions of instructions in a row depend on each other (runs to its end).

    It tries the start, each other decision alone, and each pair of instructions in a row; then what the best
    chain of these would be, which is linear in the instructions. If costs are not of that form, the result is
    still the best point that was tried.
    """

    def search(self, trials: Trials) -> Point:
        """The best of those tried, with the best chain among them."""
        effects = Effects.measured(trials, pairwise(range(len(trials.choices))))
        trials.costs_of([_best_chain(trials, effects)])
        return trials.best


def _best_chain(trials: Trials, effects: Effects) -> Point:
    """For each decision of an instruction the best way to it, from the first on."""
    ways: dict[str, tuple[float, Point]] = {key: (effects.of((0, key)), (key,)) for key in trials.choices[0]}
    for at, keys in enumerate(trials.choices[1:], 1):
        ways = {
            key: min(
                (
                    cost + effects.of((at, key)) + effects.between((at - 1, way[-1]), (at, key)),
                    (*way, key),
                )
                for cost, way in ways.values()
            )
            for key in keys
        }
    return min(ways.values())[1]
