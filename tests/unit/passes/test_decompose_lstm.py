"""LSTM as the operators of its steps, against the reference and as native kernels."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from onnx import TensorProto, helper, numpy_helper

from intarsia.build import build
from intarsia.frontend.onnx import from_onnx
from intarsia.ir import Call, IRModule, post_order
from intarsia.native.graph import plan_region
from intarsia.native.llvm.isa import Isa
from intarsia.passes import DecomposeLstm, InferType, partition_whole
from intarsia.target import Target
from intarsia.toolchain.native_simplified import simplified
from intarsia.transform import PassContext

STEPS, FEATURES, WIDTH = 5, 3, 4


def lstm(direction: str = "forward", batch: int = 1, extras: str = "bhc", **attrs: Any) -> IRModule:
    """A module of one LSTM; extras: bias, initial hidden and cell states, lengths of sequences, peepholes."""
    generator, count = np.random.default_rng(0), 2 if direction == "bidirectional" else 1
    shapes = {
        "w": (count, 4 * WIDTH, FEATURES),
        "r": (count, 4 * WIDTH, WIDTH),
        "b": (count, 8 * WIDTH),
        "h": (count, batch, WIDTH),
        "c": (count, batch, WIDTH),
        "p": (count, 3 * WIDTH),
    }
    weights = [
        numpy_helper.from_array(generator.standard_normal(shape, np.float32), name)
        for name, shape in shapes.items()
    ]
    weights.append(numpy_helper.from_array(np.full(batch, STEPS - 1, np.int32), "s"))
    names = ["x", "w", "r", *(name if name in extras else "" for name in "bshcp")]
    node = helper.make_node("LSTM", names, ["y", "yh", "yc"], hidden_size=WIDTH, direction=direction, **attrs)
    x = helper.make_tensor_value_info("x", TensorProto.FLOAT, (STEPS, batch, FEATURES))
    outputs = [helper.make_empty_tensor_value_info(name) for name in node.output]
    graph = helper.make_graph([node], "lstm", [x], outputs, [each for each in weights if each.name in names])
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 22)], ir_version=10)
    return from_onnx(model)


def operators(module: IRModule) -> set[str]:
    """The operators of the main function."""
    return {str(node.op) for node in post_order(module["main"]) if isinstance(node, Call)}


def decomposed(module: IRModule) -> IRModule:
    """The module after the pass."""
    return DecomposeLstm()(InferType()(module, PassContext()), PassContext())


@pytest.mark.parametrize("extras", ["", "b", "h", "bhc"])
@pytest.mark.parametrize("batch", [1, 3])
@pytest.mark.parametrize("direction", ["forward", "reverse", "bidirectional"])
def test_the_steps_compute_what_the_operator_does(direction: str, batch: int, extras: str) -> None:
    module = lstm(direction, batch, extras)
    x = np.random.default_rng(1).standard_normal((STEPS, batch, FEATURES), np.float32)
    with build(partition_whole(module, Target.for_toolchain("onnxruntime"))) as engine:
        expected = engine(x)
    assert "LSTM" not in operators(decomposed(module))
    with build(partition_whole(module, Target.for_toolchain("native"))) as native:
        found = native(x)
    for one, other in zip(found, expected, strict=True):
        assert one.shape == other.shape
        np.testing.assert_allclose(one, other, rtol=1e-5, atol=1e-5)


@pytest.mark.parametrize(
    ("extras", "attrs"),
    [("s", {}), ("p", {}), ("b", {"clip": 3.0}), ("b", {"input_forget": 1})],
    ids=["lengths", "peepholes", "clip", "input_forget"],
)
def test_other_forms_stay(extras: str, attrs: dict[str, Any]) -> None:
    module = lstm(extras=extras, **attrs)
    assert operators(decomposed(module)) == {"LSTM"}


def test_more_steps_than_are_worth_it_stay(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("intarsia.passes.decompose_lstm.MOST_STEPS", STEPS)
    assert operators(decomposed(lstm())) != {"LSTM"}
    assert operators(decomposed(lstm("bidirectional"))) == {"LSTM"}


def test_steps_share_their_kernels_and_the_recurrent_weights() -> None:
    function = simplified(lstm()["main"])
    plan = plan_region(function, Isa.host())
    products = [kernel for kernel in plan.kernels if "matmul" in kernel.name]
    recurrent = {
        id(array)
        for kernel in products
        for array in kernel.constants.values()
        if array.shape == (WIDTH, 4 * WIDTH)
    }
    assert len(products) == STEPS  # one of all inputs; that of the first step, of constants, is folded
    assert len(recurrent) == 1
