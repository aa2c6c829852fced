"""The small files of the ONNX frontend: walking, naming, normal form, hints."""

from __future__ import annotations

import numpy as np
import onnx
import pytest
from onnx import helper, numpy_helper
from tests.onnx_models import model_of

from intarsia.frontend.onnx.emitter import GraphEmitter
from intarsia.frontend.onnx.external_data import WeightSource
from intarsia.frontend.onnx.finishing import drop_unused_outputs, rename_values
from intarsia.frontend.onnx.graph_check import in_execution_order
from intarsia.frontend.onnx.graph_walk import graphs_of, label, nodes_of
from intarsia.frontend.onnx.normal_form import normalize
from intarsia.frontend.onnx.onnx_errors import error_essence
from intarsia.frontend.onnx.shapes import fixed_input_types, more_precise, substituted, type_hints
from intarsia.frontend.onnx.symbolic_shapes import infer_symbolic_types
from intarsia.frontend.onnx.text_check import check_texts
from intarsia.frontend.onnx.value_names import field_names, flat, flat_results, flat_types, single, unflatten
from intarsia.ir import (
    ANY,
    Dim,
    DType,
    SequenceType,
    SymbolicDim,
    TensorType,
    Tuple,
    TupleGetItem,
    TupleType,
    Type,
)
from intarsia.support.errors import InvalidModelError, UnsupportedModelError, UsageError

IF = model_of(
    "g (bool c, float[2] x) => (float[2] y) { a = Exp(x)  [choice] y = If (c) <"
    " then_branch = t () => (float[2] b) { b = Add(a, x) },"
    " else_branch = e () => (float[2] d) { d = Identity(x) }> }"
)
N = SymbolicDim("N")
NOWHERE = WeightSource(None, memoryview(b""))


def f32(*shape: Dim) -> TensorType:
    return TensorType(shape, DType.FLOAT32)


class TestWalk:
    def test_nested_nodes_and_graphs(self) -> None:
        assert {node.op_type for node in nodes_of(IF.graph)} == {"Exp", "If", "Add", "Identity"}
        assert [graph.name for graph in graphs_of(IF.graph)] == ["g", "t", "e"]

    def test_labels(self) -> None:
        assert [label(node) for node in IF.graph.node] == ["a", "choice"]
        assert label(onnx.NodeProto(op_type="Relu")) == "Relu"


class TestExecutionOrder:
    def test_a_graph_in_order_is_kept(self) -> None:
        assert in_execution_order(IF.graph, ["c", "x"]) == list(IF.graph.node)

    def test_captured_values_come_first(self) -> None:
        graph = onnx.GraphProto()
        graph.CopyFrom(IF.graph)
        graph.node.reverse()
        assert [node.op_type for node in in_execution_order(graph, ["c", "x"])] == ["Exp", "If"]

    def test_a_captured_value_that_nothing_produces(self) -> None:
        graph = onnx.GraphProto()
        graph.CopyFrom(IF.graph)
        del graph.node[0]
        with pytest.raises(InvalidModelError, match="node 'choice' reads 'a', which nothing produces"):
            in_execution_order(graph, ["c", "x"])


class TestNormalForm:
    def test_the_default_domain_has_one_spelling(self) -> None:
        model = model_of("g (float[2] x) => (float[2] y) { y = ai.onnx.Neg(x) }")
        model.opset_import[0].domain = "ai.onnx"
        normalize(model, NOWHERE)
        assert (model.opset_import[0].domain, model.graph.node[0].domain) == ("", "")

    def test_sparse_becomes_dense_in_nested_graphs_too(self) -> None:
        model = onnx.ModelProto()
        model.CopyFrom(IF)
        values = numpy_helper.from_array(np.ones(1, np.float32), "w")
        sparse = helper.make_sparse_tensor(values, numpy_helper.from_array(np.array([1]), "i"), [3])
        branch = model.graph.node[1].attribute[0].g
        branch.sparse_initializer.append(sparse)
        branch.node.append(helper.make_node("Constant", [], ["k"], sparse_value=sparse))
        normalize(model, NOWHERE)
        assert len(branch.sparse_initializer) == 0
        for dense in (branch.initializer[0], branch.node[-1].attribute[0].t):
            assert numpy_helper.to_array(dense).tolist() == [0, 1, 0]

    def test_texts(self) -> None:
        check_texts(IF)
        damaged = onnx.load_model_from_string(IF.SerializeToString().replace(b"choice", b"choic\xff"))
        with pytest.raises(InvalidModelError, match="a NodeProto of the model holds b'choic"):
            check_texts(damaged)


class TestShapes:
    def test_a_scalar_has_no_dimensions_to_fix(self) -> None:
        (item,) = model_of("g (float x) => (float y) { y = Neg(x) }").graph.input
        item.type.tensor_type.shape.SetInParent()
        with pytest.raises(UsageError, match="has 0 dimensions"):
            fixed_input_types([item], {"x": (1,)})

    def test_numbers_of_numpy_are_numbers(self) -> None:
        (item,) = model_of("g (float[N] x) => (float[N] y) { y = Neg(x) }").graph.input
        given = fixed_input_types([item], {"x": tuple(np.array([5]))})
        assert given.types == {"x": f32(5)}
        assert given.bound == {N: 5}

    def test_substitution(self) -> None:
        assert substituted(f32(N, 2, ANY), {N: 4}) == f32(4, 2, ANY)
        assert substituted(SequenceType(f32(N)), {N: 4}) == SequenceType(f32(N))

    @pytest.mark.parametrize(
        ("found", "declared", "result"),
        [
            (None, f32(2, N), f32(ANY, N)),
            (None, SequenceType(f32(2)), SequenceType(f32(ANY))),
            (f32(ANY, 3), f32(2, 3), f32(ANY, 3)),
            (f32(ANY, 3), f32(N, 3), f32(N, 3)),
            (f32(N), f32(1), f32(N)),
            (f32(ANY, 3), f32(2, 4), f32(ANY, 3)),
            (f32(ANY), f32(2, 2), f32(ANY)),
            (TensorType(None, DType.FLOAT32), f32(N, 2), f32(N, ANY)),
            (f32(2), TensorType(None, DType.FLOAT32), f32(2)),
        ],
    )
    def test_more_precise(self, found: Type | None, declared: Type, result: Type) -> None:
        assert more_precise(found, declared) == result

    def test_numbers_that_were_inferred_are_believed(self) -> None:
        assert more_precise(None, f32(2), is_inferred=True) == f32(2)
        assert more_precise(TensorType(None, DType.FLOAT32), f32(2), is_inferred=True) == f32(2)
        assert more_precise(f32(ANY, 3), f32(2, 3), is_inferred=True) == f32(2, 3)

    def test_propagation_is_not_needed_for_static_inputs(self) -> None:
        assert infer_symbolic_types(IF, {}, {"x": f32(2)}) == {}

    def test_propagation_forgets_names_that_onnx_invents(self) -> None:
        model = model_of("g (float[N] x) => (int64[1,k] y) { y = NonZero(x) }", opset=26)
        assert infer_symbolic_types(model, {}, {"x": f32(N)}) == {"y": TensorType((1, ANY), DType.INT64)}

    def test_propagation_does_not_believe_the_exporter(self) -> None:
        model = model_of("g (float[N] x) => (float[7] y) <float[7] a> { a = Neg(x)  y = Neg(a) }", opset=26)
        assert type_hints(model.graph) == {"a": f32(7), "y": f32(7)}
        assert infer_symbolic_types(model, {}, {"x": f32(N)}) == {"a": f32(N), "y": f32(N)}


class TestNames:
    def test_fresh(self) -> None:
        emitter = GraphEmitter(onnx.GraphProto(), None)
        names = [emitter.fresh(hint) for hint in ("x", "x", "x_1", "", "x")]
        assert names == ["x", "x_1", "x_1_1", "value", "x_2"]

    def test_structure(self) -> None:
        names = ("a", ("b", ()), "c")
        assert flat(names) == ["a", "b", "c"]
        assert unflatten(names, iter("xyz")) == ("x", ("y", ()), "z")
        assert field_names(names, TupleGetItem(Tuple(()), 1)) == ("b", ())

    def test_types(self) -> None:
        pair = TupleType((f32(1), TupleType((f32(2),))))
        assert flat_types(pair, 2) == [f32(1), f32(2)]
        assert flat_types(None, 2) == [None, None]

    def test_what_onnx_cannot_say(self) -> None:
        with pytest.raises(UnsupportedModelError, match="an absent value is returned"):
            flat_results(("a", ""))
        with pytest.raises(UnsupportedModelError, match="a tuple is passed to an operator"):
            single(("a",))
        with pytest.raises(UnsupportedModelError, match="field 0 is taken of a value that is not a tuple"):
            field_names("a", TupleGetItem(Tuple(()), 0))
        with pytest.raises(UnsupportedModelError, match="field 2 is taken of a tuple of 1"):
            field_names(("a",), TupleGetItem(Tuple(()), 2))


class TestFinishing:
    def test_renaming_reaches_nested_graphs(self) -> None:
        graph = onnx.GraphProto()
        graph.CopyFrom(IF.graph)
        rename_values(graph, {"a": "new", "b": "result"})
        branch = graph.node[1].attribute[0].g
        assert graph.node[0].output == ["new"]
        assert branch.node[0].input == ["new", "x"]
        assert branch.output[0].name == "result"

    def test_unused_optional_outputs_are_dropped(self) -> None:
        model = model_of(
            "g (float[1,2,2] x) => (float[1,1,1] y) { y, unused = MaxPool <kernel_shape = [2]> (x) }"
        )
        drop_unused_outputs(model.graph)
        assert list(model.graph.node[0].output) == ["y"]

    def test_required_outputs_stay(self) -> None:
        model = model_of("g (float[4] x, int64[1] k) => (float[2] y) { y, unused = TopK(x, k) }")
        drop_unused_outputs(model.graph)
        assert list(model.graph.node[0].output) == ["y", "unused"]


def test_essence_of_a_message_of_onnx() -> None:
    text = "/a/b.h:41: adapt: Assertion `x` failed: No Adapter\n  for Add"
    assert error_essence(RuntimeError(text)) == "No Adapter for Add"
