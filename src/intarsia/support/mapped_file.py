"""Files in memory: their pages are resident only as long as something reads them."""

from __future__ import annotations

import mmap
from pathlib import Path
from typing import Any, Final

import numpy as np

_DONT_NEED: Final = getattr(mmap, "MADV_DONTNEED", None)


def map_file(path: Path, offset: int, size: int) -> np.ndarray[Any, np.dtype[np.uint8]]:
    """Return bytes of a file as a read-only array, mapped and not read.

    Args:
        path: The file, which must not change while the array lives.
        offset: Position of the first byte.
        size: Number of bytes, at least 1.

    Raises:
        OSError: The file cannot be mapped.
        ValueError: It has fewer bytes.
    """
    return np.memmap(path, np.uint8, mode="r", offset=offset, shape=(size,)).view(np.ndarray)


def drop_pages(array: np.ndarray[Any, Any]) -> None:
    """Take the whole pages of an array out of this process's memory, if it is a view of a mapped file.

    The file is read again when something reads the array. Arrays that are no contiguous views of a file which
    is mapped for reading stay as they are: their pages may be the only copy.
    """
    owner: Any = array
    while isinstance(owner.base, np.ndarray):
        owner = owner.base
    if _DONT_NEED is None or not isinstance(owner, np.memmap) or owner.mode != "r":
        return
    if not array.flags.c_contiguous or not isinstance(owner.base, mmap.mmap):
        return
    start = array.ctypes.data - np.frombuffer(owner.base, np.uint8).ctypes.data
    first, end = -(-start // mmap.PAGESIZE) * mmap.PAGESIZE, start + array.nbytes
    length = end // mmap.PAGESIZE * mmap.PAGESIZE - first
    if length > 0:
        owner.base.madvise(_DONT_NEED, first, length)
