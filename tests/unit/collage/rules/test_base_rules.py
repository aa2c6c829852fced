"""Rules that find candidates in a graph: patterns, predicates, kinds, every call, the host."""

from __future__ import annotations

import numpy as np
from tests.collage_programs import calls, main_graph, program
from tests.collage_rules import ACME, found_by, labels, numbers
from tests.small_programs import VECTOR

from intarsia.collage.candidates.cost import Cost
from intarsia.collage.graph.dataflow_graph import DataflowGraph
from intarsia.collage.rules.df_pattern import DFPatternPartitionRule
from intarsia.collage.rules.each_call import EachCallPartitionRule
from intarsia.collage.rules.host import HostPartitionRule
from intarsia.collage.rules.in_place import InPlacePartitionRule
from intarsia.collage.rules.must_be_lowered import nodes_to_cover, open_nodes
from intarsia.collage.rules.op_call_by_kind import OpCallByKindPartitionRule
from intarsia.collage.rules.op_predicate import OpPredicatePartitionRule
from intarsia.collage.rules.typical_rules import reference_rule
from intarsia.collage.sub_graph.sub_graph_config import ANY_SHAPE
from intarsia.ir import Call, Constant, Function, Op, Var
from intarsia.ir.parser import parse_module
from intarsia.ir.pattern import Match, is_constant, is_op, wildcard
from intarsia.op import call

FORK = "def @main(%x: T) { %0 = Abs(%x); %1 = Relu(%0); %2 = Neg(%0); Add(%1, %2) }"
BRANCHES = """
    def @main(%x: T, %c: Tensor[(), bool]) {
      %0 = Abs(%x);
      if (%c) { Relu(%0) } else { Neg(Exp(%0)) }
    }
"""
LOOP = """
    def @main(%n: Tensor[(), int64], %x: T) {
      %body = fn (%i: Tensor[(), int64], %on: Tensor[(), bool], %v: T) { (%on, Add(%v, %v)) };
      Relu(Loop(%n, (), Neg(%x), %body, outputs=1).0)
    }
"""
TWO_LOOPS = """
    def @main(%n: Tensor[(), int64], %x: T) {
      %body = fn (%i: Tensor[(), int64], %on: Tensor[(), bool], %v: T) { (%on, Add(%v, %v)) };
      Loop(%n, (), Loop(%n, (), %x, %body, outputs=1).0, %body, outputs=1).0
    }
"""
GLOBAL = """
    def @main(%x: T) { @f(Abs(%x)) }
    def @f(%y: T) { Relu(%y) }
"""
LITERALS = """
    def @main(%x: T) {
      %0 = fn (%p: T) attributes {Compiler="reference"} { Relu(%p) };
      %1 = fn (%p: T) attributes {Composite="acme.neg"} { Neg(%p) };
      %2 = fn (%p: T) attributes {Composite="other.abs"} { Abs(%p) };
      %3 = fn (%p: T) attributes {Primitive=1} { Exp(%p) };
      %3(%2(%1(%0(%x))))
    }
"""
RELU_OR_NEG = is_op("Relu", "Neg")(wildcard())


def is_named(*names: str) -> OpPredicatePartitionRule:
    def predicate(call: Call) -> bool:
        return isinstance(call.op, Op) and call.op.name in names

    return OpPredicatePartitionRule(predicate)


def test_a_pattern_of_one_operator() -> None:
    graph = main_graph(program(FORK))
    found = found_by(DFPatternPartitionRule("pick", RELU_OR_NEG), graph)
    assert [one.sub_graph.inside for one in found] == [
        graph.set_of(calls(graph, "Relu")),
        graph.set_of(calls(graph, "Neg")),
    ]
    assert {one.rule_name for one in found} == {"pick"}
    assert not any(one.sub_graph.nested for one in found)
    assert all(one.cost == Cost.UNKNOWN for one in found)


def test_matches_of_a_pattern_overlap() -> None:
    graph = main_graph(program(FORK))
    pattern = is_op("Relu", "Neg")(is_op("Abs")(wildcard()))
    assert numbers(graph, found_by(DFPatternPartitionRule("", pattern), graph)) == {(0, 1), (0, 2)}


def test_the_check_decides() -> None:
    graph = main_graph(program(FORK))

    negation = graph[calls(graph, "Neg")[0]].expr
    pattern = is_op("Relu", "Neg")(wildcard().named("input"))

    def is_negation(found: Match) -> bool:
        assert found.names["input"] is graph[calls(graph, "Abs")[0]].expr
        return found.root is negation

    assert labels(found_by(DFPatternPartitionRule("", pattern, is_negation), graph)) == ["Neg"]


def test_a_predicate_takes_calls() -> None:
    graph = main_graph(program(FORK))
    assert labels(found_by(is_named("Abs", "Add"), graph)) == ["Abs", "Add"]


def test_a_predicate_is_asked_about_the_body_of_a_loop() -> None:
    graph = main_graph(program(LOOP))
    assert labels(found_by(is_named("Loop"), graph)) == []
    (found,) = found_by(is_named("Loop", "Add"), graph)
    assert found.sub_graph.inside == graph.unit(calls(graph, "Loop")[0])
    assert found.sub_graph.is_valid(ANY_SHAPE)


def test_composite_functions_belong_to_their_toolchain() -> None:
    graph = main_graph(program(LITERALS))
    assert labels(found_by(is_named("Exp"), graph)) == ["acme.neg", "fn"]
    assert labels(found_by(is_named(), graph)) == ["acme.neg"]


def test_calls_by_kind_leave_out_opaque_ones() -> None:
    graph = main_graph(program("def @main(%x: T) { Softmax(Relu(Add(%x, Hardmax(%x)))) }"))
    assert labels(found_by(OpCallByKindPartitionRule(), graph)) == ["Add", "Relu"]


def test_every_call_is_every_call() -> None:
    graph = main_graph(program("def @main(%x: T) { Softmax(Relu(Add(%x, Hardmax(%x)))) }"))
    assert labels(found_by(EachCallPartitionRule(), graph)) == ["Add", "Hardmax", "Relu", "Softmax"]
    graph = main_graph(program(LITERALS))
    assert labels(found_by(EachCallPartitionRule(), graph)) == ["acme.neg", "fn", "other.abs"]
    graph = main_graph(program(LOOP))
    assert labels(found_by(EachCallPartitionRule(), graph)) == ["Add+tuple+Loop", "Neg", "Relu"]


def test_the_host_takes_what_is_no_operator() -> None:
    graph = main_graph(program("def @main(%x: T) { %0 = Relu(%x); (%0, Neg(%x)) }"))
    found = found_by(HostPartitionRule(), graph)
    assert [type(one.sub_graph.exprs[0]).__name__ for one in found] == ["Var", "Tuple"]
    assert all(one.cost == Cost.ZERO and not one.sub_graph.nested for one in found)
    assert all(len(one.sub_graph.inside) == 1 for one in found)


def test_the_host_takes_control_flow_and_calls_of_functions() -> None:
    graph = main_graph(program(BRANCHES))
    assert labels(found_by(HostPartitionRule(), graph)) == ["", "", "if"]
    graph = main_graph(program(GLOBAL))
    assert labels(found_by(HostPartitionRule(), graph)) == ["", "f"]
    graph = main_graph(program(LITERALS))
    assert labels(found_by(HostPartitionRule(), graph)) == ["", "reference"]


def test_the_host_takes_placements() -> None:
    graph = main_graph(program("def @main(%x: T) { intarsia::device_copy(Relu(%x)) }"))
    assert labels(found_by(HostPartitionRule(), graph)) == ["", "intarsia::device_copy"]
    assert labels(found_by(EachCallPartitionRule(), graph)) == ["Relu"]


def test_what_is_inside_an_operator_is_not_open() -> None:
    graph = main_graph(program(LOOP))
    (loop,) = calls(graph, "Loop")
    body = graph.unit(loop) - graph.set_of([loop])
    assert open_nodes(graph) == nodes_to_cover(graph) - body
    assert len(body) >= 4
    graph = main_graph(program(BRANCHES))
    assert open_nodes(graph) == nodes_to_cover(graph)


def test_two_loops_with_one_body_stay_in_place() -> None:
    graph = main_graph(program(TWO_LOOPS))
    found = found_by(InPlacePartitionRule(), graph)
    loops = calls(graph, "Loop")
    both = graph.unit(loops[0]) | graph.unit(loops[1])
    assert [one.sub_graph.inside for one in found] == [graph.set_of([i]) for i in both - graph.everywhere]
    assert all(one.cost == Cost.ZERO for one in found)
    assert found_by(InPlacePartitionRule(), main_graph(program(LOOP)), ACME) == []


def test_calls_of_unknown_type_stay_in_place() -> None:
    graph = main_graph(parse_module("def @main(%x: Tensor[(2,), float32]) { Relu(Neg(%x)) }"))
    assert labels(found_by(InPlacePartitionRule(), graph)) == ["Neg", "Relu"]
    assert found_by(reference_rule(), graph) == []


def test_constants_in_a_pattern_are_not_inside() -> None:
    x, weight = Var("x", checked_type=VECTOR), Constant(np.ones(4, np.float32))
    graph = DataflowGraph.of(Function((x,), call("Neg", call("Add", x, weight))))
    pattern = is_op("Add")(wildcard(), is_constant())
    (found,) = found_by(DFPatternPartitionRule("", pattern), graph)
    assert found.sub_graph.inside == graph.set_of(calls(graph, "Add"))
