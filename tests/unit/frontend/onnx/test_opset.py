"""Models of other opsets, nested graphs included, become programs of the pinned one."""

from __future__ import annotations

from typing import Any

import numpy as np
import onnx
import pytest
from onnx import inliner
from tests.onnx_models import model_of, onnxruntime_outputs, reference_outputs

from intarsia.frontend.onnx import from_onnx, to_onnx
from intarsia.frontend.onnx.onnx_errors import onnx_errors
from intarsia.frontend.onnx.opset import declare_weights, opset_versions, to_pinned_opset
from intarsia.frontend.onnx.read_model import read_model
from intarsia.ir import Call, post_order
from intarsia.op import OPSETS, PINNED_OPSET
from intarsia.support.errors import UnsupportedModelError

X = np.arange(4, dtype=np.float32).reshape(1, 1, 2, 2)

ROWS = np.linspace(-1, 1, 16, dtype=np.float32).reshape(2, 8)


def pinned(model: Any) -> Any:
    return to_pinned_opset(read_model(model))


def assert_converted(model: Any, feeds: dict[str, Any]) -> None:
    """The program computes what the original does."""
    module = from_onnx(model)
    after = to_onnx(module["main"], module)
    onnx.checker.check_model(after, full_check=True)
    expected = reference_outputs(model, feeds)
    for outputs in (reference_outputs(after, feeds), onnxruntime_outputs(after, feeds)):
        for found, wanted in zip(outputs, expected, strict=True):
            np.testing.assert_array_equal(found, wanted)


def test_the_result_is_at_the_pinned_versions() -> None:
    assert (
        opset_versions(pinned(model_of("g (float[2] x) => (float[2] y) { y = Neg(x) }", opset=7))) == OPSETS
    )


def test_axes_become_an_input() -> None:
    model = model_of("g (float[1,1,2,2] x) => (float[2,2] y) { y = Squeeze <axes = [0, 1]> (x) }", opset=11)
    assert_converted(model, {"x": X})


def test_operators_inside_branches_are_converted() -> None:
    model = model_of(
        "g (bool c, float[1,1,2,2] x) => (float[1,2,2] y) { y = If (c) <"
        " then_branch = t () => (float[1,2,2] a) { a = Squeeze <axes = [1]> (x) },"
        " else_branch = e () => (float[1,2,2] b) { n = Neg(x)  b = Squeeze <axes = [0]> (n) }> }",
        opset=11,
    )
    for condition in (True, False):
        assert_converted(model, {"c": np.array(condition), "x": X})


def test_upsample_inside_a_branch_becomes_resize() -> None:
    model = model_of(
        "g (bool c, float[1,1,2,2] x) => (float[1,1,h,w] y) { y = If (c) <"
        ' then_branch = t () => (float[1,1,h,w] a) { a = Upsample <mode = "nearest"> (x, s) },'
        ' else_branch = e () => (float[1,1,h,w] b) { m = Neg(x)  b = Upsample <mode = "nearest"> (m, s) }> }',
        opset=9,
        ir_version=6,
        s=np.array([1, 1, 2, 2], np.float32),
    )
    main = from_onnx(model)["main"]
    after = to_onnx(main)
    for condition, sign in ((True, 1), (False, -1)):
        (found,) = onnxruntime_outputs(after, {"c": np.array(condition), "x": X})
        np.testing.assert_array_equal(found, sign * X.repeat(2, 2).repeat(2, 3))


def test_operators_inside_a_loop_are_converted() -> None:
    model = model_of(
        "g (int64 n, float[1,2] x) => (float[1,2] y) { y = Loop (n, always, x) <body = b"
        " (int64 i, bool go, float[1,2] s) => (bool again, float[1,2] next) {"
        " again = Identity(go)  flat = Squeeze <axes = [0]> (s)  next = Unsqueeze <axes = [0]> (flat) }> }",
        opset=11,
        ir_version=6,
        always=np.array(True),
    )
    assert_converted(model, {"n": np.array(2), "x": X[0, 0, :1]})


def test_names_that_the_converter_would_choose() -> None:
    model = model_of(
        "g (float[1,1,2,2] _v_1) => (float[2,2] _v_3) {"
        " _v_2 = Squeeze <axes = [0]> (_v_1)  _v_3 = Squeeze <axes = [0]> (_v_2) }",
        opset=11,
    )
    assert_converted(model, {"_v_1": X})


def test_large_weights_stay_out_of_the_conversion() -> None:
    weight = np.ones((1, 32, 32), np.float32)
    model = model_of(
        "g (float[32,32] x) => (float[32,32] y) { w2 = Squeeze <axes = [0]> (w)  y = MatMul(x, w2) }",
        opset=11,
        w=weight,
    )
    raw = read_model(model)
    assert "w" not in {item.name for item in to_pinned_opset(raw).graph.initializer}
    assert_converted(model, {"x": np.ones((32, 32), np.float32)})


def test_a_newer_opset_where_nothing_changed() -> None:
    model = model_of("g (float[2] x) => (float[2] y) { y = Neg(x) }", opset=PINNED_OPSET + 1)
    assert opset_versions(pinned(model)) == OPSETS


def test_a_new_operator_is_replaced_by_its_definition() -> None:
    model = model_of("g (float[2,8] x) => (float[2,8] y) { y = SwiGLU(x, x) }", opset=28, ir_version=13)
    main = from_onnx(model)["main"]
    assert all(str(node.op) != "SwiGLU" for node in post_order(main) if isinstance(node, Call))
    (found,) = reference_outputs(to_onnx(main), {"x": ROWS})
    (expected,) = reference_outputs(model, {"x": ROWS})
    np.testing.assert_allclose(found, expected, rtol=1e-6)


def test_an_operator_of_another_domain_that_changed_is_refused_where_its_types_are_unknown() -> None:
    model = model_of(
        "g (seq(int64[2]) x, int64 i) => (string[2] y) {"
        ' item = SequenceAt (x, i)  y = ai.onnx.ml.LabelEncoder <classes_strings = ["a", "b"]> (item) }',
        imports='"ai.onnx.ml": 1',
    )
    del model.graph.input[0].type.sequence_type.elem_type.tensor_type.shape.dim[:]
    model.graph.node[0].domain = "my"
    with pytest.raises(UnsupportedModelError) as caught:
        to_pinned_opset(read_model(model))
    assert caught.value.problem == (
        "operator 'LabelEncoder' changed between version 1 of the domain 'ai.onnx.ml', which the model uses, "
        "and version 5"
    )


def test_declared_weights() -> None:
    model = model_of("g (float[2] x) => (float[2] y) { y = Neg(x) }")
    weights = {"small": np.ones(2, np.float32), "large": np.ones(2000, np.float32)}
    complete = declare_weights(model, weights)
    assert [item.name for item in complete.graph.initializer] == ["small"]
    assert [item.name for item in complete.graph.input] == ["x", "large"]
    assert [item.name for item in model.graph.input] == ["x"]


def test_what_onnx_raises_is_caught() -> None:
    recursive = model_of(
        'g (float[2] x) => (float[2] y) { y = my.F(x) } <opset_import: ["": 17, "my": 1], domain: "my"> '
        "F (a) => (b) { b = my.F(a) }",
        imports='"my": 1',
    )
    with pytest.raises(onnx_errors()):
        inliner.inline_local_functions(recursive)


def test_a_conversion_that_changes_an_input_is_refused() -> None:
    body = onnx.helper.make_graph(
        [onnx.helper.make_node("Add", ["s", "x"], ["s_out"])],
        "body",
        [onnx.helper.make_tensor_value_info(name, 1, [2]) for name in ("s", "x")],
        [onnx.helper.make_tensor_value_info("s_out", 1, [2])],
    )
    graph = onnx.helper.make_graph(
        [onnx.helper.make_node("Scan", ["", "s0", "xs"], ["y"], body=body, num_scan_inputs=1)],
        "scan",
        [
            onnx.helper.make_tensor_value_info("s0", 1, [1, 2]),
            onnx.helper.make_tensor_value_info("xs", 1, [1, 3, 2]),
        ],
        [onnx.helper.make_tensor_value_info("y", 1, [1, 2])],
    )
    model = onnx.helper.make_model(graph, opset_imports=[onnx.helper.make_opsetid("", 8)], ir_version=8)
    with pytest.raises(UnsupportedModelError) as caught:
        from_onnx(model)
    assert caught.value.problem == (
        "the model's opset 8 cannot be converted to opset 26: input 's0' would have 1 dimensions instead of 2"
    )
