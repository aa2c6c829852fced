"""The progress of a series of measurements."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Collection, Mapping
from dataclasses import dataclass

from intarsia.measure.measure_result import MeasureError, MeasureResult


@dataclass(frozen=True, slots=True)
class MeasureProgress:
    """The progress of a series of measurements.

    Attributes:
        done: Number of candidates with a result.
        stored: Number of results from the database.
        total: Number of all candidates.
        failed: Number of failures by kind.
        best: The least cost so far in seconds, or infinite.
        seconds: Time used.
        seconds_left: Time that the rest will take at this pace, or until the budget ends, in seconds.
    """

    done: int
    stored: int
    total: int
    failed: Mapping[MeasureError, int]
    best: float
    seconds: float
    seconds_left: float

    @classmethod
    def of_results(
        cls,
        results: Collection[MeasureResult],
        *,
        stored: int,
        measured: int,
        total: int,
        trials_left: float,
        seconds: float,
        budget_left: float,
    ) -> MeasureProgress:
        """Return the progress of a series.

        Args:
            results: Results so far.
            stored: Number of those from the database.
            measured: Number of new measurements.
            total: Number of all candidates.
            trials_left: Number of further measurements that are allowed.
            seconds: Time used.
            budget_left: Seconds until the budget ends.
        """
        left = min(total - stored - measured, trials_left) * seconds / max(1, measured)
        return cls(
            done=stored + measured,
            stored=stored,
            total=total,
            failed=Counter(result.error for result in results if not result.is_ok),
            best=min((result.cost for result in results), default=math.inf),
            seconds=seconds,
            seconds_left=max(0.0, min(left, budget_left)),
        )
