"""Whether several sub-graphs can be contracted at once."""

from __future__ import annotations

import numpy as np
import pytest
from tests.collage_programs import calls, main_graph, program
from tests.ir_programs import chain, var
from tests.small_programs import vector

from intarsia.collage.graph.dataflow_graph import DataflowGraph
from intarsia.collage.sub_graph import SubGraph, parallel_rewrite, quotient_cycle
from intarsia.collage.sub_graph.sub_graph_config import ANY_SHAPE
from intarsia.ir import Constant, Function, Tuple
from intarsia.op import call
from intarsia.support.errors import UsageError

CROSSED = "def @main(%x: T, %y: T) { (Tanh(Abs(%x)), Exp(Neg(%y))) }"


def at(graph: DataflowGraph, *names: str) -> list[int]:
    return [calls(graph, name)[0] for name in names]


def test_two_valid_ones_can_need_each_other() -> None:
    graph = main_graph(program(CROSSED))
    first, second = SubGraph.of(graph, at(graph, "Abs", "Exp")), SubGraph.of(graph, at(graph, "Neg", "Tanh"))
    assert first.is_valid(ANY_SHAPE)
    assert second.is_valid(ANY_SHAPE)
    between = SubGraph.of(graph, [node.index for node in graph if node.is_external])
    assert quotient_cycle(graph, [first.inside]) == ()
    assert quotient_cycle(graph, [between.inside, first.inside, second.inside]) == (1, 2)
    with pytest.raises(UsageError) as error:
        parallel_rewrite(graph, [one.with_attrs({"Primitive": 1}) for one in (first, second)])
    assert str(error.value) == (
        "these sub-graphs need each other's results, so that none can be called first: "
        f"{first}; {second}\nhelp: allow them one result each, or join them"
    )


def test_circles_through_what_is_in_no_part() -> None:
    graph = main_graph(program("def @main(%x: T, %y: T) { (Tanh(Sin(Abs(%x))), Exp(Cos(Neg(%y)))) }"))
    parts = [graph.set_of(at(graph, "Abs", "Exp")), graph.set_of(at(graph, "Neg", "Tanh"))]
    assert quotient_cycle(graph, parts) == (0, 1)


def test_constants_tie_nothing() -> None:
    x, weight = vector("x"), Constant(np.ones(4, np.float32))
    one = call("Add", x, weight)
    graph = DataflowGraph.of(Function((x,), Tuple((one, call("Mul", one, weight)))))
    (total,), (product,) = calls(graph, "Add"), calls(graph, "Mul")
    assert (
        quotient_cycle(graph, [graph.set_of([total]), graph.set_of([product, graph.node(weight).index])])
        == ()
    )


def test_a_long_chain_of_parts(length: int) -> None:
    x = var()
    graph = DataflowGraph.of(Function((x,), chain(length, x)))
    parts = [graph.set_of([index, index + 1]) for index in calls(graph)[::2]]
    assert quotient_cycle(graph, parts) == ()
