"""Functions as graphs: numbers, places, dominators, what is downstream."""

from __future__ import annotations

import numpy as np
import pytest
from tests.collage_programs import calls, main_graph, program
from tests.ir_programs import chain, ones, var

from intarsia.collage.graph.dataflow_graph import DataflowGraph
from intarsia.collage.graph.dataflow_node import is_everywhere
from intarsia.collage.graph.index_set import IndexSet
from intarsia.collage.sub_graph import SubGraph, SubGraphConfig
from intarsia.ir import Call, Constant, Expr, Function, GlobalVar, If, Op, Tuple, Var, post_order
from intarsia.op import absent, call

DIAMOND = "def @main(%x: T) { %0 = Relu(%x); Add(Abs(%0), Neg(%0)) }"
LOOP = """def @main(%x: T, %n: Tensor[(), int64]) {
  %0 = Neg(%x);
  %1 = fn (%i: Tensor[(), int64], %c: Tensor[(), bool], %s: T) { (%c, Add(Relu(%s), Abs(%0))) };
  Loop(%n, (), Exp(%x), %1, outputs=1).0
}"""
BRANCHES = """def @main(%x: T, %f: Tensor[(), bool]) {
  %0 = Neg(%x);
  if (%f) { Relu(Abs(%0)) } else { let %v: T = Tanh(%x); Add(%v, %0) }
}"""
COMPOSITE = """def @main(%x: T) {
  %0 = Neg(%x);
  %1 = fn (%p: T) attributes {Composite="acme.one"} { Add(Relu(%p), %0) };
  Sub(%1(%x), %0)
}"""


def graph_of(text: str) -> DataflowGraph:
    return main_graph(program(text))


def one(graph: DataflowGraph, name: str) -> int:
    (found,) = calls(graph, name)
    return found


def test_inputs_come_first_and_know_their_users() -> None:
    graph = graph_of(DIAMOND)
    main = graph.function
    assert [node.expr for node in graph] == list(post_order(main.body))
    for node in graph:
        assert graph.node(node.expr) is node
        assert all(used < node.index for used in node.inputs)
        assert all(node.index in graph[user].inputs for user in node.outputs)
    assert [node.index for node in graph if node.is_external] == [one(graph, "Add")]
    assert main not in graph


def test_an_input_that_is_used_twice_counts_once() -> None:
    graph = graph_of("def @main(%x: T) { Add(%x, %x) }")
    assert len(graph[one(graph, "Add")].inputs) == 2  # the operator and the variable


def test_operators_are_no_flow() -> None:
    param = var()
    top = Constant(np.array(1, np.float32))
    graph = DataflowGraph.of(Function((param,), call("Clip", param, absent(), top)))
    x = graph.node(param).index
    assert graph.flow_inputs[one(graph, "Clip")] == (x,)
    assert graph.flow_outputs[x] == (one(graph, "Clip"),)
    kinds = {type(graph[index].expr) for index in graph.inlinable}
    assert kinds == {Op, Tuple, Constant}


def test_dominators() -> None:
    graph = graph_of(DIAMOND)
    relu, total = one(graph, "Relu"), one(graph, "Add")
    for name in ("Relu", "Abs", "Neg"):
        assert graph[one(graph, name)].dominator_parent == total
        assert graph[one(graph, name)].depth == 1
    assert graph[total].dominator_parent is None
    assert graph[total].depth == 0
    x = graph[relu].inputs[-1]
    assert (graph[x].dominator_parent, graph[x].depth) == (relu, 2)


def test_downstream_is_strict() -> None:
    graph = graph_of(DIAMOND)
    relu, absolute, negative, total = (one(graph, name) for name in ("Relu", "Abs", "Neg", "Add"))
    assert graph.downstream_of(relu) == graph.set_of([absolute, negative, total])
    assert graph.downstream_of(absolute) == graph.set_of([total])
    assert graph.downstream_of(total).is_empty()
    assert graph.flows_into(graph.set_of([relu]), graph.set_of([total]))
    assert graph.flows_into(graph.set_of([total]), graph.set_of([total]))
    assert not graph.flows_into(graph.set_of([absolute]), graph.set_of([negative]))
    assert not graph.flows_into(graph.set_of(), graph.set_of([negative]))


def test_each_branch_and_let_is_a_block() -> None:
    graph = graph_of(BRANCHES)
    opened = {name: graph[one(graph, name)].block for name in ("Neg", "Abs", "Relu", "Tanh", "Add")}
    assert opened["Neg"] is graph.blocks[0]
    assert opened["Abs"] is opened["Relu"]
    assert len({id(block) for block in opened.values()}) == 4
    openers = [None if block.opener is None else type(graph[block.opener].expr) for block in graph.blocks]
    assert openers[:3] == [None, If, If]
    assert [block.number for block in graph.blocks] == [0, 1, 2, 3]
    assert all(node.block is None for node in graph if isinstance(node.expr, (Op, Constant)))


def test_what_a_loop_does_not_depend_on_is_outside() -> None:
    graph = graph_of(LOOP)
    outer, inner = graph[one(graph, "Loop")].block, graph[one(graph, "Relu")].block
    assert graph[one(graph, "Abs")].block is outer
    assert graph[one(graph, "Add")].block is inner
    assert inner is not None
    assert inner.opener is not None
    literal = graph[inner.opener]
    assert isinstance(literal.expr, Function)
    assert literal.block is None


def test_what_belongs_to_a_node() -> None:
    graph = graph_of(LOOP)
    loop, absolute = one(graph, "Loop"), one(graph, "Abs")
    unit = graph.unit(loop)
    inside = {type(graph[index].expr) for index in unit}
    assert inside == {Var, Call, Tuple, Function}
    assert one(graph, "Add") in unit
    assert absolute not in unit
    assert graph.unit(absolute) == graph.set_of([absolute])
    assert loop in graph.owners
    assert absolute not in graph.owners


def test_units_hold_units() -> None:
    graph = graph_of(BRANCHES)
    choice = next(node.index for node in graph if isinstance(node.expr, If))
    held = [graph[index].expr for index in graph.unit(choice)]
    assert {str(expr.op) for expr in held if isinstance(expr, Call)} == {"Abs", "Relu", "Tanh", "Add"}
    assert [expr.name for expr in held if isinstance(expr, Var)] == ["v"]


def test_what_has_to_be_computed() -> None:
    for text in (DIAMOND, LOOP, BRANCHES, COMPOSITE):
        graph = graph_of(text)
        assert SubGraph.of(graph, graph.computed).is_valid(SubGraphConfig())
        left = [graph[index].expr for index in IndexSet.full(len(graph)) - graph.computed]
        assert all(is_everywhere(expr) or expr in graph.function.params for expr in left)


def test_a_sealed_literal_is_one_node() -> None:
    graph = graph_of(COMPOSITE)
    assert calls(graph, "Relu") == []
    literal = next(node for node in graph if isinstance(node.expr, Function))
    negated = one(graph, "Neg")
    assert literal.inputs == (negated,)
    assert literal.index in graph.inlinable
    user = graph[literal.outputs[0]]
    x = graph[negated].inputs[-1]
    assert set(graph.flow_inputs[user.index]) == {negated, x}
    assert graph.flow_outputs[negated] == (user.index, one(graph, "Sub"))
    assert user.index not in graph.owners


def test_bodies_that_compute_nothing() -> None:
    x = var()
    for body in (x, ones()):
        graph = DataflowGraph.of(Function((x,), body))
        assert [node.is_external for node in graph] == [True]
        assert len(graph.blocks) == 1


def test_names_of_functions_are_inlinable() -> None:
    x = var()
    callee: Expr = GlobalVar("f")
    graph = DataflowGraph.of(Function((x,), Call(callee, (x,))))
    assert graph.inlinable == graph.set_of([graph.node(callee).index])


def test_unknown_expressions_are_refused() -> None:
    with pytest.raises(KeyError):
        graph_of(DIAMOND).node(var())


def test_a_long_chain(length: int) -> None:
    x = var()
    graph = DataflowGraph.of(Function((x,), chain(length, x)))
    assert len(graph) == length + 2
    assert len(graph.downstream_of(graph.node(x).index)) == length
    assert graph[graph.node(x).index].depth == length
