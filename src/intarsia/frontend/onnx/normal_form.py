"""Take the freedom out of a model's message: one spelling of each thing that ONNX allows several of.

After it the default domain is "", a model of the first IR versions declares its opset, no tensor is sparse.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

from intarsia.frontend.onnx.external_data import WeightSource
from intarsia.frontend.onnx.graph_walk import graphs_of, nodes_of, with_nested
from intarsia.frontend.onnx.text_check import check_texts
from intarsia.op.onnx_types import densify, tensor_to_proto

if TYPE_CHECKING:
    from onnx import ModelProto, NodeProto

_FIRST_IR_WITH_OPSETS = 3


def normalize(model: ModelProto, source: WeightSource) -> None:
    """Change a message, which must be the caller's own, to the normal form.

    Raises:
        InvalidModelError: A name is no text, or a sparse tensor is damaged.
    """
    check_texts(model)
    if not model.opset_import and model.ir_version < _FIRST_IR_WITH_OPSETS:
        model.opset_import.add(domain="", version=1)
    for item in (
        *model.opset_import,
        *(one for function in model.functions for one in function.opset_import),
    ):
        _spell_domain(item)
    for function in model.functions:
        _spell_domain(function)
    for node in _all_nodes(model):
        _spell_domain(node)
        if node.op_type == "Constant" and not node.domain:
            _make_dense(node, source)
    for graph in graphs_of(model.graph):
        for sparse in graph.sparse_initializer:
            graph.initializer.append(_dense(sparse, source))
        del graph.sparse_initializer[:]


def _all_nodes(model: ModelProto) -> Iterator[NodeProto]:
    yield from nodes_of(model.graph)
    for function in model.functions:
        yield from with_nested(function.node)


def _spell_domain(message: Any) -> None:
    if message.domain == "ai.onnx":
        message.domain = ""


def _make_dense(node: NodeProto, source: WeightSource) -> None:
    for attribute in node.attribute:
        if attribute.name == "sparse_value" and attribute.HasField("sparse_tensor"):
            dense = _dense(attribute.sparse_tensor, source)
            attribute.Clear()
            attribute.name = "value"
            attribute.type = attribute.TENSOR
            attribute.t.CopyFrom(dense)


def _dense(sparse: Any, source: WeightSource) -> Any:
    array = densify(tuple(sparse.dims), source.read(sparse.values), source.read(sparse.indices))
    return tensor_to_proto(array, sparse.values.name)
