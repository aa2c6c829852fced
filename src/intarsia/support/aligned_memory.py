"""Memory with an aligned first byte."""

from __future__ import annotations

from typing import Any, Final

import numpy as np

ALIGNMENT: Final = 64
"""Bytes: a cache line, and the widest vector register."""


def allocate_aligned(size: int) -> np.ndarray[Any, np.dtype[np.uint8]]:
    """Allocate `size` bytes of uninitialised memory that begin at a multiple of `ALIGNMENT`.

    Raises:
        MemoryError: The size exceeds the address space or the memory that is free.
    """
    if size > np.iinfo(np.intp).max - ALIGNMENT:
        raise MemoryError(f"{size} bytes are more than any machine can address")
    # NumPy aligns to 16 bytes only: allocate one cache line more and begin at its first multiple of 64.
    raw = np.empty(size + ALIGNMENT, np.uint8)
    start = -raw.ctypes.data % ALIGNMENT
    return raw[start : start + size]


def aligned_array(array: np.ndarray[Any, Any]) -> np.ndarray[Any, Any]:
    """Return the array if it is C-contiguous and aligned, else a copy that is both.

    A vector load as wide as a cache line costs two accesses where it crosses from one line into the next.
    """
    if array.flags.c_contiguous and not array.ctypes.data % ALIGNMENT:
        return array
    return aligned_copy(array)


def aligned_copy(array: np.ndarray[Any, Any]) -> np.ndarray[Any, Any]:
    """Return a C-contiguous, aligned copy of an array."""
    copy: np.ndarray[Any, Any] = allocate_aligned(array.nbytes).view(array.dtype).reshape(array.shape)
    np.copyto(copy, array)
    return copy
