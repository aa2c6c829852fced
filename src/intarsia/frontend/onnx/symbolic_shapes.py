"""Symbolic dimensions through shape arithmetic, by onnx's inference over the whole model.

Inference per node knows integers that are known as a whole. A batch size that is a symbol makes the result of
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
"""How onnx begins the names that it makes up for unknown dimensions."""

_ROUNDS = 8
"""Propagation makes lengths known for the next one; models of exporters are settled after one or two."""

_PROPAGATING = frozenset(
    {"Add", "Cast", "Concat", "Gather", "Mul", "Shape", "Size", "Slice", "Squeeze", "Sub", "Unsqueeze"}
)
"""Operators whose values onnx 1.23 propagates (`OpSchema.has_data_propagation_function`)."""


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
        types = _propagated(complete)
    except InvalidModelError:
        return {}  # as below
    except onnx_errors():
        return {}  # the importer infers each node once more, and complains with its name
    return {name: _without_invented(type_) for name, type_ in types.items()}


def _propagated(model: ModelProto) -> dict[str, Type]:
    """Types by onnx's data propagation, kept from vectors that are data.

    onnx takes every vector that meets shape arithmetic for a shape, and makes an entry of about 20 bytes for
    each element: a Range of 2**28 positions takes 5.6 GB. So a node is given to it only where its vectors are
    known to be short, or their length to be a symbol. Propagation may make more lengths known, so it is
    repeated.
    """
    given = _given_types(model)
    types = _inferred(model, data_prop=False)
    cut: set[int] | None = None
    for _ in range(_ROUNDS):
        known, nodes = {**given, **types}, enumerate(model.graph.node)
        before, cut = cut, {place for place, node in nodes if not _may_propagate(node, known)}
        if cut == before:
            break
        types |= _inferred(_without_nodes(model, cut, known), data_prop=True)
    return types


def _given_types(model: ModelProto) -> dict[str, Type]:
    """Types of the initializers and inputs."""
    graph = model.graph
    inputs = {item.name: type_from_proto(item.type) for item in graph.input}
    typed = {name: type_ for name, type_ in inputs.items() if type_ is not None}
    return typed | {
        item.name: TensorType(tuple(item.dims), dtype_of_elem(item.data_type)) for item in graph.initializer
    }


def _inferred(model: ModelProto, data_prop: bool) -> dict[str, Type]:
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
    result.graph.node.extend(node for place, node in nodes if place not in cut)
    for name in (name for place, node in nodes if place in cut for name in node.output if name in types):
        result.graph.input.add(name=name, type=type_to_proto(types[name]))
    return result


def _without_invented(type_: Type) -> Type:
    if not isinstance(type_, TensorType) or type_.shape is None:
        return type_
    return TensorType(
        tuple(ANY if isinstance(dim, SymbolicDim) and _is_unknown(dim) else dim for dim in type_.shape),
        type_.dtype,
    )
