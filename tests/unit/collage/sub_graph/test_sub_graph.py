"""Sets of nodes: what flows in and out, joining, wrapping, moving to another graph."""

from __future__ import annotations

import numpy as np
import pytest
from tests.collage_programs import calls, main_graph, program

from intarsia.collage.graph.dataflow_graph import DataflowGraph
from intarsia.collage.sub_graph import NestedSubGraph, SubGraph
from intarsia.ir import Attrs, Constant, DType, Function, TensorType, Tuple, Var
from intarsia.op import OpPatternKind, call

CHAIN = "def @main(%x: T) { Exp(Tanh(Sigmoid(Neg(Abs(%x))))) }"
TAPPED = "def @main(%x: T) { %0 = Relu(%x); Add(%0, Abs(%0)) }"
VECTOR = TensorType((4,), DType.FLOAT32)


def graph_of(text: str) -> DataflowGraph:
    return main_graph(program(text))


def weighted() -> tuple[DataflowGraph, Constant, Constant]:
    """Add(Mul(x, weight), scalar), and Sub of that and the weight."""
    x, weight, scalar = (
        Var("x", checked_type=VECTOR),
        Constant(np.ones(4, np.float32)),
        Constant(np.array(2, np.float32)),
    )
    total = call("Add", call("Mul", x, weight), scalar)
    return DataflowGraph.of(Function((x,), Tuple((call("Sub", total, weight), weight)))), weight, scalar


def test_the_border() -> None:
    graph = graph_of(TAPPED)
    relu, absolute, total = calls(graph)
    x = graph[relu].inputs[-1]
    found = SubGraph.of(graph, [relu, absolute])
    assert found.entry == graph.set_of([relu])
    assert found.exit == graph.set_of([relu, absolute])
    assert found.input == graph.set_of([x])
    assert found.output == graph.set_of([total])
    assert (found.first_inside_index, found.last_inside_index) == (relu, absolute)
    assert found.has_taps
    assert not SubGraph.of(graph, [absolute, total]).has_taps


def test_the_result_of_the_function_is_an_exit() -> None:
    graph = graph_of(TAPPED)
    total = calls(graph, "Add")
    found = SubGraph.of(graph, total)
    assert found.exit == graph.set_of(total)
    assert found.output.is_empty()


def test_weights_are_inputs_but_scalars_are_not() -> None:
    graph, weight, _ = weighted()
    (product,) = calls(graph, "Mul")
    (total,) = calls(graph, "Add")
    at = graph.node(weight).index
    assert at in SubGraph.of(graph, [product]).input
    found = SubGraph.of(graph, [total])
    assert found.input == graph.set_of([product])
    assert found.entry == graph.set_of([total])


def test_a_constant_inside_is_no_exit() -> None:
    graph, weight, _ = weighted()
    (product,) = calls(graph, "Mul")
    found = SubGraph.of(graph, [product, graph.node(weight).index])
    assert found.exit == graph.set_of([product])
    assert found.output == graph.set_of(calls(graph, "Add"))
    assert found.label == "const+Mul"


@pytest.mark.parametrize("length", [1, 2, 5])
def test_depth_kind_and_label_of_a_chain(length: int) -> None:
    graph = graph_of(CHAIN)
    found = SubGraph.of(graph, calls(graph)[:length])
    assert found.depth == length
    assert found.kind is OpPatternKind.ELEMWISE
    assert found.label == "+".join(["Abs", "Neg", "Sigmoid", "Tanh", "Exp"][:length])
    assert str(found) == f"{found.inside} {found.label}"


def test_depth_is_of_the_longest_path() -> None:
    graph = graph_of("def @main(%x: T) { %0 = Relu(%x); Add(Abs(Neg(%0)), %0) }")
    assert SubGraph.of(graph, calls(graph)).depth == 4
    assert SubGraph.of(graph, calls(graph, "Relu") + calls(graph, "Add")).depth == 2


def test_kind_is_the_least_fusable() -> None:
    graph = graph_of("def @main(%x: T) { Softmax(Add(Relu(%x), %x)) }")
    relu, total, softmax = calls(graph)
    kinds = [SubGraph.of(graph, chosen).kind for chosen in ([relu], [relu, total], [relu, total, softmax])]
    assert kinds == [OpPatternKind.ELEMWISE, OpPatternKind.BROADCAST, OpPatternKind.OPAQUE]


def test_the_union_of_disjoint_ones() -> None:
    graph = graph_of(CHAIN)
    one, two, three, _, _ = calls(graph)
    left, right = SubGraph.of(graph, [one, two]), SubGraph.of(graph, [three])
    assert left.disjoint_union(right) == SubGraph.of(graph, [one, two, three])
    assert left.disjoint_union(right).boundary == SubGraph.of(graph, [one, two, three]).boundary
    with pytest.raises(ValueError, match="overlap"):
        left.disjoint_union(SubGraph.of(graph, [two]))
    with pytest.raises(ValueError, match="the sub-graphs are of two graphs"):
        left.disjoint_union(SubGraph.of(graph_of(CHAIN), [three]))


def test_functions_with_equal_attributes_become_one() -> None:
    graph = graph_of(CHAIN)
    one, two, three, four, _ = calls(graph)
    marks = {"Compiler": "acme"}
    left = SubGraph.of(graph, [one]).with_attrs({"Composite": "a"}).with_attrs(marks)
    right = SubGraph.of(graph, [two]).with_attrs({"Composite": "a"}).with_attrs(marks)
    union = left.disjoint_union(right)
    (whole,) = union.nested
    assert whole.attrs == Attrs(marks)
    assert whole.sub_graph.inside == graph.set_of([one, two])
    assert [part.sub_graph.inside for part in whole.sub_graph.nested] == [
        graph.set_of([one]),
        graph.set_of([two]),
    ]
    other = SubGraph.of(graph, [three]).with_attrs({"Compiler": "other"})
    assert len(union.disjoint_union(other).nested) == 2
    bare = SubGraph.of(graph, [four])
    assert union.disjoint_union(bare).nested == union.nested


def test_equality_includes_functions_and_their_attributes() -> None:
    graph = graph_of(CHAIN)
    plain = SubGraph.of(graph, calls(graph)[:1])
    first, second = plain.with_attrs({"Composite": "a"}), plain.with_attrs({"Composite": "b"})
    assert first == plain.with_attrs(Attrs({"Composite": "a"}))
    assert len({plain, first, second, plain.with_attrs({"Composite": "a"})}) == 3


def test_wrapping_keeps_the_border() -> None:
    graph = graph_of(CHAIN)
    plain = SubGraph.of(graph, calls(graph)[:2])
    wrapped = plain.with_attrs({"Primitive": 1})
    assert wrapped.boundary is plain.boundary
    assert wrapped.nested == (NestedSubGraph(plain, Attrs({"Primitive": 1})),)
    assert str(wrapped.nested[0]) == f"{plain}[Primitive=1]"


def test_functions_that_are_not_alike_do_not_join() -> None:
    graph = graph_of(CHAIN)
    one, two, *_ = calls(graph)
    left, right = (
        SubGraph.of(graph, [index]).with_attrs({"Composite": "a"}).nested[0] for index in (one, two)
    )
    with pytest.raises(ValueError, match="are not one"):
        left.disjoint_union(right)


def test_moves_to_another_graph() -> None:
    graph, smaller = graph_of(CHAIN), graph_of("def @main(%x: T) { Neg(Abs(%x)) }")
    one, two, *_ = calls(graph)
    new_index = dict(zip((one, two), calls(smaller), strict=True))
    part = NestedSubGraph(SubGraph.of(graph, [one]), Attrs({"Composite": "a"}))
    found = SubGraph.of(graph, [one, two], [part]).subst(smaller, new_index)
    assert found.graph is smaller
    assert found.inside == smaller.set_of(calls(smaller))
    assert found.nested[0].sub_graph.inside == smaller.set_of(calls(smaller)[:1])
    assert found.exit == smaller.set_of(calls(smaller)[1:])
    with pytest.raises(ValueError, match="has no new index"):
        SubGraph.of(graph, [one, two]).subst(smaller, {one: 0})


def test_refuses_indices_of_no_node() -> None:
    graph = graph_of(CHAIN)
    with pytest.raises(ValueError, match="out of range"):
        SubGraph.of(graph, [len(graph)])
