"""The normal form of a model's message: one spelling of each thing that ONNX allows several of.

After it the default domain is "" and has ONNX's own operators only, a model of the first IR versions declares
its opset, initializers need not be inputs, no tensor is sparse, and only weights and values of Constant nodes
are stored elsewhere.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import TYPE_CHECKING, Any

from intarsia.frontend.onnx.external_data import WeightSource
from intarsia.frontend.onnx.graph_walk import graphs_of, label, nodes_of, with_nested
from intarsia.frontend.onnx.import_limits import UNLIMITED, ImportLimits
from intarsia.frontend.onnx.text_check import check_texts
from intarsia.op.onnx_types import densify, tensor_to_proto
from intarsia.support.errors import ModelError

if TYPE_CHECKING:
    from onnx import ModelProto, NodeProto

_FIRST_IR_WITH_OPSETS = 3
_FIRST_IR_WITH_FREE_INITIALIZERS = 4
"""From it on an initializer need not be an input. Quantisers add such ones to older models as well, which
onnxruntime takes; onnx's version converter does not find them below."""
_CONTRIBUTED_BEFORE = {"LayerNormalization": 17, "SimplifiedLayerNormalization": 1 << 30}
"""Operators that onnxruntime contributed to ONNX's domain, with the opset that defines them itself."""


def normalize(model: ModelProto, source: WeightSource, limits: ImportLimits = UNLIMITED) -> None:
    """Change a message, which must be the caller's own, to the normal form.

    Raises:
        InvalidModelError: A name is no text, or a sparse tensor is damaged.
        UnsupportedModelError: A sparse tensor has too many elements.
    """
    check_texts(model)
    if not model.opset_import and model.ir_version < _FIRST_IR_WITH_OPSETS:
        model.opset_import.add(domain="", version=1)
    model.ir_version = max(model.ir_version, _FIRST_IR_WITH_FREE_INITIALIZERS)
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
            _make_dense(node, source, limits)
        else:
            _make_inline(node, source)
    _move_contributed(nodes_of(model.graph), model.opset_import)
    for function in model.functions:
        _move_contributed(with_nested(function.node), function.opset_import)
    for graph in graphs_of(model.graph):
        for sparse in graph.sparse_initializer:
            graph.initializer.append(_dense(sparse, source, limits))
        del graph.sparse_initializer[:]


def _all_nodes(model: ModelProto) -> Iterator[NodeProto]:
    yield from nodes_of(model.graph)
    for function in model.functions:
        yield from with_nested(function.node)


def _spell_domain(message: Any) -> None:
    if message.domain == "ai.onnx":
        message.domain = ""


def _move_contributed(nodes: Iterable[NodeProto], opsets: Iterable[Any]) -> None:
    """Give nodes that onnxruntime contributed to ONNX's domain the domain of its other contributions.

    Its transformer optimizer writes LayerNormalization into models of opsets that lack it.
    """
    version = next((item.version for item in opsets if not item.domain), 0)
    for node in nodes:
        if not node.domain and 0 < version < _CONTRIBUTED_BEFORE.get(node.op_type, 0):
            node.domain = "com.microsoft"


def _make_dense(node: NodeProto, source: WeightSource, limits: ImportLimits) -> None:
    for attribute in node.attribute:
        if attribute.name == "sparse_value" and attribute.HasField("sparse_tensor"):
            dense = _dense(attribute.sparse_tensor, source, limits)
            attribute.Clear()
            attribute.name = "value"
            attribute.type = attribute.TENSOR
            attribute.t.CopyFrom(dense)


def _make_inline(node: NodeProto, source: WeightSource) -> None:
    """Read the tensors in a node's attributes that are stored elsewhere; they are tables and fill values."""
    for attribute in node.attribute:
        for tensor in (*([attribute.t] if attribute.HasField("t") else ()), *attribute.tensors):
            if tensor.data_location == tensor.EXTERNAL:
                try:
                    tensor.CopyFrom(tensor_to_proto(source.read(tensor), tensor.name))
                except ModelError as error:
                    error.add_note(
                        f"in the attribute {attribute.name!r} of node {label(node)!r} ({node.op_type})"
                    )
                    raise


def _dense(sparse: Any, source: WeightSource, limits: ImportLimits) -> Any:
    values = source.read(sparse.values)
    limits.check_sparse(sparse.values.name, tuple(sparse.dims), values.size)
    array = densify(tuple(sparse.dims), values, source.read(sparse.indices))
    return tensor_to_proto(array, sparse.values.name)
