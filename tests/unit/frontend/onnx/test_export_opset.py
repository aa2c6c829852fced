"""Programs exported at older opsets: as they are where that means the same, else converted, else refused."""

from __future__ import annotations

from typing import Any

import numpy as np
import onnx
import pytest
from tests.onnx_models import onnxruntime_outputs

from intarsia.frontend.onnx import from_onnx, to_onnx
from intarsia.ir import Constant, DType, Expr, Function, TensorType, Var
from intarsia.op import call
from intarsia.support.errors import UnsupportedModelError

X = Var("x", checked_type=TensorType((2, 3), DType.FLOAT32))
ROWS = np.linspace(-1, 1, 6, dtype=np.float32).reshape(2, 3)


def exported(body: Expr, opset: int) -> Any:
    model = to_onnx(Function((X,), body), opset=opset, ir_version=8)
    assert model.opset_import[0].version == opset
    onnx.checker.check_model(model, full_check=True)
    return model


def axes(*values: int) -> Constant:
    return Constant(np.array(values, np.int64))


@pytest.mark.parametrize("opset", [7, 13, 18, 25])
def test_operators_that_only_took_fewer_types_stand_as_they_are(opset: int) -> None:
    model = exported(call("Add", call("Relu", X), X), opset)
    assert [node.op_type for node in model.graph.node] == ["Relu", "Add"]
    (found,) = onnxruntime_outputs(model, {"x": ROWS})
    np.testing.assert_array_equal(found, np.maximum(ROWS, 0) + ROWS)


def test_an_optional_input_that_is_not_used_does_not_count() -> None:
    model = exported(call("Pad", X, axes(0, 1, 0, 0)), 13)
    (found,) = onnxruntime_outputs(model, {"x": ROWS})
    np.testing.assert_array_equal(found, np.pad(ROWS, ((0, 0), (1, 0))))


def test_an_input_that_was_an_attribute_is_converted() -> None:
    model = exported(call("Unsqueeze", X, axes(0)), 11)
    (node,) = model.graph.node
    assert [attribute.name for attribute in node.attribute] == ["axes"]
    (found,) = onnxruntime_outputs(model, {"x": ROWS})
    assert found.shape == (1, 2, 3)


@pytest.mark.parametrize(("name", "opset"), [("Softmax", 12), ("GridSample", 19)])
def test_operators_that_meant_something_else_are_not_relabelled(name: str, opset: int) -> None:
    if name == "Softmax":
        body: Expr = call("Softmax", X)
    else:
        image, grid = (Constant(np.zeros(shape, np.float32)) for shape in ((1, 1, 2, 2), (1, 2, 2, 2)))
        body = call("GridSample", image, grid)
    with pytest.raises(UnsupportedModelError, match=f"cannot be exported at opset {opset}"):
        exported(body, opset)


def test_an_operator_that_did_not_exist_is_refused() -> None:
    with pytest.raises(UnsupportedModelError, match="cannot be exported at opset 19"):
        exported(call("Gelu", X), 19)


def test_results_that_nobody_reads_are_left_out_on_import() -> None:
    graph = onnx.helper.make_graph(
        [onnx.helper.make_node("Dropout", ["x"], ["y", "mask"])],
        "dropout",
        [onnx.helper.make_tensor_value_info("x", 1, [2, 3])],
        [onnx.helper.make_tensor_value_info("y", 1, [2, 3])],
    )
    body = from_onnx(onnx.helper.make_model(graph))["main"].body
    assert body.checked_type == TensorType((2, 3), DType.FLOAT32)


@pytest.mark.parametrize(("name", "opset"), [("Add", 6), ("Max", 7), ("Sum", 6)])
def test_operators_that_did_not_broadcast_are_refused(name: str, opset: int) -> None:
    with pytest.raises(UnsupportedModelError, match=f"{name} has another meaning there"):
        exported(call(name, X, X), opset)


def test_element_types_that_did_not_exist_are_refused() -> None:
    x = Var("x", checked_type=TensorType((2, 3), DType.INT8))
    with pytest.raises(UnsupportedModelError, match="cannot be exported at opset 13"):
        to_onnx(Function((x,), call("Relu", x)), opset=13, ir_version=8)


def test_an_input_that_was_required_is_refused() -> None:
    lower = Constant(np.array(0, np.float32))
    with pytest.raises(UnsupportedModelError, match="cannot be exported at opset 10"):
        exported(call("Clip", X, lower), 10)
