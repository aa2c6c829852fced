"""Symbolic dimensions through shape arithmetic, by onnx's inference over the whole model.

Inference per node handles integers that are fully known. A symbolic batch size makes the result of
Shape -> Gather -> Concat unknown, and with it the shape of what is reshaped by it; onnx's data propagation
follows such values dimension by dimension.
"""

from __future__ import annotations

from collections.abc import Container, Mapping
from typing import TYPE_CHECKING, Any

import numpy.typing as npt

from intarsia.frontend.onnx.convertible import check_nodes, untyped_argument
from intarsia.frontend.onnx.graph_walk import nodes_of
from intarsia.frontend.onnx.onnx_errors import onnx_errors
from intarsia.frontend.onnx.opset import declare_weights
from intarsia.frontend.onnx.shapes import type_hints
from intarsia.ir import ANY, SymbolicDim, TensorType, Type
from intarsia.op.known_value import LARGEST_KNOWN
from intarsia.op.onnx_types import dtype_of_elem, type_from_proto, type_to_proto
from intarsia.op.opset import OPSETS
from intarsia.support.errors import InvalidModelError

if TYPE_CHECKING:
    from onnx import ModelProto, NodeProto

_INVENTED = "unk__"
"""Prefix of the names that onnx generates for unknown dimensions."""

_ROUNDS = 8
"""Maximum rounds: each may make lengths known for the next. Models of exporters converge in one or two."""

_PROPAGATING = frozenset(
    {"Add", "Cast", "Concat", "Gather", "Mul", "Shape", "Size", "Slice", "Squeeze", "Sub", "Unsqueeze"}
)
"""Operators with data propagation in onnx 1.23 (`OpSchema.has_data_propagation_function`)."""


def infer_symbolic_types(
    model: ModelProto, weights: Mapping[str, npt.NDArray[Any]], inputs: Mapping[str, Type | None]
) -> dict[str, Type]:
    """Infer types of the main graph's values by name; empty where every input is static and none are needed.

    Args:
        model: Model at the pinned opset.
        weights: Initializers of the model.
        inputs: Types of the model's inputs.
    """
    if all(isinstance(type_, TensorType) and type_.is_static for type_ in inputs.values()):
        return {}
    complete = declare_weights(model, weights)
    del complete.graph.value_info[:]  # what the exporter wrote may be stale: this is to be inferred alone
    for item in complete.graph.input:
        declared = inputs.get(item.name)
        if declared is not None:
            item.type.CopyFrom(type_to_proto(declared))
    for output in complete.graph.output:
        if output.type.HasField("tensor_type"):
            output.type.tensor_type.ClearField("shape")
    if untyped_argument(complete.graph) is not None:
        return {}
    try:
        check_nodes(nodes_of(complete.graph), OPSETS)
        types = _propagate(complete)
    except InvalidModelError:
        return {}  # as below
    except onnx_errors():
        return {}  # the importer infers each node once more, and reports an error with its name
    return {name: _without_invented(type_) for name, type_ in types.items()}


def _propagate(model: ModelProto) -> dict[str, Type]:
    """Types by onnx's data propagation, kept from vectors that are data.

    onnx treats every vector in shape arithmetic as a shape, and allocates about 20 bytes per element: a Range
    of 2**28 positions takes 5.6 GB. So only nodes with vectors that are short, or of symbolic length, take
    part. Propagation may make more lengths known, so it is repeated.
    """
    given = _given_types(model)
    types = _infer(model, data_prop=False)
    cut: set[int] | None = None
    for _ in range(_ROUNDS):
        types_so_far, nodes = {**given, **types}, enumerate(model.graph.node)
        before, cut = cut, {index for index, node in nodes if not _may_propagate(node, types_so_far)}
        if cut == before:
            break
        types |= _infer(_without_nodes(model, cut, types_so_far), data_prop=True)
    return types


def _given_types(model: ModelProto) -> dict[str, Type]:
    """Types of the initializers and inputs."""
    graph = model.graph
    inputs = {item.name: type_from_proto(item.type) for item in graph.input}
    typed = {name: type_ for name, type_ in inputs.items() if type_ is not None}
    return typed | {
        item.name: TensorType(tuple(item.dims), dtype_of_elem(item.data_type)) for item in graph.initializer
    }


def _infer(model: ModelProto, data_prop: bool) -> dict[str, Type]:
    from onnx import shape_inference

    return type_hints(shape_inference.infer_shapes(model, data_prop=data_prop).graph)


def _may_propagate(node: NodeProto, types: Mapping[str, Type]) -> bool:
    if any(item.HasField("g") for item in node.attribute):
        return False  # shape arithmetic may stand in its graphs
    if node.domain or node.op_type not in _PROPAGATING:
        return True
    return all(_is_short(types.get(name)) for name in node.input if name)


def _is_short(type_: Type | None) -> bool:
    """Whether a value is no vector, or a vector that may be a shape."""
    if not isinstance(type_, TensorType) or type_.shape is None:
        return False
    if len(type_.shape) != 1:
        return True
    dim = type_.shape[0]
    return dim <= LARGEST_KNOWN if isinstance(dim, int) else not _is_unknown(dim)


def _is_unknown(dim: SymbolicDim) -> bool:
    return dim == ANY or dim.name.startswith(_INVENTED)


def _without_nodes(model: ModelProto, cut: Container[int], types: Mapping[str, Type]) -> ModelProto:
    """The model with the results of some nodes, given by their positions, as inputs."""
    nodes = tuple(enumerate(model.graph.node))
    result = type(model)()
    result.CopyFrom(model)
    del result.graph.node[:]
    result.graph.node.extend(node for index, node in nodes if index not in cut)
    for name in (name for index, node in nodes if index in cut for name in node.output if name in types):
        result.graph.input.add(name=name, type=type_to_proto(types[name]))
    return result


def _without_invented(type_: Type) -> Type:
    if not isinstance(type_, TensorType) or type_.shape is None:
        return type_
    return TensorType(
        tuple(ANY if isinstance(dim, SymbolicDim) and _is_unknown(dim) else dim for dim in type_.shape),
        type_.dtype,
    )
