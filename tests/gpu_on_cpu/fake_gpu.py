"""A fake GPU: the driver's functions on this CPU, and images that it loads."""

from __future__ import annotations

import ctypes
import functools
from collections.abc import Sequence
from pathlib import Path

from tests.gpu_on_cpu.cpu_kernels import compile_c, grid_library, kernel_library

from intarsia.native.gpu.emit_kernels import Launch
from intarsia.runtime.cuda.cuda_context import CudaContext
from intarsia.runtime.cuda.driver import CudaDriver
from intarsia.toolchain.native.gpu.compile_program import ImageMaker


@functools.cache
def fake_library() -> Path:
    """The fake libcuda; it finds the runner of grids in this process."""
    grid_library()
    return compile_c(Path(__file__).with_name("fake_libcuda.c"), "-ldl", "-lpthread")


def fake_number(name: str) -> int:
    """A count of the fake driver in this process."""
    return ctypes.c_size_t.in_dll(ctypes.CDLL(str(fake_library())), name).value


def used_bytes() -> int:
    """Bytes of the fake GPUs that are allocated."""
    function = ctypes.CDLL(str(fake_library())).fake_used_bytes
    function.restype = ctypes.c_size_t
    return int(function())


def set_device_count(count: int) -> None:
    """Let the fake driver list so many GPUs, two at most."""
    ctypes.c_int.in_dll(ctypes.CDLL(str(fake_library())), "fake_device_count").value = count


def set_seed(seed: int) -> None:
    """Let each call of the fake driver do drawn parts of what is started; 0 for all as late as it can be."""
    ctypes.c_uint64.in_dll(ctypes.CDLL(str(fake_library())), "fake_seed").value = seed


def finish_work() -> None:
    """Do the work of all streams, for code of the host that reaches the memory of fake GPUs."""
    ctypes.CDLL(str(fake_library())).fake_finish()


def forget_faults() -> None:
    """Let the fake driver go on after a fault of a kernel, which a real one never does in a process."""
    ctypes.CDLL(str(fake_library())).fake_reset()


def fake_driver() -> CudaDriver:
    return CudaDriver.load(str(fake_library()))


def fake_context() -> CudaContext:
    return CudaContext.open(fake_driver())


def fake_image(text: str, launches: Sequence[Launch]) -> bytes:
    """The image of kernels for the fake driver."""
    return str(kernel_library(text, launches)).encode() + b"\0"


def fake_image_maker(model: str) -> ImageMaker:  # the CPU form is the same for all models
    """The maker of images for the fake driver, in place of that of PTX."""
    return fake_image
