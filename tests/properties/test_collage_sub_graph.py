"""Random programs, rewritten with random sub-graphs; sets of nodes against Python's sets."""

from __future__ import annotations

from itertools import pairwise
from random import Random

import numpy as np
from hypothesis import HealthCheck, assume, given, settings
from hypothesis import strategies as st
from tests.collage_programs import REFERENCE
from tests.effort import examples
from tests.pass_checks import DEVICE, planned
from tests.properties.random_networks import networks, random_inputs
from tests.properties.random_programs import CONDITION, SHAPE, programs

from intarsia.build import build
from intarsia.collage.graph.dataflow_graph import DataflowGraph
from intarsia.collage.graph.index_set import IndexSet
from intarsia.collage.sub_graph import (
    ConstantPlacement,
    NestedSubGraph,
    SubGraph,
    SubGraphConfig,
    are_touching,
    extract_function,
    extract_module,
    parallel_rewrite,
    quotient_cycle,
)
from intarsia.collage.sub_graph.sub_graph_config import ANY_SHAPE
from intarsia.ir import Attrs, GlobalVar, IRModule, Op, TupleType, post_order, structural_equal
from intarsia.ir.parser import parse_module
from intarsia.ir.printer import print_module
from intarsia.op import verify
from intarsia.passes import PartitionGraph

EXAMPLES = settings(
    max_examples=examples(40),
    deadline=None,
    suppress_health_check=[HealthCheck.too_slow, HealthCheck.data_too_large],
)
CONFIGS = (SubGraphConfig(), SubGraphConfig(max_exits=2), ANY_SHAPE, SubGraphConfig(max_exits=3, max_depth=3))


def units(graph: DataflowGraph, config: SubGraphConfig) -> list[SubGraph]:
    """What can be given away node by node."""
    made = (SubGraph.of(graph, graph.unit(node.index)) for node in graph)
    return [one for one in made if one.is_valid(config)]


def grown(rng: Random, graph: DataflowGraph, config: SubGraphConfig) -> list[SubGraph]:
    """Disjoint valid sub-graphs: what can be given away, neighbours joined."""
    found: list[SubGraph] = []
    eagerness = rng.random()
    for one in rng.sample(candidates := units(graph, config), len(candidates)):
        if any(one.inside.intersects(other.inside) for other in found):
            continue
        current = one
        for other in list(found):
            if rng.random() < eagerness:
                joined = current.disjoint_union(other)
                if joined.is_valid(config):
                    found.remove(other)
                    current = joined
        found.append(current)
    return found


def acyclic(graph: DataflowGraph, chosen: list[SubGraph]) -> list[SubGraph]:
    """Those that are left when what makes circles is dropped."""
    while circle := quotient_cycle(graph, [one.inside for one in chosen]):
        chosen = [one for position, one in enumerate(chosen) if position != circle[0]]
    return chosen


@st.composite
def wrapped(draw: st.DrawFn, graph: DataflowGraph) -> list[SubGraph]:
    """Sub-graphs to be functions, some with functions inside."""
    rng = Random(draw(st.integers(0, 2**32)))  # hypothesis itself would mostly choose the first of all
    config = rng.choice(CONFIGS)
    chosen = [one for one in acyclic(graph, grown(rng, graph, config)) if rng.random() < 0.8]
    inner = units(graph, ANY_SHAPE)
    made: list[SubGraph] = []
    for number, one in enumerate(chosen):
        parts = [part for part in inner if part.inside.is_subset(one.inside)]
        nested: list[NestedSubGraph] = []
        for part in rng.sample(parts, min(len(parts), rng.randrange(4))):
            if not any(part.inside.intersects(other.sub_graph.inside) for other in nested):
                nested.append(NestedSubGraph(part, Attrs({"Composite": f"part_{len(nested)}"})))
        marks = REFERENCE if rng.random() < 0.6 else {"Primitive": number}
        made.append(SubGraph.of(graph, one.inside, nested).with_attrs(marks))
    return made


def inputs_of(mod: IRModule) -> list[np.ndarray[tuple[int, ...], np.dtype[np.generic]]]:
    rng = np.random.default_rng(0)
    return [
        np.array(True) if param.checked_type == CONDITION else rng.normal(size=SHAPE).astype(np.float32)
        for param in mod["main"].params
    ]


def same(
    before: IRModule, after: IRModule, inputs: list[np.ndarray[tuple[int, ...], np.dtype[np.generic]]]
) -> None:
    old, new = (build(mod).run_flat(*inputs) for mod in (before, after))
    for left, right in zip(old, new, strict=True):
        np.testing.assert_allclose(np.asarray(right), np.asarray(left), rtol=1e-5, atol=1e-5)


def rewritten(mod: IRModule, data: st.DataObject) -> IRModule:
    graph = DataflowGraph.of(mod["main"])
    chosen = data.draw(wrapped(graph))
    placement = data.draw(st.sampled_from(ConstantPlacement))
    after = mod.with_function("main", parallel_rewrite(graph, chosen, placement))
    assert (after is mod) == (not chosen)
    verify(after)
    return after


@EXAMPLES
@given(programs(annotated=False, steps=14), st.data())
def test_programs_compute_the_same(mod: IRModule, data: st.DataObject) -> None:
    after = rewritten(mod, data)
    text = print_module(after)
    assert structural_equal(parse_module(text.text, text.constants), after)
    same(mod, after, inputs_of(mod))
    lifted = PartitionGraph()(after)
    verify(lifted)
    same(mod, lifted, inputs_of(mod))


@EXAMPLES
@given(networks(), st.data())
def test_networks_compute_the_same(mod: IRModule, data: st.DataObject) -> None:
    after = rewritten(mod, data)
    same(mod, after, list(random_inputs(0)))


@EXAMPLES
@given(programs(annotated=False), st.data())
def test_spans_and_devices_are_kept(mod: IRModule, data: st.DataObject) -> None:
    after = rewritten(planned(mod), data)
    for expr in post_order(after["main"]):
        if not isinstance(expr, (Op, GlobalVar)):
            assert expr.span is not None, expr
            assert expr.virtual_device == DEVICE, expr


@EXAMPLES
@given(programs(annotated=True), st.data())
def test_annotated_programs_stay_well_formed(mod: IRModule, data: st.DataObject) -> None:
    rewritten(mod, data)


@EXAMPLES
@given(programs(annotated=False, steps=14), st.data())
def test_extracted_functions_stand_alone(mod: IRModule, data: st.DataObject) -> None:
    graph = DataflowGraph.of(mod["main"])
    for one in data.draw(wrapped(graph)):
        alone = extract_module(one, mod)
        verify(alone)
        main = alone["main"]
        assert structural_equal(main, extract_function(one))
        results = graph.exprs(one.exit)
        type_ = main.result_type
        found = type_.fields if isinstance(type_, TupleType) and len(results) > 1 else (type_,)
        assert found == tuple(result.checked_type for result in results)
        build(alone).run_flat(*inputs_of(alone))


@EXAMPLES
@given(programs(annotated=False, steps=14), st.data())
def test_unions_are_what_they_would_be_from_scratch(mod: IRModule, data: st.DataObject) -> None:
    graph = DataflowGraph.of(mod["main"])
    chosen = data.draw(wrapped(graph))
    for left, right in pairwise(chosen):
        union = left.disjoint_union(right)
        again = SubGraph.of(graph, left.inside | right.inside)
        assert union.boundary == again.boundary
        assert (union.kind, union.label, union.depth) == (again.kind, again.label, again.depth)


@EXAMPLES
@given(programs(annotated=False, steps=14), st.data())
def test_validity_is_what_brute_force_says(mod: IRModule, data: st.DataObject) -> None:
    graph = DataflowGraph.of(mod["main"])
    reach = brute_force_downstream(graph)
    for node in graph:
        assert set(graph.downstream_of(node.index)) == reach[node.index]
    places = [node.index for node in graph if node.index not in graph.everywhere]
    assume(places)  # a program can be a constant
    inside = set(data.draw(st.lists(st.sampled_from(places), min_size=1, unique=True)))
    sub_graph = SubGraph.of(graph, inside)
    leaves = {user for index in inside for user in graph[index].outputs if user not in inside}
    assert set(sub_graph.output) == leaves
    comes_back = any(reach[index] & inside for index in leaves)
    assert comes_back == any(graph.downstream_of(i).intersects(sub_graph.entry) for i in sub_graph.output)
    if sub_graph.is_valid(ANY_SHAPE):
        assert not comes_back


@EXAMPLES
@given(programs(annotated=False, steps=14), st.data())
def test_what_touches_can_be_joined(mod: IRModule, data: st.DataObject) -> None:
    graph = DataflowGraph.of(mod["main"])
    chosen = data.draw(wrapped(graph))
    for up in chosen:
        for down in chosen:
            if up is down or not up.output.intersects(down.entry):
                continue
            inside = up.inside | down.inside
            output, entry = ((up.output | down.output) - inside), (up.entry | down.entry)
            is_convex = not any(graph.downstream_of(index).intersects(entry) for index in output)
            assert are_touching(up, down) == is_convex


def brute_force_downstream(graph: DataflowGraph) -> list[set[int]]:
    reach: list[set[int]] = [set() for _ in graph]
    for node in reversed(list(graph)):
        for user in node.outputs:
            reach[node.index] |= {user} | reach[user]
    return reach


SIZE = 70
members = st.sets(st.integers(0, SIZE - 1))


@given(members, members)
def test_index_sets_are_sets(left: set[int], right: set[int]) -> None:
    one, other = IndexSet.of(SIZE, left), IndexSet.of(SIZE, right)
    assert list(one) == sorted(left)
    assert len(one) == len(left)
    assert set(one | other) == left | right
    assert set(one & other) == left & right
    assert set(one - other) == left - right
    assert one.is_disjoint(other) == left.isdisjoint(right)
    assert one.is_subset(other) == (left <= right)
    assert (one == other) == (left == right)
    outside = sorted(set(range(SIZE)) - left)
    assert one.first_outside_index() == (outside[0] if outside else SIZE)
    assert one.first_inside_index() == (min(left) if left else SIZE)
    assert one.last_inside_index() == (max(left) if left else -1)
    assert IndexSet.of(SIZE, parsed(str(one))) == one
    differing = left ^ right
    assert (one < other) == (bool(differing) and min(differing) in left)


def parsed(text: str) -> list[int]:
    found: list[int] = []
    for part in filter(None, text.strip("{}").split(",")):
        first, _, last = part.partition("..")
        found += range(int(first), int(last or first) + 1)
    return found
