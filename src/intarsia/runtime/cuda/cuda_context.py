"""One GPU: its memory, modules, launches and times, in one stream."""

from __future__ import annotations

import ctypes
from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from typing import Any, Final

import numpy.typing as npt

from intarsia.runtime.cuda.driver import CudaDriver
from intarsia.runtime.cuda.memory_pool import MemoryPool
from intarsia.support.errors import ExecutionError

_MAJOR, _MINOR, _MULTIPROCESSORS = 75, 76, 16
"""Numbers of device attributes: compute capability, and number of multiprocessors."""
_LOG_BUFFER, _LOG_BYTES = 5, 6
"""Options of cuModuleLoadDataEx: the buffer for error messages of the assembler, and its size."""
_LOG_SIZE: Final = 8192
_NAME_SIZE: Final = 256

Array = npt.NDArray[Any]


@dataclass(frozen=True)
class CudaModule:
    """Kernels in the memory of a GPU.

    Attributes:
        handle: The driver's handle of the module.
        functions: The driver's handle of each kernel, by its symbol.
    """

    handle: int
    functions: dict[str, int]


@dataclass
class CudaContext:
    """A GPU that this process uses; its methods belong to the thread that opened it.

    Attributes:
        driver: The driver.
        device: The driver's handle of the GPU.
        name: Name of the GPU.
        capability: Compute capability, such as (9, 0).
        multiprocessors: Number of multiprocessors.
        stream: The driver's handle of the stream.
    """

    driver: CudaDriver
    device: int
    name: str
    capability: tuple[int, int]
    multiprocessors: int
    stream: ctypes.c_void_p
    pool: MemoryPool = field(init=False)

    def __post_init__(self) -> None:
        self.pool = MemoryPool(self._allocate, self._free)

    @classmethod
    def open(cls, driver: CudaDriver, number: int = 0) -> CudaContext:
        """Open a GPU by its number.

        Raises:
            ExecutionError: There is no such GPU, or it cannot be used.
        """
        if not 0 <= number < driver.device_count():
            raise ExecutionError(f"there is no GPU {number}; expected less than {driver.device_count()}")
        device, context, stream = ctypes.c_int(), ctypes.c_void_p(), ctypes.c_void_p()
        driver.call("cuDeviceGet", ctypes.byref(device), number)
        driver.call("cuDevicePrimaryCtxRetain", ctypes.byref(context), device)
        driver.call("cuCtxSetCurrent", context)
        driver.call("cuStreamCreate", ctypes.byref(stream), 0)
        text = ctypes.create_string_buffer(_NAME_SIZE)
        driver.call("cuDeviceGetName", text, _NAME_SIZE, device)

        def attribute(which: int) -> int:
            value = ctypes.c_int()
            driver.call("cuDeviceGetAttribute", ctypes.byref(value), which, device)
            return value.value

        capability = attribute(_MAJOR), attribute(_MINOR)
        return cls(driver, device.value, text.value.decode(), capability, attribute(_MULTIPROCESSORS), stream)

    def upload(self, address: int, array: Array) -> None:
        """Copy a C-contiguous array to the GPU."""
        if array.nbytes:
            self.driver.call("cuMemcpyHtoDAsync_v2", address, array.ctypes.data, array.nbytes, self.stream)

    def download(self, array: Array, address: int) -> None:
        """Copy memory of the GPU into a C-contiguous array, once all work before is done."""
        if array.nbytes:
            self.driver.call("cuMemcpyDtoHAsync_v2", array.ctypes.data, address, array.nbytes, self.stream)
        self.synchronize()

    def copy(self, target: int, source: int, size: int) -> None:
        """Copy `size` bytes inside the GPU."""
        if size:
            self.driver.call("cuMemcpyDtoDAsync_v2", target, source, size, self.stream)

    def load(self, image: bytes, symbols: Sequence[str]) -> CudaModule:
        """Load kernels from PTX text or machine code.

        Raises:
            ExecutionError: The driver refuses the code; the message has the assembler's.
        """
        log = ctypes.create_string_buffer(_LOG_SIZE)
        options = (ctypes.c_int * 2)(_LOG_BUFFER, _LOG_BYTES)
        values = (ctypes.c_void_p * 2)(ctypes.addressof(log), _LOG_SIZE)
        module = ctypes.c_void_p()
        try:
            self.driver.call("cuModuleLoadDataEx", ctypes.byref(module), image, 2, options, values)
        except ExecutionError as error:
            message = log.value.decode(errors="replace").strip()
            if message:
                error.add_note(message)
            raise
        functions = {}
        for symbol in symbols:
            function = ctypes.c_void_p()
            self.driver.call("cuModuleGetFunction", ctypes.byref(function), module, symbol.encode())
            functions[symbol] = function.value or 0
        return CudaModule(module.value or 0, functions)

    def unload(self, module: CudaModule) -> None:
        """Remove kernels from the GPU's memory."""
        self.driver.call("cuModuleUnload", module.handle)

    def launch(self, function: int, blocks: int, threads: int, addresses: Sequence[int]) -> None:
        """Launch a kernel on buffers at addresses of the GPU; it runs after all work before."""
        values = (ctypes.c_uint64 * max(1, len(addresses)))(*addresses)
        size, start = ctypes.sizeof(ctypes.c_uint64), ctypes.addressof(values)
        pointers = (ctypes.c_void_p * max(1, len(addresses)))(
            *(start + size * number for number in range(len(addresses)))
        )
        grid = (blocks, 1, 1, threads, 1, 1)
        self.driver.call("cuLaunchKernel", function, *grid, 0, self.stream, pointers, None)

    def synchronize(self) -> None:
        """Wait until all work is done.

        Raises:
            ExecutionError: A kernel failed.
        """
        self.driver.call("cuStreamSynchronize", self.stream)

    def time(self, work: Callable[[], None]) -> float:
        """Run work that only starts work of the GPU; return the time that the GPU took, in seconds."""
        start, end, elapsed = ctypes.c_void_p(), ctypes.c_void_p(), ctypes.c_float()
        for event in (start, end):
            self.driver.call("cuEventCreate", ctypes.byref(event), 0)
        try:
            self.driver.call("cuEventRecord", start, self.stream)
            work()
            self.driver.call("cuEventRecord", end, self.stream)
            self.driver.call("cuEventSynchronize", end)
            self.driver.call("cuEventElapsedTime", ctypes.byref(elapsed), start, end)
        finally:
            for event in (start, end):
                self.driver.call("cuEventDestroy_v2", event)
        return elapsed.value / 1000

    def close(self) -> None:
        """Free the memory of the pool and the stream, and release the GPU."""
        with suppress(ExecutionError):  # after a fault of a kernel, every call of the driver fails
            self.pool.trim()
            self.driver.call("cuStreamDestroy_v2", self.stream)
            self.driver.call("cuDevicePrimaryCtxRelease_v2", self.device)

    def _allocate(self, size: int) -> int:
        address = ctypes.c_uint64()
        self.driver.call("cuMemAlloc_v2", ctypes.byref(address), size)
        return address.value

    def _free(self, address: int) -> None:
        self.driver.call("cuMemFree_v2", address)
