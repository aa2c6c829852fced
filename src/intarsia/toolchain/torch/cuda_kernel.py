"""What torch compiles to for GPUs: the operators of a graph on tensors over buffers of a device."""

from __future__ import annotations

from collections.abc import Sequence

from intarsia.runtime.cuda.cuda_buffer import CudaBuffer
from intarsia.runtime.cuda.cuda_context import CudaContext
from intarsia.runtime.cuda.cuda_kernel import run_from_host
from intarsia.runtime.kernel import Array, Kernel, KernelSource, Value
from intarsia.support.errors import ExecutionError
from intarsia.toolchain.torch import cuda_memory
from intarsia.toolchain.torch.kernel import TorchKernel, load_kernel
from intarsia.toolchain.torch.rule import Tensor
from intarsia.toolchain.torch.types import numpy_dtype_of


class CudaTorchKernel(TorchKernel):
    """Calls the operators in the stream of a GPU; arrays of the host are copied there and back."""

    def run(self, inputs: Sequence[Value], outputs: Sequence[Array | None]) -> list[Value]:
        """As `Kernel.run`."""
        return run_from_host(self, inputs, outputs)

    def run_on_gpu(
        self, gpu: CudaContext, inputs: Sequence[CudaBuffer], outputs: Sequence[CudaBuffer | None]
    ) -> list[CudaBuffer]:
        """As `CudaKernel.run_on_gpu`."""
        with cuda_memory.on_stream(gpu):
            results = self.compute([cuda_memory.tensor_over(buffer, gpu.number) for buffer in inputs])
            return [_copied(gpu, tensor, given) for tensor, given in zip(results, outputs, strict=True)]


def load_cuda_kernel(source: KernelSource) -> Kernel:
    """The kernel of a source for the GPU that is current in this thread.

    Raises:
        CompileError: torch cannot compile the source.
    """
    return load_kernel(source, CudaTorchKernel)


def _copied(gpu: CudaContext, tensor: Tensor, given: CudaBuffer | None) -> CudaBuffer:
    """Copy a result, which may share memory with an input or a weight, into a buffer."""
    shape, dtype = tuple(tensor.shape), numpy_dtype_of(tensor.dtype)
    buffer = gpu.new_buffer(shape, dtype) if given is None else given
    if (buffer.shape, buffer.dtype) != (shape, dtype):
        raise ExecutionError(
            f"torch computed {dtype}{list(shape)}, expected {buffer.dtype}{list(buffer.shape)}"
        )
    cuda_memory.tensor_over(buffer, gpu.number).copy_(tensor)
    return buffer
