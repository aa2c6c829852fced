"""Large memory in pages of its own."""

from __future__ import annotations

import mmap
from collections.abc import Callable, Iterator

import numpy as np
import pytest

from intarsia.support.aligned_memory import ALIGNMENT
from intarsia.support.page_memory import PageChoice, allocate_pages

_SIZE = 12 << 20
_PRIVATE = getattr(mmap, "MAP_PRIVATE", 0) | getattr(mmap, "MAP_ANONYMOUS", 0)


@pytest.mark.parametrize("size", [1, 100, (1 << 20) - 1, 1 << 20, (9 << 20) + 5])
def test_memory_is_aligned_zero_and_writable(size: int) -> None:
    memory = allocate_pages(size)
    assert memory.shape == (size,)
    assert memory.ctypes.data % ALIGNMENT == 0
    assert not memory.any()
    memory[:] = 7
    assert (memory == 7).all()


def test_too_much_memory_is_refused() -> None:
    with pytest.raises(MemoryError):
        allocate_pages(1 << 62)


def clock(small: float, huge: float) -> Callable[[], float]:
    """Return a clock by which the first measured step takes `small` seconds and all others `huge`."""

    def times() -> Iterator[float]:
        now = 0.0
        for number in range(1 << 20):
            yield now
            now += small if number == 0 else huge
            yield now

    readings = times()
    return lambda: next(readings)


@pytest.mark.skipif(not hasattr(mmap, "MADV_HUGEPAGE"), reason="the system has no huge pages")
@pytest.mark.parametrize(("huge", "expected"), [(0.0001, True), (0.004, True), (0.6, False)])
def test_huge_pages_are_taken_until_they_cost_too_much_more(huge: float, expected: bool) -> None:
    choice = PageChoice(clock(0.0007, huge))
    for _ in range(2):
        pages = mmap.mmap(-1, _SIZE, flags=_PRIVATE)
        choice.fill(pages)
        memory = np.frombuffer(pages, np.uint8)
        assert not memory.any()
        memory[:] = 1
        assert choice.is_huge == expected
