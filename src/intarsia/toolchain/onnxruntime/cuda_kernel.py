"""What onnxruntime compiles to for GPUs: sessions whose inputs and results are bound to the GPU's memory.

A session works in a stream of its own: what is in ours is waited for before a run, and a run ends when its
work is done.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, Final

import numpy as np

from intarsia.runtime.clones import source_on_threads
from intarsia.runtime.cuda.cuda_buffer import CudaBuffer
from intarsia.runtime.cuda.cuda_context import CudaContext, current_number
from intarsia.runtime.cuda.cuda_kernel import run_from_host
from intarsia.runtime.kernel import Array, KernelSource, Value
from intarsia.support.errors import CompileError, ExecutionError, UsageError
from intarsia.target.device_type import DeviceType
from intarsia.toolchain.input_identity import put_identity_behind_inputs
from intarsia.toolchain.onnx_port import Port, input_ports, output_ports, parse_model, refuse_packed
from intarsia.toolchain.onnxruntime.message import onnxruntime_message
from intarsia.toolchain.onnxruntime.providers import load_libraries
from intarsia.toolchain.onnxruntime.session import create_session

if TYPE_CHECKING:
    from onnx import ModelProto

    from intarsia.toolchain.whole_profiler import WholeProfiler

MEMORY: Final = DeviceType.CUDA.kind
"""Where buffers are, as onnxruntime calls it."""


def load_cuda_kernel(source: KernelSource) -> CudaOnnxKernel:
    """Return the kernel of a source, with a session on the GPU that is current in this thread.

    Raises:
        CompileError: onnxruntime refuses the source, or inputs or results are no arrays of numbers.
    """
    graph = _model_of(source).graph
    inputs, outputs = input_ports(graph), output_ports(graph)
    refuse_packed("onnxruntime", (*inputs, *outputs))
    for port in (*inputs, *outputs):
        if not port.is_plain:
            raise CompileError(f"onnxruntime cannot compile this: {port.name!r} is no array of numbers")
    load_libraries()
    kernel = CudaOnnxKernel(source, inputs, outputs)
    kernel.open_session(current_number())
    return kernel


class CudaOnnxKernel:
    """A model with a session for each GPU that runs it; arrays of the host are copied there and back.

    Args:
        source: Source of the model.
        inputs: Its inputs.
        outputs: Its outputs.
    """

    def __init__(self, source: KernelSource, inputs: tuple[Port, ...], outputs: tuple[Port, ...]) -> None:
        self.source = source
        self._inputs, self._outputs = inputs, outputs
        self._sessions: dict[int, tuple[Any, object]] = {}
        self._is_closed = False

    def blob(self) -> bytes | None:
        """None: a session is quickly made from its source."""
        return None

    def start_profiler(self) -> WholeProfiler:
        """As `ProfilableKernel.start_profiler`: one row for all operators, copies included."""
        from intarsia.toolchain.whole_profiler import WholeProfiler

        return WholeProfiler(self)

    def clones(self, count: int, threads: int | None = None) -> Sequence[CudaOnnxKernel]:
        """As `ClonableKernel.clones`: each has sessions of its own."""
        self._refuse_if_closed()
        source = source_on_threads(self.source, threads)
        return [CudaOnnxKernel(source, self._inputs, self._outputs) for _ in range(count)]

    def close(self) -> None:
        """Let go of the sessions."""
        self._is_closed = True
        self._sessions.clear()

    def run(self, inputs: Sequence[Value], outputs: Sequence[Array | None]) -> list[Value]:
        """As `Kernel.run`."""
        return run_from_host(self, inputs, outputs)

    def run_on_gpu(
        self, gpu: CudaContext, inputs: Sequence[CudaBuffer], outputs: Sequence[CudaBuffer | None]
    ) -> list[CudaBuffer]:
        """As `CudaKernel.run_on_gpu`; it waits for its own work."""
        session = self.open_session(gpu.number)
        binding = session.io_binding()
        for port, buffer in zip(self._inputs, inputs, strict=True):
            _bind(binding.bind_input, port, buffer, gpu.number)
        targets = [self._target(gpu, port, given) for port, given in zip(self._outputs, outputs, strict=True)]
        for port, target in zip(self._outputs, targets, strict=True):
            if target is None:  # its shape is known after the run only
                binding.bind_output(port.name, "cpu", 0)
            else:
                _bind(binding.bind_output, port, target, gpu.number)
        gpu.synchronize()
        try:
            session.run_with_iobinding(binding)
        except Exception as error:  # onnxruntime has no common base class for its exceptions
            raise ExecutionError(f"onnxruntime failed: {onnxruntime_message(error)}") from error
        return [
            gpu.put(np.asarray(binding.get_outputs()[position].numpy())) if target is None else target
            for position, target in enumerate(targets)
        ]

    def open_session(self, number: int) -> Any:
        """Return the session on a GPU, made at the first call.

        Raises:
            CompileError: onnxruntime refuses the source.
            UsageError: The kernel is closed.
        """
        self._refuse_if_closed()
        if number not in self._sessions:
            self._sessions[number] = create_session(_model_of(self.source), self.source, number=number)
        return self._sessions[number][0]

    def _target(self, gpu: CudaContext, port: Port, given: CudaBuffer | None) -> CudaBuffer | None:
        if given is not None or port.shape is None:
            return given
        assert port.dtype is not None
        return gpu.new_buffer(port.shape, port.dtype)

    def _refuse_if_closed(self) -> None:
        if self._is_closed:
            raise UsageError("the kernel is closed")


def _model_of(source: KernelSource) -> ModelProto:
    model = parse_model(source, "onnxruntime")
    if {port.name for port in input_ports(model.graph)} & {port.name for port in output_ports(model.graph)}:
        put_identity_behind_inputs(model.graph)  # for the reason given in `kernel`
    return model


def _bind(bind: Any, port: Port, buffer: CudaBuffer, number: int) -> None:
    """Bind an input or output to a buffer.

    Raises:
        ExecutionError: The buffer has another element type or shape.
    """
    is_fitting = port.shape is None or buffer.shape == port.shape
    if buffer.dtype != port.dtype or not is_fitting:
        expected = f"{port.dtype}{'' if port.shape is None else list(port.shape)}"
        raise ExecutionError(f"{port.name} is {buffer.dtype}{list(buffer.shape)}; expected {expected}")
    bind(port.name, MEMORY, number, port.element_type, buffer.shape, buffer.address)
