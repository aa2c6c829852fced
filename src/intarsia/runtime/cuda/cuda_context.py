"""One GPU: its memory, modules, launches and times, in one stream."""

from __future__ import annotations

import ctypes
import itertools
import os
import threading
import weakref
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from typing import Any, Final

import numpy as np
import numpy.typing as npt

from intarsia.runtime.cuda.cuda_buffer import CudaBlock, CudaBuffer
from intarsia.runtime.cuda.driver import CudaDriver
from intarsia.runtime.cuda.memory_pool import MemoryPool
from intarsia.runtime.cuda.staging import StagingRing
from intarsia.support.errors import ExecutionError

_MAJOR, _MINOR, _MULTIPROCESSORS = 75, 76, 16
"""Numbers of device attributes: compute capability, and number of multiprocessors."""
_CACHE_BYTES: Final = 38
"""Number of the device attribute that is the size of the second-level cache."""
_LOG_BUFFER, _LOG_BYTES = 5, 6
"""Options of cuModuleLoadDataEx: the buffer for error messages of the assembler, and its size."""
_LOG_SIZE: Final = 8192
_DYNAMIC_SHARED_BYTES: Final = 8
"""Attribute of a function: the size of shared memory in bytes that its launches may ask for."""
_NAME_SIZE: Final = 256
STREAM_APART: Final = 1
"""Flag of a stream that does not wait for the default one."""

Array = npt.NDArray[Any]
_IDENTITIES = itertools.count(1)


class _Current(threading.local):
    """The GPU that is current in a thread.

    Attributes:
        number: Its number.
    """

    number: int = 0


_CURRENT: Final = _Current()


class _Recording(threading.local):
    """What a thread records on a GPU.

    Attributes:
        stream: The driver's handle of the stream that is recorded; None while nothing is.
    """

    stream: ctypes.c_void_p | None = None


def current_number() -> int:
    """Return the number of the GPU that is current in this thread; 0 before any is."""
    return _CURRENT.number


@dataclass(frozen=True)
class CudaModule:
    """Kernels in the memory of a GPU.

    Attributes:
        handle: The driver's handle of the module.
        functions: The driver's handle of each kernel, by its symbol.
    """

    handle: int
    functions: dict[str, int]


@dataclass(eq=False)
class CudaContext:
    """A GPU that this process uses, with a stream; any thread may call its methods.

    Work is started in order, and done by the GPU in that order; `synchronize` and `download` wait for it.

    Attributes:
        driver: The driver.
        number: Number of the GPU.
        handle: The driver's handle of the process's state on the GPU.
        device: The driver's handle of the GPU.
        name: Name of the GPU.
        capability: Compute capability, such as (9, 0).
        multiprocessors: Number of multiprocessors.
        own_stream: The driver's handle of the stream.
        identity: Number among all contexts of this process.
        pool: Its memory.
    """

    driver: CudaDriver
    number: int
    handle: ctypes.c_void_p
    device: int
    name: str
    capability: tuple[int, int]
    multiprocessors: int
    own_stream: ctypes.c_void_p
    identity: int = field(init=False, default_factory=_IDENTITIES.__next__)
    pool: MemoryPool = field(init=False)
    _process: int = field(init=False, default_factory=os.getpid)
    _staging: StagingRing = field(init=False)
    _modules: set[int] = field(init=False, default_factory=set)
    _recording: _Recording = field(init=False, default_factory=_Recording)
    _is_closed: bool = field(init=False, default=False)

    def __post_init__(self) -> None:
        self.pool = MemoryPool(self._allocate, self._free)
        self._staging = StagingRing(self.call, self.own_stream)

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
        driver.call("cuStreamCreate", ctypes.byref(stream), STREAM_APART)
        text = ctypes.create_string_buffer(_NAME_SIZE)
        driver.call("cuDeviceGetName", text, _NAME_SIZE, device)

        def attribute(which: int) -> int:
            value = ctypes.c_int()
            driver.call("cuDeviceGetAttribute", ctypes.byref(value), which, device)
            return value.value

        capability, count = (attribute(_MAJOR), attribute(_MINOR)), attribute(_MULTIPROCESSORS)
        return cls(driver, number, context, device.value, text.value.decode(), capability, count, stream)

    @property
    def is_closed(self) -> bool:
        """Whether its memory and modules are gone; also in a forked child, which cannot use them."""
        return self._is_closed or os.getpid() != self._process

    @property
    def stream(self) -> ctypes.c_void_p:
        """The driver's handle of the stream of work that this thread starts: the GPU's, or one it records."""
        return self._recording.stream or self.own_stream

    @contextmanager
    def recorded_in(self, stream: ctypes.c_void_p) -> Iterator[None]:
        """Let this thread start work in a stream that it records; other threads stay with the GPU's."""
        before, self._recording.stream = self._recording.stream, stream
        try:
            yield
        finally:
            self._recording.stream = before

    @property
    def cache_bytes(self) -> int:
        """Size of its second-level cache in bytes."""
        value = ctypes.c_int()
        self.call("cuDeviceGetAttribute", ctypes.byref(value), _CACHE_BYTES, self.device)
        return value.value

    def call(self, function: str, *arguments: object) -> None:
        """Call a function of the driver, with this GPU current in the calling thread.

        Raises:
            MemoryError: The GPU has not as much memory.
            ExecutionError: The function failed, or this process is a fork of the process that opened the GPU.
        """
        self.make_current()
        self.driver.call(function, *arguments)

    def make_current(self) -> None:
        """Make this GPU the current one of the calling thread, as `call` does.

        Raises:
            ExecutionError: The driver refuses it, or this process is a fork of the one that opened the GPU.
        """
        if os.getpid() != self._process:
            raise ExecutionError(
                "a forked process cannot use the GPU of its parent",
                help="load the program in the new process, or start it by spawn",
            )
        self.driver.call("cuCtxSetCurrent", self.handle)
        _CURRENT.number = self.number

    def new_buffer(self, shape: tuple[int, ...], dtype: np.dtype[Any]) -> CudaBuffer:
        """Return a buffer of the given shape and element type, with anything in it.

        Raises:
            MemoryError: The GPU has not as much memory.
        """
        block = self.new_block(int(np.prod(shape, dtype=np.int64)) * dtype.itemsize)
        return CudaBuffer(self.identity, block.address, shape, dtype, block)

    def new_block(self, size: int) -> CudaBlock:
        """Return memory of `size` bytes.

        Raises:
            MemoryError: The GPU has not as much memory.
        """
        block = CudaBlock(self.pool.allocate(size))
        weakref.finalize(block, self._give_back, block.address).atexit = False
        return block

    def put(self, array: Array) -> CudaBuffer:
        """Copy an array of the host to a new buffer; the array may change once this returns.

        Raises:
            MemoryError: The GPU has not as much memory.
        """
        buffer = self.new_buffer(array.shape, array.dtype)
        self.upload(buffer.address, np.asarray(array, order="C"))
        return buffer

    def get(self, buffer: CudaBuffer, into: Array | None = None) -> Array:
        """Return the array of a buffer once all work before is done, in `into` if it is given.

        Raises:
            ExecutionError: A kernel failed, or `into` has another shape or element type.
        """
        if into is not None and (into.shape, into.dtype) != (buffer.shape, buffer.dtype):
            expected = f"{into.dtype}{list(into.shape)}"
            raise ExecutionError(
                f"a copy between devices is {buffer.dtype}{list(buffer.shape)}, expected {expected}"
            )
        array = np.empty(buffer.shape, buffer.dtype) if into is None or not into.flags.c_contiguous else into
        self.download(array, buffer.address)
        if into is not None and array is not into:
            np.copyto(into, array)
        return array if into is None else into

    def upload(self, address: int, array: Array) -> None:
        """Copy a C-contiguous array to the GPU; the array may change once this returns."""
        self._staging.upload(address, array)

    def download(self, array: Array, address: int) -> None:
        """Copy memory of the GPU into a C-contiguous array, once all work before is done."""
        self._staging.download(array, address)

    def copy(self, target: int, source: int, size: int) -> None:
        """Copy `size` bytes inside the GPU."""
        if size:
            self.call("cuMemcpyDtoDAsync_v2", target, source, size, self.stream)

    def copy_from(self, other: CudaContext, target: int, source: int, size: int) -> None:
        """Copy `size` complete bytes from the memory of another GPU, or another stream of this one."""
        if size:
            self.call("cuMemcpyPeerAsync", target, self.handle, source, other.handle, size, self.stream)

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
            self.call("cuModuleLoadDataEx", ctypes.byref(module), image, 2, options, values)
        except ExecutionError as error:
            message = log.value.decode(errors="replace").strip()
            if message:
                error.add_note(message)
            raise
        self._modules.add(module.value or 0)
        functions = {}
        for symbol in symbols:
            function = ctypes.c_void_p()
            self.call("cuModuleGetFunction", ctypes.byref(function), module, symbol.encode())
            functions[symbol] = function.value or 0
        return CudaModule(module.value or 0, functions)

    def unload(self, module: CudaModule) -> None:
        """Remove kernels from the GPU's memory."""
        self._modules.discard(module.handle)
        self.call("cuModuleUnload", module.handle)

    def allow_shared(self, function: int, size: int) -> None:
        """Allow launches of a kernel to ask for so many bytes of shared memory, more than kernels declare.

        Raises:
            ExecutionError: Blocks of the GPU have not as much.
        """
        self.call("cuFuncSetAttribute", function, _DYNAMIC_SHARED_BYTES, size)

    def launch(
        self, function: int, blocks: int, threads: int, addresses: Sequence[int], shared_bytes: int = 0
    ) -> None:
        """Launch a kernel on buffers at addresses of the GPU; it runs after all work before.

        Args:
            function: The driver's handle of the kernel.
            blocks: Number of blocks.
            threads: Number of threads of a block.
            addresses: Its arguments.
            shared_bytes: Size of shared memory of a block in bytes that the kernel does not declare; above
                48 KB only after `allow_shared`.
        """
        values = (ctypes.c_uint64 * max(1, len(addresses)))(*addresses)
        size, start = ctypes.sizeof(ctypes.c_uint64), ctypes.addressof(values)
        pointers = (ctypes.c_void_p * max(1, len(addresses)))(
            *(start + size * number for number in range(len(addresses)))
        )
        grid = (blocks, 1, 1, threads, 1, 1)
        self.call("cuLaunchKernel", function, *grid, shared_bytes, self.stream, pointers, None)

    def synchronize(self) -> None:
        """Wait until all work is done; what is being recorded is none.

        Raises:
            ExecutionError: A kernel failed.
        """
        # Not `stream`: garbage that is collected during a recording may wait for its work, and waiting for
        # a stream that is recorded ends the recording.
        self.call("cuStreamSynchronize", self.own_stream)

    def close(self) -> None:
        """Free all memory, modules and the stream, and release the GPU; closing again does nothing."""
        if self.is_closed:
            return
        with suppress(ExecutionError):  # after a fault of a kernel, every call of the driver fails
            self.synchronize()
            self._staging.close()
            self.pool.close()
            for module in self._modules:
                self.call("cuModuleUnload", module)
            self.call("cuStreamDestroy_v2", self.own_stream)
            self.call("cuDevicePrimaryCtxRelease_v2", self.device)
        self._is_closed = True

    def _give_back(self, address: int) -> None:
        if not self.is_closed:
            self.pool.free(address)

    def _allocate(self, size: int) -> int:
        address = ctypes.c_uint64()
        self.call("cuMemAlloc_v2", ctypes.byref(address), size)
        return address.value

    def _free(self, address: int) -> None:
        self.call("cuMemFree_v2", address)
