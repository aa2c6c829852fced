"""Symbolic dimensions through shape arithmetic, by onnx's inference over the whole model.

Inference per node knows integers that are known as a whole. A batch size that is a symbol makes the result of
Shape -> Gather -> Concat unknown, and with it the shape of what is reshaped by it; onnx's data propagation
follows such values dimension by dimension.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

import numpy.typing as npt

from intarsia.frontend.onnx.onnx_errors import onnx_errors
from intarsia.frontend.onnx.opset import declare_weights
from intarsia.frontend.onnx.shapes import type_hints
from intarsia.ir import ANY, SymbolicDim, TensorType, Type
from intarsia.op.onnx_types import type_to_proto

if TYPE_CHECKING:
    from onnx import ModelProto

_INVENTED = "unk__"
"""How onnx begins the names that it makes up for unknown dimensions."""


def propagated_types(
    model: ModelProto, weights: Mapping[str, npt.NDArray[Any]], inputs: Mapping[str, Type | None]
) -> dict[str, Type]:
    """Types of the main graph's values by name; empty where every input is static, so that none are needed.

    Args:
        model: At the pinned opset.
        weights: Its initializers.
        inputs: Types of its inputs.
    """
    if all(isinstance(type_, TensorType) and type_.is_static for type_ in inputs.values()):
        return {}
    from onnx import shape_inference

    complete = declare_weights(model, weights)
    del complete.graph.value_info[:]  # what the exporter wrote may be stale: this is to be inferred alone
    for item in complete.graph.input:
        declared = inputs.get(item.name)
        if declared is not None:
            item.type.CopyFrom(type_to_proto(declared))
    for output in complete.graph.output:
        if output.type.HasField("tensor_type"):
            output.type.tensor_type.ClearField("shape")
    try:
        inferred = shape_inference.infer_shapes(complete, data_prop=True)
    except onnx_errors():
        return {}  # the importer infers each node once more, and complains with its name
    return {name: _without_invented(type_) for name, type_ in type_hints(inferred.graph).items()}


def _without_invented(type_: Type) -> Type:
    if not isinstance(type_, TensorType) or type_.shape is None:
        return type_
    return TensorType(
        tuple(
            ANY if isinstance(dim, SymbolicDim) and dim.name.startswith(_INVENTED) else dim
            for dim in type_.shape
        ),
        type_.dtype,
    )
