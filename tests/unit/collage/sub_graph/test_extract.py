"""Sub-graphs as programs of their own."""

from __future__ import annotations

import numpy as np
import pytest
from tests.collage_programs import assert_program, calls, main_graph, program

from intarsia.build import build
from intarsia.collage.graph.dataflow_graph import DataflowGraph
from intarsia.collage.sub_graph import (
    ConstantPlacement,
    NestedSubGraph,
    SubGraph,
    extract_function,
    extract_module,
)
from intarsia.ir import (
    Attrs,
    Constant,
    DType,
    Expr,
    Function,
    IRModule,
    Span,
    TensorType,
    TupleType,
    Var,
    post_order,
    structural_equal,
    with_fields,
)
from intarsia.op import call, verify
from intarsia.support.errors import UsageError
from intarsia.target import DeviceType, VirtualDevice

VECTOR = TensorType((4,), DType.FLOAT32)
X = Var("x", checked_type=VECTOR)
WEIGHT, SCALAR = Constant(np.arange(4, dtype=np.float32)), Constant(np.array(2, np.float32))
SHAPE = Constant(np.array([2, 2]))


def layer() -> DataflowGraph:
    """A reshaped sum of a product with a weight; everything but X is a constant."""
    total = call("Add", call("Mul", X, WEIGHT), SCALAR)
    return DataflowGraph.of(Function((X,), call("Reshape", call("Sub", total, WEIGHT), SHAPE)))


def constants(function: Function) -> set[Expr]:
    return {expr for expr in post_order(function) if isinstance(expr, Constant)}


def test_weights_are_written_inside_and_shared() -> None:
    graph = layer()
    found = extract_function(SubGraph.of(graph, calls(graph)))
    assert [param.checked_type for param in found.params] == [VECTOR]
    assert constants(found) == {WEIGHT, SCALAR, SHAPE}
    assert found.result_type == TensorType((2, 2), DType.FLOAT32)


def test_a_weight_that_others_use_is_written_inside_too() -> None:
    graph = layer()
    found = extract_function(SubGraph.of(graph, calls(graph, "Mul")))
    assert constants(found) == {WEIGHT}


def test_weights_as_parameters() -> None:
    graph = layer()
    found = extract_function(SubGraph.of(graph, calls(graph)), constants=ConstantPlacement.PARAMETERS)
    assert [param.checked_type for param in found.params] == [VECTOR, VECTOR]
    assert constants(found) == {SCALAR, SHAPE}
    assert found.result_type == TensorType((2, 2), DType.FLOAT32)
    verify(IRModule.from_expr(found))


def test_weights_that_were_put_inside_are_no_parameters() -> None:
    graph = layer()
    inside = [*calls(graph), graph.node(WEIGHT).index]
    found = extract_function(SubGraph.of(graph, inside), constants=ConstantPlacement.PARAMETERS)
    assert constants(found) == {WEIGHT, SCALAR, SHAPE}


def test_several_results_are_a_tuple_in_order() -> None:
    graph = main_graph(program("def @main(%x: T, %y: T) { Sub(Add(%x, %y), Relu(%y)) }"))
    found = extract_function(SubGraph.of(graph, calls(graph, "Add") + calls(graph, "Relu")))
    assert isinstance(found.result_type, TupleType)
    assert_program(IRModule.from_expr(found), "def @main(%a: T, %b: T) { (Add(%a, %b), Relu(%b)) }")


def test_equal_sub_graphs_make_equal_functions() -> None:
    graph = main_graph(
        program("def @main(%x: T, %y: T) { %0 = Sub(Abs(%x), %y); Add(%0, Sub(Abs(%y), %x)) }")
    )
    first, second = (
        SubGraph.of(graph, pair) for pair in zip(calls(graph, "Abs"), calls(graph, "Sub"), strict=True)
    )
    assert structural_equal(extract_function(first), extract_function(second))


def test_attributes_are_the_callers() -> None:
    graph = layer()
    attrs = Attrs({"Primitive": 1, "global_symbol": "one"})
    assert extract_function(SubGraph.of(graph, calls(graph)), attrs).attrs == attrs


def test_nested_ones_are_called_inside() -> None:
    graph = main_graph(program("def @main(%x: T) { Exp(Neg(Abs(%x))) }"))
    absolute, negative, _ = calls(graph)
    part = NestedSubGraph(SubGraph.of(graph, [absolute]), Attrs({"Composite": "a"}))
    whole = SubGraph.of(graph, [absolute, negative], [part]).with_attrs({"Primitive": 1})
    assert_program(
        IRModule.from_expr(extract_function(whole)),
        """def @main(%x: T) {
          %0 = fn (%p: T) attributes {Primitive=1} {
            %1 = fn (%q: T) attributes {Composite="a"} { Abs(%q) };
            Neg(%1(%p))
          };
          %0(%x)
        }""",
    )


def test_facts_stay_on_values() -> None:
    device, span = VirtualDevice(DeviceType.CPU, 1), Span("here", "model.onnx")
    x = with_fields(X, virtual_device=device, span=span)
    inner = with_fields(call("Neg", x), virtual_device=device, span=span)
    outer = with_fields(call("Exp", inner), virtual_device=device, span=span)
    graph = DataflowGraph.of(Function((x,), outer))
    found = extract_function(SubGraph.of(graph, calls(graph)[1:]))
    for fact in (found, found.body, *found.params):
        assert (fact.virtual_device, fact.span) == (device, span)


def test_a_module_has_what_is_called() -> None:
    mod = program("""
        def @main(%x: T) { %0 = Neg(@f(%x): T); Exp(%0) }
        def @f(%x: T) { @g(Abs(%x)): T }
        def @g(%x: T) { Tanh(%x) }
        def @other(%x: T) { Sin(%x) }""")
    graph = main_graph(mod)
    (negative,) = calls(graph, "Neg")
    called = graph.flow_inputs[negative][0]
    alone = extract_module(SubGraph.of(graph, [called, negative]), mod)
    assert [var.name for var in alone] == ["main", "f", "g"]
    verify(alone)
    x = np.array([0.5, -2], np.float32)
    np.testing.assert_allclose(np.asarray(build(alone)(x)), -np.tanh(np.abs(x)), rtol=1e-6)
    assert [var.name for var in extract_module(SubGraph.of(graph, calls(graph, "Exp")), mod)] == ["main"]


def test_what_calls_main_cannot_be_main() -> None:
    mod = program("""
        def @main(%x: T) { Exp(@f(%x): T) }
        def @f(%x: T) { @main(%x): T }""")
    graph = main_graph(mod)
    called = graph.flow_inputs[calls(graph)[0]][0]
    with pytest.raises(UsageError, match="calls @main, so that it cannot stand alone"):
        extract_module(SubGraph.of(graph, [called]), mod)


def test_what_is_no_function_is_refused() -> None:
    graph = main_graph(program("def @main(%x: T) { Exp(Neg(Abs(%x))) }"))
    first, _, last = calls(graph)
    with pytest.raises(UsageError) as error:
        extract_function(SubGraph.of(graph, [first, last]))
    assert str(error.value) == (
        f"the sub-graph {{{first},{last}}} Abs+Exp is no function: it is left and entered again: "
        f"from {calls(graph)[1]} Neg, which is outside, to {last} Exp"
    )
