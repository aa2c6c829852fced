"""Large memory that stays, in pages of its own: huge ones unless those take far more time than small ones.

Such memory lies one behind another in reserved address space, so that huge pages cover all of it. In pages
of its own for each array a matrix of 1 MiB would have small ones, as would begin and end of a larger one: a
row by 512x512 weights that come from memory takes 60 us with small pages and 37 with huge ones, since neither
the processor's prefetcher nor its translation of addresses goes beyond a page (Zen 4).

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
import weakref
from collections import Counter, deque
from typing import Any, Final

import numpy as np

from intarsia.support.aligned_memory import ALIGNMENT, allocate_aligned
from intarsia.support.array_address import array_address
from intarsia.support.forks import ForkSafeLock, reset_in_children

_SMALLEST: Final = 1 << 17
"""Bytes from which on memory has pages of its own."""
_RESERVED: Final = 1 << 28
"""Bytes of address space that is reserved at a time."""
_LARGEST_SHARE: Final = 4
"""Divisor of that which gives the size from which on memory has address space of its own."""
_HUGE: Final = 1 << 21
_TO_TIME: Final = 3 << 20
"""Bytes of new memory from which on small pages are timed first, if they are not yet."""
_USUAL_SMALL: Final = 0.0007
"""CPU seconds for the 512 small pages of a huge one before they are timed: 1.4 us each."""
_MOST_EXTRA: Final = 0.5
"""CPU seconds that a process spends on huge pages beyond those for small ones: 330 MB at 4 ms a page."""
_FLAGS: Final = getattr(mmap, "MAP_PRIVATE", 0) | getattr(mmap, "MAP_ANONYMOUS", 0)
NO_RESERVE: Final = getattr(mmap, "MAP_NORESERVE", 0x4000 if sys.platform == "linux" else 0)
"""Flag of memory that does not count before it is touched; Python names it from 3.13 on."""
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
        self._lock = ForkSafeLock()
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
            if self._small_seconds is None and end - first >= _TO_TIME:
                self._small_seconds = self._time_small()
            small = self._small_seconds or _USUAL_SMALL
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

    def _time_small(self) -> float:
        """Return the CPU seconds of the small pages of a huge one, in memory that is not used otherwise."""
        pages = mmap.mmap(-1, _HUGE, flags=_FLAGS)
        assert _REFUSAL is not None
        pages.madvise(_REFUSAL)
        return self._touch(np.frombuffer(pages, np.uint8)[:: mmap.PAGESIZE])

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


class PageSpace:
    """Reserved address space, from which memory is taken piece by piece; its huge pages have several pieces.

    It goes back to the system with the last piece, and before that each huge page of which no piece is left.

    Raises:
        OSError, OverflowError: There is no such address space.
    """

    def __init__(self) -> None:
        self._pages = mmap.mmap(-1, _RESERVED + _HUGE, flags=_FLAGS | NO_RESERVE)
        self._address = array_address(np.frombuffer(self._pages, np.uint8))
        self._next = self._filled = -self._address % _HUGE
        self._first = self._next
        self._pieces: Counter[int] = Counter()  # by huge page
        self._lock = threading.Lock()
        self._returned: deque[tuple[int, int]] = deque()
        reset_in_children(self)

    def reset_in_child(self) -> None:
        """Replace the lock, which another thread of the parent may hold."""
        self._lock = threading.Lock()

    def take(self, size: int) -> np.ndarray[Any, np.dtype[np.uint8]] | None:
        """Return `size` bytes of zeros; None if there are not as many left."""
        with self._lock:
            begin = self._next
            end = begin + size
            if end > len(self._pages):
                return None
            self._next = end + -end % ALIGNMENT
            if end > self._filled:
                whole = min(end + (self._first - end) % _HUGE, len(self._pages))
                PAGE_CHOICE.fill(self._pages, self._filled, whole)
                self._filled = whole
            self._pieces.update(self._pages_of(begin, end))
        self._drop_pages()
        piece = _Piece(self, begin, end)
        return np.asarray(piece)

    def address(self, begin: int) -> int:
        """Return the address of a byte."""
        return self._address + begin

    def give_back(self, begin: int, end: int) -> None:
        """Note that a piece is gone; called in any thread and in garbage collection, even in `take`."""
        self._returned.append((begin, end))
        self._drop_pages()

    def _drop_pages(self) -> None:
        """Drop the pages of which no piece is left, unless this happens already: that goes on with these."""
        while self._returned and self._lock.acquire(blocking=False):
            try:
                while self._returned:
                    pages = self._pages_of(*self._returned.popleft())
                    self._pieces.subtract(pages)
                    for page in pages:
                        if not self._pieces[page]:
                            del self._pieces[page]
                            self._drop(self._first + page * _HUGE)
            finally:
                self._lock.release()

    def _drop(self, begin: int) -> None:
        unneeded = getattr(mmap, "MADV_DONTNEED", None)
        if unneeded is not None:
            first = begin // mmap.PAGESIZE * mmap.PAGESIZE
            self._pages.madvise(unneeded, first, min(_HUGE, len(self._pages) - first))

    def _pages_of(self, begin: int, end: int) -> range:
        """Return the numbers of the huge pages that a piece touches."""
        return range((begin - self._first) // _HUGE, (end - 1 - self._first) // _HUGE + 1)


class _Piece:
    """The base of an array and its views; when they are gone, its memory is given back."""

    __slots__ = ("__array_interface__", "_begin", "_end", "_space")

    def __init__(self, space: PageSpace, begin: int, end: int) -> None:
        self._space, self._begin, self._end = space, begin, end
        self.__array_interface__ = {
            "data": (space.address(begin), False),
            "shape": (end - begin,),
            "typestr": "|u1",
            "version": 3,
        }

    def __del__(self) -> None:
        self._space.give_back(self._begin, self._end)


class _Spaces:
    """The address space that memory is taken from; it stays only as long as something is there."""

    def __init__(self) -> None:
        self._lock = ForkSafeLock()
        self._space: weakref.ref[PageSpace] | None = None

    def take(self, size: int) -> np.ndarray[Any, np.dtype[np.uint8]]:
        """Return `size` bytes of zeros.

        Raises:
            OSError, OverflowError: There is no address space.
        """
        with self._lock:
            space = None if self._space is None else self._space()
            memory = None if space is None else space.take(size)
            if memory is None:
                space = PageSpace()
                self._space = weakref.ref(space)
                memory = space.take(size)
            assert memory is not None
            return memory


_SPACES: Final = _Spaces()


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

    They go back to the system with the array, but for pages that others use as well. Memory that is allocated
    again and again is better taken from `allocate_aligned`, which reuses it.

    Raises:
        MemoryError: The size exceeds the address space or the memory that is free.
    """
    if size < _SMALLEST or not _FLAGS:
        memory = allocate_aligned(size)
        memory[:] = 0
        return memory
    try:
        if size * _LARGEST_SHARE <= _RESERVED:
            return _SPACES.take(size)
        pages = mmap.mmap(-1, size + _HUGE, flags=_FLAGS)
    except (OSError, OverflowError) as error:
        raise MemoryError(f"no {size} bytes of memory: {error}") from error
    begin = -array_address(np.frombuffer(pages, np.uint8)) % _HUGE
    PAGE_CHOICE.fill(pages, begin)
    return np.frombuffer(pages, np.uint8)[begin : begin + size]
