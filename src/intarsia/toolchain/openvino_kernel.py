"""What OpenVINO compiles to: a request whose tensors are the caller's arrays."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from intarsia.runtime.kernel import Array, Kernel, KernelSource, Value
from intarsia.support.errors import CompileError, ExecutionError
from intarsia.toolchain.delivery import deliver
from intarsia.toolchain.engine_message import openvino_message
from intarsia.toolchain.input_identity import behind
from intarsia.toolchain.onnx_port import (
    Port,
    bindable,
    input_ports,
    output_ports,
    parse_model,
    refuse_packed,
)
from intarsia.toolchain.openvino_model import (
    compile_model,
    export_model,
    import_model,
    returns_an_input,
)


def load_kernel(source: KernelSource, blob: bytes | None) -> Kernel:
    """The kernel of a source, imported from the blob if that succeeds.

    Raises:
        CompileError: OpenVINO refuses the source.
    """
    model = parse_model(source, "openvino")
    inputs, outputs = input_ports(model.graph), output_ports(model.graph)
    refuse_packed("openvino", (*inputs, *outputs))
    for port in (*inputs, *outputs):
        if not port.is_plain:
            raise CompileError(f"openvino cannot compile this: {port.name!r} is no tensor of numbers")
    compiled = None if blob is None else import_model(blob, source)
    return OpenVinoKernel(source, compiled or compile_model(model, source), inputs, outputs)


class OpenVinoKernel:
    """A compiled model and one request, bound to the arrays of the last call.

    Results are written where the caller wants them if their shape is fixed, OpenVINO keeps their type and
    shape, and no result is an input; else they are copied out of OpenVINO's own tensors.
    """

    def __init__(
        self,
        source: KernelSource,
        compiled: Any,
        inputs: tuple[Port, ...],
        outputs: tuple[Port, ...],
    ) -> None:
        self.source = source
        self._compiled = compiled
        self._request = compiled.create_infer_request()
        self._input_ports = inputs
        self._output_ports = outputs
        numbers = {name: number for number, port in enumerate(compiled.inputs) for name in port.names}
        self._numbers = tuple(  # None: OpenVINO dropped the input, because nothing needs it
            numbers.get(behind(port.name), numbers.get(port.name)) for port in inputs
        )
        can_bind = not returns_an_input(compiled)
        self._is_bound = tuple(
            can_bind and _keeps_type(*pair) for pair in zip(compiled.outputs, outputs, strict=True)
        )
        self._inputs: list[Value] = [None] * len(inputs)
        self._outputs: list[Array | None] = [None] * len(outputs)

    def blob(self) -> bytes | None:
        """The compiled model, for the same version of OpenVINO on the same kind of CPU."""
        return export_model(self._compiled)

    def run(self, inputs: Sequence[Value], outputs: Sequence[Array | None]) -> list[Value]:
        """As `Kernel.run`; arrays that came on the last call are not bound again."""
        for position, value in enumerate(inputs):
            if value is not self._inputs[position]:
                self._bind_input(position, value)
        for position, given in enumerate(outputs):
            if self._is_bound[position] and (given is None or given is not self._outputs[position]):
                self._bind_output(position, given)
        try:
            # Shared: the default copies every result into a new array, which nobody here looks at.
            self._request.infer(share_outputs=True)
        except Exception as error:  # OpenVINO has no common base class for its exceptions
            raise ExecutionError(f"openvino failed: {openvino_message(error)}") from error
        return [
            self._outputs[position] if is_bound else self._copied(position, outputs[position])
            for position, is_bound in enumerate(self._is_bound)
        ]

    def _bind_input(self, position: int, value: Value) -> None:
        array = bindable(value, self._input_ports[position])
        number = self._numbers[position]
        if number is not None:
            element_type = self._compiled.inputs[number].element_type
            self._call(self._request.set_input_tensor, number, _tensor(array, element_type))
        self._inputs[position] = value

    def _bind_output(self, position: int, given: Array | None) -> None:
        port = self._output_ports[position]
        if given is None:
            assert port.shape is not None
            given = np.empty(port.shape, port.dtype)
        element_type = self._compiled.outputs[position].element_type
        tensor = _tensor(bindable(given, port), element_type)
        self._call(self._request.set_output_tensor, position, tensor)
        self._outputs[position] = given

    def _copied(self, position: int, given: Array | None) -> Value:
        value = self._request.get_output_tensor(position).data
        dtype = self._output_ports[position].dtype
        assert dtype is not None
        if dtype.isbuiltin != 1 and value.dtype.itemsize == dtype.itemsize:
            value = value.view(dtype)  # OpenVINO shows bfloat16 as float16
        if given is not None and value.size == given.size:
            value = value.reshape(given.shape)  # scalars may come as one-element vectors
        return deliver(value.astype(dtype, copy=given is None), given)

    @staticmethod
    def _call(function: Any, number: int, tensor: Any) -> None:
        try:
            function(number, tensor)
        except RuntimeError as error:
            raise ExecutionError(f"openvino failed: {openvino_message(error)}") from error


def _keeps_type(found: Any, port: Port) -> bool:
    """Whether an output of the compiled model has the fixed shape and the type that the source declares."""
    shape = found.get_partial_shape()
    if port.shape is None or shape.is_dynamic or tuple(shape.to_shape()) != port.shape:
        return False
    assert port.dtype is not None
    return bool(found.element_type.size == port.dtype.itemsize) and _has_kind(found.element_type, port.dtype)


def _has_kind(element_type: Any, dtype: np.dtype[Any]) -> bool:
    if dtype.isbuiltin != 1:
        return bool(_OPENVINO_NAMES.get(dtype.name) == element_type.get_type_name())
    return bool(element_type.to_dtype() == dtype)


_OPENVINO_NAMES = {
    "bfloat16": "bf16",
    "float8_e4m3fn": "f8e4m3",
    "float8_e5m2": "f8e5m2",
    "float8_e8m0fnu": "f8e8m0",
}


def _tensor(array: Array, element_type: Any) -> Any:
    """A tensor of OpenVINO on the array's memory."""
    from openvino import Shape, Tensor

    if array.dtype.isbuiltin != 1:
        words = array.view(np.uint8 if array.dtype.itemsize == 1 else np.uint16)
        return Tensor(_writable(words), Shape(array.shape), element_type)
    return Tensor(_writable(array), shared_memory=True)


def _writable(array: Array) -> Array:
    """The same memory as a writable array: OpenVINO takes no other, and does not write to inputs."""
    return array if array.flags.writeable else np.asarray(_WritableView(array))


class _WritableView:
    """NumPy's array interface on an array's memory, without its read-only flag."""

    def __init__(self, array: Array) -> None:
        self._array = array  # keeps the memory alive
        self.__array_interface__ = {**array.__array_interface__, "data": (array.ctypes.data, False)}
