"""Many sub-graphs called at once; random ones are a property (test_collage_sub_graph)."""

from __future__ import annotations

import numpy as np
import pytest
from tests.collage_programs import REFERENCE, assert_program, calls, main_graph, program
from tests.ir_programs import chain, var
from tests.pass_checks import assert_same_results

from intarsia.collage.graph.dataflow_graph import DataflowGraph
from intarsia.collage.sub_graph import ConstantPlacement, SubGraph, parallel_rewrite
from intarsia.ir import Call, Constant, Function, If, IRModule, Let, Tuple, post_order
from intarsia.op import absent, call, verify
from intarsia.passes import PartitionGraph
from intarsia.support.errors import UsageError

LOOP = """def @main(%x: T, %n: Tensor[(), int64]) {
  %0 = Neg(%x);
  %1 = fn (%i: Tensor[(), int64], %c: Tensor[(), bool], %s: T) { (%c, Tanh(Add(Relu(%s), Abs(%0)))) };
  %2 = Loop(%n, (), Exp(%x), %1, outputs=1);
  Neg(%2.0)
}"""
BRANCHES = """def @main(%x: T, %f: Tensor[(), bool]) {
  %0 = Neg(%x);
  %1 = if (%f) { Relu(Abs(%0)) } else { let %v: T = Tanh(%x); Add(%v, Exp(%v)) };
  Mul(%1, %0)
}"""
LITERAL = """def @main(%x: T) {
  %0 = Neg(%x);
  %1 = fn (%s: T) { Relu(Abs(Add(%s, %0))) };
  Mul(%1(%x), %1(%0))
}"""
COMPOSITE = """def @main(%x: T) {
  %0 = fn (%p: T) attributes {Composite="acme.one"} { Relu(Abs(%p)) };
  Add(%0(Neg(%x)), %0(Exp(%x)))
}"""
CAPTURING = """def @main(%x: T) {
  %0 = Neg(%x);
  %1 = fn (%p: T) attributes {Composite="acme.one"} { Relu(Add(%p, Mul(%0, %x))) };
  Sub(Mul(%1(%x), %1(%0)), %0)
}"""
X = np.array([0.5, -1.5], np.float32)
INPUTS = {"x": X, "n": np.array(3), "f": np.array(False)}


def rewritten(mod: IRModule, *chosen: list[int]) -> IRModule:
    """Each list of nodes given to the reference; fail unless nothing else changes."""
    graph = main_graph(mod)
    sub_graphs = [SubGraph.of(graph, indices).with_attrs(REFERENCE) for indices in chosen]
    after = mod.with_function("main", parallel_rewrite(graph, sub_graphs))
    verify(after)
    inputs = {param.name: INPUTS[param.name] for param in mod["main"].params}
    for flag in (True, False):
        inputs = {name: np.array(flag) if name == "f" else value for name, value in inputs.items()}
        assert_same_results(mod, after, inputs)
        assert_same_results(mod, PartitionGraph()(after), inputs)
    return after


def regions(mod: IRModule) -> list[str]:
    """The operators in each function that is given away."""
    return [
        "+".join(str(expr.op) for expr in post_order(function) if isinstance(expr, Call))
        for function in post_order(mod["main"])
        if isinstance(function, Function) and "Compiler" in function.attrs
    ]


def named(mod: IRModule, *names: str) -> list[int]:
    graph = main_graph(mod)
    return [calls(graph, name)[0] for name in names]


def test_nothing_chosen_changes_nothing() -> None:
    graph = main_graph(program(LOOP))
    assert parallel_rewrite(graph, []) is graph.function
    bare = [SubGraph.of(graph, [index]) for index in calls(graph)]
    assert parallel_rewrite(graph, bare) is graph.function


def test_many_at_once() -> None:
    mod = program("def @main(%x: T) { Exp(Tanh(Sigmoid(Neg(Abs(%x))))) }")
    one, two, three, four, five = calls(main_graph(mod))
    after = rewritten(mod, [five], [one, two], [three, four])
    assert sorted(regions(after)) == ["Abs+Neg", "Exp", "Sigmoid+Tanh"]


def test_inside_of_branches_and_lets() -> None:
    mod = program(BRANCHES)
    after = rewritten(mod, named(mod, "Abs", "Relu"), named(mod, "Exp", "Add"), named(mod, "Tanh"))
    assert sorted(regions(after)) == ["Abs+Relu", "Exp+Add", "Tanh"]
    (choice,) = (expr for expr in post_order(after["main"]) if isinstance(expr, If))
    assert isinstance(choice.true_branch, Call)
    assert isinstance(choice.false_branch, Let)
    assert isinstance(choice.false_branch.body, Call)


def test_a_whole_choice() -> None:
    mod = program(BRANCHES)
    graph = main_graph(mod)
    choice = next(node.index for node in graph if isinstance(node.expr, If))
    after = rewritten(mod, [*graph.unit(choice), *named(mod, "Mul")])
    assert not isinstance(after["main"].body, If)
    assert regions(after) == ["Abs+Relu+Tanh+Exp+Add+Mul"]


def test_inside_of_a_loop() -> None:
    mod = program(LOOP)
    after = rewritten(mod, named(mod, "Relu", "Add", "Tanh"), named(mod, "Abs"))
    assert sorted(regions(after)) == ["Abs", "Relu+Add+Tanh"]
    (loop,) = (
        expr for expr in post_order(after["main"]) if isinstance(expr, Call) and str(expr.op) == "Loop"
    )
    assert regions(IRModule.from_expr(Function((), loop.args[-1])))


def test_a_whole_loop() -> None:
    mod = program(LOOP)
    graph = main_graph(mod)
    after = rewritten(mod, list(graph.unit(named(mod, "Loop")[0])))
    (found,) = regions(after)
    assert found == "Relu+Add+Tanh+Loop"


def test_inside_of_a_literal_that_is_called_twice() -> None:
    mod = program(LITERAL)
    after = rewritten(mod, named(mod, "Relu", "Abs"), named(mod, "Neg"))
    assert sorted(regions(after)) == ["Abs+Relu", "Neg"]


def test_a_literal_with_all_its_calls() -> None:
    mod = program(LITERAL)
    graph = main_graph(mod)
    literal = next(node for node in graph if isinstance(node.expr, Function))
    whole = graph.unit(literal.outputs[0]) | graph.unit(literal.outputs[1])
    after = rewritten(mod, [*whole, *named(mod, "Mul")])
    assert len(regions(after)) == 1


def test_sealed_literals_are_copied_to_every_function() -> None:
    mod = program(COMPOSITE)
    graph = main_graph(mod)
    first, second = (
        node.index for node in graph if isinstance(node.expr, Call) and isinstance(node.expr.op, Function)
    )
    after = rewritten(mod, [first, *named(mod, "Neg")], [second, *named(mod, "Exp")])
    marks = 'Compiler="reference", target="cpu -toolchain=reference"'
    assert_program(
        after,
        f"""def @main(%x: T) {{
          %0 = fn (%a: T) attributes {{{marks}}} {{
            %1 = fn (%p: T) attributes {{Composite="acme.one"}} {{ Relu(Abs(%p)) }};
            %1(Neg(%a))
          }};
          %2 = fn (%b: T) attributes {{{marks}}} {{
            %3 = fn (%q: T) attributes {{Composite="acme.one"}} {{ Relu(Abs(%q)) }};
            %3(Exp(%b))
          }};
          Add(%0(%x), %2(%x))
        }}""",
    )


@pytest.mark.parametrize("chosen", [["Neg", 0], [0], [1], [0, 1], ["Neg", 0, 1, "Mul", "Sub"]])
def test_what_a_sealed_literal_captures_goes_with_it(chosen: list[str | int]) -> None:
    mod = program(CAPTURING)
    graph = main_graph(mod)
    called = [
        node.index for node in graph if isinstance(node.expr, Call) and isinstance(node.expr.op, Function)
    ]
    picked = [called[one] if isinstance(one, int) else calls(graph, one)[0] for one in chosen]
    rewritten(mod, picked)
    if chosen == ["Neg", 0]:
        rewritten(mod, picked, [called[1]])


def test_results_that_are_tuples() -> None:
    mod = program(
        "def @main(%x: T) { %0 = Relu(%x); %1 = Split(%0, num_outputs=2, outputs=2); (%1.0, %1.1, %0) }"
    )
    rewritten(mod, named(mod, "Split"))
    after = rewritten(mod, named(mod, "Split", "Relu"))
    assert regions(after) == ["Relu+Split"]


def test_absent_arguments_stay_absent() -> None:
    x, top = var(), Constant(np.array(1, np.float32))
    mod = IRModule.from_expr(Function((x,), call("Clip", x, absent(), top)))
    graph = main_graph(mod)
    after = parallel_rewrite(graph, [SubGraph.of(graph, calls(graph)).with_attrs(REFERENCE)])
    assert isinstance(after.body, Call)
    assert isinstance(after.body.op, Function)
    inner = after.body.op.body
    assert isinstance(inner, Call)
    assert isinstance(inner.args[1], Tuple)
    assert inner.args[2] is top
    assert_same_results(mod, IRModule.from_expr(after))


@pytest.mark.parametrize(
    ("placement", "count"), [(ConstantPlacement.BOUND, 1), (ConstantPlacement.PARAMETERS, 2)]
)
def test_weights_go_where_they_are_wanted(placement: ConstantPlacement, count: int) -> None:
    x, weight = var(), Constant(np.ones((2, 3), np.float32))
    mod = IRModule.from_expr(Function((x,), call("Mul", call("Add", x, weight), weight)))
    graph = main_graph(mod)
    whole = SubGraph.of(graph, calls(graph)).with_attrs(REFERENCE)
    after = IRModule.from_expr(parallel_rewrite(graph, [whole], placement))
    body = after["main"].body
    assert isinstance(body, Call)
    assert len(body.args) == count
    assert [expr for expr in post_order(after["main"]) if isinstance(expr, Constant)] == [weight]
    assert_same_results(mod, after)


def test_overlapping_ones_are_refused() -> None:
    graph = main_graph(program("def @main(%x: T) { Neg(Abs(%x)) }"))
    first, second = calls(graph)
    one, two = SubGraph.of(graph, [first, second]), SubGraph.of(graph, [second])
    with pytest.raises(UsageError) as error:
        parallel_rewrite(graph, [one, two])
    assert str(error.value) == f"the sub-graphs {one} and {two} overlap: both hold node {second}"


def test_invalid_ones_are_refused() -> None:
    graph = main_graph(program("def @main(%x: T) { Exp(Neg(Abs(%x))) }"))
    first, _, last = calls(graph)
    with pytest.raises(UsageError, match="cannot become a function: it is left and entered again"):
        parallel_rewrite(graph, [SubGraph.of(graph, [first, last]).with_attrs(REFERENCE)])


def test_those_of_another_graph_are_refused() -> None:
    graph, other = (main_graph(program("def @main(%x: T) { Neg(%x) }")) for _ in range(2))
    with pytest.raises(UsageError, match="is of another graph"):
        parallel_rewrite(graph, [SubGraph.of(other, calls(other))])


@pytest.mark.slow
def test_a_long_chain_in_many_parts() -> None:
    x = var()
    graph = DataflowGraph.of(Function((x,), chain(20_000, x)))
    found = calls(graph)
    parts = [
        SubGraph.of(graph, found[at : at + 10]).with_attrs({"Primitive": 1}) for at in range(0, 20_000, 10)
    ]
    after = parallel_rewrite(graph, parts)
    assert sum(isinstance(expr, Function) for expr in post_order(after)) == 2_001
