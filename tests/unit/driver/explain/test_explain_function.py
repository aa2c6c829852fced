"""Fates, losses and runners-up of planted candidates."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence

import pytest
from tests.collage_programs import main_graph, program
from tests.collage_rules import call_numbers

from intarsia.collage.candidates.candidate_partition import CandidatePartition
from intarsia.collage.candidates.cost import Cost
from intarsia.collage.costs.boundary_costs import NO_BOUNDARIES, BoundaryCosts, Crossing
from intarsia.collage.costs.cost_estimator import Estimate
from intarsia.collage.function_cover import CoverRecord, FunctionCover
from intarsia.collage.gather_specs import gather_partition_specs
from intarsia.collage.graph.dataflow_graph import DataflowGraph
from intarsia.collage.placement.placement import Partition
from intarsia.collage.prune import collect_candidates
from intarsia.driver.explain import function as module
from intarsia.driver.explain.comparison import Comparison
from intarsia.driver.explain.function import ChosenPartition, explain_function
from intarsia.measure.measure_result import MeasureError
from intarsia.op.operator_predicate import holding_operator_predicate
from intarsia.report.explained_function import Compared, Fate, FunctionRecord, Tried
from intarsia.target import Target

CHAIN = "def @main(%x: T) { Exp(Relu(Neg(%x))) }"
ZENITH, BETA = Target("cpu -toolchain=zenith"), Target("cpu -toolchain=beta")

Key = tuple[str, tuple[int, ...]]
"""Spec, and which calls."""

VALUES: Mapping[Key, float] = {
    ("zenith", (0, 1)): 3.0,
    ("zenith", (0,)): 2.0,
    ("zenith", (1,)): 2.0,
    ("beta", (0,)): 1.5,
    ("beta", (1,)): 2.5,
    ("beta", (2,)): 1.0,
    ("beta", (0, 1)): 3.3,
}
FAILURES: Mapping[Key, tuple[MeasureError, str]] = {
    ("zenith", (0, 1, 2)): (MeasureError.WRONG_ANSWER, "it differs by 0.5"),
    ("zenith", (1, 2)): (MeasureError.CRASH, "SIGSEGV " * 100),
    ("zenith", (2,)): (MeasureError.COMPILE, "no such operator"),
    ("reference", (0,)): (MeasureError.OK, "not tried: others run it"),
}


def estimates_of(
    graph: DataflowGraph, candidates: Sequence[CandidatePartition]
) -> dict[CandidatePartition, Estimate]:
    """What is planted; candidates that are not in the tables were never estimated."""
    found = {}
    for each in candidates:
        key = each.spec.name, call_numbers(graph, each)
        if key in VALUES:
            seconds = VALUES[key]
            found[each] = Estimate(
                Cost.value(seconds), 0.99 * seconds, 1.01 * seconds, was_known=key[0] == "beta"
            )
        elif key in FAILURES:
            error, message = FAILURES[key]
            found[each] = Estimate(Cost.INVALID, math.inf, math.inf, error, message)
    return found


def part(target: Target, *nodes: int) -> Partition:
    return Partition("main", str(target), nodes, "+".join(("Neg", "Relu", "Exp")[node - 1] for node in nodes))


BEST = (part(ZENITH, 1, 2), part(BETA, 3))


def explained(
    chosen: Sequence[Partition] = BEST, boundaries: BoundaryCosts = NO_BOUNDARIES, *, is_exact: bool = True
) -> FunctionRecord:
    graph = main_graph(program(CHAIN))
    with (
        holding_operator_predicate("zenith", lambda call: True),
        holding_operator_predicate("beta", lambda call: True),
    ):
        collected = collect_candidates(graph, gather_partition_specs([ZENITH, BETA]))
    cover = FunctionCover(
        name="main",
        operators=3,
        covers=(CoverRecord(BEST, 4.0, (3.96, 4.04)),),
        lower_bound=4.0 if is_exact else 3.0,
        is_exact=is_exact,
        candidates=collected.candidates,
        estimates=estimates_of(graph, collected.candidates),
        dropped=collected.dropped,
        collect_seconds=0.1,
        seconds=0.5,
    )
    comparison = Comparison(graph, cover, chosen, boundaries)
    parts = [ChosenPartition(each, 0.25) for each in chosen]
    return explain_function("main", graph, parts, comparison)


def found(record: FunctionRecord, spec: str, nodes: str) -> Tried:
    (each,) = [
        each for region in record.regions for each in region.tried if (each.spec, each.nodes) == (spec, nodes)
    ]
    return each


def test_nodes_and_regions() -> None:
    record = explained()
    assert [(node.number, node.operator) for node in record.nodes] == [(1, "Neg"), (2, "Relu"), (3, "Exp")]
    assert [(each.toolchain, each.nodes, each.label) for each in record.regions] == [
        ("zenith", "1..2", "Neg+Relu"),
        ("beta", "3", "Exp"),
    ]
    first = record.regions[0]
    assert (first.predicted, first.measured) == (3.0, 0.25)
    assert (first.low, first.high) == pytest.approx((2.97, 3.03))
    assert first.tried[0].fate is Fate.CHOSEN
    assert sum(len(each.tried) for each in record.regions) == 15
    assert [each.left_out for each in record.regions] == [0, 0]


def test_fates() -> None:
    record = explained()
    whole = found(record, "zenith", "1..3")
    assert (whole.fate, whole.message, whole.seconds, whole.low) == (
        Fate.WRONG,
        "it differs by 0.5",
        None,
        None,
    )
    crashed = found(record, "zenith", "2..3")
    assert crashed.fate is Fate.CRASHED
    assert len(crashed.message) == 303
    refused = found(record, "zenith", "3")
    assert (refused.fate, refused.message) == (Fate.UNSUPPORTED, "no such operator")
    held = found(record, "reference", "1")
    assert (held.fate, held.message) == (Fate.NOT_TRIED, "others run it")
    never = found(record, "beta", "2..3")
    assert (never.fate, never.message) == (
        Fate.NOT_TRIED,
        "no cover with it can be cheaper, by what its operators cost at least",
    )
    assert found(explained(is_exact=False), "beta", "2..3").message == "the search ended before its turn"


def test_losses_are_those_of_the_cheapest_cover_with_a_candidate() -> None:
    record = explained()
    assert record.search is not None
    assert record.search.compared is Compared.CHOSEN
    assert record.search.chosen == pytest.approx(4.0, rel=0.02)
    pair = found(record, "beta", "1..2")
    assert pair.loss_low == pytest.approx(0.3, abs=0.02)
    assert pair.loss_high == pytest.approx(0.3, abs=0.02)
    single = found(record, "beta", "1")  # 1.5 and zenith's 2.0 for the other one
    assert single.loss_low == pytest.approx(0.5, abs=0.03)
    assert single.loss_high == pytest.approx(0.5, abs=0.03)


def test_the_runner_up_and_what_it_lacks() -> None:
    record = explained()
    rival = record.regions[0].rival
    assert rival is not None
    assert [(each.spec, each.nodes, each.label) for each in rival.parts] == [("beta", "1..2", "Neg+Relu")]
    assert rival.loss == pytest.approx(0.3, abs=0.02)
    assert rival.faster == pytest.approx(0.3 / 3.3, abs=0.01)
    assert record.regions[1].rival is None  # nobody else runs Exp


def test_borders_count() -> None:
    free = Crossing()
    dear = BoundaryCosts(
        {("zenith", "beta"): Crossing(fixed=1.0), ("beta", "zenith"): Crossing(fixed=1.0), ("", "beta"): free}
    )
    record = explained(boundaries=dear)
    rival = record.regions[0].rival
    assert rival is not None
    assert rival.loss == pytest.approx(-0.7, abs=0.02)  # beta alone needs no border
    assert rival.faster == 0.0


def test_totals() -> None:
    search = explained().search
    assert search is not None
    assert search.specs == ("zenith", "beta", "reference")
    assert (search.candidates, search.measured, search.known, search.failed, search.not_tried) == (
        15,
        7,
        4,
        3,
        5,
    )
    assert search.dropped == {}


def test_a_cover_of_parts_that_are_no_candidates() -> None:
    odd = (Partition("main", str(ZENITH), (1, 3), "Neg+Exp"), part(BETA, 2))
    record = explained(odd)
    assert record.search is not None
    assert (record.search.compared, record.search.chosen) == (Compared.PREDICTED, None)
    assert [each.rival for each in record.regions] == [None, None]
    assert found(record, "beta", "1").loss_high == pytest.approx(0.5, abs=0.03)


def test_what_is_left_to_the_host_is_a_region() -> None:
    record = explained(BEST[:1])
    assert [(each.toolchain, each.target, each.nodes) for each in record.regions][1:] == [("host", "", "3")]


def test_a_function_that_was_not_searched() -> None:
    graph = main_graph(program(CHAIN))
    record = explain_function("main", graph, [ChosenPartition(part(ZENITH, 1, 2, 3))], None)
    assert record.search is None
    assert [(each.nodes, each.tried, each.rival) for each in record.regions] == [("1..3", (), None)]


def test_the_list_is_bounded_and_keeps_one_of_each_node_and_spec(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "MOST", 0)
    monkeypatch.setattr(module, "LEAST", 1)
    record = explained()
    kept = {
        (each.spec, node)
        for region in record.regions
        for each in region.tried
        for node in each.nodes.split("..")
    }
    assert {
        ("zenith", "1"),
        ("zenith", "2"),
        ("zenith", "3"),
        ("beta", "1"),
        ("beta", "2"),
        ("beta", "3"),
    } <= kept
    assert sum(region.left_out for region in record.regions) > 0
    assert sum(region.left_out + len(region.tried) for region in record.regions) == 15
