"""The initializers of a model that are marked as external, and the arrays that belong to them."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from typing import TYPE_CHECKING, Any, Final

import numpy as np

from intarsia.op.operator_facts import OperatorTrait
from intarsia.op.operator_table import operators_with
from intarsia.runtime.kernel import Array
from intarsia.support.errors import CompileError

if TYPE_CHECKING:
    from onnx import AttributeProto, GraphProto, ModelProto, NodeProto, TensorProto

WEIGHTED: Final = operators_with(OperatorTrait.WEIGHTED)
"""Operators that have large weights."""

_PACKED_TYPES: Final = frozenset({"int4", "uint4", "int2", "uint2", "float4_e2m1fn"})


def is_packed(dtype: np.dtype[Any]) -> bool:
    """Whether ONNX stores several elements of this type in a byte; NumPy stores one."""
    return dtype.name in _PACKED_TYPES


def is_lendable(array: Array) -> bool:
    """Whether an engine can use the bytes of a weight as they are: contiguous numbers that are not packed.

    Complex numbers are none of those: no engine takes them.
    """
    return array.flags.c_contiguous and array.dtype.kind not in "Oc" and not is_packed(array.dtype)


def nested_graphs(node: NodeProto) -> Iterator[GraphProto]:
    """The graphs among a node's attributes: branches and bodies."""
    for attribute in node.attribute:
        if attribute.HasField("g"):
            yield attribute.g
        yield from attribute.graphs


def all_graphs(graph: GraphProto) -> Iterator[GraphProto]:
    """A graph and all graphs nested in it."""
    pending = [graph]
    while pending:
        current = pending.pop()
        yield current
        pending += [inner for node in current.node for inner in nested_graphs(node)]


def external_tensors(graph: GraphProto) -> tuple[TensorProto, ...]:
    """The initializers marked as external, of the graph and of all nested ones."""
    from onnx import TensorProto

    return tuple(
        tensor
        for inner in all_graphs(graph)
        for tensor in inner.initializer
        if tensor.data_location == TensorProto.EXTERNAL
    )


def refuse_stray_external(model: ModelProto, toolchain: str) -> None:
    """Refuse external tensors that are no initializers of the graph or of a nested one.

    They get no array from the caller; an engine would follow the location in the model, which may be a
    file or, for OpenVINO, an address in the memory of this process.

    Raises:
        CompileError: There is one.
    """
    for tensor in _other_tensors(model):
        if tensor.data_location == tensor.EXTERNAL or tensor.external_data:
            raise CompileError(
                f"{toolchain} cannot compile this: the tensor {tensor.name!r} is stored outside the model, "
                "which only an initializer may be",
                help="store it in the model",
            )


def _other_tensors(model: ModelProto) -> Iterator[TensorProto]:
    """Tensors that are no initializers: of attributes, sparse ones, and all of the model's functions."""
    graphs = list(all_graphs(model.graph))
    function_nodes = [node for function in model.functions for node in function.node]
    function_graphs = [
        graph for node in function_nodes for outer in nested_graphs(node) for graph in all_graphs(outer)
    ]
    for graph in function_graphs:
        yield from graph.initializer
    for graph in (*graphs, *function_graphs):
        for sparse in graph.sparse_initializer:
            yield from (sparse.values, sparse.indices)
        for node in graph.node:
            yield from _attribute_tensors(node.attribute)
    for node in function_nodes:
        yield from _attribute_tensors(node.attribute)
    for function in model.functions:
        yield from _attribute_tensors(function.attribute_proto)


def _attribute_tensors(attributes: Iterable[AttributeProto]) -> Iterator[TensorProto]:
    for attribute in attributes:
        yield attribute.t
        yield from attribute.tensors
        for sparse in (attribute.sparse_tensor, *attribute.sparse_tensors):
            yield from (sparse.values, sparse.indices)


def weight_of(tensor: TensorProto, weights: Mapping[str, Array]) -> Array:
    """The array of an external initializer.

    Raises:
        CompileError: There is none, or it is not of the type that the initializer says.
    """
    from onnx import helper

    array = weights.get(tensor.name)
    if array is None:
        raise CompileError(f"the kernel's source lacks the weight {tensor.name!r}")
    dtype = helper.tensor_dtype_to_np_dtype(tensor.data_type)
    if array.shape != tuple(tensor.dims) or array.dtype != dtype:
        found, expected = f"{array.dtype}{list(array.shape)}", f"{dtype}{list(tensor.dims)}"
        raise CompileError(f"the weight {tensor.name!r} has type {found}; the model says {expected}")
    return array


def put_inline(tensors: Iterable[TensorProto], weights: Mapping[str, Array]) -> None:
    """Copy the arrays into their initializers, as ONNX stores them.

    Raises:
        CompileError: A weight is missing or of another type.
    """
    from onnx import numpy_helper

    for tensor in tensors:
        tensor.CopyFrom(numpy_helper.from_array(weight_of(tensor, weights), tensor.name))


def point_at(tensor: TensorProto, location: str, offset: int, length: int) -> None:
    """Set where an external initializer stands: offset and length in bytes."""
    del tensor.external_data[:]
    entries = {"location": location, "offset": str(offset), "length": str(length)}
    for key, value in entries.items():
        entry = tensor.external_data.add()
        entry.key, entry.value = key, value


def unfolded_weights(graph: GraphProto) -> frozenset[str]:
    """Initializers that no engine rewrites: their memory can be lent to it as it is.

    A reader whose inputs are all constant (a transposition of a weight, say) is folded away. And where
    onnxruntime moves a transposition past an elementwise operator, it transposes that operator's constants
    in place, and would then use the lent ones, which are not transposed. So what others than the operators
    in `WEIGHTED` read is not lent.
    """
    folded: set[str] = set()
    constant = {tensor.name for inner in all_graphs(graph) for tensor in inner.initializer}
    for inner in all_graphs(graph):
        for node in inner.node:
            if node.op_type == "Constant":
                constant.update(node.output)
            elif node.input and all(name in constant for name in node.input if name):
                folded.update(node.input)
                constant.update(node.output)
            elif node.op_type not in WEIGHTED:
                folded.update(node.input)
    return frozenset(constant - folded)
