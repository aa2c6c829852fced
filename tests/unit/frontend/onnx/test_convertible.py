"""Nodes that would end the process in onnx's C++ code are refused by name."""

from __future__ import annotations

import pytest
from tests.onnx_models import model_of

from intarsia.frontend.onnx import from_onnx
from intarsia.support.errors import InvalidModelError, ModelError


@pytest.mark.parametrize(
    ("node", "opset", "problem"),
    [
        ("Unsqueeze <axes: float = -1.0> (x)", 11, "has an attribute 'axes' that is no INTS"),
        ("ReduceMax <axes: string = 'a'> (x)", 11, "has an attribute 'axes' that is no INTS"),
        ("Unsqueeze <axes = [0]> ()", 11, "has 0 arguments, expected 1"),
        ("Dropout (x, x)", 10, "has 2 arguments, expected 1"),
        ("Softmax ('')", 11, "lacks its argument 'input'"),
        (
            "GroupNormalization <num_groups: ints = [1]> (x, x, x)",
            18,
            "has an attribute 'num_groups' that is no INT",
        ),
    ],
)
def test_the_converter_gets_only_nodes_that_fit(node: str, opset: int, problem: str) -> None:
    text = f"g (float[2,3] x) => (y) {{ y = {node} }}".replace("'a'", '"a"').replace("('')", "()")
    model = model_of(text, opset=opset)
    if "('')" in node:
        model.graph.node[0].input.append("")
    with pytest.raises(InvalidModelError) as caught:
        from_onnx(model)
    assert caught.value.problem == f"operator '{model.graph.node[0].op_type}' {problem}"
    assert "at node 'y'" in str(caught.value)


def test_inference_gets_only_nodes_that_fit() -> None:
    model = model_of("g (float[3,3] x) => (y) { y = EyeLike <dtype = 1> (x) }", opset=23, ir_version=10)
    model.graph.node[0].input[0] = ""
    with pytest.raises(InvalidModelError, match="at node 'y'"):
        from_onnx(model)


@pytest.mark.parametrize(
    ("text", "opset"),
    [
        ("g (float[1,4,3] x, float[3] s) => (y) { y = GroupNormalization <num_groups = 3> (x, s, s) }", 18),
        ("g (float[2,3,4] x) => (y) { y = Hardmax <axis = 99> (x) }", 11),
        ("g (float[1,2] x, float[2,1] s) => (y) { y = Resize (x, s) }", 10),
    ],
)
def test_rewritten_operators_keep_their_nodes_in_errors(text: str, opset: int) -> None:
    with pytest.raises(ModelError, match="at node 'y'"):
        from_onnx(model_of(text, opset=opset))


@pytest.mark.parametrize("opset", [9, 23])
@pytest.mark.parametrize("name", ["nowhere", "y"])
def test_onnx_gets_no_eye_like_of_an_unknown_type(name: str, opset: int) -> None:
    model = model_of("g (float[n,3] x) => (y) { y = EyeLike <dtype = 1> (x) }", opset=opset, ir_version=10)
    model.graph.node[0].input[0] = name
    with pytest.raises(ModelError, match="'y'"):
        from_onnx(model)
