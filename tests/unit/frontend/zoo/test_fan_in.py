"""Products per output element, against the count that a convolution of ones gives."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from onnx import ModelProto, TensorProto, helper
from onnx.reference import ReferenceEvaluator

from intarsia.frontend.zoo.fan_in import attribute, fan_in

CASES: list[tuple[str, tuple[int, ...], tuple[int, ...], dict[str, Any]]] = [
    ("Conv", (1, 3, 8, 8), (4, 3, 3, 3), {}),
    ("Conv", (1, 3, 7, 5), (4, 3, 3, 3), {"pads": [1, 1, 1, 1], "strides": [2, 2]}),
    ("Conv", (1, 4, 6, 6), (4, 1, 3, 3), {"pads": [2, 2, 2, 2], "dilations": [2, 2], "group": 4}),
    ("ConvTranspose", (1, 5, 1, 1), (5, 2, 4, 4), {}),
    ("ConvTranspose", (1, 5, 4, 4), (5, 2, 4, 4), {"pads": [1, 1, 1, 1], "strides": [2, 2]}),
    ("MatMul", (2, 3, 4), (4, 5), {}),
    ("Gemm", (3, 4), (5, 4), {"transB": 1}),
    ("Gemm", (4, 3), (4, 5), {"transA": 1}),
]


@pytest.mark.parametrize(("operator", "data", "weight", "attributes"), CASES)
def test_fan_in_is_the_mean_output_for_ones(
    operator: str, data: tuple[int, ...], weight: tuple[int, ...], attributes: dict[str, Any]
) -> None:
    node = helper.make_node(operator, ["x", "w"], ["y"], **attributes)
    inputs = [helper.make_tensor_value_info(n, TensorProto.FLOAT, s) for n, s in (("x", data), ("w", weight))]
    output = helper.make_empty_tensor_value_info("y")
    graph = helper.make_graph([node], "ones", inputs, [output])
    model: ModelProto = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 20)])
    ones = {"x": np.ones(data, np.float32), "w": np.ones(weight, np.float32)}
    result = ReferenceEvaluator(model).run(None, ones)[0]

    assert fan_in(node, data, weight, result.shape) == pytest.approx(float(result.mean()))


def test_attribute_has_a_default() -> None:
    node = helper.make_node("Gemm", ["x", "w"], ["y"], transB=1)
    assert attribute(node, "transB", 0) == 1
    assert attribute(node, "transA", 0) == 0
