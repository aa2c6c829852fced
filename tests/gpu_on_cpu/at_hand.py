"""Lets workers make images for the fake driver, which has faults planted there: they import this module."""

from __future__ import annotations

import os

from tests.gpu_on_cpu.fake_gpu import fake_image_maker
from tests.only_in_workers import is_worker

from intarsia.runtime.cuda.cuda_device import CudaDevice
from intarsia.runtime.devices.device import DEVICES
from intarsia.toolchain.native.gpu import compile_program

FAULT_BLOCKS = 77
"""Kernels of so many blocks access an illegal address."""
HANG_BLOCKS = 79
"""Kernels of so many blocks never end."""
GPU_BYTES = 8 << 20

if is_worker():
    compile_program.image_maker = fake_image_maker
    DEVICES.replace(CudaDevice.kind, CudaDevice)
    os.environ["FAKE_CUDA_FAULT_BLOCKS"] = str(FAULT_BLOCKS)
    os.environ["FAKE_CUDA_HANG_BLOCKS"] = str(HANG_BLOCKS)
    os.environ["FAKE_CUDA_BYTES"] = str(GPU_BYTES)
