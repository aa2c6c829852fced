"""The functions of the CUDA driver, by ctypes; each failure is an error with the driver's name for it."""

from __future__ import annotations

import ctypes
import os
from dataclasses import dataclass
from typing import Any, Final

from intarsia.support.environment import CUDA_LIBRARY
from intarsia.support.errors import ExecutionError, MissingToolchainError
from intarsia.support.spoilt_process import spoil_process

LIBRARY: Final = "libcuda.so.1"
"""Name of the driver's library on Linux."""
_OUT_OF_MEMORY: Final = 2
_LOST: Final = frozenset({214, 700, 702, 710, *range(714, 720)})
"""Errors after which all later calls of the process fail: faults of kernels, hangs, and broken memory."""
_PROTOTYPES: Final[dict[str, tuple[Any, ...]]] = {
    "cuInit": (ctypes.c_uint,),
    "cuDriverGetVersion": (ctypes.c_void_p,),
    "cuDeviceGetCount": (ctypes.c_void_p,),
    "cuDeviceGet": (ctypes.c_void_p, ctypes.c_int),
    "cuDeviceTotalMem_v2": (ctypes.c_void_p, ctypes.c_int),
    "cuDeviceGetName": (ctypes.c_char_p, ctypes.c_int, ctypes.c_int),
    "cuDeviceGetAttribute": (ctypes.c_void_p, ctypes.c_int, ctypes.c_int),
    "cuDevicePrimaryCtxRetain": (ctypes.c_void_p, ctypes.c_int),
    "cuDevicePrimaryCtxRelease_v2": (ctypes.c_int,),
    "cuCtxSetCurrent": (ctypes.c_void_p,),
    "cuMemAlloc_v2": (ctypes.c_void_p, ctypes.c_size_t),
    "cuMemFree_v2": (ctypes.c_uint64,),
    "cuMemHostAlloc": (ctypes.c_void_p, ctypes.c_size_t, ctypes.c_uint),
    "cuMemFreeHost": (ctypes.c_void_p,),
    "cuMemcpyPeerAsync": (
        *(ctypes.c_uint64, ctypes.c_void_p, ctypes.c_uint64, ctypes.c_void_p),
        *(ctypes.c_size_t, ctypes.c_void_p),
    ),
    "cuMemcpyHtoDAsync_v2": (ctypes.c_uint64, ctypes.c_void_p, ctypes.c_size_t, ctypes.c_void_p),
    "cuMemcpyDtoHAsync_v2": (ctypes.c_void_p, ctypes.c_uint64, ctypes.c_size_t, ctypes.c_void_p),
    "cuMemcpyDtoDAsync_v2": (ctypes.c_uint64, ctypes.c_uint64, ctypes.c_size_t, ctypes.c_void_p),
    "cuModuleLoadDataEx": (
        ctypes.c_void_p,
        *(ctypes.c_char_p, ctypes.c_uint, ctypes.c_void_p, ctypes.c_void_p),
    ),
    "cuModuleUnload": (ctypes.c_void_p,),
    "cuModuleGetFunction": (ctypes.c_void_p, ctypes.c_void_p, ctypes.c_char_p),
    "cuFuncSetAttribute": (ctypes.c_void_p, ctypes.c_int, ctypes.c_int),
    "cuLaunchKernel": (
        *(ctypes.c_void_p, *(ctypes.c_uint,) * 7),
        *(ctypes.c_void_p, ctypes.c_void_p, ctypes.c_void_p),
    ),
    "cuStreamCreate": (ctypes.c_void_p, ctypes.c_uint),
    "cuStreamSynchronize": (ctypes.c_void_p,),
    "cuStreamDestroy_v2": (ctypes.c_void_p,),
    "cuStreamBeginCapture_v2": (ctypes.c_void_p, ctypes.c_int),
    "cuStreamEndCapture": (ctypes.c_void_p, ctypes.c_void_p),
    "cuGraphInstantiateWithFlags": (ctypes.c_void_p, ctypes.c_void_p, ctypes.c_ulonglong),
    "cuGraphLaunch": (ctypes.c_void_p, ctypes.c_void_p),
    "cuGraphDestroy": (ctypes.c_void_p,),
    "cuGraphExecDestroy": (ctypes.c_void_p,),
    "cuEventCreate": (ctypes.c_void_p, ctypes.c_uint),
    "cuEventRecord": (ctypes.c_void_p, ctypes.c_void_p),
    "cuEventSynchronize": (ctypes.c_void_p,),
    "cuEventElapsedTime": (ctypes.c_void_p, ctypes.c_void_p, ctypes.c_void_p),
    "cuEventDestroy_v2": (ctypes.c_void_p,),
}


@dataclass(eq=False)
class GpuLostError(ExecutionError):
    """A kernel has faulted; this process cannot use the GPU any more."""


def library_name() -> str:
    """Return the name or path of the driver's library: that of the variable INTARSIA_LIBCUDA if it is set."""
    return os.environ.get(CUDA_LIBRARY) or LIBRARY


@dataclass(frozen=True)
class CudaDriver:
    """The driver, initialised.

    Attributes:
        library: The loaded library.
    """

    library: ctypes.CDLL

    @classmethod
    def load(cls, name: str | None = None) -> CudaDriver:
        """Load and initialise the driver.

        Args:
            name: Name or path of the library; that of `library_name` if not given.

        Raises:
            MissingToolchainError: There is no driver, or no GPU.
        """
        try:
            library = ctypes.CDLL(name or library_name())
        except OSError as error:
            raise MissingToolchainError(
                f"there is no NVIDIA driver here: {error}",
                help="run this on a machine with an NVIDIA GPU and its driver",
            ) from error
        for function, arguments in _PROTOTYPES.items():
            symbol = getattr(library, function, None)
            if symbol is None:
                raise MissingToolchainError(
                    f"the NVIDIA driver here is too old: it has no {function}", help="install a newer driver"
                )
            symbol.argtypes = arguments
        driver = cls(library)
        code = library.cuInit(0)
        if code or not driver.device_count():
            reason = driver.error_name(code) if code else "it lists no GPU"
            raise MissingToolchainError(f"the NVIDIA driver finds no GPU: {reason}", help="check nvidia-smi")
        return driver

    def call(self, function: str, *arguments: object) -> None:
        """Call a function of the driver.

        Raises:
            MemoryError: The GPU has not as much memory.
            GpuLostError: A kernel has faulted, now or before.
            ExecutionError: The function failed otherwise.
        """
        code = getattr(self.library, function)(*arguments)
        if code == _OUT_OF_MEMORY:
            raise MemoryError(f"{function}: {self.error_name(code)}")
        if code in _LOST:
            spoil_process()
            raise GpuLostError(
                f"the GPU is lost to this process: {function} returned {self.error_name(code)}",
                help="a kernel has faulted; only another process can use the GPU again",
            )
        if code:
            raise ExecutionError(f"the CUDA driver failed: {function} returned {self.error_name(code)}")

    def error_name(self, code: int) -> str:
        """Return the driver's name of an error."""
        name = ctypes.c_char_p()
        self.library.cuGetErrorName(code, ctypes.byref(name))
        return name.value.decode() if name.value else f"error {code}"

    def device_count(self) -> int:
        """Return the number of GPUs."""
        count = ctypes.c_int()
        self.call("cuDeviceGetCount", ctypes.byref(count))
        return count.value
