"""What OpenVINO compiles to: a request whose tensors are the caller's arrays.

The request holds addresses only: nothing here keeps an array of a call alive after it. Memory that is gone
may still be bound between two calls; `run` binds anew what does not lie where it is bound.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from intarsia.runtime.clones import source_on_threads
from intarsia.runtime.kernel import Array, Kernel, KernelSource, Value
from intarsia.support.array_address import array_address
from intarsia.support.errors import CompileError, ExecutionError, UsageError
from intarsia.support.forks import prevent_destruction, reset_in_children
from intarsia.target import Target
from intarsia.toolchain.bound_memory import BoundMemory
from intarsia.toolchain.delivery import deliver
from intarsia.toolchain.input_identity import behind
from intarsia.toolchain.onnx_port import (
    Port,
    bindable,
    input_ports,
    output_ports,
    parse_model,
    refuse_packed,
)
from intarsia.toolchain.openvino.integer_ranges import Interval
from intarsia.toolchain.openvino.limits import input_limits, refuse_beyond
from intarsia.toolchain.openvino.message import openvino_message
from intarsia.toolchain.openvino.model import (
    compile_model,
    export_model,
    import_model,
    returns_an_input,
)
from intarsia.toolchain.openvino.process import OpenVinoProcess
from intarsia.toolchain.openvino.properties import refuse_unmet_options

if TYPE_CHECKING:
    from intarsia.toolchain.openvino.profiler import OpenVinoProfiler


def load_kernel(source: KernelSource, blob: bytes | None) -> OpenVinoKernel | OpenVinoProcess:
    """The kernel of a source, imported from the blob if that succeeds; in a forked child, another process.

    Raises:
        CompileError: OpenVINO refuses the source.
    """
    if _IN_THIS_PROCESS.is_of_parent:
        return OpenVinoProcess(source)
    model = parse_model(source, "openvino")
    inputs, outputs = input_ports(model.graph), output_ports(model.graph)
    refuse_packed("openvino", (*inputs, *outputs))
    for port in (*inputs, *outputs):
        if not port.is_plain:
            raise CompileError(f"openvino cannot compile this: {port.name!r} is no tensor of numbers")
    _IN_THIS_PROCESS.is_used = True
    compiled = None if blob is None else import_model(blob, model, source)
    compiled = compiled or compile_model(model, source)
    refuse_unmet_options(compiled, Target(source.target), only_results=True)
    metadata = {item.key: item.value for item in model.metadata_props}
    return OpenVinoKernel(source, compiled, inputs, outputs, input_limits(metadata, inputs))


def start_profiler(source: KernelSource) -> OpenVinoProfiler:
    """Start the profiler of a kernel, with a compiled model of its own.

    Raises:
        CompileError: OpenVINO refuses the source.
    """
    from intarsia.toolchain.openvino.profiler import OpenVinoProfiler

    model = parse_model(source, "openvino")
    inputs, outputs = input_ports(model.graph), output_ports(model.graph)
    compiled = compile_model(model, source, is_profiled=True)
    kernel = OpenVinoKernel(source, compiled, inputs, outputs, {})
    return OpenVinoProfiler(kernel, compiled)


class _InThisProcess:
    """Whether OpenVINO has been used here: in a child that is forked after that, it is unsafe.

    Attributes:
        is_used: Something has been compiled or imported in this process, or in the one that it was forked of.
        is_of_parent: Whether the parent process loaded it.
    """

    def __init__(self) -> None:
        self.is_used = self.is_of_parent = False
        reset_in_children(self)

    def reset_in_child(self) -> None:
        """Remember that OpenVINO's threads and locks are the parent's."""
        self.is_of_parent = self.is_used


_IN_THIS_PROCESS = _InThisProcess()


class OpenVinoKernel:
    """A compiled model and one request, bound to the arrays of the last call.

    Results are written to the caller's buffers if their shape is fixed, OpenVINO keeps their type and
    shape, and no result is an input; else they are copied out of OpenVINO's own tensors.
    """

    def __init__(
        self,
        source: KernelSource,
        compiled: Any,
        inputs: tuple[Port, ...],
        outputs: tuple[Port, ...],
        limits: Mapping[int, Interval],
    ) -> None:
        self.source = source
        self._input_ports = inputs
        self._output_ports = outputs
        self._compiled: Any = compiled
        self._request: Any = _request_of(compiled)
        self._bound_inputs = tuple(BoundMemory() for _ in inputs)
        self._bound_outputs = tuple(BoundMemory() for _ in outputs)
        numbers = {name: number for number, port in enumerate(compiled.inputs) for name in port.names}
        self._numbers = tuple(  # None: OpenVINO dropped the input, because nothing needs it
            numbers.get(behind(port.name), numbers.get(port.name)) for port in inputs
        )
        can_bind = not returns_an_input(compiled)
        self._is_bound = tuple(
            can_bind and _keeps_type(*pair) for pair in zip(compiled.outputs, outputs, strict=True)
        )
        self._limits = limits
        self._is_of_parent = False
        self._substitute: OpenVinoProcess | None = None
        reset_in_children(self)

    def reset_in_child(self) -> None:
        """Leave the compiled model to the parent, which has its threads; the next run starts a process."""
        if self._request is not None:
            prevent_destruction(self._compiled)
            prevent_destruction(self._request)
            self._is_of_parent = True

    def blob(self) -> bytes | None:
        """The compiled model, for the same version of OpenVINO on the same kind of CPU."""
        self._refuse_if_closed()
        return export_model(self._compiled)

    def refuse_unmet_options(self) -> None:
        """Refuse options of the target that OpenVINO does otherwise on this machine.

        Raises:
            CompileError: There is one.
        """
        self._refuse_if_closed()
        refuse_unmet_options(self._compiled, Target(self.source.target))

    def start_profiler(self) -> OpenVinoProfiler:
        """As `ProfilableKernel.start_profiler`.

        Raises:
            CompileError: The parent process has the model, or OpenVINO refuses to compile it again.
        """
        self._refuse_if_closed()
        if self._is_of_parent:
            raise CompileError("openvino runs in another process here, which is not profiled")
        return start_profiler(self.source)

    def node_times(self) -> Sequence[Any]:
        """Return OpenVINO's `ProfilingInfo` of each node, if the model is compiled with it.

        Raises:
            UsageError: The kernel is closed.
        """
        self._refuse_if_closed()
        return list(self._request.profiling_info)

    def clones(self, count: int, threads: int | None = None) -> Sequence[Kernel]:
        """As `ClonableKernel.clones`: requests of one compiled model, which has a stream for each of them.

        With the threads of this kernel they share its one stream, and take turns there.

        Raises:
            CompileError: OpenVINO refuses the source on so many threads, or for want of memory.
        """
        self._refuse_if_closed()
        source = source_on_threads(self.source, threads)
        if self._is_of_parent:
            return [OpenVinoProcess(source) for _ in range(count)]
        compiled = self._compiled
        if threads is not None:
            compiled = compile_model(parse_model(source, "openvino"), source, streams=count)
        ports = self._input_ports, self._output_ports
        return [OpenVinoKernel(source, compiled, *ports, self._limits) for _ in range(count)]

    def close(self) -> None:
        """Let go of the request and the compiled model."""
        if self._substitute is not None:
            self._substitute.close()
        self._request = self._compiled = self._substitute = None

    def run(self, inputs: Sequence[Value], outputs: Sequence[Array | None]) -> list[Value]:
        """As `Kernel.run`; what lies where it lay on the last call is not bound again."""
        self._refuse_if_closed()
        if self._is_of_parent:
            self._substitute = self._substitute or OpenVinoProcess(self.source)
            return self._substitute.run(inputs, outputs)
        for position, limits in self._limits.items():
            refuse_beyond(inputs[position], self._input_ports[position], limits)
        for position, value in enumerate(inputs):
            if not self._bound_inputs[position].is_at(value):
                self._bind_input(position, value)
        targets = [
            self._bind_output(position, given) if self._is_bound[position] else given
            for position, given in enumerate(outputs)
        ]
        try:
            # Shared: the default copies every result into a new array, which is never read here.
            self._request.infer(share_outputs=True)
        except Exception as error:  # OpenVINO has no common base class for its exceptions
            raise ExecutionError(f"openvino failed: {openvino_message(error)}") from error
        return [
            target if is_bound else self._copied(position, target)
            for position, (target, is_bound) in enumerate(zip(targets, self._is_bound, strict=True))
        ]

    def _bind_input(self, position: int, value: Value) -> None:
        array, bound = bindable(value, self._input_ports[position]), self._bound_inputs[position]
        number, address = self._numbers[position], array_address(array)
        bound.forget()  # until it is bound: OpenVINO may refuse
        if number is not None:
            tensor = _tensor(array, address, self._compiled.inputs[number].element_type)
            self._call(self._request.set_input_tensor, number, tensor)
        bound.note(array, address)

    def _bind_output(self, position: int, given: Array | None) -> Array:
        """Bind the given array, or one made here."""
        port, bound = self._output_ports[position], self._bound_outputs[position]
        if given is None:
            assert port.shape is not None
            given = np.empty(port.shape, port.dtype)
        if not bound.is_at(given):
            array = bindable(given, port)
            address = array_address(array)
            bound.forget()
            tensor = _tensor(array, address, self._compiled.outputs[position].element_type)
            self._call(self._request.set_output_tensor, position, tensor)
            bound.note(array, address)
        return given

    def _copied(self, position: int, given: Array | None) -> Value:
        value = self._request.get_output_tensor(position).data
        dtype = self._output_ports[position].dtype
        assert dtype is not None
        if dtype.isbuiltin != 1 and value.dtype.itemsize == dtype.itemsize:
            value = value.view(dtype)  # OpenVINO shows bfloat16 as float16
        if given is not None and value.size == given.size:
            value = value.reshape(given.shape)  # scalars may come as one-element vectors
        return deliver(value.astype(dtype, copy=given is None), given)

    def _refuse_if_closed(self) -> None:
        if self._request is None:
            raise UsageError("the kernel is closed")

    @staticmethod
    def _call(function: Any, number: int, tensor: Any) -> None:
        try:
            function(number, tensor)
        except RuntimeError as error:
            raise ExecutionError(f"openvino failed: {openvino_message(error)}") from error


def _request_of(compiled: Any) -> Any:
    """A request of a compiled model, which allocates the tensors between its operators.

    Raises:
        CompileError: OpenVINO refuses to, as where there is too little memory.
    """
    try:
        return compiled.create_infer_request()
    except Exception as error:  # OpenVINO has no common base class for its exceptions
        raise CompileError(f"openvino cannot compile this: {openvino_message(error)}") from error


def _keeps_type(tensor: Any, port: Port) -> bool:
    """Whether an output of the compiled model has the fixed shape and the type that the source declares."""
    shape = tensor.get_partial_shape()
    if port.shape is None or shape.is_dynamic or tuple(shape.to_shape()) != port.shape:
        return False
    assert port.dtype is not None
    return bool(tensor.element_type.size == port.dtype.itemsize) and _has_kind(
        tensor.element_type, port.dtype
    )


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


def _tensor(array: Array, address: int, element_type: Any) -> Any:
    """A tensor of OpenVINO on the array's memory, which neither holds the array nor owns the memory."""
    from openvino import Shape, Tensor

    if array.dtype.isbuiltin != 1:
        words = array.view(np.uint8 if array.dtype.itemsize == 1 else np.uint16)
        return Tensor(np.asarray(_Memory(words, address)), Shape(array.shape), element_type)
    return Tensor(np.asarray(_Memory(array, address)), shared_memory=True)


class _Memory:
    """NumPy's array interface on the memory of an array: writable, because OpenVINO takes no other.

    OpenVINO does not write to inputs.
    """

    def __init__(self, array: Array, address: int) -> None:
        self.__array_interface__ = {
            "version": 3,
            "shape": array.shape,
            "typestr": array.dtype.str,
            "data": (address, False),
        }
