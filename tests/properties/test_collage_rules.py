"""Rules on random programs: candidates are functions, something always covers, nothing is missed."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from tests.collage_rules import found_by, numbers
from tests.effort import examples
from tests.pass_checks import planned
from tests.properties.random_programs import CONDITION, SHAPE, VALUE, programs

from intarsia.build import build
from intarsia.collage.candidates.candidate_partition import CandidatePartition
from intarsia.collage.gather_specs import GatherOptions, gather_partition_specs
from intarsia.collage.graph.dataflow_graph import DataflowGraph
from intarsia.collage.prune import DropReason, collect_candidates
from intarsia.collage.rules.combine import CombinePartitionRule
from intarsia.collage.rules.each_call import EachCallPartitionRule
from intarsia.collage.rules.must_be_lowered import nodes_to_cover
from intarsia.collage.rules.segment import SegmentLimits
from intarsia.collage.rules.typical_rules import JOIN_ANYTHING
from intarsia.collage.sub_graph import extract_function, extract_module, parallel_rewrite, quotient_cycle
from intarsia.ir import Call, Expr, Function, IRModule, Op, Tuple, Var, structural_equal
from intarsia.op import call, verify
from intarsia.op.operator_predicate import holding_operator_predicate
from intarsia.target import Target

EXAMPLES = settings(
    max_examples=examples(30),
    deadline=None,
    suppress_health_check=[HealthCheck.too_slow, HealthCheck.data_too_large],
)
ACME = Target("cpu -toolchain=acme")


def no_tanh(one: Call) -> bool:
    return isinstance(one.op, Op) and one.op.name != "Tanh"


def collected(graph: DataflowGraph, segments: SegmentLimits | None = None) -> tuple[CandidatePartition, ...]:
    """The candidates of a toolchain that lacks an operator, the reference and the host."""
    options = GatherOptions(segments=segments or SegmentLimits())
    with holding_operator_predicate("acme", no_tanh):
        specs = gather_partition_specs([ACME], options)
        found = collect_candidates(graph, specs)
    assert all(one.reason is not DropReason.INVALID for one in found.dropped)
    return found.candidates


def inputs_of(mod: IRModule) -> list[np.ndarray[tuple[int, ...], np.dtype[np.generic]]]:
    rng = np.random.default_rng(0)
    return [
        np.array(True) if param.checked_type == CONDITION else rng.normal(size=SHAPE).astype(np.float32)
        for param in mod["main"].params
    ]


@EXAMPLES
@given(programs(annotated=False, steps=14))
def test_candidates_are_functions(mod: IRModule) -> None:
    graph = DataflowGraph.of(mod["main"])
    for one in collected(graph, SegmentLimits(max_live=3)):
        if one.spec.name == "host":
            assert not one.sub_graph.nested
            continue
        alone = extract_module(one.sub_graph, mod)
        verify(alone)
        assert structural_equal(alone["main"], extract_function(one.sub_graph))
        assert (one.spec.name == "reference") or not any(
            isinstance(expr, Call) and isinstance(expr.op, Op) and expr.op.name == "Tanh"
            for expr in one.sub_graph.exprs
        )


@EXAMPLES
@given(programs(steps=14))
def test_host_and_reference_cover_every_program(mod: IRModule) -> None:
    graph = DataflowGraph.of(mod["main"])
    chosen = collect_candidates(graph, gather_partition_specs([])).candidates
    covered = [index for one in chosen for index in one.sub_graph.inside]
    assert graph.set_of(covered) == nodes_to_cover(graph)
    assert quotient_cycle(graph, [one.sub_graph.inside for one in chosen]) == ()


@EXAMPLES
@given(programs(annotated=False))
def test_the_program_of_host_and_reference_computes_the_same(mod: IRModule) -> None:
    graph = DataflowGraph.of(mod["main"])
    chosen = collect_candidates(graph, gather_partition_specs([])).candidates
    after = mod.with_function("main", parallel_rewrite(graph, [one.sub_graph for one in chosen]))
    verify(after)
    inputs = inputs_of(mod)
    for left, right in zip(build(after).run_flat(*inputs), build(mod).run_flat(*inputs), strict=True):
        np.testing.assert_allclose(np.asarray(left), np.asarray(right), rtol=1e-5, atol=1e-5)


@EXAMPLES
@given(programs(steps=14))
def test_planned_devices_are_kept_to(mod: IRModule) -> None:
    graph = DataflowGraph.of(planned(mod)["main"])
    for one in collected(graph):
        devices = {expr.virtual_device for expr in one.sub_graph.exprs} if one.sub_graph.nested else set()
        for device in devices:
            assert device.target is None or one.spec.target.is_external_codegen_for(device.target)


@st.composite
def elementwise(draw: st.DrawFn) -> Function:
    """A function of up to six operators on one input, every value used or returned."""
    x = Var("x", checked_type=VALUE)
    values: list[Expr] = [x]
    for _ in range(draw(st.integers(1, 6))):
        args = draw(st.lists(st.sampled_from(values), min_size=1, max_size=2))
        values.append(call("Add", *args) if len(args) == 2 else call("Neg", *args))
    used = {arg for value in values if isinstance(value, Call) for arg in value.args}
    return Function((x,), Tuple(tuple(value for value in values[1:] if value not in used)))


@settings(max_examples=examples(100), deadline=None)
@given(elementwise())
def test_joining_anything_misses_nothing(function: Function) -> None:
    """All connected convex sets of calls are found: upstream leaves some out."""
    graph = DataflowGraph.of(function)
    rule = CombinePartitionRule(EachCallPartitionRule(), JOIN_ANYTHING)
    assert numbers(graph, found_by(rule, graph)) == connected_convex_sets(graph)


def connected_convex_sets(graph: DataflowGraph) -> set[tuple[int, ...]]:
    every = [node.index for node in graph if isinstance(node.expr, Call)]
    needs = [[every.index(one) for one in graph.flow_inputs[index] if one in every] for index in every]
    found: set[tuple[int, ...]] = set()
    for bits in range(1, 1 << len(every)):
        members = tuple(number for number in range(len(every)) if bits >> number & 1)
        if is_connected(members, needs) and is_convex(members, needs):
            found.add(members)
    return found


def is_connected(members: Sequence[int], needs: list[list[int]]) -> bool:
    reached = {members[0]}
    for _ in members:
        reached |= {one for one in members if reached & set(needs[one])}
        reached |= {need for one in reached for need in needs[one] if need in members}
    return reached == set(members)


def is_convex(members: Sequence[int], needs: list[list[int]]) -> bool:
    left: set[int] = set()
    for number, used in enumerate(needs):
        if number in members:
            if left & set(used):
                return False
        elif any(one in members or one in left for one in used):
            left.add(number)
    return True
