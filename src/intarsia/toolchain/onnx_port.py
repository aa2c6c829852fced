"""Inputs and outputs of an ONNX model, as kernels see them."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from intarsia.runtime.kernel import Array, KernelSource, Value
from intarsia.support.errors import CompileError, ExecutionError
from intarsia.toolchain.external_weights import is_packed, refuse_stray_external

if TYPE_CHECKING:
    from onnx import GraphProto, ModelProto, ValueInfoProto


@dataclass(frozen=True, slots=True)
class Port:
    """An input or output of a model.

    Attributes:
        name: Its name in the graph.
        dtype: NumPy dtype (object for strings); None for a sequence, an optional or an undeclared type.
        element_type: ONNX's number of the element type, 0 where `dtype` is None.
        shape: The shape if every dimension is declared as a number, else None.
    """

    name: str
    dtype: np.dtype[Any] | None
    element_type: int
    shape: tuple[int, ...] | None

    @property
    def is_plain(self) -> bool:
        """Whether its values are arrays whose memory an engine can use as it is (no strings, no packing)."""
        return self.dtype is not None and self.dtype.kind != "O" and not is_packed(self.dtype)


def input_ports(graph: GraphProto) -> tuple[Port, ...]:
    """What the caller passes, in order; initializers that are listed as inputs are left out."""
    defaults = {tensor.name for tensor in graph.initializer}
    return _ports(value for value in graph.input if value.name not in defaults)


def output_ports(graph: GraphProto) -> tuple[Port, ...]:
    """What the caller gets, in order."""
    return _ports(graph.output)


def _ports(values: Iterable[ValueInfoProto]) -> tuple[Port, ...]:
    return tuple(map(_port, values))


def _port(value: ValueInfoProto) -> Port:
    from onnx import helper

    tensor = value.type.tensor_type
    if value.type.WhichOneof("value") != "tensor_type" or not tensor.elem_type:
        return Port(value.name, None, 0, None)
    dims = [dim.dim_value if dim.HasField("dim_value") else -1 for dim in tensor.shape.dim]
    static = tensor.HasField("shape") and all(dim >= 0 for dim in dims)
    dtype = np.dtype(helper.tensor_dtype_to_np_dtype(tensor.elem_type))
    return Port(value.name, dtype, tensor.elem_type, tuple(dims) if static else None)


def parse_model(source: KernelSource, toolchain: str) -> ModelProto:
    """The model of a source.

    Raises:
        CompileError: Its bytes are no ONNX model, or a tensor that is no initializer is external.
    """
    from google.protobuf.message import DecodeError
    from onnx import ModelProto

    try:
        model = ModelProto.FromString(source.model)
    except DecodeError:
        raise CompileError(f"{toolchain} cannot compile this: the source is no ONNX model") from None
    refuse_stray_external(model, toolchain)
    return model


def refuse_packed(toolchain: str, ports: Sequence[Port]) -> None:
    """Refuse inputs and outputs of four bits and less: NumPy has another layout than ONNX.

    Raises:
        CompileError: There is one.
    """
    for port in ports:
        if port.dtype is not None and is_packed(port.dtype):
            raise CompileError(
                f"{toolchain} cannot compile this: {port.name!r} passes {port.dtype} in and out of it"
            )


def bindable(value: Value, port: Port) -> Array:
    """The value, if its memory can be used as that of the port.

    Raises:
        ExecutionError: It is no array of the port's element type, or not contiguous.
    """
    if not isinstance(value, np.ndarray) or value.dtype != port.dtype or not value.flags.c_contiguous:
        found = f"{value.dtype} array" if isinstance(value, np.ndarray) else type(value).__name__
        raise ExecutionError(f"{port.name!r} needs a contiguous {port.dtype} array, found {found}")
    return value
