"""A fake GPU: the driver's functions on this CPU, and images that it loads."""

from __future__ import annotations

import functools
from collections.abc import Iterable
from pathlib import Path

from tests.gpu_on_cpu.cpu_kernels import compile_c, grid_library, kernel_library

from intarsia.native.gpu.emit_kernels import Launch
from intarsia.runtime.cuda.cuda_context import CudaContext
from intarsia.runtime.cuda.driver import CudaDriver


@functools.cache
def fake_library() -> Path:
    """The fake libcuda; it finds the runner of grids in this process."""
    grid_library()
    return compile_c(Path(__file__).with_name("fake_libcuda.c"), "-ldl")


def fake_driver() -> CudaDriver:
    return CudaDriver.load(str(fake_library()))


def fake_context() -> CudaContext:
    return CudaContext.open(fake_driver())


def fake_image(text: str, launches: Iterable[Launch]) -> bytes:
    """The image of kernels for the fake driver."""
    return str(kernel_library(text, launches)).encode() + b"\0"
