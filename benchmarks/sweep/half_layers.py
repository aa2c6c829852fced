"""Written layers with all floats in float16."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

import numpy as np
import numpy.typing as npt
from onnx import ModelProto, NodeProto, TensorProto, numpy_helper

Array = npt.NDArray[Any]

HALF: Final = "float16"
_KEPT: Final = {"Resize": (1, 2)}
"""Positions of arguments that are float32 in every model."""


def model_in_half(model: ModelProto) -> ModelProto:
    """Return a model whose inputs, weights and results of float32 are of float16."""
    half = ModelProto()
    half.CopyFrom(model)
    graph = half.graph
    kept = {
        name
        for node in graph.node
        for position, name in enumerate(node.input)
        if position in _KEPT.get(node.op_type, ())
    }
    for value in (*graph.input, *graph.output):
        _narrow_type(value.type.tensor_type)
    for tensor in graph.initializer:
        if tensor.name not in kept and tensor.data_type == TensorProto.FLOAT:
            narrow = numpy_helper.to_array(tensor)
            limits = np.finfo(np.float16)
            clipped = np.clip(narrow, limits.min, limits.max).astype(np.float16)
            tensor.CopyFrom(numpy_helper.from_array(clipped, tensor.name))
    for node in graph.node:
        _narrow_attributes(node)
    return half


def arrays_in_half(arrays: Mapping[str, Array]) -> dict[str, Array]:
    """Return arrays whose float32 elements are rounded to float16."""
    return {
        name: array.astype(np.float16) if array.dtype == np.float32 else array
        for name, array in arrays.items()
    }


def _narrow_type(type_: Any) -> None:
    if type_.elem_type == TensorProto.FLOAT:
        type_.elem_type = TensorProto.FLOAT16


def _narrow_attributes(node: NodeProto) -> None:
    """Turn casts to float32 into casts to float16."""
    for attribute in node.attribute:
        if node.op_type == "Cast" and attribute.name == "to" and attribute.i == TensorProto.FLOAT:
            attribute.i = TensorProto.FLOAT16
