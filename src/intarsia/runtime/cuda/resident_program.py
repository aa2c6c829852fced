"""A program of GPU kernels whose inputs and results stay in the memory of the GPU, to be timed there."""

from __future__ import annotations

from collections.abc import Sequence

from intarsia.runtime.cuda.cuda_buffer import CudaBuffer
from intarsia.runtime.cuda.cuda_clock import CudaClock
from intarsia.runtime.cuda.cuda_kernel import CudaKernel, number_array, opened_gpu
from intarsia.runtime.executable import Executable
from intarsia.runtime.kernel import Array, Value
from intarsia.runtime.plan import RunKernel
from intarsia.support.errors import UsageError


class ResidentProgram:
    """A program without devices whose kernels are all for GPUs; a call only starts its work.

    Args:
        executable: The program.
        inputs: Inputs in order, which are copied to the GPU now.

    Attributes:
        clock: Clock of the GPU.

    Raises:
        UsageError: It has another kernel, or branches or calls.
        ExecutionError: An input is no array of numbers.
        MemoryError: The GPU has not as much memory.
    """

    def __init__(self, executable: Executable, inputs: Sequence[Value]) -> None:
        block, kernels = executable.plan.blocks["main"], executable.kernels
        self._gpu = opened_gpu()
        self._steps: list[tuple[CudaKernel, RunKernel]] = []
        for step in block.steps:
            kernel = kernels[step.kernel] if isinstance(step, RunKernel) else None
            if not isinstance(kernel, CudaKernel) or not isinstance(step, RunKernel):
                raise UsageError("only a program whose kernels are all for GPUs can be timed on one")
            self._steps.append((kernel, step))
        self._slots: list[CudaBuffer | None] = [None] * block.slots
        for slot, value in zip(block.params, inputs, strict=True):
            self._slots[slot] = self._gpu.put(number_array(value))
        for slot, number in block.constants:
            self._slots[slot] = self._gpu.put(executable.contents.constants[number])
        self._results = block.results
        self.clock = CudaClock(self._gpu)

    def __call__(self) -> None:
        """Start all kernels; the first call allocates what they write.

        Raises:
            ExecutionError: A kernel failed.
        """
        for kernel, step in self._steps:
            read = [buffer for buffer in (self._slots[slot] for slot in step.inputs) if buffer is not None]
            written = kernel.run_on_gpu(self._gpu, read, [self._slots[slot] for slot in step.outputs])
            for slot, buffer in zip(step.outputs, written, strict=True):
                self._slots[slot] = buffer

    def results(self) -> list[Array]:
        """Return the results of the last call, once it is complete.

        Raises:
            ExecutionError: A kernel failed.
        """
        return [self._gpu.get(buffer) for slot in self._results if (buffer := self._slots[slot]) is not None]
