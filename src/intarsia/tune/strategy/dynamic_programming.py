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
        effects = Effects.measure(trials, pairwise(range(len(trials.choices))))
        trials.try_points([_best_chain(trials, effects)])
        return trials.best


def _best_chain(trials: Trials, effects: Effects) -> Point:
    """Return the cheapest chain of decisions under the model of costs (Viterbi's algorithm)."""
    chains: dict[str, tuple[float, Point]] = {
        key: (effects.effect((0, key)), (key,)) for key in trials.choices[0]
    }
    for at, keys in enumerate(trials.choices[1:], 1):
        chains = {
            key: min(
                (
                    cost + effects.effect((at, key)) + effects.interaction((at - 1, chain[-1]), (at, key)),
                    (*chain, key),
                )
                for cost, chain in chains.values()
            )
            for key in keys
        }
    return min(chains.values())[1]
