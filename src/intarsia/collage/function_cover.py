"""What a search has found for a function."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from intarsia.collage.candidates.candidate_partition import CandidatePartition
from intarsia.collage.candidates.cost import CostKind
from intarsia.collage.costs.cost_estimator import Estimate
from intarsia.collage.placement.placement import Partition
from intarsia.collage.prune import DroppedCandidate
from intarsia.measure.measure_result import MeasureError


@dataclass(frozen=True, slots=True)
class CoverRecord:
    """A cover.

    Attributes:
        partitions: Partitions that become functions of their own.
        seconds: Predicted time: the (shrunk) costs of its candidates, and those of borders.
        interval: Sums of the lower and of the upper ends of the candidates' intervals, in seconds.
        unmeasured: Candidates of it that could not be measured, for want of time for example; they count with
            their bounds.
    """

    partitions: tuple[Partition, ...]
    seconds: float
    interval: tuple[float, float]
    unmeasured: int = 0


@dataclass(frozen=True, slots=True, eq=False)
class FunctionCover:
    """The cheapest covers of a function, and how they were found.

    Attributes:
        name: Name of the function.
        operators: Calls that a toolchain must run.
        covers: The cheapest first.
        lower_bound: Seconds that every cover costs at least, if the bounds of what was not measured hold.
        is_exact: Whether the search was exact; otherwise `gap` bounds the distance from the optimum.
        candidates: All that were looked at.
        estimates: Estimates of the candidates that were estimated.
        dropped: Candidates that were not looked at.
        collect_seconds: Time that finding the candidates took.
        seconds: Time in all.
        note: Why the search ended early; "" if it did not.
    """

    name: str
    operators: int
    covers: tuple[CoverRecord, ...]
    lower_bound: float
    is_exact: bool
    candidates: tuple[CandidatePartition, ...]
    estimates: Mapping[CandidatePartition, Estimate]
    dropped: tuple[DroppedCandidate, ...]
    collect_seconds: float
    seconds: float
    note: str = ""

    @property
    def best(self) -> CoverRecord:
        """The cheapest cover."""
        return self.covers[0]

    @property
    def gap(self) -> float:
        """The part of the best cover's cost by which it may miss the optimum."""
        return max(0.0, 1 - self.lower_bound / self.best.seconds) if self.best.seconds else 0.0

    @property
    def measured(self) -> int:
        """Candidates whose cost had to be measured in this run."""
        return sum(not estimate.was_known for estimate in self.estimates.values())

    @property
    def failed(self) -> int:
        """Candidates that turned out invalid; those that were not tried are none of them."""
        tried = (each for each in self.estimates.values() if each.error is not MeasureError.OK)
        return sum(each.cost.kind is CostKind.INVALID for each in tried)
