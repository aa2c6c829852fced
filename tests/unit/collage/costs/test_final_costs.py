"""Costs that covers are compared by."""

from __future__ import annotations

import math

import pytest
from tests.collage_costs import HOST_SPEC, acme, native
from tests.collage_programs import main_graph, program

from intarsia.collage.candidates.candidate_partition import CandidatePartition
from intarsia.collage.candidates.cost import Cost
from intarsia.collage.costs.cost_estimator import Estimate
from intarsia.collage.costs.final_costs import final_costs
from intarsia.collage.prune import collect_candidates

GRAPH = main_graph(program("def @main(%x: T) { (Relu(%x), %x) }"))
CANDIDATES = [
    one
    for one in collect_candidates(GRAPH, (native(), acme(), HOST_SPEC)).candidates
    if one.sub_graph.label in ("Relu", "tuple")
]
NATIVE, ACME, TUPLE = (
    next(place for place, one in enumerate(CANDIDATES) if one.spec.name == name)
    for name in ("native", "acme", "host")
)


def estimates(native_cost: Estimate, acme_cost: Estimate) -> dict[CandidatePartition, Estimate]:
    return {CANDIDATES[NATIVE]: native_cost, CANDIDATES[ACME]: acme_cost}


def wide(seconds: float) -> Estimate:
    return Estimate(Cost.value(seconds), seconds / 2, seconds * 2)


def test_costs_by_position() -> None:
    known = estimates(wide(1.0), Estimate(Cost.INVALID, math.inf, math.inf))
    assert final_costs(CANDIDATES, known, shrink=False) == {NATIVE: 1.0, ACME: math.inf, TUPLE: 0.0}


def test_what_is_unknown_is_missing() -> None:
    assert final_costs(CANDIDATES, {}, shrink=True) == {TUPLE: 0.0}
    known = estimates(wide(1.0), Estimate(Cost.UNKNOWN))
    assert final_costs(CANDIDATES, known, shrink=True) == {NATIVE: pytest.approx(1.0), TUPLE: 0.0}


def test_the_same_nodes_are_shrunk_together() -> None:
    known = estimates(wide(1.0), wide(1.2))
    found = final_costs(CANDIDATES, known, shrink=True)
    assert 1.0 < found[NATIVE] < found[ACME] < 1.2
    assert final_costs(CANDIDATES, known, shrink=False)[NATIVE] == 1.0


def test_nothing_is_shrunk_to_what_cannot_run_or_costs_nothing() -> None:
    for other in (Estimate(Cost.INVALID, math.inf, math.inf), Estimate(Cost.ZERO)):
        found = final_costs(CANDIDATES, estimates(wide(1.0), other), shrink=True)
        assert found[NATIVE] == pytest.approx(1.0)
