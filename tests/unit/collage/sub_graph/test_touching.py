"""Whether two sub-graphs can be joined; that unions are convex is a property (test_collage_sub_graph)."""

from __future__ import annotations

import numpy as np
from tests.collage_programs import calls, main_graph, program
from tests.small_programs import vector

from intarsia.collage.graph.dataflow_graph import DataflowGraph
from intarsia.collage.sub_graph import SubGraph, are_self_contained, are_touching
from intarsia.ir import Constant, Function
from intarsia.op import call


def graph_of(text: str) -> DataflowGraph:
    return main_graph(program(text))


def test_neighbours_touch_in_one_direction() -> None:
    graph = graph_of("def @main(%x: T) { Tanh(Sigmoid(Neg(%x))) }")
    one, two, three = (SubGraph.of(graph, [index]) for index in calls(graph))
    assert are_touching(one, two)
    assert not are_touching(two, one)
    assert not are_touching(one, three)
    assert not are_touching(one, one)


def test_a_way_around_keeps_them_apart() -> None:
    graph = graph_of("def @main(%x: T) { %0 = Relu(%x); Add(%0, Abs(%0)) }")
    relu, absolute, total = (SubGraph.of(graph, [index]) for index in calls(graph))
    assert not are_touching(relu, total)
    assert are_touching(relu, absolute)
    assert are_touching(relu.disjoint_union(absolute), total)


def test_a_way_back_keeps_them_apart() -> None:
    graph = graph_of(
        "def @main(%x: T, %y: T) { %0 = Abs(%x); %1 = Neg(%y); Mul(Add(%0, %1), Tanh(Exp(%1))) }"
    )
    at = {name: calls(graph, name)[0] for name in ("Abs", "Neg", "Add", "Exp", "Tanh", "Mul")}
    up = SubGraph.of(graph, [at["Abs"], at["Tanh"]])
    down = SubGraph.of(graph, [at["Neg"], at["Add"]])
    assert up.output.intersects(down.entry)
    assert not are_touching(up, down)


def test_self_contained() -> None:
    graph = graph_of("def @main(%x: T, %y: T) { %0 = Relu(%x); %1 = Abs(%0); (Exp(%1), Add(%1, %y)) }")
    at = {name: SubGraph.of(graph, calls(graph, name)) for name in ("Relu", "Abs", "Exp", "Add")}
    assert are_self_contained(at["Relu"], at["Abs"])
    assert not are_self_contained(at["Abs"], at["Exp"])
    assert not are_self_contained(at["Abs"], at["Add"])


def test_weights_do_not_count() -> None:
    x = vector("x")
    weight = Constant(np.ones(4, np.float32))
    graph = DataflowGraph.of(Function((x,), call("Add", call("Neg", x), weight)))
    first, second = (SubGraph.of(graph, [index]) for index in calls(graph))
    assert second.input - first.inside
    assert are_self_contained(first, second)
