"""Memory whose first byte is aligned."""

from __future__ import annotations

from typing import Any, Final

import numpy as np

ALIGNMENT: Final = 64
"""Bytes: a cache line, and the widest vector register."""


def aligned_bytes(size: int) -> np.ndarray[Any, np.dtype[np.uint8]]:
    """Uninitialised memory of `size` bytes, the first of which is aligned.

    Raises:
        MemoryError: There is not so much.
    """
    if size > np.iinfo(np.intp).max - ALIGNMENT:
        raise MemoryError(f"{size} bytes are more than any machine can address")
    raw = np.empty(size + ALIGNMENT, np.uint8)
    start = -raw.ctypes.data % ALIGNMENT
    return raw[start : start + size]
