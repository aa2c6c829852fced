"""Memory that grows without a move: address space is reserved, and its pages are taken when they are needed.

A page of 4 KiB costs 0.7 to 2.3 us when it is first touched. Memory that is allocated anew for each larger
size pays this for all of its pages each time: 1.3 ms for the values of two layers of BERT-base on 128 tokens
(Zen 4, a virtual machine).
"""

from __future__ import annotations

import mmap
from typing import Final

import numpy as np

from intarsia.support.aligned_memory import allocate_aligned
from intarsia.support.forks import ForkSafeLock
from intarsia.support.machine_memory import machine_memory
from intarsia.support.page_memory import NO_RESERVE, PAGE_CHOICE
from intarsia.support.pages_ahead import PAGES_AHEAD

_HUGE: Final = 1 << 21
_FEW: Final = 1 << 18
"""Bytes up to which memory comes from the heap, so that many small programs have no huge page each."""
_LEAST_RESERVED: Final = 1 << 26
_MOST_EXPECTED: Final = 1 << 26
"""Bytes that memory is expected to grow by at most where its largest size is not known."""
_TIMES_RESERVED: Final = 16
_FLAGS: Final = getattr(mmap, "MAP_PRIVATE", 0) | getattr(mmap, "MAP_ANONYMOUS", 0)
_LOCK: Final = ForkSafeLock()
"""Held while the end of the pages that are there moves, which the thread of `PAGES_AHEAD` moves as well."""


class GrowingMemory:
    """Uninitialised memory that grows, and moves only where the reserved address space ends.

    Attributes:
        array: The memory; its address is a multiple of `ALIGNMENT`. It goes back to the system with the last
            array that refers to it.
    """

    def __init__(self) -> None:
        self.array = allocate_aligned(0)
        self._pages: mmap.mmap | None = None
        self._begin = self._taken = 0
        self._expected, self._largest = 0, machine_memory()

    @property
    def ready(self) -> int:
        """Number of the first bytes that have pages."""
        return max(self.array.nbytes, self._taken - self._begin)

    @property
    def bytes_ahead(self) -> int:
        """As `GrowsAhead.bytes_ahead`."""
        return max(0, self._taken - self._begin - self.array.nbytes)

    def expect_largest(self, size: int) -> bool:
        """Take pages for the largest size that memory ever has, in the background; see `grow` for the result.

        Nothing may use the bytes so far if they move.
        """
        self._largest = size
        if self._pages is None and size > _FEW and _FLAGS and size <= machine_memory():
            self.array = np.frombuffer(self._reserve(size), np.uint8)[self._begin : self._begin]
            self._expect(size)
            return True
        self._expect(size)
        return False

    def expect_growth(self) -> None:
        """Take pages for twice as many bytes in the background: the next size may be larger."""
        size = self.array.nbytes
        self._expect(min(self._largest, size + min(size, _MOST_EXPECTED)))

    def _expect(self, size: int) -> None:
        if self._pages is not None and size > max(self._expected, self.ready):
            self._expected = size
            PAGES_AHEAD.request(self, size)

    def take_ahead(self, size: int) -> bool:
        """As `GrowsAhead.take_ahead`."""
        pages, begin = self._pages, self._taken
        if pages is None or begin >= min(self._begin + size, len(pages)):
            return False
        end = min(begin + _HUGE, len(pages))
        if not PAGE_CHOICE.populate(pages, begin, end):
            return False
        with _LOCK:
            if self._pages is pages:  # it has not moved meanwhile
                self._taken = max(self._taken, end)
        return True

    def grow(self, size: int) -> bool:
        """Have at least `size` bytes, and return whether they are elsewhere than before.

        Bytes that do not move keep their values.

        Raises:
            MemoryError: There is not so much memory.
        """
        if size <= self.array.nbytes:
            return False
        if size > machine_memory():
            raise MemoryError(f"{size} bytes are more than this machine has")
        moves = self._pages is None or self._begin + size > len(self._pages)
        if moves and (size <= _FEW or not _FLAGS):
            self.array = allocate_aligned(1 << (size - 1).bit_length())
            return True
        if moves:
            self._reserve(size)
        assert self._pages is not None
        self._take(self._pages, size)
        return moves

    def _reserve(self, size: int) -> mmap.mmap:
        pages = _reserved(size)
        with _LOCK:
            self._pages = pages
            self._begin = self._taken = -np.frombuffer(pages, np.uint8).ctypes.data % _HUGE
        return pages

    def _take(self, pages: mmap.mmap, size: int) -> None:
        end, taken = self._begin + size, self._taken
        if end > taken:
            whole = min(end + (self._begin - end) % _HUGE, len(pages))
            PAGE_CHOICE.fill(pages, taken, whole)
            with _LOCK:
                self._taken = max(self._taken, whole)
        self.array = np.frombuffer(pages, np.uint8)[self._begin : end]


def _reserved(size: int) -> mmap.mmap:
    """Return address space for `size` bytes behind a multiple of a huge page, and for more if there is.

    Raises:
        MemoryError: There is none.
    """
    least = size + _HUGE
    wanted = max(least, min(_LEAST_RESERVED + _TIMES_RESERVED * size, machine_memory()))
    while True:
        try:
            return mmap.mmap(-1, wanted, flags=_FLAGS | NO_RESERVE)
        except (OSError, OverflowError) as error:
            if wanted == least:
                raise MemoryError(f"no {size} bytes of memory: {error}") from error
            wanted = max(least, wanted // 2)
