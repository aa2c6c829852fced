"""Repeats that racing saves over fixed repetition, on synthetic costs with heavy-tailed noise and drift.

For each population of 32 candidates: how often the winner of the race is within 2 % of the best, and its
number of repeats; the smallest fixed number of interleaved repeats that succeeds in 95 % of the cases, and
the smallest that succeeds as often as the race. The noise is that of the tests (tests/noisy_costs.py). Takes
about a minute.
Usage: python -m benchmarks.racing [--json] [--seeds N]
"""

from __future__ import annotations

import argparse
import json
import sys
from collections import Counter
from collections.abc import Callable
from dataclasses import asdict, dataclass
from pathlib import Path

import numpy as np
import numpy.typing as npt

from intarsia.measure.race.policy import RacePolicy
from intarsia.measure.race.racing import race

sys.path.insert(0, str(Path(__file__).parents[1]))

from tests.noisy_costs import LADDER, NoisyCosts, fixed_successes

FIXED = range(1, 201)
Costs = tuple[float, ...]


@dataclass(frozen=True)
class Row:
    """One population of candidates.

    Attributes:
        population: Name of the population.
        success: Share of races with a winner within 2 % of the best.
        decided: Share of races that ended with a decision.
        repeats: Mean number of repeats of all candidates together.
        fixed_for_95: Smallest fixed number of repeats for 95 % success; None above 200 for each candidate.
        fixed_for_same: Smallest fixed number of repeats for the success of the race; None above 200.
    """

    population: str
    success: float
    decided: float
    repeats: float
    fixed_for_95: int | None
    fixed_for_same: int | None


def throughputs(seed: int) -> Costs:
    """Return the costs of speeds that are uniform between the best and a tenth of it."""
    return tuple((1 / np.random.default_rng(seed).uniform(0.1, 1, 32)).tolist())


def crowd(seed: int) -> Costs:
    """Return costs within 20 % of the best."""
    return tuple((1 + np.random.default_rng(seed).uniform(0, 0.2, 32)).tolist())


POPULATIONS: dict[str, Callable[[int], Costs]] = {
    "ladder: 1, 1.03, 1.05, ..., 5": lambda _: LADDER,
    "speeds drawn evenly": throughputs,
    "crowd: all within 20 %": crowd,
    "all equal": lambda _: (1.0,) * 32,
}


def measure(population: str, seeds: int) -> Row:
    costs_of = POPULATIONS[population]
    ends: Counter[bool] = Counter()
    successes, repeats = 0, 0
    totals = np.zeros(len(FIXED))
    for seed in range(seeds):
        noise = NoisyCosts(costs_of(seed), seed)
        result = race(tuple(noise.costs), noise.sample, RacePolicy(seed=seed))
        successes += result.winner is not None and noise.is_within(result.winner)
        repeats += result.repeats
        ends[result.end.is_decision] += 1
        totals += fixed_successes(costs_of(seed), FIXED, seed)
    return Row(
        population,
        successes / seeds,
        ends[True] / seeds,
        repeats / seeds,
        _smallest(totals, 0.95 * seeds),
        _smallest(totals, successes),
    )


def _smallest(totals: npt.NDArray[np.float64], wanted: float) -> int | None:
    reached = np.flatnonzero(totals >= wanted)
    return int(FIXED[reached[0]]) * 32 if reached.size else None


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--json", action="store_true")
    parser.add_argument("--seeds", type=int, default=200)
    options = parser.parse_args()
    rows = [measure(population, options.seeds) for population in POPULATIONS]
    if options.json:
        print(json.dumps([asdict(row) for row in rows], indent=2))
        return
    print(f"{options.seeds} seeds, 32 candidates; repeats are of all candidates together")
    heads = f"{'success':>8} {'decided':>8} {'repeats':>8} {'fixed 95 %':>11} {'fixed same':>11}"
    print(f"{'population':32} {heads}")
    for row in rows:
        fixed = "".join(f" {_text(value):>11}" for value in (row.fixed_for_95, row.fixed_for_same))
        print(f"{row.population:32} {row.success:8.1%} {row.decided:8.1%} {row.repeats:8.0f}{fixed}")


def _text(value: int | None) -> str:
    return "over 6400" if value is None else str(value)


if __name__ == "__main__":
    main()
