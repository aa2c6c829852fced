"""Costs by a formula: known before the search, and the same on every machine."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from intarsia.collage.candidates.candidate_partition import CandidatePartition
from intarsia.collage.candidates.cost import Cost
from intarsia.collage.costs.cost_estimator import Estimate
from intarsia.collage.sub_graph import extract_function
from intarsia.ir import Call, Function, Op, post_order, structural_digest
from intarsia.measure.measure_result import MeasureError
from intarsia.support.errors import UsageError


@dataclass(eq=False)
class MockCostEstimator:
    """Each further operator of a candidate costs nine tenths of the one before (seed collage_rfc).

    A candidate of n operators at cost c each costs c * (1 - 0.9 ** n) / 0.1, so that fusing pays.

    Attributes:
        operator_seconds: Seconds of one operator, by name of the spec; candidates of other specs are invalid.
        max_estimates: Distinct estimates allowed, 0 for any number.
        estimates: Distinct estimates made so far.
    """

    operator_seconds: Mapping[str, float]
    max_estimates: int = 0
    estimates: int = 0
    _known: dict[tuple[str, str], Estimate] = field(default_factory=dict)

    def estimate(self, candidates: Sequence[CandidatePartition]) -> list[Estimate]:
        """See CostEstimator.estimate.

        Raises:
            UsageError: More estimates are asked for than allowed.
        """
        return [self._estimate(candidate) for candidate in candidates]

    def settle(self, candidates: Sequence[CandidatePartition]) -> list[Estimate]:
        """See CostEstimator.settle; a formula is sure already."""
        return self.estimate(candidates)

    def seconds_left(self) -> float:
        """See CostEstimator.seconds_left."""
        return math.inf

    def _estimate(self, candidate: CandidatePartition) -> Estimate:
        function = extract_function(candidate.sub_graph)
        key = (str(candidate.spec.target), structural_digest(function))
        if key not in self._known:
            self.estimates += 1
            if self.max_estimates and self.estimates > self.max_estimates:
                raise UsageError(f"more than {self.max_estimates} estimates were asked for")
            self._known[key] = self._made(candidate, function)
        return self._known[key]

    def _made(self, candidate: CandidatePartition, function: Function) -> Estimate:
        seconds = self.operator_seconds.get(candidate.spec.name)
        if seconds is None:
            return Estimate(Cost.INVALID, error=MeasureError.COMPILE, message="the spec has no mock cost")
        calls = sum(isinstance(expr, Call) and isinstance(expr.op, Op) for expr in post_order(function))
        cost = seconds * sum(0.9**position for position in range(calls))
        return Estimate(Cost.value(cost), cost, cost)
