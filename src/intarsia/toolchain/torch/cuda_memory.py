"""Tensors over the memory of a GPU that torch did not allocate, and torch's work in a stream of ours."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any, Final

import torch

from intarsia.runtime.cuda.cuda_buffer import CudaBuffer
from intarsia.runtime.cuda.cuda_context import CudaContext
from intarsia.toolchain.torch.rule import Tensor


@dataclass(frozen=True, slots=True)
class _ArrayInterface:
    """A buffer as torch reads it (version 3 of the interface of CUDA arrays).

    Attributes:
        __cuda_array_interface__: Address, shape and element type.
    """

    __cuda_array_interface__: dict[str, Any]


def array_interface(buffer: CudaBuffer) -> dict[str, Any]:
    """Return the description of a buffer in the interface of CUDA arrays; an empty array has no address."""
    return {
        "shape": buffer.shape,
        "typestr": buffer.dtype.str,
        "data": (buffer.address if buffer.nbytes else 0, False),
        "strides": None,
        "version": 3,
    }


def tensor_over(buffer: CudaBuffer, number: int) -> Tensor:
    """Return a tensor over a buffer, which has to live as long.

    Args:
        buffer: The buffer.
        number: Number of its GPU.
    """
    return torch.as_tensor(_ArrayInterface(array_interface(buffer)), device=torch.device("cuda", number))


@contextmanager
def on_stream(gpu: CudaContext) -> Iterator[None]:
    """Let torch start its work in the stream of a GPU, and multiply float32 in full precision.

    By default convolutions round float32 to 10 bits of precision (TF32).
    """
    device = torch.device("cuda", gpu.number)
    stream = torch.cuda.ExternalStream(gpu.stream.value, device=device)
    with torch.cuda.stream(stream), full_precision():
        yield


@dataclass(slots=True)
class _Precision:
    """Threads that compute in full precision: torch's switches are those of the whole process.

    Attributes:
        users: Number of threads.
        allowed: Settings of the switches before the first of them, for convolutions and for products.
        lock: Lock of the others.
    """

    users: int = 0
    allowed: tuple[bool, bool] = (True, False)
    lock: threading.Lock = field(default_factory=threading.Lock)


_PRECISION: Final = _Precision()


@contextmanager
def full_precision() -> Iterator[None]:
    """Switch TF32 off, until the last thread that is in here leaves."""
    with _PRECISION.lock:
        if not _PRECISION.users:
            _PRECISION.allowed = torch.backends.cudnn.allow_tf32, torch.backends.cuda.matmul.allow_tf32
            torch.backends.cudnn.allow_tf32 = torch.backends.cuda.matmul.allow_tf32 = False
        _PRECISION.users += 1
    try:
        yield
    finally:
        with _PRECISION.lock:
            _PRECISION.users -= 1
            if not _PRECISION.users:
                allowed = _PRECISION.allowed
                torch.backends.cudnn.allow_tf32, torch.backends.cuda.matmul.allow_tf32 = allowed
