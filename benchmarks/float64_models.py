"""Models of the zoo in float64: the reference that errors of other candidates are measured against."""

from __future__ import annotations

import numpy as np
from onnx import GraphProto, ModelProto, TensorProto, numpy_helper

_SINGLE, _DOUBLE = TensorProto.FLOAT, TensorProto.DOUBLE


def in_float64(model: ModelProto) -> ModelProto:
    """Return a copy of a model with float32 tensors widened to float64; other types stay as they are."""
    widened = ModelProto()
    widened.CopyFrom(model)
    _widen(widened.graph)
    return widened


def _widen(graph: GraphProto) -> None:
    for tensor in graph.initializer:
        _widen_tensor(tensor)
    for value in (*graph.input, *graph.output, *graph.value_info):
        if value.type.tensor_type.elem_type == _SINGLE:
            value.type.tensor_type.elem_type = _DOUBLE
    for node in graph.node:
        for attribute in node.attribute:
            if attribute.HasField("t"):
                _widen_tensor(attribute.t)
            elif attribute.HasField("g"):
                _widen(attribute.g)
            elif node.op_type == "Cast" and attribute.name == "to" and attribute.i == _SINGLE:
                attribute.i = _DOUBLE


def _widen_tensor(tensor: TensorProto) -> None:
    if tensor.data_type == _SINGLE:
        array = numpy_helper.to_array(tensor).astype(np.float64)
        tensor.CopyFrom(numpy_helper.from_array(array, tensor.name))
