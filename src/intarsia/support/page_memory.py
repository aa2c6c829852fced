"""Large memory that stays, in pages of its own: huge ones unless those take far more time than small ones.

A huge page of 2 MiB spares 511 page faults, some 0.7 ms, and costs 0.1 ms, but up to 4 ms in a virtual
machine that gives free memory back to its host, as the host then has to find as many pages. No file says
which of both it is, so huge pages are timed; NumPy has huge pages in any case.

What stays is read in each call, faster from huge pages: two layers of BERT-base (57 MB of weights) on 3
tokens take 0.74 of the time, a step of GPT-2 0.86 (one thread of Zen 4). So a process spends some time on
them.
"""

from __future__ import annotations

import ctypes
import mmap
import sys
import threading
import time
from typing import Any, Final

import numpy as np

from intarsia.support.aligned_memory import allocate_aligned

_SMALLEST: Final = 1 << 20
"""Bytes from which on memory has pages of its own."""
_HUGE: Final = 1 << 21
_TO_TIME: Final = 3 << 20
"""Bytes of new memory from which on small pages are timed there first, if they are not yet."""
_USUAL_SMALL: Final = 0.0007
"""CPU seconds for the 512 small pages of a huge one before they are timed: 1.4 us each."""
_MOST_EXTRA: Final = 0.5
"""CPU seconds that a process spends on huge pages beyond those for small ones: 330 MB at 4 ms a page."""
_FLAGS: Final = getattr(mmap, "MAP_PRIVATE", 0) | getattr(mmap, "MAP_ANONYMOUS", 0)
_ADVICE: Final = getattr(mmap, "MADV_HUGEPAGE", None)
_REFUSAL: Final = getattr(mmap, "MADV_NOHUGEPAGE", None)
_POPULATE_WRITE: Final = 23
"""MADV_POPULATE_WRITE of Linux 5.14, which Python does not name."""


class PageChoice:
    """The choice between small and huge pages, by the times that this process has seen.

    Args:
        clock: Function that returns the CPU seconds of this thread.
    """

    def __init__(self, clock: Any = time.thread_time) -> None:
        self._clock = clock
        self._lock = threading.Lock()
        self._small_seconds: float | None = None
        self._extra_seconds = 0.0
        self.is_huge = _ADVICE is not None and _REFUSAL is not None

    def fill(self, pages: mmap.mmap, begin: int = 0, end: int | None = None) -> None:
        """Choose the pages of new memory; with huge ones, those are there afterwards.

        Args:
            pages: The memory.
            begin: Offset of the part that nothing has touched.
            end: Offset of the end of this part; by default that of the memory.
        """
        end = len(pages) if end is None else end
        with self._lock:
            if not self.is_huge:
                return
            assert _ADVICE is not None
            assert _REFUSAL is not None
            memory = np.frombuffer(pages, np.uint8)
            first = begin + -(memory.ctypes.data + begin) % _HUGE
            small = self._small_seconds or _USUAL_SMALL
            if self._small_seconds is None and end - first >= _TO_TIME:
                pages.madvise(_REFUSAL, first // mmap.PAGESIZE * mmap.PAGESIZE, _HUGE)
                small = self._small_seconds = self._touch(memory[first : first + _HUGE : mmap.PAGESIZE])
                first += _HUGE
            end = (end - first) // _HUGE * _HUGE + first
            if end <= first:
                return
            try:
                pages.madvise(_ADVICE, first // mmap.PAGESIZE * mmap.PAGESIZE, end - first)
            except OSError:  # a kernel without huge pages
                self.is_huge = False
                return
            for page in range(first, end, _HUGE):
                self._extra_seconds += self._touch(memory[page : page + 1]) - small
                if self._extra_seconds > _MOST_EXTRA:
                    self.is_huge = False
                    pages.madvise(_REFUSAL)
                    return

    def populate(self, pages: mmap.mmap, begin: int, end: int) -> bool:
        """Have the pages of a part of memory without a write, so that other threads may use it meanwhile.

        Args:
            pages: The memory.
            begin: Offset of the part, a multiple of the size of a page.
            end: Offset of its end.

        Returns:
            Whether they are there; false where the system cannot do that.
        """
        memory = np.frombuffer(pages, np.uint8)[begin:end]
        is_huge = self.is_huge and memory.ctypes.data % _HUGE == 0 and end - begin >= _HUGE
        if is_huge and _ADVICE is not None:
            pages.madvise(_ADVICE, begin, (end - begin) // _HUGE * _HUGE)
        began = self._clock()
        if not populate_pages(memory):
            return False
        if is_huge:
            spent = float(self._clock() - began)
            with self._lock:
                small = (self._small_seconds or _USUAL_SMALL) * (end - begin) / _HUGE
                self._extra_seconds += spent - small
                self.is_huge = self.is_huge and self._extra_seconds <= _MOST_EXTRA
        return True

    def _touch(self, elements: np.ndarray[Any, Any]) -> float:
        """Write into pages, and return the CPU seconds that this took."""
        began = self._clock()
        elements[:] = 0
        return float(self._clock() - began)


PAGE_CHOICE: Final = PageChoice()
"""The choice of this process."""


def populate_pages(memory: np.ndarray[Any, np.dtype[np.uint8]]) -> bool:
    """Have the pages of memory, without the interpreter lock; return whether the system can do that."""
    if not sys.platform.startswith("linux"):
        return False
    address = memory.ctypes.data // mmap.PAGESIZE * mmap.PAGESIZE
    size = memory.ctypes.data + memory.nbytes - address
    madvise = ctypes.CDLL(None).madvise
    return not madvise(ctypes.c_void_p(address), ctypes.c_size_t(size), ctypes.c_int(_POPULATE_WRITE))


def allocate_pages(size: int) -> np.ndarray[Any, np.dtype[np.uint8]]:
    """Allocate `size` bytes of zeros that begin at a multiple of `ALIGNMENT`, for what stays.

    They go back to the system with the array. Memory that is allocated again and again is better taken from
    `allocate_aligned`, which reuses it.

    Raises:
        MemoryError: The size exceeds the address space or the memory that is free.
    """
    if size < _SMALLEST or not _FLAGS:
        memory = allocate_aligned(size)
        memory[:] = 0
        return memory
    try:
        pages = mmap.mmap(-1, size, flags=_FLAGS)
    except (OSError, OverflowError) as error:
        raise MemoryError(f"no {size} bytes of memory: {error}") from error
    PAGE_CHOICE.fill(pages)
    return np.frombuffer(pages, np.uint8)
