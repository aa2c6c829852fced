"""What a kernel for GPUs is; and its calls on arrays of the host, on the GPU of this process."""

from __future__ import annotations

import threading
from collections.abc import Sequence
from typing import Final, Protocol, runtime_checkable

import numpy as np

from intarsia.runtime.cuda.cuda_buffer import CudaBuffer
from intarsia.runtime.cuda.cuda_context import CudaContext
from intarsia.runtime.cuda.driver import CudaDriver
from intarsia.runtime.kernel import Array, Value
from intarsia.support.errors import ExecutionError

_OPENED: Final[dict[int, CudaContext]] = {}
_LOCK: Final = threading.Lock()


@runtime_checkable
class CudaKernel(Protocol):
    """A kernel that works on the memory of GPUs."""

    def run_on_gpu(
        self, gpu: CudaContext, inputs: Sequence[CudaBuffer], outputs: Sequence[CudaBuffer | None]
    ) -> list[CudaBuffer]:
        """Start to compute the outputs, behind all that was started in the stream of the GPU.

        Args:
            gpu: The GPU.
            inputs: Buffers of the GPU, one per parameter.
            outputs: Buffers for the results, or None for those that are to be allocated.

        Returns:
            The results, complete once the stream is; none shares memory with an input.

        Raises:
            ExecutionError: A buffer does not fit, or the kernel failed.
            MemoryError: The GPU has not as much memory.
        """


def opened_gpu(number: int = 0) -> CudaContext:
    """Return the GPU that kernels use which are called on arrays of the host; opened once in a process.

    Raises:
        MissingToolchainError: There is no driver, or no GPU.
        ExecutionError: There is no GPU of this number.
    """
    with _LOCK:
        gpu = _OPENED.get(number)
        if gpu is None or gpu.is_closed:
            gpu = _OPENED[number] = CudaContext.open(CudaDriver.load(), number)
        return gpu


def close_opened_gpus() -> None:
    """Close what `opened_gpu` has opened; kernels that were called there load anew."""
    with _LOCK:
        while _OPENED:
            _OPENED.popitem()[1].close()


def run_from_host(
    kernel: CudaKernel, inputs: Sequence[Value], outputs: Sequence[Array | None]
) -> list[Value]:
    """Run a kernel on arrays of the host, as `Kernel.run`: they are copied to the GPU and back.

    Raises:
        MissingToolchainError: There is no driver, or no GPU.
        ExecutionError: An input is no array of numbers, or the kernel failed.
    """
    gpu = opened_gpu()
    buffers = [gpu.put(number_array(value)) for value in inputs]
    results = kernel.run_on_gpu(gpu, buffers, [None] * len(outputs))
    return [gpu.get(buffer, given) for buffer, given in zip(results, outputs, strict=True)]


def number_array(value: Value) -> Array:
    """Return the value if it is an array of numbers.

    Raises:
        ExecutionError: It is none.
    """
    if not isinstance(value, np.ndarray) or value.dtype.kind in "OSU" or value.dtype.hasobject:
        kind = str(value.dtype) if isinstance(value, np.ndarray) else type(value).__name__
        raise ExecutionError(f"a GPU is given {kind}, expected an array of numbers")
    return value
