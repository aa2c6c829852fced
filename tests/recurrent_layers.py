"""Models of one recurrent layer, in any form that ONNX has."""

from __future__ import annotations

from typing import Any

import numpy as np
from onnx import ModelProto, TensorProto, helper, numpy_helper

GATES = {"RNN": 1, "GRU": 3, "LSTM": 4}


def recurrent_model(
    operator: str,
    *,
    steps: int | str = 5,
    batch: int | str = 1,
    features: int = 3,
    width: int = 4,
    direction: str = "forward",
    optional: tuple[str, ...] = (),
    lengths: tuple[int, ...] | None = None,
    seed: int = 0,
    scale: float = 1.0,
    **attrs: Any,
) -> ModelProto:
    """A model of one layer with the input x, and y and the last states as outputs.

    Args:
        operator: "RNN", "GRU" or "LSTM".
        steps: Number of steps, or the name of a dimension.
        batch: Number of sequences, or the name of a dimension; then the layer has no initial states.
        features: Size of an input of a step.
        width: The hidden size.
        direction: The attribute.
        optional: Names out of "b", "initial_h", "initial_c" and "p" of inputs that are given, as constants.
        lengths: Lengths of the sequences, as a constant; an empty tuple makes them the input `lengths`.
        seed: Seed of the weights.
        scale: Standard deviation of the weights and initial states.
        attrs: Further attributes.
    """
    generator, count = np.random.default_rng(seed), 2 if direction == "bidirectional" else 1
    gates, is_batch_first = GATES[operator], bool(attrs.get("layout", 0))
    state = (batch, count, width) if is_batch_first else (count, batch, width)
    shapes: dict[str, tuple[Any, ...]] = {
        "w": (count, gates * width, features),
        "r": (count, gates * width, width),
        "b": (count, 2 * gates * width),
        "initial_h": state,
        "initial_c": state,
        "p": (count, 3 * width),
    }
    chosen = {"w", "r", *optional}
    weights = [
        numpy_helper.from_array(generator.standard_normal(shape, np.float32) * np.float32(scale), name)
        for name, shape in shapes.items()
        if name in chosen
    ]
    inputs = [helper.make_tensor_value_info("x", TensorProto.FLOAT, (batch, steps, features))]
    if not is_batch_first:
        inputs = [helper.make_tensor_value_info("x", TensorProto.FLOAT, (steps, batch, features))]
    if lengths is not None:
        chosen.add("lengths")
        if lengths:
            weights.append(numpy_helper.from_array(np.array(lengths, np.int32), "lengths"))
        else:
            inputs.append(helper.make_tensor_value_info("lengths", TensorProto.INT32, (batch,)))
    names = ["x", "w", "r", "b", "lengths", "initial_h"]
    names += ["initial_c", "p"] if operator == "LSTM" else []
    arguments = [name if name in chosen or name == "x" else "" for name in names]
    while not arguments[-1]:
        arguments.pop()
    results = ["y", "y_h", "y_c"] if operator == "LSTM" else ["y", "y_h"]
    node = helper.make_node(operator, arguments, results, hidden_size=width, direction=direction, **attrs)
    outputs = [helper.make_empty_tensor_value_info(name) for name in results]
    graph = helper.make_graph([node], "layer", inputs, outputs, weights)
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", 22)], ir_version=10)
