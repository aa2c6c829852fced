"""Candidates, and the specs that they are of."""

from __future__ import annotations

from dataclasses import dataclass

from tests.collage_programs import calls, main_graph, program

from intarsia.collage.candidates.candidate_partition import CandidatePartition, PartitionRule, PartitionSpec
from intarsia.collage.candidates.cost import Cost
from intarsia.collage.graph.dataflow_graph import DataflowGraph
from intarsia.collage.sub_graph import SubGraph
from intarsia.target import Target


@dataclass(frozen=True)
class EveryCall:
    """Proposes every call of an operator by itself."""

    def all_candidates(self, graph: DataflowGraph, spec: PartitionSpec) -> list[CandidatePartition]:
        return [CandidatePartition(SubGraph.of(graph, graph.unit(index)), spec) for index in calls(graph)]


RULE: PartitionRule = EveryCall()
ACME = PartitionSpec("acme", Target("cpu"), RULE)
OTHER = PartitionSpec("other", Target("cpu"), RULE)
GRAPH = main_graph(program("def @main(%x: T) { Exp(Neg(Abs(%x))) }"))
FIRST, SECOND, _ = (SubGraph.of(GRAPH, [index]) for index in calls(GRAPH))


def test_a_spec_asks_its_rule() -> None:
    found = ACME.candidates(GRAPH)
    assert [one.sub_graph.label for one in found] == ["Abs", "Neg", "Exp"]
    assert all(one.spec is ACME and one.cost == Cost.UNKNOWN for one in found)


def test_specs_are_compared_by_name_and_target() -> None:
    assert PartitionSpec("acme", Target("cpu"), EveryCall(), lambda _: "no") == ACME
    assert PartitionSpec("acme", Target("cpu -threads=2"), RULE) != ACME
    assert ACME.validate(GRAPH.function) == ""


def test_one_sub_graph_for_two_targets_is_two_candidates() -> None:
    assert len({CandidatePartition(FIRST, ACME), CandidatePartition(FIRST, OTHER)}) == 2


def test_it_matters_not_which_rule_found_it_or_what_it_costs() -> None:
    one = CandidatePartition(FIRST, ACME, "a", Cost.value(1))
    assert one == CandidatePartition(FIRST, ACME, "b")
    assert one != CandidatePartition(FIRST.with_attrs({"Composite": "a"}), ACME, "a")


def test_changes_are_copies() -> None:
    one = CandidatePartition(FIRST, ACME, "a").with_cost(Cost.value(1))
    assert one.cost == Cost.value(1)
    moved = one.with_sub_graph(SECOND)
    assert (moved.sub_graph, moved.rule_name, moved.cost) == (SECOND, "a", Cost.UNKNOWN)
    assert one.with_sub_graph(SECOND, "b").rule_name == "b"


def test_names() -> None:
    assert CandidatePartition(FIRST, ACME, "rule").name == "acme.rule"
    assert CandidatePartition(FIRST, ACME).name == "acme.Abs"
    found = CandidatePartition(FIRST, ACME, "rule", Cost.value(2e-3))
    assert str(found) == f"acme.rule {FIRST.inside} 2ms"


def test_a_fixed_order() -> None:
    mixed = [
        CandidatePartition(SECOND, ACME),
        CandidatePartition(FIRST, OTHER),
        CandidatePartition(FIRST.disjoint_union(SECOND), ACME),
        CandidatePartition(FIRST, ACME, "b"),
        CandidatePartition(FIRST, ACME, "a"),
    ]
    found = sorted(mixed, key=lambda one: one.sort_key)
    assert found == [mixed[4], mixed[3], mixed[1], mixed[2], mixed[0]]
    assert [one.rule_name for one in found[:2]] == ["a", "b"]
