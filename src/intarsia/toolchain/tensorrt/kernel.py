"""What TensorRT compiles to: an engine, with an execution context on each GPU that runs it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from intarsia.runtime.clones import source_on_threads
from intarsia.runtime.cuda.cuda_buffer import CudaBuffer
from intarsia.runtime.cuda.cuda_context import CudaContext
from intarsia.runtime.cuda.cuda_kernel import run_from_host
from intarsia.runtime.kernel import Array, KernelSource, Value
from intarsia.support.errors import CompileError, ExecutionError, UsageError
from intarsia.toolchain.onnx_port import Port, input_ports, output_ports, parse_model

if TYPE_CHECKING:
    from intarsia.toolchain.whole_profiler import WholeProfiler


@dataclass(frozen=True, slots=True)
class _Loaded:
    """An engine on a GPU; what is loaded lives as long as what loaded it.

    Attributes:
        owners: Logger, runtime and engine.
        context: Execution context.
    """

    owners: tuple[Any, ...]
    context: Any


class TensorRtKernel:
    """An engine; arrays of the host are copied to a GPU and back.

    Args:
        source: Source of the engine.
        engine: The engine, serialised.
    """

    def __init__(self, source: KernelSource, engine: bytes) -> None:
        self.source = source
        graph = parse_model(source, "tensorrt").graph
        self._inputs, self._outputs = input_ports(graph), output_ports(graph)
        self._engine = engine
        self._loaded: dict[int, _Loaded] = {}
        self._is_closed = False

    def blob(self) -> bytes | None:
        """The engine, for the same version of TensorRT on the same model of GPU."""
        return self._engine

    def start_profiler(self) -> WholeProfiler:
        """As `ProfilableKernel.start_profiler`: one row for all operators, copies included."""
        from intarsia.toolchain.whole_profiler import WholeProfiler

        return WholeProfiler(self)

    def clones(self, count: int, threads: int | None = None) -> Sequence[TensorRtKernel]:
        """As `ClonableKernel.clones`: the engine is shared, its copies on GPUs are not."""
        self._refuse_if_closed()
        source = source_on_threads(self.source, threads)
        return [TensorRtKernel(source, self._engine) for _ in range(count)]

    def close(self) -> None:
        """Let go of the engine."""
        self._is_closed = True
        self._loaded.clear()

    def run(self, inputs: Sequence[Value], outputs: Sequence[Array | None]) -> list[Value]:
        """As `Kernel.run`."""
        return run_from_host(self, inputs, outputs)

    def run_on_gpu(
        self, gpu: CudaContext, inputs: Sequence[CudaBuffer], outputs: Sequence[CudaBuffer | None]
    ) -> list[CudaBuffer]:
        """As `CudaKernel.run_on_gpu`."""
        gpu.make_current()
        if gpu.identity not in self._loaded:
            self._loaded[gpu.identity] = self.load_engine()
        context = self._loaded[gpu.identity].context
        results = [
            _new_buffer(gpu, port) if given is None else given
            for port, given in zip(self._outputs, outputs, strict=True)
        ]
        ports = (*self._inputs, *self._outputs)
        for port, buffer in zip(ports, [*inputs, *results], strict=True):
            if (buffer.shape, buffer.dtype) != (port.shape, port.dtype):
                given = f"{buffer.dtype}{list(buffer.shape)}"
                raise ExecutionError(f"{port.name} is {given}; expected {port.dtype}{list(port.shape or ())}")
            if not context.set_tensor_address(port.name, buffer.address):
                raise ExecutionError(f"tensorrt failed: it refuses the address of {port.name}")
        if not context.execute_async_v3(gpu.stream.value):
            raise ExecutionError("tensorrt failed: it did not start the engine; its log says why")
        return results

    def load_engine(self) -> _Loaded:
        """Load the engine on the GPU that is current in this thread.

        Raises:
            CompileError: It is of another version of TensorRT, or for another model of GPU.
            UsageError: The kernel is closed.
        """
        self._refuse_if_closed()
        import tensorrt

        logger = tensorrt.Logger(tensorrt.Logger.ERROR)
        runtime = tensorrt.Runtime(logger)
        engine = runtime.deserialize_cuda_engine(self._engine)
        context = None if engine is None else engine.create_execution_context()
        if context is None:
            raise CompileError("tensorrt cannot load this engine here: it is of another version or GPU")
        return _Loaded((logger, runtime, engine), context)

    def _refuse_if_closed(self) -> None:
        if self._is_closed:
            raise UsageError("the kernel is closed")


def _new_buffer(gpu: CudaContext, port: Port) -> CudaBuffer:
    assert port.shape is not None, "the engine was refused"
    assert port.dtype is not None, "the engine was refused"
    return gpu.new_buffer(port.shape, port.dtype)
