"""Operators newer than the pinned opset, replaced by their definitions."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from onnx import ModelProto, TensorProto, helper
from onnx.reference import ReferenceEvaluator

from intarsia.build import build
from intarsia.frontend.onnx import from_onnx


def model(operator: str, opset: int, inputs: dict[str, Any], names: list[str], **attrs: Any) -> ModelProto:
    """A model of one node; a name that is no input stands for an optional one that is left out."""
    outputs = ["y", "state"] if operator != "SpaceToDepth" else ["y"]
    node = helper.make_node(operator, [name if name in inputs else "" for name in names], outputs, **attrs)
    infos = [helper.make_tensor_value_info(name, TensorProto.FLOAT, x.shape) for name, x in inputs.items()]
    results = [helper.make_empty_tensor_value_info(name) for name in outputs]
    graph = helper.make_graph([node], "newer", infos, results)
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", opset)], ir_version=12)


def assert_right(proto: ModelProto, inputs: dict[str, Any]) -> None:
    """The imported model returns what onnx.reference returns for the original."""
    expected = ReferenceEvaluator(proto).run(None, inputs)
    with build(from_onnx(proto)) as executable:
        for found, wanted in zip(executable.run_flat(**inputs), expected, strict=True):
            np.testing.assert_allclose(np.asarray(found), wanted, rtol=1e-5, atol=1e-6)


def random(*shape: int) -> np.ndarray[Any, np.dtype[np.float32]]:
    return np.random.default_rng(sum(shape)).standard_normal(shape, np.float32)


@pytest.mark.parametrize("optional", [(), ("beta",), ("past_state", "beta")], ids=str)
def test_linear_attention_with_and_without_its_optional_inputs(optional: tuple[str, ...]) -> None:
    every = {
        "query": random(1, 4, 6),
        "key": random(1, 4, 6),
        "value": random(1, 4, 8),
        "past_state": random(1, 2, 3, 4),
        "beta": np.abs(random(1, 4, 2)),
    }
    inputs = {name: value for name, value in every.items() if name in ("query", "key", "value", *optional)}
    names = ["query", "key", "value", "past_state", "decay", "beta"]
    rule = "delta" if "beta" in optional else "linear"
    attrs = {"q_num_heads": 2, "kv_num_heads": 2, "update_rule": rule}
    assert_right(model("LinearAttention", 27, inputs, names, **attrs), inputs)


@pytest.mark.parametrize("attrs", [{}, {"mode": "CRD"}, {"mode": "DCR"}], ids=str)
def test_an_attribute_that_the_pinned_opset_lacks(attrs: dict[str, Any]) -> None:
    inputs = {"x": random(1, 2, 4, 6)}
    assert_right(model("SpaceToDepth", 28, inputs, ["x"], blocksize=2, **attrs), inputs)
