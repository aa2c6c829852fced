"""A machine with fake GPUs: for this process, and for those that it starts."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager

import pytest
from tests.gpu_on_cpu.cpu_kernels import grid_path
from tests.gpu_on_cpu.fake_gpu import fake_image_maker, fake_library, set_device_count, set_seed

from intarsia.runtime.cuda.cuda_device import CudaDevice
from intarsia.runtime.cuda.cuda_kernel import close_opened_gpus
from intarsia.runtime.devices.device import DEVICES
from intarsia.toolchain.native.gpu import compile_program


@contextmanager
def machine_with_gpus(count: int = 1, seed: int | None = None) -> Iterator[None]:
    """Let this process, and those that it starts, find the fake driver with so many GPUs.

    Args:
        count: Number of GPUs.
        seed: Seed of the times at which work is done; 0 for as late as it can be. That of FAKE_CUDA_SEED if
            not given.
    """
    seed = int(os.environ.get("FAKE_CUDA_SEED", "0")) if seed is None else seed
    with pytest.MonkeyPatch.context() as patched, DEVICES.holding(CudaDevice.kind, CudaDevice):
        patched.setenv("INTARSIA_LIBCUDA", str(fake_library()))
        patched.setenv("FAKE_CUDA_GRID", str(grid_path()))
        patched.setattr(compile_program, "image_maker", fake_image_maker)
        patched.setenv("FAKE_CUDA_SEED", str(seed))
        set_device_count(count)
        set_seed(seed)
        try:
            yield
        finally:
            close_opened_gpus()
            set_device_count(1)


@contextmanager
def machine_without_driver() -> Iterator[None]:
    """Let this process find no driver, also within `machine_with_gpus`.

    The fixture `monkeypatch` may end later than that, and would bring its driver back.
    """
    with pytest.MonkeyPatch.context() as patched:
        patched.setenv("INTARSIA_LIBCUDA", "libnothing.so.1")
        yield
