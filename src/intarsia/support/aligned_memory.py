"""Memory whose first byte is aligned."""

from __future__ import annotations

from typing import Any, Final

import numpy as np

ALIGNMENT: Final = 64
"""Bytes: a cache line, and the widest vector register."""


def allocate_aligned(size: int) -> np.ndarray[Any, np.dtype[np.uint8]]:
    """Uninitialised memory of `size` bytes, the first of which is aligned.

    Raises:
        MemoryError: There is not so much.
    """
    if size > np.iinfo(np.intp).max - ALIGNMENT:
        raise MemoryError(f"{size} bytes are more than any machine can address")
    raw = np.empty(size + ALIGNMENT, np.uint8)
    start = -raw.ctypes.data % ALIGNMENT
    return raw[start : start + size]


def aligned_array(array: np.ndarray[Any, Any]) -> np.ndarray[Any, Any]:
    """The array if it is C-contiguous and its first byte is aligned, else such a copy of it.

    Vectors as wide as a cache line take two accesses each where they begin in the middle of one.
    """
    if array.flags.c_contiguous and not array.ctypes.data % ALIGNMENT:
        return array
    copy: np.ndarray[Any, Any] = allocate_aligned(array.nbytes).view(array.dtype).reshape(array.shape)
    np.copyto(copy, array)
    return copy
