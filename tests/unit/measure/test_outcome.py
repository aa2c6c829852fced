"""What a worker says of a candidate: a number that is no cost is a failure."""

from __future__ import annotations

from math import inf, nan

import pytest

from intarsia.measure.candidate_task import Outcome, failure_outcome
from intarsia.measure.measure_result import MeasureError
from intarsia.support.errors import CompileError


@pytest.mark.parametrize("cost", [nan, -1e-9, inf, -inf])
def test_what_is_no_cost_is_a_failure(cost: float) -> None:
    outcome = Outcome(costs=(0.5, cost, 0.25))
    assert (outcome.error, outcome.costs) == (MeasureError.UNKNOWN, ())
    assert outcome.message == f"a call took {cost:g} s; expected a finite number, 0 or more"


def test_costs_and_builds_stay_as_they_are() -> None:
    assert Outcome(costs=(0.0, 0.5)).costs == (0.0, 0.5)
    assert Outcome().error is MeasureError.OK


@pytest.mark.parametrize(
    ("last", "kind"),
    [(MemoryError(), MeasureError.OUT_OF_MEMORY), (ValueError("no"), MeasureError.COMPILE)],
)
def test_a_failure_is_for_want_of_memory_if_one_of_its_causes_is(last: Exception, kind: MeasureError) -> None:
    error = CompileError("cannot compile this")
    error.__cause__, last.__cause__ = last, error  # Python accepts a circle, and engines are foreign code
    assert failure_outcome(MeasureError.COMPILE, error) == Outcome(kind, "cannot compile this")
