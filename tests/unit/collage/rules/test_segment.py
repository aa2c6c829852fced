"""Large regions between cut points, and the greedy ones."""

from __future__ import annotations

from itertools import pairwise

import pytest
from tests.collage_programs import main_graph, program
from tests.collage_rules import call_numbers, found_by, labels, numbers, partitioned_by

from intarsia.collage.graph.dataflow_graph import DataflowGraph
from intarsia.collage.graph.node_kind import node_label
from intarsia.collage.rules.block_item import BlockItem, block_items, supported_runs
from intarsia.collage.rules.branch_regions import branch_regions
from intarsia.collage.rules.cut_points import cut_points, live_values, spans
from intarsia.collage.rules.greedy import GreedyPartitionRule
from intarsia.collage.rules.only_valid import OnlyValidPartitionRule
from intarsia.collage.rules.primitive import PrimitivePartitionRule
from intarsia.collage.rules.segment import SegmentLimits, SegmentPartitionRule
from intarsia.collage.rules.unit_support import UnitSupport
from intarsia.collage.sub_graph import SubGraphConfig
from intarsia.collage.sub_graph.sub_graph_config import ANY_SHAPE
from intarsia.ir import Call, Function, IRModule, Op, post_order
from intarsia.op.operator_predicate import holding_operator_predicate
from intarsia.passes import partition_for
from intarsia.target import Target

INCEPTION = """
    def @main(%x: T) {
      %0 = Neg(%x);
      %1 = Exp(Sin(%0));
      %2 = Abs(Cos(Tan(%0)));
      Relu(Concat(%1, %2, Sqrt(%0), axis=0))
    }
"""
LATE = """
    def @main(%x: T) {
      %0 = Neg(%x);
      %1 = Softmax(%0);
      %2 = Abs(Exp(%0));
      Sin(Add(%1, %2))
    }
"""
BRANCHES = """
    def @main(%x: T, %c: Tensor[(), bool]) {
      %0 = Abs(%x);
      %1 = if (%c) { Relu(Neg(%0)) } else { Exp(%0) };
      Sin(%1)
    }
"""
SPLIT = """
    def @main(%x: Tensor[(4,), float32]) {
      %0 = Split(Neg(%x), outputs=2, num_outputs=2);
      (Relu(%0.0), Abs(%0.1))
    }
"""


def chain(length: int) -> IRModule:
    return program("def @main(%x: T) { " + "Neg(" * length + "%x" + ")" * length + " }")


def is_not(*names: str) -> SegmentPartitionRule:
    return SegmentPartitionRule(lambda call: isinstance(call.op, Op) and call.op.name not in names)


EVERYTHING = is_not()


def items_of(graph: DataflowGraph, *refused: str) -> list[BlockItem]:
    return block_items(graph, UnitSupport(graph, is_not(*refused).predicate, "acme"))[0]


def test_all_pairs_of_a_short_chain() -> None:
    graph = main_graph(chain(4))
    found = found_by(EVERYTHING, graph)
    assert numbers(graph, found) == {(0,), (1,), (2,), (3,), (0, 1), (1, 2), (2, 3), (0, 1, 2), (1, 2, 3)} | {
        (0, 1, 2, 3)
    }
    assert call_numbers(graph, found[0]) == (0, 1, 2, 3)
    assert {one.rule_name for one in found} == {"segment"}
    assert not any(one.sub_graph.nested for one in found)


@pytest.mark.parametrize("length", [100, 400])
def test_long_chains_have_linearly_many_segments(length: int) -> None:
    graph = main_graph(chain(length))
    found = [call_numbers(graph, one) for one in found_by(EVERYTHING, graph)]
    assert tuple(range(length)) in found
    assert len(found) < 4 * min(length, SegmentLimits().max_cuts) + 2
    sizes = {len(one) for one in found}
    assert len(sizes) > 5
    assert all(one[-1] - one[0] == len(one) - 1 for one in found)


def test_cuts_are_where_few_values_live() -> None:
    graph = main_graph(program(INCEPTION))
    run = supported_runs(items_of(graph))[0]
    assert live_values(run) == [0, 1, 2, 2, 3, 3, 3, 3, 1, 0]
    assert cut_points(run, 1, 99) == (0, 1, 8, 9)
    assert cut_points(run, 2, 99) == (0, 1, 2, 3, 8, 9)


def test_cut_points_are_thinned_out_evenly() -> None:
    graph = main_graph(chain(100))
    run = supported_runs(items_of(graph))[0]
    cuts = cut_points(run, 1, 10)
    assert len(cuts) == 12
    assert all(4 <= later - earlier <= 12 for earlier, later in pairwise(cuts))


def test_spans_cover_every_length() -> None:
    assert list(spans((0, 3, 5), 3)) == [(0, 5), (0, 3), (3, 5)]
    found = list(spans(range(101), 100))
    assert found[0] == (0, 100)
    assert {end - begin for begin, end in found} == {1, 2, 4, 8, 16, 32, 64, 100}
    assert len(found) < 400
    assert len(set(found)) == len(found)


def test_branches_are_cut_by_themselves() -> None:
    graph = main_graph(program(INCEPTION))
    found_regions = [labels_of(graph, region) for region in regions(graph)]
    assert found_regions == [["Sin", "Exp"], ["Tan", "Cos", "Abs"]]
    found = labels(found_by(EVERYTHING, graph))
    assert "Tan+Cos+Abs" in found
    assert "Cos+Abs" in found
    assert "Sin+Exp+Tan+Cos+Abs+Sqrt+Concat" in found


def labels_of(graph: DataflowGraph, items: list[BlockItem]) -> list[str]:
    return [node_label(graph[item.index].expr) for item in items]


def regions(graph: DataflowGraph) -> list[list[BlockItem]]:
    return branch_regions(graph, items_of(graph), 24)


def test_what_comes_before_is_no_branch() -> None:
    graph = main_graph(program("def @main(%x: T) { %0 = Abs(Exp(%x)); Add(Sin(Neg(%0)), %0) }"))
    assert [len(region) for region in regions(graph)] == [2, 2]
    assert branch_regions(graph, items_of(graph), 1) == []


def test_a_refused_operator_splits_what_depends_on_it() -> None:
    graph = main_graph(program(LATE))
    runs = supported_runs(items_of(graph, "Softmax"))
    assert [labels_of(graph, run) for run in runs] == [["Neg", "Exp", "Abs"], ["Add", "Sin"]]
    found = found_by(is_not("Softmax"), graph)
    assert labels(found) == [
        *("Abs", "Add", "Add+Sin", "Exp", "Exp+Abs", "Neg", "Neg+Exp", "Neg+Exp+Abs", "Sin")
    ]
    assert all(one.sub_graph.is_valid(ANY_SHAPE) for one in found)


def test_blocks_are_cut_by_themselves() -> None:
    graph = main_graph(program(BRANCHES))
    found = found_by(OnlyValidPartitionRule(EVERYTHING, SubGraphConfig()), graph)
    names = labels(found)
    assert "Neg+Relu" in names
    assert "Abs+Neg+Relu+Exp+if+Sin" in names
    assert "Neg+Relu+Exp+if" in names
    assert "Neg+Relu+Exp+if" not in labels(found_by(is_not("Exp"), graph))
    assert "Neg+Relu" in labels(found_by(is_not("Exp"), graph))


def test_tuples_at_the_border_stay_outside() -> None:
    mod = program(SPLIT)
    graph = main_graph(mod)
    found = found_by(OnlyValidPartitionRule(PrimitivePartitionRule(EVERYTHING), ANY_SHAPE), graph)
    whole = found[0]
    assert labels([whole]) == ["Neg+Split+field+Relu+field+Abs"]
    assert len(whole.sub_graph.exit) == 2
    partitioned_by(mod, [whole])
    assert "Relu+Abs" in labels(found)
    assert all("field" not in one.split("+")[0] for one in labels(found))


def test_calls_of_global_functions_are_in_no_segment() -> None:
    graph = main_graph(program("def @main(%x: T) { Neg(@f(Abs(Exp(%x)))) } def @f(%y: T) { Relu(%y) }"))
    assert labels(found_by(EVERYTHING, graph)) == ["Abs", "Exp", "Exp+Abs", "Neg"]


def test_a_limit_below_one_is_refused() -> None:
    with pytest.raises(ValueError, match="limits of segments are 1 or more"):
        SegmentLimits(max_live=0)


@pytest.mark.parametrize("text", [INCEPTION, LATE, BRANCHES, SPLIT])
@pytest.mark.parametrize("refused", [(), ("Softmax", "Cos"), ("Abs",)])
def test_greedy_regions_are_those_of_partition_for(text: str, refused: tuple[str, ...]) -> None:
    mod = program(text)
    graph = main_graph(mod)
    rule = GreedyPartitionRule(is_not(*refused).predicate)
    found = found_by(PrimitivePartitionRule(rule), graph, Target("cpu -toolchain=reference"))
    ours = partitioned_by(mod, found)
    greedy = greedy_regions(mod, refused)
    assert sorted(sizes(ours)) == sorted(sizes(greedy))


def greedy_regions(mod: IRModule, refused: tuple[str, ...]) -> IRModule:
    with holding_operator_predicate("reference", is_not(*refused).predicate):
        return partition_for(mod, "reference")


def sizes(mod: IRModule) -> list[int]:
    """How many operators each function has that is given to a toolchain."""
    below = {expr: None for function in mod.graph_functions.values() for expr in post_order(function)}
    marked = [expr for expr in below if isinstance(expr, Function) and "Compiler" in expr.attrs]
    return [
        sum(isinstance(expr, Call) and isinstance(expr.op, Op) for expr in post_order(function))
        for function in marked
    ]
