"""`cuda:i`: a GPU as a device of programs, through its driver alone; all toolchains share its memory."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from typing import Any, ClassVar

import numpy as np

from intarsia.runtime.cuda.cuda_buffer import CudaBuffer
from intarsia.runtime.cuda.cuda_context import CudaContext
from intarsia.runtime.cuda.cuda_kernel import CudaKernel, number_array
from intarsia.runtime.cuda.driver import CudaDriver
from intarsia.runtime.devices.core_groups import CoreGroup
from intarsia.runtime.devices.device import Buffer, Device
from intarsia.runtime.devices.device_name import DeviceName
from intarsia.runtime.devices.worker import Worker
from intarsia.runtime.kernel import Array, Value
from intarsia.runtime.kernel_call import NamedKernel
from intarsia.support.errors import ExecutionError, IntarsiaError, MissingToolchainError


class CudaDevice:
    """A GPU with a stream of its own, in which one thread starts all work; copies go through pinned memory.

    Attributes:
        gpu: The GPU.

    Raises:
        MissingToolchainError: There is no driver, or no such GPU.
    """

    kind: ClassVar[str] = "cuda"
    default_toolchain: ClassVar[str | None] = "native"

    def __init__(self, name: DeviceName, cores: CoreGroup) -> None:  # noqa: ARG002 - has no cores
        self.name = name
        try:
            driver = CudaDriver.load()
        except MissingToolchainError as error:
            raise MissingToolchainError(
                f"{name} is not usable here: {error.problem}", help=error.help
            ) from error
        if name.number >= driver.device_count():
            raise MissingToolchainError(
                f"{name} is not usable here: the NVIDIA driver lists {driver.device_count()} GPUs",
                help="place the program on other devices",
            )
        self.gpu = CudaContext.open(driver, name.number)
        self.worker = Worker(str(name))
        # Libraries that kernels call take the GPU that is current in their thread.
        self.worker.call(self.gpu.make_current)

    def allocate(self, size: int) -> CudaBuffer:
        """As `Device.allocate`."""
        return self.gpu.new_buffer((size,), np.dtype(np.uint8))

    def view(
        self, block: CudaBuffer, offset: int, shape: tuple[int, ...], dtype: np.dtype[Any]
    ) -> CudaBuffer:
        """As `Device.view`."""
        return CudaBuffer(block.gpu, block.address + offset, shape, dtype, block.block)

    def adopt(self, array: Array) -> None:  # noqa: ARG002 - none is reached
        """Return None: kernels have no access to host memory."""
        return

    def put(self, value: Value) -> CudaBuffer:
        """As `Device.put`."""
        try:
            return self.gpu.put(number_array(value))
        except MemoryError as error:
            raise self._no_memory(error) from error
        except IntarsiaError as error:
            error.add_note(f"on {self.name}")
            raise

    def get(self, buffer: CudaBuffer, into: Array | None = None) -> Array:
        """As `Device.get`."""
        self._refuse_strangers([buffer])
        return self.gpu.get(buffer, into)

    def receive(self, source: Device, buffer: Buffer, into: CudaBuffer | None) -> CudaBuffer:
        """As `Device.receive`; between GPUs without a way over the host."""
        if not isinstance(source, CudaDevice):
            value = number_array(source.get(buffer))
            target = self._target(value.shape, value.dtype, into)
            self.gpu.upload(target.address, np.asarray(value, order="C"))
            return target
        source._refuse_strangers([buffer])
        target = self._target(buffer.shape, buffer.dtype, into)
        self.gpu.copy_from(source.gpu, target.address, buffer.address, buffer.nbytes)
        return target

    def run(
        self, kernel: NamedKernel, inputs: Sequence[CudaBuffer], outputs: Sequence[CudaBuffer | None]
    ) -> list[CudaBuffer]:
        """As `Device.run`; it only starts the kernel."""
        return kernel.call(partial(self._start, kernel), inputs, outputs)

    def synchronize(self) -> None:
        """As `Device.synchronize`."""
        self.gpu.synchronize()

    def close(self) -> None:
        """End the thread, and free all memory of the device."""
        self.worker.close()
        self.gpu.close()

    def _start(
        self, kernel: NamedKernel, inputs: Sequence[CudaBuffer], outputs: Sequence[CudaBuffer | None]
    ) -> list[CudaBuffer]:
        self._refuse_strangers([*inputs, *(buffer for buffer in outputs if buffer is not None)])
        if not isinstance(kernel.kernel, CudaKernel):
            toolchain, target = kernel.kernel.source.toolchain, kernel.kernel.source.target
            raise ExecutionError(
                f'{self.name} is given a kernel of {toolchain} for "{target}", expected one for GPUs',
                help="native, torch, onnxruntime and tensorrt make kernels for GPUs",
            )
        if kernel.is_watched:
            return self._run_watched(kernel, inputs, outputs)
        return kernel.kernel.run_on_gpu(self.gpu, inputs, outputs)

    def _run_watched(
        self, kernel: NamedKernel, inputs: Sequence[CudaBuffer], outputs: Sequence[CudaBuffer | None]
    ) -> list[CudaBuffer]:
        """Run a kernel by its profiler, which takes arrays of the host."""
        results = kernel.run_kernel([self.gpu.get(buffer) for buffer in inputs], [None] * len(outputs))
        buffers = []
        for value, given in zip(results, outputs, strict=True):
            array = number_array(value)
            target = self._target(array.shape, array.dtype, given)
            self.gpu.upload(target.address, np.asarray(array, order="C"))
            buffers.append(target)
        return buffers

    def _target(self, shape: tuple[int, ...], dtype: np.dtype[Any], into: CudaBuffer | None) -> CudaBuffer:
        if into is None:
            try:
                return self.gpu.new_buffer(shape, dtype)
            except MemoryError as error:
                raise self._no_memory(error) from error
        if (shape, dtype) != (into.shape, into.dtype):
            raise ExecutionError(
                f"a copy between devices is {dtype}{list(shape)}, expected {into.dtype}{list(into.shape)}"
            )
        return into

    def _no_memory(self, error: MemoryError) -> ExecutionError:
        return ExecutionError(f"{self.name} has not enough memory: {error}")

    def _refuse_strangers(self, values: Sequence[object]) -> None:
        for value in values:
            if not isinstance(value, CudaBuffer) or value.gpu != self.gpu.identity:
                given = value if isinstance(value, CudaBuffer) else f"a {type(value).__name__}"
                raise ExecutionError(f"{self.name} is given {given}, which is not in its memory")
