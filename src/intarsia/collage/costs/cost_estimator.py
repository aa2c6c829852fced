"""Estimators of candidates' costs (seed collage_rfc, CostEstimator)."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Protocol

from intarsia.collage.candidates.candidate_partition import CandidatePartition
from intarsia.collage.candidates.cost import Cost
from intarsia.measure.measure_result import MeasureError
from intarsia.support.registry import Registry


@dataclass(frozen=True, slots=True)
class Estimate:
    """What a candidate costs.

    Attributes:
        cost: Seconds of one run, without what every run costs; UNKNOWN if there was no time to measure it.
        low: Lower end of the 95 % interval in seconds.
        high: Upper end of the interval in seconds.
        error: OK, or why the cost is INVALID.
        message: For people; "" if nothing went wrong.
        was_known: Whether nothing had to be measured.
    """

    cost: Cost
    low: float = 0.0
    high: float = 0.0
    error: MeasureError = MeasureError.OK
    message: str = ""
    was_known: bool = False


class CostEstimator(Protocol):
    """Estimates what candidates cost."""

    def estimate(self, candidates: Sequence[CandidatePartition]) -> Sequence[Estimate]:
        """An estimate for each candidate, in order; failures are values."""

    def settle(self, candidates: Sequence[CandidatePartition]) -> Sequence[Estimate]:
        """As `estimate`, for candidates on which the choice hangs: surer, where that is possible."""

    def seconds_left(self) -> float:
        """How much time there is for estimates; infinite if that does not matter."""


COST_ESTIMATORS: Registry[CostEstimator] = Registry("cost estimator", "intarsia.cost_estimators")
"""Estimators by name, for the pass; other packages announce theirs as entry points of that group."""
