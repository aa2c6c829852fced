"""ONNX models of a ternary gated MLP: with the operator, and with ONNX's operators."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np
from onnx import ModelProto, NodeProto, TensorProto, helper, numpy_helper

from .packing import Array, pack

PRODUCTS = ("gate", "up", "down")


def draw_weights(columns: int, width: int, seed: int = 0) -> dict[str, Array]:
    """Return ternary weights (int8) and scales by name."""
    rng = np.random.default_rng(seed)
    shapes = {"gate": (columns, width), "up": (columns, width), "down": (width, columns)}
    weights: dict[str, Array] = {}
    for name, (rows, outputs) in shapes.items():
        weights[name] = rng.integers(-1, 2, (rows, outputs)).astype(np.int8)
        weights[f"{name}_scale"] = (rng.uniform(0.5, 1.5, outputs) / np.sqrt(rows)).astype(np.float32)
    return weights


def fused_model(rows: int, weights: Mapping[str, Array]) -> ModelProto:
    """Return the model that calls acme::TernaryGatedMLP, with packed weights."""
    packed = {name: pack(array) if name in PRODUCTS else array for name, array in weights.items()}
    node = helper.make_node("TernaryGatedMLP", ["x", *packed], ["y"], domain="acme")
    return _model([node], rows, packed, weights["down"].shape[1])


def composed_model(rows: int, weights: Mapping[str, Array]) -> ModelProto:
    """Return the same function by ONNX's operators: DequantizeLinear, MatMul, Sigmoid and Mul."""
    zeros = {f"{name}_zero": np.zeros(weights[name].shape[1], np.int8) for name in PRODUCTS}
    nodes = [
        helper.make_node(
            "DequantizeLinear", [name, f"{name}_scale", f"{name}_zero"], [f"{name}_floats"], axis=1
        )
        for name in PRODUCTS
    ]
    nodes += [
        helper.make_node("MatMul", ["x", "gate_floats"], ["value"]),
        helper.make_node("Sigmoid", ["value"], ["sigmoid"]),
        helper.make_node("Mul", ["value", "sigmoid"], ["silu"]),
        helper.make_node("MatMul", ["x", "up_floats"], ["upward"]),
        helper.make_node("Mul", ["silu", "upward"], ["hidden"]),
        helper.make_node("MatMul", ["hidden", "down_floats"], ["y"]),
    ]
    return _model(nodes, rows, {**weights, **zeros}, weights["down"].shape[1])


def _model(nodes: Sequence[NodeProto], rows: int, constants: Mapping[str, Array], columns: int) -> ModelProto:
    graph = helper.make_graph(
        nodes,
        "ternary_mlp",
        [helper.make_tensor_value_info("x", TensorProto.FLOAT, [rows, columns])],
        [helper.make_tensor_value_info("y", TensorProto.FLOAT, [rows, columns])],
        [numpy_helper.from_array(array, name) for name, array in constants.items()],
    )
    opsets = [helper.make_opsetid("", 21), helper.make_opsetid("acme", 1)]
    return helper.make_model(graph, opset_imports=opsets, ir_version=10)
