"""Phase 2: candidates of all specs, without those that are of no use."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import pytest
from tests.collage_programs import calls, main_graph, program
from tests.collage_rules import ACME, call_numbers, labels, spec_of

from intarsia.collage.candidates.candidate_partition import CandidatePartition, PartitionSpec
from intarsia.collage.gather_specs import gather_partition_specs
from intarsia.collage.graph.dataflow_graph import DataflowGraph
from intarsia.collage.prune import CollectedCandidates, DropReason, collect_candidates, thinned_out
from intarsia.collage.rules.composite import CompositePartitionRule
from intarsia.collage.rules.df_pattern import DFPatternPartitionRule
from intarsia.collage.rules.primitive import PrimitivePartitionRule
from intarsia.collage.rules.typical_rules import graph_style_rule, operator_predicate_rule
from intarsia.collage.rules.union import UnionPartitionRule
from intarsia.collage.sub_graph import SubGraph
from intarsia.ir import (
    Call,
    Expr,
    Function,
    IRModule,
    children,
    post_order,
    with_children,
    with_fields,
)
from intarsia.ir.pattern import is_op, wildcard
from intarsia.op.operator_predicate import holding_operator_predicate
from intarsia.op.pattern_table import holding_pattern_table
from intarsia.target import DeviceType, Target, VirtualDevice

CHAIN = "def @main(%x: T) { Exp(Relu(Neg(%x))) }"


@dataclass(frozen=True)
class These:
    """Proposes calls by number, wrapped."""

    groups: tuple[tuple[int, ...], ...]

    def all_candidates(self, graph: DataflowGraph, spec: PartitionSpec) -> list[CandidatePartition]:
        every = calls(graph)
        return [
            CandidatePartition(
                SubGraph.of(graph, [every[number] for number in group]).with_attrs({"Primitive": 1}), spec
            )
            for group in self.groups
        ]


def on_devices(mod: IRModule, **devices: VirtualDevice) -> DataflowGraph:
    """The graph of @main, with calls of some operators planned on devices."""
    done: dict[Expr, Expr] = {}
    for expr in post_order(mod["main"]):
        new = with_children(expr, tuple(done[child] for child in children(expr)))
        if isinstance(expr, Call):
            new = with_fields(new, checked_type=expr.checked_type)
            new = with_fields(new, virtual_device=devices.get(str(expr.op), expr.virtual_device))
        done[expr] = new
    main = done[mod["main"]]
    assert isinstance(main, Function)
    return DataflowGraph.of(main)


def of_spec(found: CollectedCandidates, name: str) -> list[CandidatePartition]:
    return [one for one in found.candidates if one.spec.name == name]


def test_candidates_of_all_specs_by_first_node() -> None:
    graph = main_graph(program(CHAIN))
    with (
        holding_pattern_table("acme", ()),
        holding_operator_predicate("acme", lambda call: str(call.op) != "Exp"),
    ):
        specs = gather_partition_specs([ACME])
    found = collect_candidates(graph, specs)
    assert found.dropped == ()
    assert [(one.spec.name, call_numbers(graph, one)) for one in found.candidates] == [
        ("host", ()),
        ("acme", (0, 1)),
        ("acme", (0,)),
        ("reference", (0,)),
        ("acme", (1,)),
        ("reference", (1,)),
        ("reference", (2,)),
    ]
    assert labels(of_spec(found, "acme")) == ["Neg", "Neg+Relu", "Relu"]


def test_invalid_candidates_are_dropped_with_the_reason() -> None:
    graph = main_graph(program(CHAIN))
    found = collect_candidates(graph, [spec_of(These(((0, 2), (1,))))])
    assert [call_numbers(graph, one) for one in found.candidates] == [(1,)]
    (dropped,) = found.dropped
    assert dropped.reason is DropReason.INVALID
    assert str(dropped) == (
        "acme.Neg+Exp {4,6}: it can be no function "
        "(is left and entered again: from 5 Relu, which is outside, to 6 Exp)"
    )


def test_of_candidates_with_the_same_nodes_one_is_kept() -> None:
    """Upstream drops both, and may be left without a cover."""
    graph = main_graph(program(CHAIN))
    pattern = is_op("Relu")(is_op("Neg")(wildcard()))
    rows = [
        CompositePartitionRule(f"acme.{name}", DFPatternPartitionRule(name, pattern)) for name in ("a", "b")
    ]
    spec, other = (
        PartitionSpec(name, ACME, PrimitivePartitionRule(UnionPartitionRule(tuple(rows))))
        for name in ("acme", "other")
    )
    found = collect_candidates(graph, [spec, other])
    assert [one.name for one in found.candidates] == ["acme.acme.a", "other.acme.a"]
    assert [(one.candidate.name, one.reason, one.detail) for one in found.dropped] == [
        ("acme.acme.b", DropReason.SAME_NODES, "acme.acme.a"),
        ("other.acme.b", DropReason.SAME_NODES, "other.acme.a"),
    ]


PLAIN = VirtualDevice.for_target(Target("cpu"))


@pytest.mark.parametrize(
    ("device", "target", "is_kept"),
    [
        (VirtualDevice(), "cpu -toolchain=acme", True),
        (VirtualDevice(memory_scope="global"), "cpu -toolchain=acme", True),
        (VirtualDevice(DeviceType.CPU), "cpu -toolchain=acme", True),
        (VirtualDevice(DeviceType.CUDA), "cpu -toolchain=acme", False),
        (PLAIN, "cpu -toolchain=acme", True),
        (PLAIN, "cpu", True),
        (PLAIN, "cuda -toolchain=acme", False),
        (VirtualDevice.for_target(ACME), "cpu -toolchain=acme", True),
        (VirtualDevice.for_target(ACME), "cpu -toolchain=other", False),
        (VirtualDevice.for_target(ACME), "cpu", False),
        (VirtualDevice.for_target(Target("cpu -threads=2")), "cpu", False),
    ],
)
def test_targets_refine_the_planned_ones(device: VirtualDevice, target: str, is_kept: bool) -> None:
    graph = on_devices(program(CHAIN), Relu=device)
    spec = spec_of(These(((0,), (0, 1))), Target(target))
    found = collect_candidates(graph, [spec])
    expected = [(0,), (0, 1)] if is_kept else [(0,)]
    assert sorted(call_numbers(graph, one) for one in found.candidates) == expected
    assert [one.reason for one in found.dropped] == [DropReason.DEVICE] * (not is_kept)


def test_no_partition_spans_two_devices() -> None:
    devices = {"Neg": VirtualDevice(DeviceType.CPU, 0), "Exp": VirtualDevice(DeviceType.CPU, 1)}
    graph = on_devices(program(CHAIN), **devices)
    found = collect_candidates(graph, [spec_of(graph_style_rule(lambda _: True))])
    assert sorted(call_numbers(graph, one) for one in found.candidates) == [(0,), (0, 1), (1,), (1, 2), (2,)]
    (dropped,) = found.dropped
    assert dropped.detail == "spans VirtualDevice(cpu:0) and VirtualDevice(cpu:1)"


def test_the_host_keeps_what_is_planned_elsewhere() -> None:
    mod = program("def @main(%x: T) { (Neg(%x), Relu(%x)) }")
    graph = on_devices(mod, Neg=VirtualDevice.for_target(ACME))
    found = collect_candidates(graph, gather_partition_specs([]))
    assert len(of_spec(found, "host")) == 2
    assert labels(of_spec(found, "reference")) == ["Relu"]


def test_a_spec_with_too_many_candidates_is_thinned_out() -> None:
    text = "def @main(%x: T) { " + "Neg(" * 30 + "%x" + ")" * 30 + " }"
    graph = main_graph(program(text))
    spec = spec_of(operator_predicate_rule(lambda _: True))
    every = spec.candidates(graph)
    found = collect_candidates(graph, [spec], max_per_spec=60)
    assert len(found.candidates) == 60
    assert len(found.dropped) == len(every) - 60
    assert {one.reason for one in found.dropped} == {DropReason.TOO_MANY}
    assert found.dropped[0].detail == f"{len(every)}, allowed are 60"
    kept = [call_numbers(graph, one) for one in found.candidates]
    assert {(number,) for number in range(30)} <= set(kept)
    assert {len(one) for one in kept} == {1, 2, 3, 4, 5, 6, 7, 8}
    large = sorted(one[0] for one in kept if len(one) > 3)
    assert large[0] < 5
    assert large[-1] > 20


def test_single_calls_always_stay() -> None:
    text = "def @main(%x: T) { " + "Neg(" * 9 + "%x" + ")" * 9 + " }"
    graph = main_graph(program(text))
    every = spec_of(operator_predicate_rule(lambda _: True)).candidates(graph)
    assert sizes(thinned_out(every, 4)) == [1] * 9
    assert thinned_out(every, 0) == every
    assert thinned_out(every, len(every)) == every


def sizes(candidates: Sequence[CandidatePartition]) -> list[int]:
    return [len(one.sub_graph.inside) for one in candidates]
