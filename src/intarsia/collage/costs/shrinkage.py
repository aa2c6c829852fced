"""Shrinking measured costs toward each other by their uncertainty, against the winner's curse."""

from __future__ import annotations

import math
import statistics
from collections.abc import Hashable, Mapping, Sequence
from dataclasses import dataclass
from typing import Final, TypeVar

K = TypeVar("K", bound=Hashable)

_NORMAL_95: Final = 3.92
"""Width of a 95 % interval in standard errors."""

_LEAST_SPREAD: Final = 0.01
"""Smallest relative difference assumed between toolchains: below it nothing could be distinguished."""


@dataclass(frozen=True, slots=True)
class MeasuredSeconds:
    """A cost with its 95 % interval, in seconds."""

    seconds: float
    low: float
    high: float

    @property
    def error(self) -> float:
        """Standard error of the logarithm; infinite where the interval is open."""
        if self.low <= 0 or math.isinf(self.high):
            return math.inf
        return (math.log(self.high) - math.log(self.low)) / _NORMAL_95


def shrunk(groups: Sequence[Mapping[K, MeasuredSeconds]]) -> list[dict[K, float]]:
    """Costs that are to be compared, less far apart where they are less certain.

    Whoever looks cheapest among several noisy costs is cheaper than he is, on average, and a sum of many such
    choices looks much cheaper than it runs. So the logarithm of each cost is pulled to the mean of its group
    by the part noise has in how costs of one group differ (empirical Bayes; C. Morris, Parametric empirical
    Bayes inference, 1983).

    Args:
        groups: Costs of the same nodes, by whatever distinguishes them, all above 0.

    Returns:
        Seconds, as the groups are ordered. A cost without an interval is as uncertain as the worst one.
    """
    errors = [each.error for group in groups for each in group.values() if math.isfinite(each.error)]
    worst = max(errors, default=0.0)
    spread = max(_LEAST_SPREAD**2, _spread([list(group.values()) for group in groups], worst))
    return [_shrunk_group(group, spread, worst) for group in groups]


def _shrunk_group(group: Mapping[K, MeasuredSeconds], spread: float, worst: float) -> dict[K, float]:
    if len(group) < 2:
        return {name: estimate.seconds for name, estimate in group.items()}
    mean = statistics.fmean(math.log(estimate.seconds) for estimate in group.values())
    shrunk = {}
    for name, estimate in group.items():
        error = min(estimate.error, worst)
        share = spread / (spread + error**2)
        shrunk[name] = math.exp(mean + (math.log(estimate.seconds) - mean) * share)
    return shrunk


def _spread(groups: Sequence[Sequence[MeasuredSeconds]], worst: float) -> float:
    """Variance of logarithms within groups that noise does not explain."""
    compared = [group for group in groups if len(group) > 1]
    if not compared:
        return 0.0
    within = [statistics.variance(math.log(each.seconds) for each in group) for group in compared]
    noise = [min(each.error, worst) ** 2 for group in compared for each in group]
    return max(0.0, statistics.fmean(within) - statistics.fmean(noise))
