"""Why sets of nodes cannot become functions, word for word."""

from __future__ import annotations

import pytest
from tests.collage_programs import calls, main_graph, program

from intarsia.collage.graph.dataflow_graph import DataflowGraph
from intarsia.collage.sub_graph import NestedSubGraph, SubGraph, SubGraphConfig
from intarsia.collage.sub_graph.sub_graph_config import ANY_SHAPE
from intarsia.ir import Attrs, Call, Function, If, Let, Op, Var

CHAIN = "def @main(%x: T) { Exp(Tanh(Sigmoid(Neg(Abs(%x))))) }"
BRANCHES = """def @main(%x: T, %f: Tensor[(), bool]) {
  %0 = Neg(%x);
  if (%f) { Relu(Abs(%0)) } else { let %v: T = Tanh(%x); Add(%v, %0) }
}"""
CROSSED = """def @main(%x: T, %y: T) {
  %0 = Abs(%x); %1 = Neg(%y);
  (Add(%1, %0), Sub(%0, %1))
}"""
SPLIT = "def @main(%x: Tensor[(4,), float32]) { %0 = Split(%x, num_outputs=2, outputs=2); Add(%0.0, %0.1) }"
CALLED = "def @main(%x: T) { %0 = fn (%p: T) { Relu(%p) }; Add(%0(%x), %0(Neg(%x))) }"


def graph_of(text: str) -> DataflowGraph:
    return main_graph(program(text))


def reason(graph: DataflowGraph, indices: list[int], config: SubGraphConfig = ANY_SHAPE) -> str | None:
    found = SubGraph.of(graph, indices)
    assert found.is_valid(config) == (found.invalid_reason(config) is None)
    return found.invalid_reason(config)


def test_exits() -> None:
    graph = graph_of(CROSSED)
    absolute, negative = calls(graph, "Abs") + calls(graph, "Neg")
    both = [absolute, negative]
    expected = f"has 2 results ({min(both)} {'Abs' if absolute < negative else 'Neg'}, "
    found = reason(graph, both, SubGraphConfig())
    assert found is not None
    assert found.startswith(expected)
    assert found.endswith("), allowed is 1")
    assert reason(graph, both, SubGraphConfig(max_exits=2)) is None
    assert reason(graph, both, SubGraphConfig(max_exits=0)) is None


@pytest.mark.parametrize(("depth", "is_allowed"), [(0, True), (2, False), (3, True)])
def test_depth(depth: int, is_allowed: bool) -> None:
    graph = graph_of(CHAIN)
    found = reason(graph, calls(graph)[:3], SubGraphConfig(max_depth=depth))
    assert found == (None if is_allowed else "is 3 nodes deep, allowed is 2")


def test_taps() -> None:
    graph = graph_of("def @main(%x: T) { %0 = Relu(%x); Add(%0, Abs(%0)) }")
    relu, absolute, _ = calls(graph)
    found = reason(graph, [relu, absolute], SubGraphConfig(max_exits=2))
    assert found == f"returns what it uses itself ({relu} Relu)"
    assert reason(graph, [relu, absolute], SubGraphConfig(max_exits=2, allow_taps=True)) is None


def test_a_path_that_leaves_and_comes_back() -> None:
    graph = graph_of(CHAIN)
    _, one, between, two, _ = calls(graph)
    assert reason(graph, [one, two]) == (
        f"is left and entered again: from {between} Sigmoid, which is outside, to {two} Tanh"
    )


def test_a_long_way_around() -> None:
    graph = graph_of(CHAIN)
    first, second, *_, last = calls(graph)
    found = reason(graph, [first, last])
    assert found == f"is left and entered again: from {second} Neg, which is outside, to {last} Exp"


def test_two_blocks() -> None:
    graph = graph_of(BRANCHES)
    (outer,), (inner,) = calls(graph, "Neg"), calls(graph, "Abs")
    assert reason(graph, [outer, inner]) == f"lies in two blocks: {outer} Neg and {inner} Abs"
    assert reason(graph, [inner, *calls(graph, "Relu")]) is None


def test_parts_of_a_whole() -> None:
    graph = graph_of(BRANCHES)
    choice = next(node.index for node in graph if isinstance(node.expr, If))
    (relu,) = calls(graph, "Relu")
    assert reason(graph, list(graph.unit(choice))) is None
    without = list(graph.unit(choice) - graph.set_of([relu]))
    assert reason(graph, without) == f"takes {choice} if without {relu} Relu, which belongs to it"


def test_variables_without_binder() -> None:
    graph = graph_of(BRANCHES)
    let = next(node.expr for node in graph if isinstance(node.expr, Let))
    bound = graph.node(let.var).index
    (total,) = calls(graph, "Add")
    assert reason(graph, [bound, total]) == f"takes {bound} %v without what binds it"
    x = next(node.index for node in graph if isinstance(node.expr, Var) and node.expr.name == "x")
    assert reason(graph, [x, *calls(graph, "Neg")]) == f"takes {x} %x without what binds it"


def test_nothing_that_is_used() -> None:
    graph = graph_of(CHAIN)
    operators = [node.index for node in graph if isinstance(node.expr, Op)]
    assert reason(graph, operators) == "computes nothing that is used"
    assert reason(graph, []) == "computes nothing that is used"


def test_tuples_do_not_come_in_but_may_go_out() -> None:
    graph = graph_of(SPLIT)
    (split,) = calls(graph, "Split")
    fields = graph[split].outputs
    assert reason(graph, [*fields, *calls(graph, "Add")]) == f"uses a tuple from outside: {split} Split"
    assert reason(graph, [split]) is None


def test_function_values_stay() -> None:
    graph = graph_of(CALLED)
    literal = next(node for node in graph if isinstance(node.expr, Function))
    first = literal.outputs[0]
    assert reason(graph, list(graph.unit(first))) == f"returns a function: {literal.index} Function"
    both = graph.unit(literal.outputs[0]) | graph.unit(literal.outputs[1])
    assert reason(graph, list(both | graph.set_of(calls(graph, "Neg")))) is None


def test_a_function_under_a_name_does_not_come_in() -> None:
    graph = graph_of(
        """def @main(%x: T) {
          let %g: fn (Tensor[(2,), float32]) -> T = fn (%p: T) -> T { Relu(%p) };
          Neg(%g(%x): T)
        }"""
    )
    called = next(node for node in graph if isinstance(node.expr, Call) and isinstance(node.expr.op, Var))
    assert reason(graph, [called.index]) == f"uses a function from outside: {called.inputs[0]} %g"


def test_values_of_unknown_type_do_not_cross() -> None:
    x = Var("x")
    graph = DataflowGraph.of(Function((x,), Call(Op("Neg"), (x,))))
    assert reason(graph, [2]) == "uses a value of unknown type from outside: 1 %x"


def nested_in(graph: DataflowGraph, inside: list[int], *parts: list[int]) -> str | None:
    nested = (
        NestedSubGraph(SubGraph.of(graph, part), Attrs({"Composite": f"p{at}"}))
        for at, part in enumerate(parts)
    )
    return SubGraph.of(graph, inside, nested).invalid_reason(ANY_SHAPE)


def test_nested_functions() -> None:
    graph = graph_of(CHAIN)
    one, two, three, four, _ = calls(graph)
    inside = [one, two, three, four]
    assert nested_in(graph, inside, [one, two], [three]) is None
    assert nested_in(graph, inside, [one, two], [two, three]) == (
        f"has nested functions that overlap: in {{{two}}}"
    )
    assert nested_in(graph, [one, two], [two, three]) == (
        f"has a nested function with nodes from outside: {{{three}}}"
    )
    found = nested_in(graph, inside, [one, three])
    assert found is not None
    assert found.startswith(f"has a nested function {{{one},{three}}} that is left and entered again: from")


def test_nested_functions_that_need_each_other() -> None:
    graph = graph_of("""def @main(%x: T, %y: T) { %0 = Abs(%x); %1 = Neg(%y); Mul(Tanh(%1), Exp(%0)) }""")
    by_name = {name: calls(graph, name)[0] for name in ("Abs", "Neg", "Tanh", "Exp", "Mul")}
    first, second = [by_name["Abs"], by_name["Tanh"]], [by_name["Neg"], by_name["Exp"]]
    assert nested_in(graph, list(by_name.values()), first) is None
    found = nested_in(graph, list(by_name.values()), first, second)
    assert found is not None
    assert found.startswith("has nested functions that need each other: {")


def test_negative_limits_are_refused() -> None:
    with pytest.raises(ValueError, match="a limit is negative"):
        SubGraphConfig(max_exits=-1)
