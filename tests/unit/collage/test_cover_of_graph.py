"""A graph with its candidates as a covering problem, and covers as partitions."""

from __future__ import annotations

import math

import numpy as np
from tests.collage_costs import BOUNDARIES, HOST_SPEC, REFERENCE_SPEC, acme, native, parts, spec
from tests.collage_programs import main_graph, program

from intarsia.collage.candidates.candidate_partition import PartitionSpec
from intarsia.collage.candidates.cost import Cost
from intarsia.collage.costs.boundary_costs import NO_BOUNDARIES, BoundaryCosts, Crossing
from intarsia.collage.cover_of_graph import GraphCover, partition_of
from intarsia.collage.graph.dataflow_graph import DataflowGraph
from intarsia.collage.placement.placement import stable_nodes
from intarsia.collage.prune import collect_candidates
from intarsia.collage.rules.typical_rules import graph_style_rule
from intarsia.collage.search import INVALID, Cover
from intarsia.ir import Call, Constant, Function, Op
from intarsia.op import call
from intarsia.target import Target

TEXT = "def @main(%x: T, %y: T) { %0 = Relu(%x); (Add(%0, %y), Abs(%0)) }"
GRAPH = main_graph(program(TEXT))


def cover_of(
    *specs: PartitionSpec, text: str = TEXT, boundaries: BoundaryCosts = NO_BOUNDARIES
) -> GraphCover:
    graph = main_graph(program(text))
    return GraphCover.of(graph, collect_candidates(graph, specs).candidates, boundaries)


def test_parameters_and_constants_are_no_nodes_of_the_problem() -> None:
    cover = cover_of(REFERENCE_SPEC, HOST_SPEC)
    operators = [
        expr.op.name if isinstance(expr, Call) and isinstance(expr.op, Op) else type(expr).__name__
        for expr in (cover.graph[index].expr for index in cover.nodes)
    ]
    assert operators == ["Relu", "Add", "Abs", "Tuple"]
    problem = cover.problem
    assert problem.operands == ((), (0,), (0,), (1, 2))
    assert problem.sizes == (8.0, 8.0, 8.0, 16.0)
    assert problem.results == 0b1000
    assert [(each.size, each.consumers) for each in problem.parameters] == [(8.0, 0b0001), (8.0, 0b0010)]


def test_candidates_are_pieces() -> None:
    cover = cover_of(acme(), REFERENCE_SPEC, HOST_SPEC)
    assert len(cover.candidates) == len(cover.problem.pieces)
    found = {
        (one.spec.name, one.sub_graph.label): (piece.mask, piece.cost)
        for one, piece in zip(cover.candidates, cover.problem.pieces, strict=True)
    }
    assert found["acme", "Relu"] == (0b0001, None)
    assert found["reference", "Abs"] == (0b0100, None)
    hosts = [found[key] for key in found if key[0] == "host"]
    assert hosts == [(0b1000, 0.0)]
    assert sorted(set(numbers(cover).values())) == [0, 1, 2]


def numbers(cover: GraphCover) -> dict[str, int]:
    """The number of each spec in the problem; every candidate of a spec has the same."""
    found: dict[str, int] = {}
    for one, piece in zip(cover.candidates, cover.problem.pieces, strict=True):
        assert found.setdefault(one.spec.name, piece.spec) == piece.spec
    return found


def test_costs_and_bounds() -> None:
    (first, second, third, *_) = collect_candidates(GRAPH, [REFERENCE_SPEC]).candidates
    known = [first.with_cost(Cost.value(3)), second.with_cost(Cost.INVALID), third]
    pieces = GraphCover.of(GRAPH, known, NO_BOUNDARIES, bounds={third: 0.5}).problem.pieces
    assert [(piece.cost, piece.floor) for piece in pieces] == [(3.0, 3.0), (INVALID, INVALID), (None, 0.5)]
    assert math.isinf(INVALID)


def test_border_costs_go_by_toolchain() -> None:
    """Two specs of one toolchain share its costs; the host and the outside are free."""
    quick = PartitionSpec(
        "cpu -toolchain=one -threads=1", Target("cpu -toolchain=one -threads=1"), acme().rule
    )
    cover = cover_of(spec("one", acme().rule), quick, HOST_SPEC, boundaries=BOUNDARIES)
    one, other, host = (numbers(cover)[name] for name in ("one", quick.name, "host"))
    problem = cover.problem
    assert [problem.dispatch[each] for each in (one, other, host)] == [0.05, 0.05, 0.0]
    crossing = problem.transition.seconds
    assert crossing(one, other, 10) == crossing(one, one, 10) == 0.1
    assert crossing(one, host, 10) == crossing(host, one, 10) == crossing(3, one, 10) == 0


def test_conflicts_of_toolchains_are_conflicts_of_specs() -> None:
    graph = main_graph(program(TEXT))
    candidates = collect_candidates(graph, (native(), acme(), REFERENCE_SPEC, HOST_SPEC)).candidates
    cover = GraphCover.of(graph, candidates, NO_BOUNDARIES, frozenset({("acme", "native")}))
    order = list(dict.fromkeys(one.spec.name for one in candidates))
    assert {tuple(order[number] for number in pair) for pair in cover.problem.conflicts} == {
        ("acme", "native")
    }


def test_covers_become_partitions_of_what_is_no_host() -> None:
    cover = cover_of(acme(), REFERENCE_SPEC, HOST_SPEC)
    wanted = [("reference", "Abs"), ("acme", "Add"), ("acme", "Relu")]
    chosen = [
        place
        for place, one in enumerate(cover.candidates)
        if (one.spec.name, one.sub_graph.label) in wanted or one.spec.name == "host"
    ]
    found = cover.partitions(Cover(tuple(chosen), 0.0), "main")
    assert parts(found) == [("acme", "Relu"), ("acme", "Add"), ("reference", "Abs")]
    assert {each.function for each in found} == {"main"}
    (number,) = found[2].nodes
    expr = cover.graph[stable_nodes(cover.graph)[number]].expr
    assert isinstance(expr, Call)
    assert str(expr.op) == "Abs"


def test_constants_have_no_numbers() -> None:
    (x,) = program("def @main(%x: T) { %x }")["main"].params
    weights = Constant(np.ones(2, np.float32))
    graph = DataflowGraph.of(Function((x,), call("Relu", call("Add", x, weights))))
    whole = next(
        one
        for one in collect_candidates(graph, [spec("one", graph_style_rule(lambda _: True))]).candidates
        if one.sub_graph.label == "Add+Relu"
    )
    partition = partition_of(whole, "main")
    assert partition.nodes == (1, 2)
    assert len(stable_nodes(graph)) == 3
    cover = GraphCover.of(graph, [whole], NO_BOUNDARIES)
    assert [piece.mask for piece in cover.problem.pieces] == [0b11]


def test_a_function_without_work_has_the_empty_problem() -> None:
    cover = cover_of(REFERENCE_SPEC, HOST_SPEC, text="def @main(%x: T) { %x }")
    assert cover.problem.size == 0
    assert cover.candidates == ()


def test_free_pairs_are_missing_pairs() -> None:
    free = BoundaryCosts({("one", "two"): Crossing(1.0, 0.5)})
    transition = free.transition(["one", "two"])
    assert transition.seconds(0, 1, 4) == 3.0
    assert transition.seconds(1, 0, 4) == transition.seconds(0, 0, 4) == transition.seconds(2, 1, 4) == 0.0
