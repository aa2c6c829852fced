"""A benchmark with planted costs: what a shared machine does to the times of candidates."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from intarsia.measure.timing.interleaved import round_orders

BODY = 0.05
OUTLIER_SHARE = 0.05
OUTLIER_INDEX = 1.5
DRIFT_PER_SAMPLE = 0.004

LADDER = (1.0, 1.03, 1.05, 1.08, 1.12, 1.17, 1.25, 1.4, *np.linspace(1.5, 5.0, 24).tolist())
"""One best, some leaders a few per cent apart, and a long field: what a search proposes."""


class NoisyCosts:
    """Samples around planted costs.

    Each is the cost times a lognormal body (5 %), in one of twenty also times 1 + a Pareto variable of index
    1.5 (of infinite variance), and times a drift common to all: a random walk from sample to sample.

    Args:
        costs: True seconds, in any order.
        seed: Seed of the order of the candidates and of the noise.
    """

    def __init__(self, costs: Sequence[float], seed: int) -> None:
        self._generator = np.random.default_rng(seed)
        order: list[float] = self._generator.permutation(costs).tolist()
        self.costs: dict[str, float] = {f"c{i}": cost for i, cost in enumerate(order)}
        self._drift = 0.0
        self._factors: list[float] = []

    def sample(self, name: str) -> float:
        """Seconds of one repetition."""
        if not self._factors:
            self._factors = self._draw(4096)
        return self.costs[name] * self._factors.pop()

    def is_within(self, name: str, margin: float = 0.02) -> bool:
        """Whether a candidate is within the margin of the best."""
        return self.costs[name] <= (1 + margin) * min(self.costs.values())

    def _draw(self, count: int) -> list[float]:
        walk = self._drift + np.cumsum(DRIFT_PER_SAMPLE * self._generator.standard_normal(count))
        self._drift = float(walk[-1])
        body = BODY * self._generator.standard_normal(count)
        tail = 1 + self._generator.pareto(OUTLIER_INDEX, count)
        tail[self._generator.random(count) >= OUTLIER_SHARE] = 1
        factors: list[float] = (np.exp(walk + body) * tail).tolist()
        return factors[::-1]


def fixed_successes(costs: Sequence[float], counts: Sequence[int], seed: int) -> list[bool]:
    """Whether the lowest median of so many interleaved repeats is within 2 %, for ascending counts."""
    noise = NoisyCosts(costs, seed)
    orders = round_orders(tuple(noise.costs), seed)
    rows = [{name: noise.sample(name) for name in next(orders)} for _ in range(counts[-1])]
    times = np.array([[row[name] for name in noise.costs] for row in rows])
    names = list(noise.costs)
    return [noise.is_within(names[int(np.median(times[:count], axis=0).argmin())]) for count in counts]
