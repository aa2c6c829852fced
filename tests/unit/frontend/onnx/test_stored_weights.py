"""Weights are read from wherever exporters, quantisers and onnx.save put them."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import onnx
import pytest
from onnx import TensorProto, helper, numpy_helper
from tests.onnx_models import model_of, onnxruntime_outputs

from intarsia.build import build
from intarsia.frontend.onnx import from_onnx
from intarsia.ir import Call, Constant
from intarsia.passes import partition_whole
from intarsia.support.errors import InvalidModelError
from intarsia.target import Target

X = np.linspace(-2, 2, 64, dtype=np.float32).reshape(2, 32)
W = np.random.default_rng(0).standard_normal((32, 32)).astype(np.float32)
PRODUCT = "g (float[2,32] x) => (float[2,32] y) { y = MatMul(x, w) }"


def computed(model: Any) -> Any:
    return build(partition_whole(from_onnx(model), Target.for_toolchain("reference")))(X)


def test_a_file_that_was_saved_with_external_data_and_then_in_one(tmp_path: Path) -> None:
    """onnx.load writes `data_location: DEFAULT` behind the data that it has read."""
    external, single = tmp_path / "external.onnx", tmp_path / "single.onnx"
    onnx.save(model_of(PRODUCT, w=W), external, save_as_external_data=True, size_threshold=0)
    onnx.save(onnx.load(external), single)
    assert onnx.load(single).graph.initializer[0].HasField("data_location")
    for model in (single, single.read_bytes(), onnx.load(single)):
        np.testing.assert_allclose(computed(model), X @ W, rtol=1e-5, atol=1e-5)


def test_stale_references_beside_inline_data_are_ignored() -> None:
    model = model_of(PRODUCT, w=W)
    model.graph.initializer[0].external_data.add(key="location", value="gone.bin")
    np.testing.assert_allclose(computed(model.SerializeToString()), X @ W, rtol=1e-5, atol=1e-5)


def test_inline_data_beside_external_data_is_ignored(tmp_path: Path) -> None:
    model = model_of(PRODUCT, w=np.zeros_like(W))
    (tmp_path / "w.bin").write_bytes(W.tobytes())
    tensor = model.graph.initializer[0]
    tensor.data_location = TensorProto.EXTERNAL
    tensor.external_data.add(key="location", value="w.bin")
    (tmp_path / "m.onnx").write_bytes(model.SerializeToString())  # onnx.save would write the data out
    np.testing.assert_allclose(computed(tmp_path / "m.onnx"), X @ W, rtol=1e-5, atol=1e-5)


@pytest.mark.parametrize("ir_version", [3, 4])
def test_initializers_that_a_quantiser_added_need_not_be_inputs(ir_version: int) -> None:
    """A model of IR version 3 whose own weight is an input, and those of its quantisation are none."""
    text = """g (float[2,32] x, int8[32,32] w) => (float[2,32] y) {
        q = QuantizeLinear(x, x_scale, x_zero)
        d = DequantizeLinear(q, x_scale, x_zero)
        v = DequantizeLinear(w, w_scale, w_zero)
        y = MatMul(d, v)
    }"""
    scales: dict[str, Any] = {"x_scale": np.float32(0.05), "w_scale": np.float32(0.02)}
    zeros: dict[str, Any] = {"x_zero": np.uint8(128), "w_zero": np.int8(0)}
    weight = np.clip(np.round(W / 0.02), -128, 127).astype(np.int8)
    model = model_of(text, opset=11, ir_version=ir_version, w=weight, **scales, **zeros)
    (expected,) = onnxruntime_outputs(model, {"x": X})
    np.testing.assert_allclose(computed(model.SerializeToString()), expected, rtol=1e-5, atol=1e-5)


@pytest.fixture
def model_with_external_fill_value(tmp_path: Path) -> Path:
    value = numpy_helper.from_array(np.array([3], np.float32), "fill")
    nodes = [
        helper.make_node("ConstantOfShape", ["shape"], ["c"], name="filled", value=value),
        helper.make_node("Add", ["x", "c"], ["y"]),
    ]
    x, y = (helper.make_tensor_value_info(name, TensorProto.FLOAT, [2, 32]) for name in "xy")
    shape = numpy_helper.from_array(np.array([2, 32]), "shape")
    model = helper.make_model(helper.make_graph(nodes, "g", [x], [y], [shape]), ir_version=8)
    model.opset_import[0].version = 17
    path = tmp_path / "m.onnx"
    options = {"convert_attribute": True, "location": "m.bin", "size_threshold": 0}
    onnx.save(model, path, save_as_external_data=True, **options)
    assert onnx.load(path, load_external_data=False).graph.node[0].attribute[0].t.external_data
    return path


def test_an_attribute_may_be_stored_outside(model_with_external_fill_value: Path) -> None:
    np.testing.assert_array_equal(computed(model_with_external_fill_value), X + 3)


def test_an_attribute_whose_data_is_missing_names_its_node(model_with_external_fill_value: Path) -> None:
    (model_with_external_fill_value.parent / "m.bin").unlink()
    with pytest.raises(InvalidModelError) as caught:
        from_onnx(model_with_external_fill_value)
    assert caught.value.problem == "weight 'fill' is stored in 'm.bin', which does not exist beside the model"
    assert caught.value.__notes__ == ["in the attribute 'value' of node 'filled' (ConstantOfShape)"]


@pytest.mark.parametrize("opset", [11, 17, 26])
def test_constants_stored_outside_survive_the_conversion_of_the_opset(tmp_path: Path, opset: int) -> None:
    text = """g (float[2,32] x) => (float[2,32] y) {
        one = Constant <value = float {1.0}> ()
        p = MatMul(x, w)
        c = Constant <value_ints = [1]> ()
        condition = Cast <to = 9> (c)
        flat = Squeeze(condition)
        y = If (flat) <
            then_branch = then () => (float[2,32] t) { t = Add(p, one) },
            else_branch = other () => (float[2,32] e) { e = Sub(p, one) }
        >
    }"""
    model = model_of(text.replace("value_ints = [1]", "value = int64[1] {1}"), opset=opset, w=W)
    path = tmp_path / "m.onnx"
    options = {"convert_attribute": True, "location": "m.bin", "size_threshold": 0}
    onnx.save(model, path, save_as_external_data=True, **options)
    np.testing.assert_allclose(computed(path), X @ W + 1, rtol=1e-5, atol=1e-5)
    constants = [arg for call in _calls(from_onnx(path)) for arg in call.args if isinstance(arg, Constant)]
    assert any(np.array_equal(item.data, W) for item in constants)


def _calls(module: Any) -> list[Call]:
    from intarsia.ir import post_order

    return [item for item in post_order(module["main"]) if isinstance(item, Call)]
